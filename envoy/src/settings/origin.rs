// SPDX-License-Identifier: Apache-2.0
//! The origin and its credentials, as `ORIGIN`, `S3_…` and `AWS_…` name them.

use super::environment::Environment;
use crate::origin::{Addressing, BucketName, Endpoint, Origin};

/// Reads the origin. `None`: there is a problem, or nothing is set and the demo is the origin.
pub fn read(env: &mut Environment<'_>) -> Option<Origin> {
    const ENDPOINT: &str = "http://HOST[:PORT] or https://HOST[:PORT]";
    const REGION: &str = "a region such as us-east-1";
    let endpoint = env.parse("S3_ENDPOINT", ENDPOINT, Endpoint::parse);
    let region = env.parse("AWS_REGION", REGION, |text| {
        is_region(text).then(|| text.to_owned())
    });
    let addressing = env.parse("S3_ADDRESSING", "path or virtual_host", Addressing::parse);
    let text = env.set("ORIGIN");
    if let (Some(endpoint), None) = (
        &endpoint,
        text.as_ref().filter(|text| text.starts_with("s3://")),
    ) {
        env.refuse(
            "S3_ENDPOINT",
            Some(endpoint.to_string()),
            "to be unset, or ORIGIN to be s3://BUCKET[/PREFIX]",
        );
    }
    let text = text?;
    if let Some(rest) = text.strip_prefix("s3://") {
        let Some(bucket) = BucketName::parse(rest) else {
            env.refuse("ORIGIN", Some(text), "s3://BUCKET[/PREFIX] with a valid bucket name and a prefix without empty, . or .. segments");
            return None;
        };
        let by_host = addressing == Some(Addressing::VirtualHost);
        if by_host && endpoint.as_ref().is_some_and(|it| it.ip().is_some()) {
            let accepted =
                "path, or S3_ENDPOINT to have a name: no bucket's name stands before an address";
            env.refuse("S3_ADDRESSING", Some("virtual_host".into()), accepted);
        }
        let region = region?;
        return Some(Origin::Bucket(match endpoint {
            Some(endpoint) => bucket.at(endpoint, &region, addressing.unwrap_or(Addressing::Path)),
            None => bucket.at_aws(&region, addressing),
        }));
    }
    let origin = Endpoint::parse(&text).map(Origin::Http);
    if origin.is_none() {
        env.refuse(
            "ORIGIN",
            Some(text),
            format!("s3://BUCKET[/PREFIX], {ENDPOINT}"),
        );
    }
    origin
}

fn is_region(text: &str) -> bool {
    text.len() <= 32
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Whether there are credentials. Envoy reads them from its environment; this checks only that they are complete.
pub fn check_credentials(env: &mut Environment<'_>) -> bool {
    let key = env.set("AWS_ACCESS_KEY_ID").is_some();
    let secret = env.set("AWS_SECRET_ACCESS_KEY").is_some();
    match (key, secret) {
        (true, false) => env.refuse(
            "AWS_SECRET_ACCESS_KEY",
            None,
            "must be set, as AWS_ACCESS_KEY_ID is",
        ),
        (false, true) => env.refuse(
            "AWS_ACCESS_KEY_ID",
            None,
            "must be set, as AWS_SECRET_ACCESS_KEY is",
        ),
        (true, true) | (false, false) => {}
    }
    if env.set("AWS_SESSION_TOKEN").is_some() && !key {
        env.refuse(
            "AWS_SESSION_TOKEN",
            None,
            "must be unset, or AWS_ACCESS_KEY_ID be set",
        );
    }
    key && secret
}
