// SPDX-License-Identifier: Apache-2.0
//! The values of the origin's cluster, and of the guards that keep requests inside the bucket.

use minijinja::{Value, context};
use sluice_core::policy::{self, BucketOrigin, Policy, QueryRule};

use super::seconds;
use crate::net::ca_bundle;
use crate::origin::{Bucket, Origin};
use crate::settings::Settings;

/// The qualifiers of the cache key, which the filter adds to a path towards the store. Envoy refuses a client's `#`.
const QUALIFIERS: &str = "(?:#[^#]*)?";

/// The values for `origin` under this `policy`.
///
/// # Errors
/// There are no CA certificates to verify the origin with.
pub fn origin(settings: &Settings, origin: &Origin, policy: &Policy) -> anyhow::Result<Value> {
    let endpoint = origin.endpoint();
    let ca_file = || ca_bundle::find(settings.ca_file.as_deref(), "an https origin");
    let bucket = match (origin, &policy.origin) {
        (Origin::Bucket(bucket), policy::Origin::Bucket(paths)) => {
            Some(guarded(bucket, settings, paths, &policy.key.query))
        }
        (Origin::Bucket(_) | Origin::Http(_), _) => None,
    };
    Ok(context! {
        host => endpoint.host,
        port => endpoint.port,
        authority => endpoint.authority(),
        is_ip => endpoint.ip().is_some(),
        tls => endpoint.tls,
        ca_file => endpoint.tls.then(ca_file).transpose()?,
        idle => seconds(settings.origin_idle),
        bucket => bucket,
    })
}

/// The values for a bucket. Every canonical path matches `path_regex` and does not match `forbidden_regex`.
fn guarded(bucket: &Bucket, settings: &Settings, paths: &BucketOrigin, query: &QueryRule) -> Value {
    // NB: the prefix is percent-encoded, so only its dots have a meaning in a regular expression.
    let start = paths.path_prefix.replace('.', r"\.");
    let query = match query {
        QueryRule::Drop { allow } if allow.is_empty() => "",
        QueryRule::Drop { .. } | QueryRule::Keep { .. } | QueryRule::Sort { .. } => r"(?:\?[^#]*)?",
    };
    context! {
        region => bucket.region,
        retries => settings.bucket_retries,
        static_credentials => settings.static_credentials,
        path_regex => format!("{start}/(?:[A-Za-z0-9._~/-]|%[0-9A-F][0-9A-F])*{query}{QUALIFIERS}"),
        forbidden_regex => r"[^?#]*(?:/\.\.?(?:[/?#].*)?|%(?:00|2E|2F).*)",
    }
}
