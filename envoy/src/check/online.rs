// SPDX-License-Identifier: Apache-2.0
//! Asks the buckets of all sites, several at one time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::bucket::ask;
use super::{Finding, feed};
use crate::net::bucket_client::BucketClient;
use crate::origin::Origin;
use crate::purge_feed::FeedPlace;
use crate::render;
use crate::run;
use crate::settings::Settings;
use crate::sites::{Site, bucket_keys};

/// Number of buckets that are asked at one time.
const AT_ONE_TIME: usize = 16;

/// Settings of a single origin that messages name, and the names of the matching fields of a site.
const FIELDS: [(&str, &str); 6] = [
    (
        "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN",
        "what `credentials` names",
    ),
    ("AWS_REGION=", "region: "),
    ("AWS_REGION", "`region`"),
    ("SLUICE_S3_ENDPOINT", "`endpoint`"),
    ("SLUICE_S3_ADDRESSING", "`addressing`"),
    ("SLUICE_ORIGIN", "`origin`"),
];

/// Asks each bucket, and returns the problems in the order of the sites.
pub fn check(settings: &Settings) -> Vec<Finding> {
    let sites = render::sites(settings, None).ok();
    let sites: Vec<_> = sites.iter().flat_map(|sites| &sites.sites).collect();
    let (next, findings) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONE_TIME.min(sites.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(site) = sites.get(index) else { break };
                    let found = check_site(settings, site).into_iter();
                    let found = found.map(|finding| (index, of_site(site, finding)));
                    if let Ok(mut findings) = findings.lock() {
                        findings.extend(found);
                    }
                }
            });
        }
    });
    let mut findings = findings.into_inner().unwrap_or_default();
    findings.sort_by_key(|(index, _)| *index);
    let place = FeedPlace::read_by_edges(settings);
    let of_feed = place.iter().flat_map(|place| feed::check(settings, place));
    let of_sites = findings.into_iter().map(|(_, finding)| finding);
    of_sites.chain(of_feed).collect()
}

fn check_site(settings: &Settings, site: &Site) -> Vec<Finding> {
    let Origin::Bucket(bucket) = &site.origin else {
        return Vec::new();
    };
    match bucket_keys(&site.credentials, &|name| settings.secrets.variable(name)) {
        Ok(Some(keys)) => {
            let client = BucketClient::new(bucket, keys, settings.aws_ca_file.as_deref());
            match client.and_then(|client| ask(&client)) {
                Ok(answer) => answer.findings(),
                Err(error) => {
                    let remedy = "correct SLUICE_S3_ENDPOINT, or look at the network";
                    vec![Finding::problem(format!("{error:#}: {remedy}"))]
                }
            }
        }
        Ok(None) => check_by_edge(settings, site),
        Err(error) => vec![Finding::problem(format!("{error:#}"))],
    }
}

/// Asks the bucket through the edge with these settings. Only the edge has the credentials of the standard chain.
fn check_by_edge(settings: &Settings, site: &Site) -> Vec<Finding> {
    if !run::health_check(settings)() {
        let text = "the bucket has not been asked: only Envoy gets credentials of the standard chain (web identity, \
                    container and instance roles): start the edge, and check again";
        return vec![Finding::warning(text)];
    }
    let problem = run::check_bucket(settings, site).err();
    let problem = problem.map(|error| Finding::problem(format!("{error:#}")));
    problem.into_iter().collect()
}

/// Adds the site's name to a finding, and names the fields of the site's entry instead of settings.
fn of_site(site: &Site, finding: Finding) -> Finding {
    if site.name.is_empty() {
        return finding;
    }
    let tell = |text: String| {
        let mut text = text;
        for (setting, field) in FIELDS {
            text = text.replace(setting, field);
        }
        format!("site {}: {text}", site.name)
    };
    Finding {
        message: tell(finding.message),
        ..finding
    }
}
