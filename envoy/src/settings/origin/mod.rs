// SPDX-License-Identifier: Apache-2.0
//! The origin and its credentials, from `SLUICE_ORIGIN`, `SLUICE_S3_…` and `AWS_…`.

pub mod credentials;
pub mod failover;

use super::environment::Environment;
use crate::origin::{Addressing, BucketName, Endpoint, Origin, is_region};
use crate::sites::{EXPECTED_HEALTH_CHECK, Servers, is_health_check, read_servers as read_listed};

/// Settings with the address of the S3 server. The first one that is set applies.
const ENDPOINTS: [&str; 3] = [
    "SLUICE_S3_ENDPOINT",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
];
const ENDPOINT: &str = "http://HOST[:PORT] or https://HOST[:PORT]";

/// Reads the region for which requests to buckets are signed. `None`: there is a problem.
pub fn read_region(env: &mut Environment<'_>) -> Option<String> {
    let is_usual = env.set("AWS_REGION").is_none() && env.set("AWS_DEFAULT_REGION").is_some();
    let name = if is_usual {
        "AWS_DEFAULT_REGION"
    } else {
        "AWS_REGION"
    };
    env.parse(name, "a region such as us-east-1", |text| {
        is_region(text).then(|| text.to_owned())
    })
}

/// Reads the address of the S3 server from the first setting that is set and `applies`, and returns it with the
/// setting's name. `None`: the server is AWS, or there is a problem.
fn read_endpoint(
    env: &mut Environment<'_>,
    applies: impl Fn(&str) -> bool,
) -> Option<(&'static str, Endpoint)> {
    let set = ENDPOINTS.map(|name| env.set(name).is_some());
    let mut set = ENDPOINTS.into_iter().zip(set);
    let (name, _) = set.find(|(name, is_set)| *is_set && applies(name))?;
    Some((name, env.parse(name, ENDPOINT, Endpoint::parse)?))
}

/// Reads the address of the S3 server for sites that do not name one.
pub fn read_usual_endpoint(env: &mut Environment<'_>) -> Option<Endpoint> {
    let (_, endpoint) = read_endpoint(env, is_of_aws)?;
    Some(endpoint)
}

/// Reads the servers of an HTTP origin beside the first one, and their health checks. The `origin` is the first one.
pub fn read_servers(env: &mut Environment<'_>, origin: Option<&Origin>) -> Servers {
    const HEALTH_CHECK: &str = "SLUICE_ORIGIN_HEALTH_CHECK";
    let health_check = env.parse(HEALTH_CHECK, EXPECTED_HEALTH_CHECK, |text| {
        is_health_check(text).then(|| text.to_owned())
    });
    let Some(Origin::Http(_)) = origin else {
        if health_check.is_some() {
            let accepted =
                "must be unset, or SLUICE_ORIGIN be http://HOST[:PORT] or https://HOST[:PORT]";
            env.refuse(HEALTH_CHECK, None, accepted);
        }
        return Servers::default();
    };
    let text = env.set("SLUICE_ORIGIN").unwrap_or_default();
    match read_listed(text.split(',').map(str::trim)) {
        Ok(servers) => Servers {
            others: servers.map(|(_, others)| others).unwrap_or_default(),
            health_check,
        },
        Err((wrong, expected)) => {
            env.refuse("SLUICE_ORIGIN", Some(wrong), expected);
            Servers::default()
        }
    }
}

fn is_of_aws(name: &str) -> bool {
    name.starts_with("AWS_")
}

/// Reads the origin. `None`: there is a problem, or nothing is set and the demo is the origin.
pub fn read(env: &mut Environment<'_>) -> Option<Origin> {
    const BUCKET: &str = "s3://BUCKET[/PREFIX] with a valid bucket name and a prefix without \
                          empty, . or .. segments";
    let is_bucket = env
        .set("SLUICE_ORIGIN")
        .is_some_and(|text| text.starts_with("s3://"));
    // The variables of AWS may be set for other programs.
    let endpoint = read_endpoint(env, |name| is_bucket || !is_of_aws(name));
    let region = read_region(env);
    let places = [
        ("path", Addressing::Path),
        ("virtual_host", Addressing::VirtualHost),
    ];
    let addressing = env.choice("SLUICE_S3_ADDRESSING", &places);
    if let (Some((_, endpoint)), false) = (&endpoint, is_bucket) {
        let accepted = "to be unset, or SLUICE_ORIGIN to be s3://BUCKET[/PREFIX]";
        env.refuse("SLUICE_S3_ENDPOINT", Some(endpoint.to_string()), accepted);
    }
    if !is_bucket {
        let accepted = format!(
            "s3://BUCKET[/PREFIX], {ENDPOINT}, or several of the latter, separated by commas"
        );
        let server = env.parse("SLUICE_ORIGIN", &accepted, |text| {
            let first = text.split_once(',').map_or(text, |(first, _)| first);
            Endpoint::parse(first.trim())
        });
        return server.map(Origin::Http);
    }
    let bucket = env.parse("SLUICE_ORIGIN", BUCKET, |text| {
        BucketName::parse(text.strip_prefix("s3://")?)
    })?;
    let by_host = addressing == Some(Addressing::VirtualHost);
    let address = endpoint.as_ref().filter(|(_, it)| it.ip().is_some());
    if let (true, Some((name, _))) = (by_host, address) {
        let accepted = format!(
            "path, or {name} to have a name: no bucket's name stands in front of an address"
        );
        env.refuse(
            "SLUICE_S3_ADDRESSING",
            Some("virtual_host".into()),
            accepted,
        );
    }
    Some(Origin::Bucket(bucket.placed(
        endpoint.map(|(_, endpoint)| endpoint),
        &region?,
        addressing,
    )))
}
