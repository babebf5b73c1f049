// SPDX-License-Identifier: Apache-2.0
//! The objects of a bucket's site, and the requests of its visitors.

use sluice_tests::bucket::Bucket;
use sluice_tests::client::request;
use sluice_tests::client::{Client, crowd::Crowd};
use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};
use test_case::test_case;

/// Sizes of an `index.html` or a `404.html`, around the size that Envoy buffers of a body, and the largest document
/// that is served.
const SIZES: [usize; 5] = [20_000, 60_000, 70_000, 500_000, 1 << 20];

/// One client requested missing pages of a site whose document is above 64 KiB. Each of them ended the worker's VM,
/// or leaked memory natively.
#[test_case("fallback_document: page.html, fallback_for: all", 200; "a fallback document")]
#[test_case("error_document: page.html", 404; "an error document")]
#[tokio::test]
async fn missing_pages_have_a_document_of_any_size(website: &str, status: u16) {
    for size in SIZES {
        let origin = Origin::start().ready().await;
        origin.on(
            "/site/page.html",
            Reply::ok(size)
                .max_age(60)
                .header("content-type", "text/html"),
        );
        let policy = format!("website: {{{website}}}\ncache: {{ttl: {{\"404\": 0s}}}}\n");
        let mut edge = Edge::scripted_bucket(&origin)
            .workers(1)
            .policy(&policy)
            .start()
            .await;
        let crowd = Crowd::connect(edge.address(), 20).await;
        let outcomes = crowd
            .fire_each(|n| request("GET", &format!("/none{n}"), &[]))
            .land()
            .await;
        let all = outcomes.all(status);
        assert_eq!(all.len(), 20, "{size}: {:?}", outcomes.tally());
        for response in all {
            let _ = response.stamp("/site/page.html");
            assert_eq!(response.body.len(), size);
            assert_eq!(response.header("content-type"), "text/html", "{response}");
        }
        let mut client = Client::connect(edge.address()).await;
        let head = client.exchange(request("HEAD", "/none", &[])).await;
        let length = head.header("content-length");
        assert_eq!(
            (head.status, length),
            (status, &*size.to_string()),
            "{head}"
        );
        for counter in [
            "sluice_reentered_callbacks",
            "sluice_host_errors",
            "sluice_workers_lost",
        ] {
            assert_eq!(edge.counter(counter).await, 0, "{size}: {counter}");
        }
        edge.check();
    }
}

/// An origin sends an empty `Vary:`. Natively its response was never a hit.
#[tokio::test]
async fn an_empty_vary_is_none() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1_000).max_age(60).header("vary", ""));
    let edge = Edge::http(&origin).workers(1).start().await;
    let first = edge.get("/a").await;
    assert_eq!(first.status, 200, "{first}");
    let hit = sluice_tests::client::until_hit(edge.address(), "/a").await;
    assert_eq!(hit.stamp("/a"), first.stamp("/a"));
    assert_eq!(origin.count("/a"), 1);
    assert_eq!(edge.counter("sluice_host_errors").await, 0);
}

/// The metadata of an object have a value that is not a coding, as SDKs leave it. The object was never compressed,
/// and clients got a coding that they do not know.
#[test_case(""; "empty")]
#[test_case("identity"; "identity")]
#[test_case("aws-chunked"; "of an upload in chunks")]
#[tokio::test]
async fn a_coding_that_is_none_is_removed_from_an_object(coding: &str) {
    let origin = Origin::start().ready().await;
    let text = Reply::text("text ".repeat(2_000)).max_age(60);
    let text = text
        .header("content-type", "text/css")
        .header("content-encoding", coding);
    origin.on("/site/a.css", text);
    let edge = Edge::scripted_bucket(&origin).workers(1).start().await;
    let plain = edge.get("/a.css").await;
    assert_eq!(plain.headers.get("content-encoding"), None, "{plain}");
    assert_eq!(plain.body.len(), 10_000);
    let headers = [("accept-encoding", "gzip")];
    let coded = edge.send("GET", "/a.css", &headers).await;
    assert_eq!(coded.header("content-encoding"), "gzip", "{coded}");
    assert!(coded.body.len() < 5_000, "{coded}");
}

/// A real coding stays, without the name that an upload in chunks has left.
#[tokio::test]
async fn the_coding_of_an_object_stays() {
    let origin = Origin::start().ready().await;
    let text = Reply::text("coded")
        .max_age(60)
        .header("content-encoding", "aws-chunked,gzip");
    origin.on("/site/a", text);
    let edge = Edge::scripted_bucket(&origin).workers(1).start().await;
    assert_eq!(edge.get("/a").await.header("content-encoding"), "gzip");
}

/// An error code with a dot concerns one object: its encryption key is disabled.
#[tokio::test]
async fn an_error_code_with_a_dot_is_of_one_object() {
    let origin = Origin::start().ready().await;
    let error = "<Error><Code>KMS.DisabledException</Code></Error>";
    origin.on("/site/a", Reply::text(error).with_status(400));
    let edge = Edge::scripted_bucket(&origin).workers(1).start().await;
    assert_eq!(edge.get("/a").await.status, 400);
    for counter in ["sluice_bucket_refused", "sluice_bucket_region_wrong"] {
        assert_eq!(edge.counter(counter).await, 0, "{counter}");
    }
}

/// A page of an application has a path with a long segment. `MinIO` has no object of such a name, and answers 400.
#[tokio::test]
async fn a_long_segment_has_the_fallback_document() {
    let bucket = Bucket::new().await;
    let html = [("content-type", "text/html")];
    bucket
        .put("index.html", &html, b"<h1>application</h1>")
        .await;
    let edge = Edge::bucket(&bucket)
        .env("SLUICE_POLICY", "spa")
        .workers(1)
        .start()
        .await;
    let target = format!("/users/{}", "a".repeat(300));
    for method in ["GET", "HEAD"] {
        let page = edge.send(method, &target, &[("accept", "text/html")]).await;
        assert_eq!(page.status, 200, "{page}");
        assert_eq!(page.header("content-length"), "20", "{page}");
    }
}

/// The policy forwards a header to the bucket, and its value has a tab. The signature was refused, and the operator
/// was alerted.
#[tokio::test]
async fn a_tab_in_a_forwarded_header_is_signed_as_s3_signs_it() {
    let bucket = Bucket::new().await;
    bucket.put("a", &[], b"here").await;
    let policy = "request: {forward_headers: [x-note]}\n";
    let edge = Edge::bucket(&bucket)
        .workers(1)
        .policy(policy)
        .start()
        .await;
    let response = edge
        .send("GET", "/a", &[("x-note", "one\ttwo  three")])
        .await;
    assert_eq!(
        (response.status, &*response.body),
        (200, &b"here"[..]),
        "{response}"
    );
    assert_eq!(edge.counter("sluice_bucket_credentials_refused").await, 0);
}

/// A request for the prefix of a site without its slash is redirected.
#[tokio::test]
async fn the_prefix_of_a_site_without_its_slash_is_a_redirect() {
    const POLICY: &str = "key: {index_document: index.html, strip_prefix: /static}\n\
                          website: {redirect_directories: true}\n";
    let origin = Origin::start().ready().await;
    let edge = Edge::scripted_bucket(&origin)
        .workers(1)
        .policy(POLICY)
        .start()
        .await;
    let response = edge.get("/static?a=1").await;
    assert_eq!(
        (response.status, response.header("location")),
        (302, "/static/?a=1"),
        "{response}"
    );
    assert_eq!(edge.send("POST", "/static", &[]).await.status, 404);
    assert_eq!(origin.requests().total(), 0);
}
