// SPDX-License-Identifier: Apache-2.0
//! Fuzzes request headers. A header that may change other clients' responses, or that must not be sent to the origin,
//! is not sent with a request whose response is shared.
//!
//! Input: the policy's number, then a line for each header, `name: value`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_core::admission::{Disposition, RequestFacts, classify};
use sluice_core::policy::{PassOrStrip, Policy, forward_header};
use sluice_fuzz::policy;

const POLICIES: [&str; 4] = [
    r#"{"origin": {"kind": "bucket", "bucket": "site", "authority": "s3.test"}}"#,
    r#"{"origin": {"kind": "http"}}"#,
    r#"{"origin": {"kind": "http"}, "request": {"cookies": "strip", "authorization": "strip"}}"#,
    r#"{"origin": {"kind": "http"}, "request": {"cache_control": "obey"}, "website": {"cors": {"allowed_origins": ["*"]}}}"#,
];
/// Headers by which some origins are known to choose another response than the URL's.
const OVERRIDES: [&str; 16] = [
    "forwarded-proto",
    "front-end-https",
    "x-arr-ssl",
    "x-forwarded-ssl",
    "x-forwarded-prefix",
    "x-http-method-override",
    "x-http-path-override",
    "x-http-destinationurl",
    "x-invoke-path",
    "x-middleware-subrequest",
    "x-ms-original-url",
    "x-now-route-matches",
    "x-original-url",
    "x-request-uri",
    "x-rewrite-url",
    "x-url-scheme",
];
/// Headers that identify the client.
const CREDENTIALS: [&str; 6] = [
    "authorization",
    "cookie",
    "x-access-token",
    "x-amz-security-token",
    "x-api-key",
    "x-auth-token",
];

fuzz_target!(|input: &[u8]| {
    let Some((number, text)) = input.split_first() else {
        return;
    };
    let policy = policy(&POLICIES, *number);
    // In Envoy, names are lower-case text, and values are any bytes.
    let lines = text.split(|&byte| byte == b'\n').filter_map(|line| {
        let colon = line.windows(2).position(|pair| pair == b": ")?;
        let (name, value) = line.split_at_checked(colon)?;
        let name = std::str::from_utf8(name).ok()?;
        Some((name.to_ascii_lowercase(), value.get(2..)?))
    });
    let headers: Vec<(String, &[u8])> = lines.collect();
    let pairs = headers
        .iter()
        .map(|(name, value)| (name.as_bytes(), *value));
    let facts = RequestFacts::of(policy, pairs, true);
    let cacheable = classify(policy, &facts) == Ok(Disposition::Cacheable);
    let shared = cacheable && !facts.shows_credentials(policy);
    for (name, _) in &headers {
        assert!(
            !forward_header(policy, false, name) || !is_internal(name),
            "{name} has reached the origin"
        );
        if shared {
            check_shared(policy, name);
        }
    }
});

fn is_internal(name: &str) -> bool {
    name.starts_with("x-sluice-") || name.starts_with("x-envoy-")
}

/// Checks a header of a request whose response is shared.
fn check_shared(policy: &Policy, name: &str) {
    let forwarded = forward_header(policy, true, name);
    if policy.origin.is_bucket() {
        let is_listed = policy
            .request
            .forward_headers
            .iter()
            .any(|listed| listed == name);
        assert!(
            !forwarded || name.starts_with(':') || is_listed,
            "a bucket sees {name}"
        );
        return;
    }
    let keyed = policy.key.has_header(name);
    assert!(
        !forwarded || keyed || !OVERRIDES.contains(&name),
        "{name} was let through"
    );
    let passes = policy.request.authorization == PassOrStrip::Pass;
    assert!(
        !(passes && CREDENTIALS.contains(&name)),
        "a response to {name} is shared"
    );
    assert!(
        !(forwarded && CREDENTIALS.contains(&name)),
        "{name} was let through"
    );
}
