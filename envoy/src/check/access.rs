// SPDX-License-Identifier: Apache-2.0
//! Access rules that admit more clients than their author may mean, and keys that other users can read.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use super::Finding;
use crate::origin::Origin;
use crate::settings::Settings;
use crate::sites::{Site, SiteAccess};

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
    let readable = access.files().filter(|file| is_readable_to_others(file));
    findings.extend(readable.map(|file| {
        let file = file.display();
        format!("{name}: other users can read the secrets in {file}: run chmod 600 {file}")
    }));
    findings.into_iter().map(Finding::warning).collect()
}

fn exceptions(access: &SiteAccess) -> impl Iterator<Item = &str> {
    let patterns = access.section.get("except").and_then(Value::as_array);
    patterns.into_iter().flatten().filter_map(Value::as_str)
}

fn is_readable_to_others(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|about| about.permissions().mode() & 0o007 != 0)
}
