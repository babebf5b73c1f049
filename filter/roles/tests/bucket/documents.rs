// SPDX-License-Identifier: Apache-2.0
//! Documents in place of the response for a missing object, in the sizes that sites have.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::internal_headers::{BUCKET_ERROR_HEADER, FAILURE_HEADER};
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

/// A site with documents for errors other than a missing object.
const ERRORS: &str = r#""error_documents": [{"statuses": [403], "document": "denied.html"},
    {"statuses": [503], "document": "sorry.html", "status": 200}, {"statuses": [404], "document": "404.html"}]"#;

const HTML: [(&str, &str); 2] = [("content-type", "text/html"), ("etag", "\"page\"")];

#[test]
fn each_status_of_the_bucket_has_its_own_document_and_perhaps_another_status() {
    for (of_bucket, code, document, told) in [
        (403, "AccessDenied", "/denied.html", 403),
        (503, "InternalError", "/sorry.html", 200),
    ] {
        let mut envoy = site(ERRORS);
        envoy.calls_fail = true;
        let same = [("if-none-match", "\"page\"")];
        let client = envoy.request(0, "GET", KEY, &same);
        envoy.answer_with(
            FIRST,
            of_bucket,
            &[(BUCKET_ERROR_HEADER, code)],
            b"<Error/>",
        );
        envoy.end(FIRST);
        let asked = &envoy.fetches[1].cache_key;
        assert!(asked.contains(document), "{asked}");
        envoy.answer_with(FetchId(1), 200, &HTML, b"page");
        envoy.end(FetchId(1));
        let client = &envoy.clients[client.0];
        assert_eq!((client.status(), client.body()), (told, &b"page"[..]));
        assert_eq!(client.header("etag"), None);
        let no_store = (of_bucket == 503).then_some("no-store");
        assert_eq!(client.header("cache-control"), no_store);
        let way = client.header("cache-status").unwrap();
        let fields = format!("fwd-status={of_bucket}");
        assert!(
            way.contains(&fields) && way.ends_with("; detail=error-document"),
            "{way}"
        );
    }
}

/// The same site, where a failure is not stored but shared with the requests that wait for it.
fn unstored() -> String {
    format!(r#"{ERRORS}}}, "cache": {{"ttl": {{"5xx": "0s"}}"#)
}

#[test]
fn the_followers_of_a_failed_leader_get_the_document_too() {
    let mut envoy = site(&unstored());
    let leader = envoy.request(0, "GET", KEY, &[]);
    let followers = [(); 2].map(|()| envoy.request(0, "GET", KEY, &[]));
    envoy.answer_with(FIRST, 503, &UNREACHED, b"no connection");
    envoy.end(FIRST);
    envoy.tick(0);
    for follower in followers {
        assert_eq!(envoy.stage(follower), Stage::Parked);
    }
    assert_eq!(envoy.fetches.len(), 2, "one request for the document");
    envoy.answer_with(FetchId(1), 200, &HTML, b"page");
    envoy.end(FetchId(1));
    envoy.close_all();
    for client in [leader].into_iter().chain(followers) {
        let stage = envoy.stage(client);
        let client = &envoy.clients[client.0];
        assert_eq!(stage, Stage::Over(Ending::Served), "{client:?}");
        assert_eq!((client.status(), client.body()), (200, &b"page"[..]));
        assert_eq!(client.header("content-type"), Some("text/html"));
        assert_eq!(client.header("cache-control"), Some("no-store"));
    }
    assert_eq!(envoy.counter(Metric::HostErrors), 0);
}

#[test]
fn without_the_document_leader_and_followers_get_the_failure_itself() {
    let mut envoy = site(&unstored());
    let leader = envoy.request(0, "GET", KEY, &[]);
    let follower = envoy.request(0, "GET", KEY, &[]);
    envoy.answer_with(FIRST, 503, &UNREACHED, b"no connection");
    envoy.end(FIRST);
    envoy.tick(0);
    envoy.answer_with(FetchId(1), 404, &[], b"<Error/>");
    envoy.end(FetchId(1));
    envoy.close_all();
    for client in [leader, follower] {
        let client = &envoy.clients[client.0];
        assert_eq!(client.status(), 503);
        assert_ne!(client.body(), b"page");
    }
    assert_eq!(envoy.fetches.len(), 2);
}

#[test]
fn a_missing_document_is_missing_by_itself() {
    let mut envoy = site(r#""error_document": "7""#);
    let client = envoy.request(0, "GET", KEY, &[]);
    envoy.answer_with(FIRST, 404, &[], b"<Error/>");
    envoy.end(FIRST);
    assert_eq!(envoy.clients[client.0].status(), 404);
    assert_eq!(envoy.fetches.len(), 1);
}

#[test]
fn control_a_status_without_a_document_is_the_buckets_own() {
    let mut envoy = site(ERRORS);
    let client = envoy.request(0, "GET", KEY, &[]);
    envoy.answer_with(FIRST, 500, &[], b"<Error/>");
    envoy.end(FIRST);
    assert_eq!(envoy.clients[client.0].status(), 500);
    assert_eq!(envoy.fetches.len(), 1);
}

/// A site whose maintenance page is `<p>Soon.</p>`.
fn site_with_page(kind: &str) -> FakeEnvoy {
    let policy = format!(
        r#"{{"origin": {{{kind}}}, "compression": {{"enabled": false}}, "purge": {{"warm": false}},
        "cache": {{"ttl": {{"5xx": "0s"}}}}, "response": {{"maintenance_page": "<p>Soon.</p>"}}}}"#
    );
    FakeEnvoy::new(&policy, 1)
}

const BUCKET: &str = r#""kind": "bucket", "bucket": "site", "authority": "s3.test""#;
const HTTP: &str = r#""kind": "http""#;

/// The answer of Envoy's hop in the place of an origin that cannot be reached.
const UNREACHED: [(&str, &str); 1] = [(
    FAILURE_HEADER,
    "upstream_reset_before_response_started{connection_failure} 0",
)];

#[test]
fn the_maintenance_page_answers_leader_and_followers_if_the_origin_fails() {
    for (kind, status) in [(BUCKET, 504), (HTTP, 503)] {
        let mut envoy = site_with_page(kind);
        let leader = envoy.request(0, "GET", KEY, &[]);
        let follower = envoy.request(0, "GET", KEY, &[]);
        envoy.answer_with(FIRST, status, &UNREACHED, b"<Error/>");
        envoy.end(FIRST);
        envoy.tick(0);
        envoy.close_all();
        assert_eq!(envoy.fetches.len(), 1);
        for client in [leader, follower] {
            let client = &envoy.clients[client.0];
            assert_eq!(
                (client.status(), client.body()),
                (503, &b"<p>Soon.</p>"[..])
            );
            assert_eq!(
                client.header("content-type"),
                Some("text/html; charset=utf-8")
            );
            assert_eq!(client.header("retry-after"), Some("30"));
            assert_eq!(client.header("cache-control"), Some("no-store"));
        }
    }
}

#[test]
fn the_maintenance_page_replaces_the_errors_of_a_bucket() {
    let mut envoy = site_with_page(BUCKET);
    let client = envoy.request(0, "GET", KEY, &[]);
    envoy.answer_with(FIRST, 500, &[("retry-after", "7")], b"<Error/>");
    envoy.end(FIRST);
    let client = &envoy.clients[client.0];
    assert_eq!(
        (client.status(), client.body()),
        (503, &b"<p>Soon.</p>"[..])
    );
    assert_eq!(client.header("retry-after"), Some("7"));
    assert_eq!(client.header("cache-control"), Some("no-store"));
}

#[test]
fn control_the_errors_of_an_http_origin_and_of_clients_have_no_maintenance_page() {
    for (kind, status) in [(HTTP, 503), (BUCKET, 404), (HTTP, 404)] {
        let mut envoy = site_with_page(kind);
        let client = envoy.request(0, "GET", KEY, &[]);
        envoy.answer_with(FIRST, status, &[], b"<Error/>");
        envoy.end(FIRST);
        envoy.close_all();
        let client = &envoy.clients[client.0];
        assert_eq!(client.status(), status);
        assert_eq!(client.header("retry-after"), None);
        assert_ne!(client.body(), b"<p>Soon.</p>");
    }
}
