// SPDX-License-Identifier: Apache-2.0
//! Listings in the place of missing index documents.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::internal_headers::BUCKET_ERROR_HEADER;
use sluice_core::metrics::Metric;
use sluice_fake::{Client, FakeEnvoy, FetchId, HeaderTexts as _};

use crate::support::{FIRST, KEY, await_lookup};

/// A bucket whose paths below /7/ are listed.
fn site() -> FakeEnvoy {
    let token = FakeEnvoy::token_hash();
    let policy = format!(
        r#"{{"origin": {{"kind": "bucket", "bucket": "site", "addressing": "virtual_host", "authority": "site.test"}},
        "key": {{"index_document": "index.html"}}, "purge": {{"warm": false, "token_sha256": "{token}"}},
        "cache": {{"ttl": {{"404": "1m"}}}},
        "website": {{"redirect_directories": true, "listing": {{"prefixes": ["/7/*"], "ttl": "1m"}}}}}}"#
    );
    FakeEnvoy::new(&policy, 1)
}

const QUESTION: &str = "/?delimiter=%2F&list-type=2&max-keys=1000&prefix=7%2F";

/// The bucket's answer for the directory `7/` with these keys.
fn answer(keys: &[&str]) -> String {
    let object = |key: &&str| {
        format!(
            "<Contents><Key>{key}</Key><LastModified>2026-01-31T23:59:59.000Z</LastModified><Size>5</Size></Contents>"
        )
    };
    let objects: String = keys.iter().map(object).collect();
    format!(
        "<ListBucketResult><Prefix>7/</Prefix><IsTruncated>false</IsTruncated>{objects}</ListBucketResult>"
    )
}

fn visit(envoy: &mut FakeEnvoy, path: &str) -> Client {
    envoy.request(0, "GET", KEY, &[(":path", path)])
}

/// Answers a request to the bucket with an error.
fn fail(envoy: &mut FakeEnvoy, fetch: FetchId, status: u16) {
    envoy.answer_with(fetch, status, &[], b"<Error/>");
    envoy.end(fetch);
}

/// Answers a request to the bucket with a list, in two parts.
fn list(envoy: &mut FakeEnvoy, fetch: FetchId, body: &str) {
    let headers = [("content-type", "application/xml"), ("etag", "\"list\"")];
    envoy.answer_with(fetch, 200, &headers, body.as_bytes());
    envoy.progress(fetch);
    envoy.end(fetch);
}

/// Makes the store commit, and ends what waits for that.
fn settle(envoy: &mut FakeEnvoy) {
    for _ in 0..2 {
        envoy.commit(KEY);
        await_lookup(envoy, 0);
        envoy.answer_lookup(0);
        envoy.deliver_all();
        envoy.close_all();
    }
}

fn path(envoy: &FakeEnvoy, fetch: usize) -> String {
    let path = envoy.fetches[fetch].headers.get(":path");
    path.unwrap_or_default().to_owned()
}

#[test]
fn a_listing_takes_the_place_of_a_missing_index_document_and_is_stored() {
    let mut envoy = site();
    let client = visit(&mut envoy, "/7/?x=1");
    assert_eq!(path(&envoy, 0), "/7/index.html");
    fail(&mut envoy, FIRST, 404);
    assert_eq!(path(&envoy, 1), QUESTION);
    list(&mut envoy, FetchId(1), &answer(&["7/a.txt", "7/b&#1;"]));
    envoy.close_all();
    let first = &envoy.clients[client.0];
    let body = String::from_utf8_lossy(first.body()).into_owned();
    assert_eq!(first.status(), 200, "{body}");
    assert!(body.contains("<a href=\"a.txt\">a.txt</a>"), "{body}");
    assert_eq!(
        first.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(first.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(first.header("etag"), None);
    let policy = first.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    let way = first.header("cache-status").unwrap();
    assert!(way.ends_with("; detail=listing"), "{way}");
    assert_eq!(envoy.counter(Metric::ListingNamesLeftOut), 1);
    settle(&mut envoy);
    let again = visit(&mut envoy, "/7/");
    settle(&mut envoy);
    assert_eq!(envoy.clients[again.0].body(), body.as_bytes());
    assert_eq!(envoy.fetches.len(), 2, "both are stored");
    assert_eq!(envoy.counter(Metric::HostErrors), 0);
}

#[test]
fn an_index_document_comes_first() {
    let mut envoy = site();
    let client = visit(&mut envoy, "/7/");
    envoy.answer_with(FIRST, 200, &[("content-type", "text/html")], b"index");
    envoy.end(FIRST);
    envoy.close_all();
    assert_eq!(envoy.clients[client.0].body(), b"index");
    assert_eq!(envoy.fetches.len(), 1);
}

#[test]
fn a_notification_removes_the_listing_of_the_directory() {
    let mut envoy = site();
    visit(&mut envoy, "/7/");
    fail(&mut envoy, FIRST, 404);
    list(&mut envoy, FetchId(1), &answer(&["7/a.txt"]));
    envoy.close_all();
    let event = r#"{"Records": [{"eventName": "s3:ObjectCreated:Put", "s3": {"bucket": {"name": "site"}, "object": {"key": "7/b.txt"}}}]}"#;
    let call = envoy.notify(0, event);
    envoy.deliver_all();
    assert_eq!(envoy.clients[call.0].status(), 200);
    let client = visit(&mut envoy, "/7/");
    fail(&mut envoy, FetchId(2), 404);
    assert_eq!(path(&envoy, 3), QUESTION);
    list(&mut envoy, FetchId(3), &answer(&["7/a.txt", "7/b.txt"]));
    envoy.close_all();
    let body = String::from_utf8_lossy(envoy.clients[client.0].body()).into_owned();
    assert!(body.contains("b.txt"), "{body}");
}

#[test]
fn a_directory_without_entries_is_missing() {
    let mut envoy = site();
    let client = visit(&mut envoy, "/7/");
    fail(&mut envoy, FIRST, 404);
    list(&mut envoy, FetchId(1), &answer(&[]));
    envoy.close_all();
    assert_eq!(envoy.clients[client.0].status(), 404);
}

#[test]
fn a_bucket_that_does_not_list_leaves_the_index_document_missing_and_one_that_fails_does_not() {
    for (status, expected) in [(403, 404), (404, 404), (503, 503), (500, 500), (204, 502)] {
        let mut envoy = site();
        let client = visit(&mut envoy, "/7/");
        fail(&mut envoy, FIRST, 404);
        let error = [(BUCKET_ERROR_HEADER, "AccessDenied")];
        let error = if status == 403 { &error[..] } else { &[] };
        envoy.answer_with(FetchId(1), status, error, b"<Error/>");
        envoy.end(FetchId(1));
        envoy.close_all();
        assert_eq!(envoy.clients[client.0].status(), expected, "{status}");
    }
}

#[test]
fn an_answer_that_cannot_be_read_is_a_502_and_not_stored() {
    let whole = answer(&["7/a.txt"]);
    let large = whole.replace("<Contents>", &"<Owner></Owner>".repeat(300_000));
    for body in [&whole[..whole.len() - 1], "Welcome", &large] {
        let mut envoy = site();
        let client = visit(&mut envoy, "/7/");
        fail(&mut envoy, FIRST, 404);
        list(&mut envoy, FetchId(1), body);
        envoy.close_all();
        assert_eq!(envoy.clients[client.0].status(), 502, "{body:.50}");
        let log = envoy.log();
        let told = log
            .iter()
            .any(|line| line.contains("listing of \"7/\" cannot be read"));
        assert!(told, "{log:?}");
        settle(&mut envoy);
        visit(&mut envoy, "/7/");
        assert_eq!(path(&envoy, 2), QUESTION);
    }
}
