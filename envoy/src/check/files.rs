// SPDX-License-Identifier: Apache-2.0
//! What is wrong with the policy and the certificates. Settings and the file of sites have been checked as they were
//! read.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use super::Finding;
use crate::cache;
use crate::demo::Demo;
use crate::render;
use crate::settings::Settings;
use crate::sites::{Certificate, Site};

/// How long before its end a certificate is warned of.
const RENEWAL: Duration = Duration::from_secs(30 * DAY);
const DAY: u64 = 24 * 60 * 60;

/// Checks the policy of `ORIGIN` and the certificates.
pub fn check(settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    if settings.sites.is_none() {
        let example = Demo::example_origin();
        let origin = settings.origin.as_ref().unwrap_or(&example);
        let entries = settings.cache.dir.join(cache::ENTRIES);
        if let Err(error) = render::render(settings, origin, &entries) {
            findings.push(Finding::Problem(format!("{error:#}")));
        }
    }
    let now = SystemTime::now();
    let sites = settings.all_sites();
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
            let text = format!("{chain}: the certificate{of} expires in {days} days: renew it");
            let warning = (left < RENEWAL).then_some(Finding::Warning(text));
            warning.into_iter().collect()
        }
        Err(problems) => {
            let name = |of_key: bool| if of_key { "TLS_KEY" } else { "TLS_CERT" };
            let problems = problems.into_iter();
            let text =
                problems.map(|problem| format!("{}={}", name(problem.of_key), problem.message));
            text.map(Finding::Problem).collect()
        }
    }
}
