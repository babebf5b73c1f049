// SPDX-License-Identifier: Apache-2.0
//! Problems of the policy, the certificates and the format of the access log. Settings and the file of sites are checked when they are read.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use sluice_core::policy::PolicyError;

use super::{Finding, Place, access, listing};
use crate::cache::{self, EarlierRuns};
use crate::demo::Demo;
use crate::render::{self, Run};
use crate::run::check_access_log_format;
use crate::settings::Settings;
use crate::sites::{Certificate, CertificateProblem, Site, YamlFault, read_yaml};

/// The time before the end of a certificate from which on the check warns.
const RENEWAL: Duration = Duration::from_secs(30 * DAY);
const DAY: u64 = 24 * 60 * 60;

/// Checks the policies, the certificates and the format of the access log.
pub fn check(settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Err(error) = render(settings) {
        findings.push(Finding::problem(format!("{error:#}")).at(place_in_policy(settings, &error)));
    }
    if let Err(error) = check_access_log_format(settings) {
        findings.push(Finding::problem(format!("{error:#}")));
    }
    let now = SystemTime::now();
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let sites = render::sites(settings, None).ok();
    let mut known = BTreeSet::new();
    let sites = sites.as_ref();
    let policies = sites.and_then(|sites| render::filter_sites(settings, sites).ok());
    for site in sites.iter().flat_map(|sites| &sites.sites) {
        findings.extend(
            policies
                .as_ref()
                .and_then(|policies| listing::check(site, policies)),
        );
        findings.extend(access::check(site, settings));
        findings.extend(check_move(site, today));
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
        purge_log: None,
        earlier_runs: &EarlierRuns::default(),
        sns: None,
        feed: None,
        secret: None,
    };
    render::render_whole(settings, &sites, run)
}

/// The place of an error in the file that `SLUICE_POLICY` names.
fn place_in_policy(settings: &Settings, error: &anyhow::Error) -> Place {
    let Some(policy) = &settings.policy else {
        return Place::default();
    };
    let field = error.downcast_ref::<PolicyError>().map(PolicyError::path);
    let line = match error.downcast_ref::<YamlFault>() {
        Some(fault) => fault.line,
        None => read_yaml(&policy.text)
            .ok()
            .and_then(|(_, lines)| lines.line(field?)),
    };
    let file = policy.file().map(|file| file.display().to_string());
    Place {
        field: field.map(str::to_owned),
        line: line.filter(|_| file.is_some()),
        file,
    }
}

/// Reminds of a bucket that is being moved, from the set day on.
fn check_move(site: &Site, today: Date) -> Option<Finding> {
    let failover = site.failover.as_ref()?;
    let until = failover.on_missing?.until?;
    let of = match site.name.as_str() {
        "" => String::new(),
        name => format!(" of the site {name}"),
    };
    let text = format!(
        "on_missing{of} should have ended on {until}: if {} has all objects, remove it, because deleted objects come \
         back from {}",
        site.origin, failover.origin
    );
    (until <= today).then(|| Finding::warning(text))
}

fn check_certificate(certificate: &Certificate, site: &Site, now: SystemTime) -> Vec<Finding> {
    let problems = match certificate.inspect(now) {
        Ok(certified) => {
            let finding = check_validity(certificate, site, certified.not_after, now);
            return finding.into_iter().collect();
        }
        Err(problems) => problems.into_iter(),
    };
    let finding = |problem: CertificateProblem| {
        let (name, file) = if problem.of_key {
            ("SLUICE_TLS_KEY", &certificate.key)
        } else {
            ("SLUICE_TLS_CERT", &certificate.chain)
        };
        let place = Place {
            file: Some(file.display().to_string()),
            ..Place::of_setting(name)
        };
        Finding::problem(format!("{name}={}", problem.message)).at(place)
    };
    problems.map(finding).collect()
}

/// Reports a certificate that has expired, or expires soon.
fn check_validity(
    certificate: &Certificate,
    site: &Site,
    not_after: SystemTime,
    now: SystemTime,
) -> Option<Finding> {
    let left = not_after.duration_since(now).unwrap_or_default();
    let chain = certificate.chain.display();
    let of = match site.name.as_str() {
        "" => String::new(),
        name => format!(" of the site {name}"),
    };
    let text = |when| format!("{chain}: the certificate{of} {when}: renew it");
    let finding = if not_after < now {
        Finding::problem(text("has expired".to_owned()))
    } else if left < RENEWAL {
        let days = left.as_secs() / DAY;
        Finding::warning(text(format!("expires in {days} days")))
    } else {
        return None;
    };
    Some(finding.at(Place::of_file(&certificate.chain)))
}
