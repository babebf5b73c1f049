// SPDX-License-Identifier: Apache-2.0
//! Documents in place of the response for a missing object, in the sizes that sites have.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::internal_headers::BUCKET_ERROR_HEADER;
use sluice_core::metrics::Metric;
use sluice_fake::{Client, Ending, FakeEnvoy, FetchId, Stage};

use crate::support::{FIRST, KEY};

/// Sizes below and above the size that Envoy buffers of a body, and the largest document that is served.
const SIZES: [usize; 5] = [20, 60_000, 70_000, 500_000, 1 << 20];

/// A bucket as a web site with this document.
fn site(document: &str) -> FakeEnvoy {
    let policy = format!(
        r#"{{"origin": {{"kind": "bucket", "bucket": "site", "authority": "s3.test"}},
        "compression": {{"enabled": false}}, "purge": {{"warm": false}}, "website": {{{document}}}}}"#
    );
    FakeEnvoy::new(&policy, 1)
}

/// Requests a missing object on a site whose document has `size` bytes.
fn ask(document: &str, size: usize, method: &str, headers: &[(&str, &str)]) -> (FakeEnvoy, Client) {
    let mut envoy = site(document);
    // Calls fail, so that a conditional request leads.
    envoy.calls_fail = true;
    let client = envoy.request(0, method, KEY, headers);
    envoy.answer_with(FIRST, 404, &[("x-of-the-error", "1")], b"<Error/>");
    envoy.end(FIRST);
    let html = [("content-type", "text/html"), ("etag", "\"page\"")];
    envoy.answer_with(FetchId(1), 200, &html, &vec![b'p'; size]);
    envoy.end(FetchId(1));
    envoy.close_all();
    assert_eq!(envoy.counter(Metric::ReenteredCallbacks), 0);
    assert_eq!(envoy.counter(Metric::HostErrors), 0);
    (envoy, client)
}

#[test]
fn an_error_document_of_any_size_has_the_status_of_what_is_missing() {
    for size in SIZES {
        let (envoy, client) = ask(r#""error_document": "404.html""#, size, "GET", &[]);
        let client = &envoy.clients[client.0];
        assert_eq!(client.stage, Stage::Over(Ending::Served), "{size}");
        assert_eq!((client.status(), client.body().len()), (404, size));
        assert_eq!(client.header("content-type"), Some("text/html"));
        assert_eq!(client.header("etag"), None);
        assert_eq!(client.header("x-of-the-error"), Some("1"));
        let told = client.header("cache-status").unwrap();
        assert!(told.ends_with("; detail=error-document"), "{told}");
    }
}

const FALLBACK: &str = r#""fallback_document": "index.html", "fallback_for": "all""#;

#[test]
fn a_fallback_document_of_any_size_is_a_200_that_meets_demands() {
    for size in SIZES {
        let (envoy, client) = ask(FALLBACK, size, "GET", &[]);
        let whole = &envoy.clients[client.0];
        assert_eq!((whole.status(), whole.body().len()), (200, size));
        assert_eq!(whole.header("etag"), Some("\"page\""));
        let same = [("if-none-match", "\"page\"")];
        let (envoy, client) = ask(FALLBACK, size, "GET", &same);
        let unchanged = &envoy.clients[client.0];
        assert_eq!((unchanged.status(), unchanged.body()), (304, &b""[..]));
    }
}

/// MinIO has no object whose name has a segment of more than 255 bytes, and calls such a name invalid.
#[test]
fn a_name_that_no_object_can_have_is_missing() {
    let mut envoy = site(FALLBACK);
    let client = envoy.request(0, "GET", KEY, &[]);
    let error = [(BUCKET_ERROR_HEADER, "XMinioInvalidObjectName")];
    envoy.answer_with(FIRST, 400, &error, b"<Error/>");
    envoy.end(FIRST);
    let html = [("content-type", "text/html")];
    envoy.answer_with(FetchId(1), 200, &html, b"page");
    envoy.end(FetchId(1));
    let client = &envoy.clients[client.0];
    assert_eq!((client.status(), client.body()), (200, &b"page"[..]));
}

#[test]
fn a_missing_object_whose_error_has_no_body_gets_the_document_too() {
    let mut envoy = site(FALLBACK);
    let client = envoy.request(0, "GET", KEY, &[]);
    envoy.answer_with(FIRST, 404, &[], b"");
    let html = [("content-type", "text/html")];
    envoy.answer_with(FetchId(1), 200, &html, b"page");
    envoy.end(FetchId(1));
    let client = &envoy.clients[client.0];
    assert_eq!((client.status(), client.body()), (200, &b"page"[..]));
}

/// The store may still be reading the error response, and would lose it with its client.
#[test]
fn a_document_waits_for_the_end_of_the_response_whose_place_it_takes() {
    let mut envoy = site(FALLBACK);
    let client = envoy.request(0, "GET", KEY, &[]);
    envoy.answer_with(FIRST, 404, &[], b"<Error/>");
    let html = [("content-type", "text/html")];
    envoy.answer_with(FetchId(1), 200, &html, b"page");
    envoy.end(FetchId(1));
    assert_eq!(envoy.stage(client), Stage::Held);
    envoy.end(FIRST);
    let client = &envoy.clients[client.0];
    assert_eq!((client.status(), client.body()), (200, &b"page"[..]));
}
