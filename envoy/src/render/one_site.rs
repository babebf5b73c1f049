// SPDX-License-Identifier: Apache-2.0
//! The one site of an edge whose settings name an origin and no file of sites.

use anyhow::Context as _;
use serde_json::json;

use crate::origin::Origin;
use crate::settings::{BUCKET, HTTP, Settings};
use crate::sites::{Certificate, Site, SiteAccess, Sites, read_yaml};

/// The sites of the settings; with neither `SLUICE_SITES` nor `SLUICE_ORIGIN` the one site for `demo`.
///
/// # Errors
/// The policy is not a valid document.
pub fn sites(settings: &Settings, demo: Option<&Origin>) -> anyhow::Result<Sites> {
    if let Some(sites) = &settings.sites {
        return Ok(sites.clone());
    }
    let origin = settings.origin.as_ref().or(demo);
    one_site(
        settings,
        origin.context("SLUICE_ORIGIN or SLUICE_SITES: must be set")?,
    )
}

/// The one site for `origin`. It has no name, and serves all requests.
///
/// # Errors
/// The policy is not a valid document.
pub fn one_site(settings: &Settings, origin: &Origin) -> anyhow::Result<Sites> {
    let (policy_name, text) = match (&settings.policy, origin) {
        (Some(chosen), _) => (
            format!("SLUICE_POLICY={}", chosen.name),
            chosen.text.as_str(),
        ),
        (None, Origin::Bucket(_)) => ("the built-in policy for buckets".into(), BUCKET),
        (None, Origin::Http(_)) => ("the built-in policy for HTTP origins".into(), HTTP),
    };
    let (policy, _) = read_yaml(text).with_context(|| policy_name.clone())?;
    let certificate = settings.tls.as_ref().map(|tls| Certificate {
        chain: tls.cert.clone(),
        key: tls.key.clone(),
    });
    let variables = settings.access.iter().flat_map(SiteAccess::variables);
    let site = Site {
        name: String::new(),
        hosts: Vec::new(),
        path: None,
        origin: origin.clone(),
        servers: settings.servers.clone(),
        keepalive: settings.keepalive,
        credentials: settings.credentials.clone(),
        failover: settings.failover.clone(),
        hedge_after: settings.hedge_after,
        policy_name,
        policy,
        access: settings.access.clone(),
        certificate,
        redirect_to_https: settings.https.redirects,
        hsts: settings.https.hsts.map(|hsts| hsts.to_string()),
        share: 1,
        purge_token: None,
        secret_variables: variables.map(str::to_owned).collect(),
    };
    Ok(Sites {
        edge: json!({}),
        sites: vec![site],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::Credentials;

    #[test]
    fn one_origin_is_one_site_without_a_name() {
        let all = [
            ("SLUICE_ORIGIN", "s3://site"),
            ("AWS_ACCESS_KEY_ID", "k"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("AWS_SESSION_TOKEN", "t"),
        ];
        let read = |variables: &[(&str, &str)]| {
            let lookup = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).into())
            };
            sites(&Settings::from_lookup(&lookup).unwrap(), None).unwrap()
        };
        let [site] = &read(&all).sites[..] else {
            panic!("one site")
        };
        assert_eq!(site.name, "");
        let named = Credentials::Environment {
            access_key_id: "AWS_ACCESS_KEY_ID".into(),
            secret_access_key: "AWS_SECRET_ACCESS_KEY".into(),
            session_token: Some("AWS_SESSION_TOKEN".into()),
        };
        assert_eq!(site.credentials, named);
        let chain = read(&all[..1]);
        assert_eq!(chain.sites[0].credentials, Credentials::Chain);
    }
}
