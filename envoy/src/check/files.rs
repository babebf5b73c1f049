// SPDX-License-Identifier: Apache-2.0
//! Problems of the policy and the certificates. Settings and the file of sites are checked when they are read.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use super::Finding;
use crate::cache::{self, EarlierRuns};
use crate::demo::Demo;
use crate::render::{self, Run};
use crate::settings::Settings;
use crate::sites::{Certificate, Site};

/// The time before the end of a certificate from which on the check warns.
const RENEWAL: Duration = Duration::from_secs(30 * DAY);
const DAY: u64 = 24 * 60 * 60;

/// Checks the policies and the certificates.
pub fn check(settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Err(error) = render(settings) {
        findings.push(Finding::Problem(format!("{error:#}")));
    }
    let now = SystemTime::now();
    let sites = render::sites(settings, None).ok();
    let mut known = BTreeSet::new();
    for site in sites.iter().flat_map(|sites| &sites.sites) {
        let certificate = site.certificate.as_ref();
        if let Some(certificate) =
            certificate.filter(|certificate| known.insert(&certificate.chain))
        {
            findings.extend(check_certificate(certificate, site, now));
        }
    }
    findings
}

/// Renders the configuration that an edge with these settings would start with.
fn render(settings: &Settings) -> anyhow::Result<String> {
    let sites = render::sites(settings, Some(&Demo::example_origin()))?;
    let run = Run {
        cache_dir: &settings.cache.dir.join(cache::ENTRIES),
        earlier_runs: &EarlierRuns::default(),
        sns: None,
    };
    render::render_whole(settings, &sites, run)
}

fn check_certificate(certificate: &Certificate, site: &Site, now: SystemTime) -> Vec<Finding> {
    match certificate.inspect(now) {
        Ok(certified) => {
            let left = certified.not_after.duration_since(now).unwrap_or_default();
            let days = left.as_secs() / DAY;
            let chain = certificate.chain.display();
            let of = match site.name.as_str() {
                "" => String::new(),
                name => format!(" of the site {name}"),
            };
            let text = |when| format!("{chain}: the certificate{of} {when}: renew it");
            let finding = if certified.not_after < now {
                Some(Finding::Problem(text("has expired".to_owned())))
            } else if left < RENEWAL {
                Some(Finding::Warning(text(format!("expires in {days} days"))))
            } else {
                None
            };
            finding.into_iter().collect()
        }
        Err(problems) => {
            let name = |of_key: bool| {
                if of_key {
                    "SLUICE_TLS_KEY"
                } else {
                    "SLUICE_TLS_CERT"
                }
            };
            let problems = problems.into_iter();
            let text =
                problems.map(|problem| format!("{}={}", name(problem.of_key), problem.message));
            text.map(Finding::Problem).collect()
        }
    }
}
