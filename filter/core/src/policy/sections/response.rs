// SPDX-License-Identifier: Apache-2.0
//! The section `response`: how responses are changed on their way to clients.

use crate::http::caching::targeted::SURROGATE_CONTROL;
use crate::policy::forms::form::Kind;
use crate::policy::forms::names::{HeaderName, HeaderPattern, NamePattern, any_matches};
use crate::policy::forms::section::section;

/// Response headers that never leave the edge.
const HIDDEN_HEADERS: [&str; 8] = [
    "cache-tag",
    "surrogate-key",
    "xkey",
    "x-amz-*",
    "x-minio-*",
    "x-envoy-*",
    "x-sluice-*",
    SURROGATE_CONTROL,
];

/// What a bucket's server says of itself and of the host that it is, but not of the site in the bucket:
/// with a storage server's `Strict-Transport-Security` a browser would leave a site that has no TLS.
const BUCKET_HIDES: [&str; 9] = [
    "content-security-policy",
    "strict-transport-security",
    "x-goog-*",
    "x-guploader-*",
    "x-oss-*",
    "x-ratelimit-*",
    "x-rgw-*",
    "x-wasabi-*",
    "x-xss-protection",
];

/// What a bucket's `Vary` names, but its objects do not depend on.
const BUCKET_IGNORES: [&str; 4] = [
    "origin",
    "accept-encoding",
    "access-control-request-method",
    "access-control-request-headers",
];

/// Request headers by which responses need not vary where the edge answers for cross-origin resource sharing.
const CORS_REQUEST_HEADERS: [&str; 3] = [
    "origin",
    "access-control-request-method",
    "access-control-request-headers",
];

section! {
    /// How responses are changed on their way to clients.
    pub struct ResponsePolicy {
        /// Further response headers that never leave. A trailing * makes it the beginning of names.
        /// Always removed: x-amz-*, x-minio-*, x-envoy-*, x-sluice-*, surrogate-control,
        /// surrogate-key, cache-tag, xkey; of a bucket
        /// also what its server says of itself: x-goog-*, x-guploader-*, x-oss-*, x-ratelimit-*,
        /// x-rgw-*, x-wasabi-*, content-security-policy, strict-transport-security,
        /// x-xss-protection.
        remove_headers: Vec<NamePattern> as Vec<HeaderPattern> = Vec::new(),
        /// Request headers that make no difference although Vary names them. Default for a bucket:
        /// origin, accept-encoding, access-control-request-method, access-control-request-headers;
        /// for an HTTP origin: none.
        ignore_vary: Vec<String> as Vec<HeaderName> = Vec::new(); bucket: BUCKET_IGNORES.map(str::to_owned).into(),
        /// Whether Cache-Status says the key under which a response is cached. It is for tests and debugging: the
        /// key has the URL as the edge reads it, and the request headers that tell its responses apart.
        cache_status_key: bool = false,
        /// Whether Envoy is told the result, key, role and times of each request, as filter state whose names begin
        /// with wasm.sluice; the edge's entry point fills it in: where neither access log nor traces show them,
        /// telling would be a waste.
        account: bool = true,
    }
}

impl ResponsePolicy {
    /// Whether a response header never leaves; its name is in lower case.
    pub fn hides(&self, name: &str) -> bool {
        any_matches(&self.remove_headers, name.as_bytes())
    }

    /// Adds what is removed and ignored anyhow. `answers_cors` says that the edge answers for cross-origin
    /// resource sharing itself.
    pub(in crate::policy) fn complete(&mut self, kind: Kind, answers_cors: bool) {
        let of_bucket = BUCKET_HIDES.into_iter().filter(|_| kind == Kind::Bucket);
        let built_in = HIDDEN_HEADERS.into_iter().chain(of_bucket);
        self.remove_headers.extend(built_in.map(NamePattern::of));
        NamePattern::sort(&mut self.remove_headers);
        if answers_cors {
            self.ignore_vary
                .extend(CORS_REQUEST_HEADERS.map(str::to_owned));
        }
    }
}
