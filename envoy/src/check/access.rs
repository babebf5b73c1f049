// SPDX-License-Identifier: Apache-2.0
//! Access rules that admit more clients than their author may mean, and keys that other users can read.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use super::Finding;
use crate::origin::Origin;
use crate::settings::Settings;
use crate::sites::{IssuerKeys, Site, SiteAccess};

/// The findings about the access rules of a site.
pub fn check(site: &Site, settings: &Settings) -> Vec<Finding> {
    let Some(access) = &site.access else {
        return Vec::new();
    };
    let name = match site.name.as_str() {
        "" => "SLUICE_ACCESS".to_owned(),
        name => format!("{name}: access"),
    };
    let behind_proxy = settings.clients.trusted_hops > 0;
    let is_clear = site.certificate.is_none() && !behind_proxy;
    let mut findings = Vec::new();
    if access.policy.signed().is_some() && is_clear {
        findings.push(format!(
            "{name}: the site has signed URLs but no certificate: signatures and cookies are sent in clear"
        ));
    }
    if access.policy.basic().is_some() && is_clear {
        findings.push(format!(
            "{name}: the site has the scheme basic but no certificate: passwords are sent in clear"
        ));
    }
    if access.policy.forward().is_some() && is_clear {
        findings.push(format!(
            "{name}: the site has the scheme forward but no certificate: cookies of sessions are sent in clear"
        ));
    }
    let is_http = matches!(site.origin, Origin::Http(_));
    for pattern in exceptions(access) {
        if pattern.trim_matches('*').trim_start_matches('/').is_empty() && pattern.contains('*') {
            findings.push(format!("{name}: except: {pattern:?} opens every path"));
        } else if is_http && pattern.starts_with('*') {
            findings.push(format!(
                "{name}: except: {pattern:?} also opens pages of an application that ignores the end of a path, such \
                 as /account/x.css: begin the pattern with a folder"
            ));
        }
    }
    findings.extend(check_key_set(&name, access, is_clear));
    let readable = access.secret_files().filter(|file| has_mode(file, 0o007));
    findings.extend(readable.map(|file| {
        let file = file.display();
        format!("{name}: other users can read the secrets in {file}: run chmod 600 {file}")
    }));
    findings.into_iter().map(Finding::warning).collect()
}

/// The findings about the keys that verify tokens.
fn check_key_set(name: &str, access: &SiteAccess, is_clear: bool) -> Vec<String> {
    let Some(issuer) = &access.issuer else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    if is_clear {
        findings.push(format!(
            "{name}: the site has the scheme jwt but no certificate: tokens are sent in clear"
        ));
    }
    match &issuer.keys {
        IssuerKeys::Url { url, endpoint, .. } if !endpoint.tls => findings.push(format!(
            "{name}: jwt: the keys of {url} are fetched in clear: whoever is on the way can issue tokens"
        )),
        IssuerKeys::File { path, .. } if has_mode(path, 0o002) => {
            let path = path.display();
            findings.push(format!(
                "{name}: other users can replace the keys in {path}, and so issue tokens: run chmod o-w {path}"
            ));
        }
        IssuerKeys::Url { .. } | IssuerKeys::File { .. } => {}
    }
    findings
}

fn exceptions(access: &SiteAccess) -> impl Iterator<Item = &str> {
    let patterns = access.section.get("except").and_then(Value::as_array);
    patterns.into_iter().flatten().filter_map(Value::as_str)
}

fn has_mode(file: &Path, bits: u32) -> bool {
    file.metadata()
        .is_ok_and(|about| about.permissions().mode() & bits != 0)
}
