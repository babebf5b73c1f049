// SPDX-License-Identifier: Apache-2.0
//! Asks the buckets and the second origins of all sites, several at one time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context as _;

use super::bucket::ask;
use super::{Finding, feed, token_keys};
use crate::net::bucket_client::BucketClient;
use crate::net::{ca_bundle, http};
use crate::origin::{Bucket, Endpoint, Origin};
use crate::purge_feed::FeedPlace;
use crate::render;
use crate::run;
use crate::settings::Settings;
use crate::sites::{Credentials, Failover, Site, bucket_keys};

/// Number of buckets that are asked at one time.
const AT_ONE_TIME: usize = 16;

/// Settings of a single origin that messages name, and the names of the matching fields of a site.
const FIELDS: [(&str, &str); 6] = [
    (KEYS, "what `credentials` names"),
    ("AWS_REGION=", "region: "),
    ("AWS_REGION", "`region`"),
    ("SLUICE_S3_ENDPOINT", "`endpoint`"),
    ("SLUICE_S3_ADDRESSING", "`addressing`"),
    ("SLUICE_ORIGIN", "`origin`"),
];

/// Names of the matching fields of a site's second origin.
const SECOND_FIELDS: [(&str, &str); 6] = [
    (KEYS, "what `failover.credentials` names"),
    ("AWS_REGION=", "failover.region: "),
    ("AWS_REGION", "`failover.region`"),
    ("SLUICE_S3_ENDPOINT", "`failover.endpoint`"),
    ("SLUICE_S3_ADDRESSING", "`failover.addressing`"),
    ("SLUICE_ORIGIN", "`failover.origin`"),
];

/// The settings of the second origin behind a single one.
const SECOND_SETTINGS: [(&str, &str); 6] = [
    (
        KEYS,
        "SLUICE_FAILOVER_ACCESS_KEY_ID, SLUICE_FAILOVER_SECRET_ACCESS_KEY and SLUICE_FAILOVER_SESSION_TOKEN",
    ),
    ("AWS_REGION=", "SLUICE_FAILOVER_REGION="),
    ("AWS_REGION", "SLUICE_FAILOVER_REGION"),
    ("SLUICE_S3_ENDPOINT", "SLUICE_FAILOVER_ENDPOINT"),
    ("SLUICE_S3_ADDRESSING", "SLUICE_FAILOVER_ADDRESSING"),
    ("SLUICE_ORIGIN", "SLUICE_FAILOVER_ORIGIN"),
];

/// The keys in messages.
const KEYS: &str = "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN";

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

/// Asks both origins of a site, and the server with the keys of its tokens.
fn check_site(settings: &Settings, site: &Site) -> Vec<Finding> {
    let is_named = !site.name.is_empty();
    let first_names: &[_] = if is_named { &FIELDS } else { &[] };
    let second_names = if is_named {
        &SECOND_FIELDS
    } else {
        &SECOND_SETTINGS
    };
    let first = check_first(settings, site).into_iter();
    let first = first.map(|finding| renamed(finding, first_names, ""));
    let second = site.failover.as_ref();
    let second = second.map(|second| check_second(settings, second));
    let second = second.into_iter().flatten();
    let second = second.map(|finding| renamed(finding, second_names, "the second origin: "));
    let keys = token_keys::check(settings, site);
    first.chain(second).chain(keys).collect()
}

fn check_first(settings: &Settings, site: &Site) -> Vec<Finding> {
    let Origin::Bucket(bucket) = &site.origin else {
        return Vec::new();
    };
    check_bucket(settings, bucket, &site.credentials)
        .unwrap_or_else(|| check_by_edge(settings, site))
}

/// Asks the second origin of a site. A server need only answer, whatever its status is.
fn check_second(settings: &Settings, second: &Failover) -> Vec<Finding> {
    match &second.origin {
        Origin::Bucket(bucket) => check_bucket(settings, bucket, &second.credentials)
            .unwrap_or_else(|| {
                let text = "the bucket has not been asked: only Envoy gets credentials of the standard chain (web \
                            identity, container and instance roles)";
                vec![Finding::warning(text)]
            }),
        Origin::Http(endpoint) => {
            let problem = check_server(settings, endpoint).err();
            problem.map(unreachable_origin).into_iter().collect()
        }
    }
}

/// Asks a bucket. `None`: only Envoy has its credentials.
fn check_bucket(
    settings: &Settings,
    bucket: &Bucket,
    credentials: &Credentials,
) -> Option<Vec<Finding>> {
    let keys = bucket_keys(credentials, &|name| settings.secrets.variable(name));
    let keys = match keys.transpose()? {
        Ok(keys) => keys,
        Err(error) => return Some(vec![Finding::problem(format!("{error:#}"))]),
    };
    let client = BucketClient::new(bucket, keys, settings.aws_ca_file.as_deref());
    Some(match client.and_then(|client| ask(&client)) {
        Ok(answer) => answer.findings(),
        Err(error) => {
            let remedy = "correct SLUICE_S3_ENDPOINT, or look at the network";
            vec![Finding::problem(format!("{error:#}: {remedy}"))]
        }
    })
}

/// Sends a request to a server.
fn check_server(settings: &Settings, endpoint: &Endpoint) -> anyhow::Result<()> {
    let find = || ca_bundle::find(settings.ca_file.as_deref(), "an https origin");
    let roots = endpoint.tls.then(find).transpose()?;
    let client = http::client_of_servers(roots.as_deref()).context("the CA certificates")?;
    let answer = client.head(format!("{endpoint}/")).call();
    answer
        .map(drop)
        .with_context(|| format!("no answer from {endpoint}"))
}

fn unreachable_origin(error: anyhow::Error) -> Finding {
    let remedy = "correct SLUICE_ORIGIN, or look at the network";
    Finding::problem(format!("{error:#}: {remedy}"))
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

/// Adds the site's name to a finding.
fn of_site(site: &Site, finding: Finding) -> Finding {
    if site.name.is_empty() {
        return finding;
    }
    Finding {
        message: format!("site {}: {}", site.name, finding.message),
        ..finding
    }
}

/// Replaces the names of settings in a finding, and adds the beginning.
fn renamed(finding: Finding, names: &[(&str, &str)], beginning: &str) -> Finding {
    let message = names
        .iter()
        .fold(finding.message, |message, (setting, name)| {
            message.replace(setting, name)
        });
    Finding {
        message: format!("{beginning}{message}"),
        ..finding
    }
}
