// SPDX-License-Identifier: Apache-2.0
//! The sites: those of the file that `SITES` names, or the one that `ORIGIN` and its companions make.

use std::time::SystemTime;

use super::Settings;
use super::environment::Environment;
use super::listeners::Clients;
use crate::origin::{Origin, is_region};
use crate::sites::{Certificate, Credentials, Site, Sites, Surroundings, part_policy, ready_made};

/// Settings that each site has for itself, and where.
const OF_A_SITE: [(&str, &str); 6] = [
    ("ORIGIN", "origin"),
    ("S3_ENDPOINT", "endpoint"),
    ("S3_ADDRESSING", "addressing"),
    ("POLICY", "policy"),
    ("TLS_CERT", "tls.certificate"),
    ("TLS_KEY", "tls.key"),
];

/// Reads the file of sites. `None`: there is none, or there is a problem.
pub fn read(env: &mut Environment<'_>, clients: Option<&Clients>) -> Option<Sites> {
    let file = env.set("SITES")?;
    for (name, field) in OF_A_SITE {
        if env.set(name).is_some() {
            let accepted = format!("must be unset beside SITES: a site has {field} for this");
            env.refuse(name, None, accepted);
        }
    }
    let region = env.parse("AWS_REGION", "a region such as us-east-1", |text| {
        is_region(text).then(|| text.to_owned())
    });
    let surroundings = Surroundings {
        lookup: env.lookup(),
        region: &region?,
        behind_proxy: clients.is_some_and(|clients| clients.trusted_hops > 0),
        now: SystemTime::now(),
    };
    match Sites::read(&file, surroundings) {
        Ok(sites) => Some(sites),
        Err(problems) => {
            problems.iter().for_each(|problem| env.report(problem));
            None
        }
    }
}

impl Settings {
    /// The sites of the file, or the one of `ORIGIN`; `None`: the edge serves the demo.
    pub fn all_sites(&self) -> Option<Sites> {
        let single = || Some(Sites::single(self, self.origin.as_ref()?));
        self.sites.clone().or_else(single)
    }
}

impl Sites {
    /// The one site of `ORIGIN` and its companions, which has no name, with the sections of its policy as far as the
    /// policy can be read. `origin` is what stands behind it, which for the demo the settings do not know.
    pub fn single(settings: &Settings, origin: &Origin) -> Self {
        let (policy_name, text) = match (&settings.policy, origin) {
            (Some(chosen), _) => (chosen.name.as_str(), chosen.text.as_str()),
            (None, Origin::Bucket(_)) => ("bucket", ready_made("bucket").unwrap_or_default()),
            (None, Origin::Http(_)) => ("http", ready_made("http").unwrap_or_default()),
        };
        let (edge, policy) = part_policy(serde_yaml_ng::from_str(text).unwrap_or_default());
        let token = settings.session_token && settings.origin.is_some();
        let credentials = if settings.static_credentials {
            Credentials::Environment {
                access_key_id: "AWS_ACCESS_KEY_ID".to_owned(),
                secret_access_key: "AWS_SECRET_ACCESS_KEY".to_owned(),
                session_token: token.then(|| "AWS_SESSION_TOKEN".to_owned()),
            }
        } else {
            Credentials::Chain
        };
        let certificate = settings.tls.as_ref().map(|tls| Certificate {
            chain: tls.cert.clone(),
            key: tls.key.clone(),
        });
        let site = Site {
            name: String::new(),
            hosts: Vec::new(),
            path: None,
            origin: origin.clone(),
            credentials,
            policy_name: policy_name.to_owned(),
            policy,
            certificate,
            redirect_to_https: false,
            hsts: None,
            share: 1,
            purge_token: None,
        };
        Self {
            edge,
            sites: vec![site],
        }
    }
}
