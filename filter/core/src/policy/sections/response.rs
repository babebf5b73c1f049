// SPDX-License-Identifier: Apache-2.0
//! The section `response`: how responses are changed on their way to clients.

use crate::http::caching::targeted::SURROGATE_CONTROL;
use crate::policy::forms::form::Kind;
use crate::policy::forms::names::{HeaderName, HeaderPattern, HtmlPage, NamePattern, any_matches};
use crate::policy::forms::section::section;

/// Response headers that are never sent to clients.
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

/// Response headers in which a bucket's server describes itself and its host, and not the site in the bucket. With a
/// storage server's `Strict-Transport-Security` a browser would refuse a site that has no TLS.
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

/// Names in a bucket's `Vary` on which the bucket's objects do not depend.
const BUCKET_IGNORES: [&str; 4] = [
    "origin",
    "accept-encoding",
    "access-control-request-method",
    "access-control-request-headers",
];

/// Request headers by which responses need not vary if the edge answers for cross-origin resource sharing.
const CORS_REQUEST_HEADERS: [&str; 3] = [
    "origin",
    "access-control-request-method",
    "access-control-request-headers",
];

section! {
    /// How responses are changed on their way to clients.
    pub struct ResponsePolicy {
        /// Further response headers that are not sent to clients. A name with a trailing * is the beginning of names.
        /// Always removed: x-amz-*, x-minio-*, x-envoy-*, x-sluice-*, surrogate-control, surrogate-key, cache-tag,
        /// xkey. From a bucket's responses the headers in which its server describes itself are removed too:
        /// x-goog-*, x-guploader-*, x-oss-*, x-ratelimit-*, x-rgw-*, x-wasabi-*, content-security-policy,
        /// strict-transport-security, x-xss-protection.
        remove_headers: Vec<NamePattern> as Vec<HeaderPattern> = Vec::new(),
        /// Request headers that make no difference although Vary names them. Default for a bucket:
        /// origin, accept-encoding, access-control-request-method, access-control-request-headers;
        /// for an HTTP origin: none.
        ignore_vary: Vec<String> as Vec<HeaderName> = Vec::new(); bucket: BUCKET_IGNORES.map(str::to_owned).into(),
        /// Whether Cache-Status has the key under which a response is cached. It is for tests and debugging: the key
        /// has the URL as the edge reads it, and the request headers that distinguish its responses.
        cache_status_key: bool = false,
        /// The HTML page, from < on and of at most 64 KiB, that a client gets with status 503 if the origin sends no
        /// response, or a bucket fails, and nothing stored can be served. On an edge that is not in a mesh it is the
        /// absolute path of a file with the page, such as /etc/sluice/sorry.html. Default: a line of text.
        maintenance_page: Option<String> as Option<HtmlPage>,
        /// Whether the filter writes the result, key, role and times of each request into Envoy's filter state, under
        /// names that begin with wasm.sluice. It is false if neither access log nor traces show them. The entry point
        /// fills this in.
        account: bool = true,
    }
}

impl ResponsePolicy {
    /// Whether a response header is not sent to clients; its name is in lower case.
    pub fn hides(&self, name: &str) -> bool {
        any_matches(&self.remove_headers, name.as_bytes())
    }

    /// Adds the names that are always removed or ignored. `answers_cors` is true if the edge itself answers for
    /// cross-origin resource sharing.
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
