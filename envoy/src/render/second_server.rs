// SPDX-License-Identifier: Apache-2.0
//! The values of a site's second origin: its server, and the routes to it.

use std::path::Path;
use std::time::Duration;

use minijinja::{Value, context};
use serde_json::json;
use sluice_core::policy::Policy;

use super::credentials;
use super::seconds;
use super::server_address::{address, credentials_place, usual_keepalive};
use crate::origin::Origin;
use crate::settings::Settings;
use crate::sites::{Failover, Site};

/// Time that an attempt's own answer about a silent origin has, before the attempt counts as silent itself.
const ANSWER: Duration = Duration::from_millis(100);
/// Header fields of requests that only the first origin gets: a body, another protocol, and a client's credentials.
const WITH_A_BODY: [&str; 3] = ["content-length", "transfer-encoding", "upgrade"];
const WITH_CREDENTIALS: [&str; 2] = ["authorization", "cookie"];
/// Header fields of requests for a part of one version, which another origin does not have for sure.
const FOR_ONE_VERSION: [&str; 4] = ["range", "if-range", "if-match", "if-unmodified-since"];

/// The name of the second server of a site whose first server has this `name`. No other server has it.
pub fn second_name(name: &str) -> String {
    match name {
        "" => "second".to_owned(),
        name => format!("{name}.second"),
    }
}

/// The values of the second server of a site whose first server has this `name`. `paths` is the beginning of every path
/// towards the first origin.
///
/// # Errors
/// CA certificates to verify the origin are missing.
pub fn second_server(
    settings: &Settings,
    site: &Site,
    failover: &Failover,
    paths: &str,
    files: &Path,
    name: &str,
) -> anyhow::Result<Value> {
    let (origin, times) = (&failover.origin, &failover.times);
    let second = second_name(name);
    let place = credentials_place(site, &second);
    let bucket = match origin {
        Origin::Bucket(bucket) => Some(context! {
            region => bucket.region,
            credentials => credentials::provider(&failover.credentials, place, files),
        }),
        Origin::Http(_) => None,
    };
    let leaves_bucket = matches!((&site.origin, origin), (Origin::Bucket(_), Origin::Http(_)));
    let hides_validators = !failover.shares_validators(&site.origin);
    let first_only = WITH_A_BODY
        .into_iter()
        .chain(
            WITH_CREDENTIALS
                .into_iter()
                .filter(|_| !failover.passes_client_credentials),
        )
        .chain(FOR_ONE_VERSION.into_iter().filter(|_| hides_validators));
    Ok(context! {
        server => format!("origin_server_{second}"),
        pair => match name {
            "" => "origin_pair".to_owned(),
            name => format!("origin_pair_{name}"),
        },
        attempt => "second",
        hedge_after => (),
        others => Vec::<Value>::new(),
        health_check => (),
        second => (),
        name => (),
        site => (),
        // The beginnings of paths towards the first and the second origin.
        from_prefix => format!("{paths}/"),
        to_prefix => format!("{}/", path_prefix(origin)?),
        // A bucket's requests get their host where they are signed.
        host_rewrite => leaves_bucket.then(|| origin.endpoint().authority()),
        hides_validators => hides_validators,
        on_missing => failover.asks_for_missing(),
        marks_missing => false,
        // The headers for the first origin may have secrets.
        set_headers => Vec::<Value>::new(),
        first_only => first_only.collect::<Vec<_>>(),
        ttl => times.ttl.as_secs().to_string(),
        connect_timeout => seconds(times.connect_timeout),
        after_silence => seconds(times.after_silence),
        patience => seconds(times.after_silence + ANSWER),
        idle => seconds(settings.origin_idle),
        keepalive => seconds(usual_keepalive(origin)),
        bucket => bucket,
        ..address(settings, origin)?
    })
}

/// The beginning of every path towards an origin.
fn path_prefix(origin: &Origin) -> anyhow::Result<String> {
    let section = json!({"origin": origin.policy_section()});
    let policy = Policy::parse(section.to_string().as_bytes())?;
    Ok(policy.origin.path_prefix().to_owned())
}
