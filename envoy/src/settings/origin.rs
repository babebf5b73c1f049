// SPDX-License-Identifier: Apache-2.0
//! The origin and its credentials, from `ORIGIN`, `S3_…` and `AWS_…`.

use super::environment::Environment;
use crate::origin::{Addressing, BucketName, Endpoint, Origin, is_region};
use crate::sites::{ACCEPTED_SECRET, is_secret};

/// Reads the origin. `None`: there is a problem, or nothing is set and the demo is the origin.
pub fn read(env: &mut Environment<'_>) -> Option<Origin> {
    const ENDPOINT: &str = "http://HOST[:PORT] or https://HOST[:PORT]";
    const BUCKET: &str = "s3://BUCKET[/PREFIX] with a valid bucket name and a prefix without \
                          empty, . or .. segments";
    const REGION: &str = "a region such as us-east-1";
    let endpoint = env.parse("S3_ENDPOINT", ENDPOINT, Endpoint::parse);
    let region = env.parse("AWS_REGION", REGION, |text| {
        is_region(text).then(|| text.to_owned())
    });
    let places = [
        ("path", Addressing::Path),
        ("virtual_host", Addressing::VirtualHost),
    ];
    let addressing = env.choice("S3_ADDRESSING", &places);
    let is_bucket = env
        .set("ORIGIN")
        .is_some_and(|text| text.starts_with("s3://"));
    if let (Some(endpoint), false) = (&endpoint, is_bucket) {
        let accepted = "to be unset, or ORIGIN to be s3://BUCKET[/PREFIX]";
        env.refuse("S3_ENDPOINT", Some(endpoint.to_string()), accepted);
    }
    if !is_bucket {
        let accepted = format!("s3://BUCKET[/PREFIX], {ENDPOINT}");
        let server = env.parse("ORIGIN", &accepted, Endpoint::parse);
        return server.map(Origin::Http);
    }
    let bucket = env.parse("ORIGIN", BUCKET, |text| {
        BucketName::parse(text.strip_prefix("s3://")?)
    })?;
    let by_host = addressing == Some(Addressing::VirtualHost);
    if by_host && endpoint.as_ref().is_some_and(|it| it.ip().is_some()) {
        let accepted =
            "path, or S3_ENDPOINT to have a name: no bucket's name stands before an address";
        env.refuse("S3_ADDRESSING", Some("virtual_host".into()), accepted);
    }
    Some(Origin::Bucket(
        bucket.placed(endpoint, &region?, addressing),
    ))
}

/// Variables with parts of credentials.
const CREDENTIALS: [&str; 3] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
];

/// Whether credentials are set. Envoy reads them from its environment; this only checks that they are complete and
/// well-formed.
pub fn check_credentials(env: &mut Environment<'_>) -> bool {
    for name in CREDENTIALS {
        let value = (env.lookup())(name).filter(|value| !value.is_empty());
        if value.is_some_and(|value| !value.to_str().is_some_and(is_secret)) {
            env.refuse(name, None, ACCEPTED_SECRET);
        }
    }
    let complete = env.pair("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY");
    let has_key = env.set("AWS_ACCESS_KEY_ID").is_some();
    if env.set("AWS_SESSION_TOKEN").is_some() && !has_key {
        let accepted = "must be unset, or AWS_ACCESS_KEY_ID be set";
        env.refuse("AWS_SESSION_TOKEN", None, accepted);
    }
    complete
}
