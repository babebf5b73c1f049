// SPDX-License-Identifier: Apache-2.0
//! A bucket's error responses name the bucket, for its owner. Clients get a page of the edge that does not name it.

use sluice_tests::bucket::Bucket;
use sluice_tests::client::{Client, Response, request};
use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};

/// Asserts that the response is the edge's own page, and says nothing about the bucket.
fn assert_clean(response: &Response, status: u16, about: &str) {
    let body = String::from_utf8_lossy(&response.body).into_owned();
    assert_eq!(response.status, status, "{about}: {response}");
    assert!(body.starts_with("<!doctype html>"), "{about}: {body}");
    assert!(body.contains(&format!("<h1>{status} ")), "{about}: {body}");
    assert_eq!(
        response.header("content-length"),
        response.body.len().to_string(),
        "{about}"
    );
    assert_clean_headers(response, about);
}

fn assert_clean_headers(response: &Response, about: &str) {
    assert_eq!(
        response.header("content-type"),
        "text/html; charset=utf-8",
        "{about}"
    );
    for name in [
        "etag",
        "last-modified",
        "content-encoding",
        "location",
        "accept-ranges",
    ] {
        assert_eq!(response.headers.get(name), None, "{about}: {response}");
    }
    for prefix in [
        "x-amz-",
        "x-minio-",
        "x-ratelimit-",
        "strict-transport-",
        "x-sluice-",
    ] {
        assert!(
            !response.headers.any_with_prefix(prefix),
            "{about}: {response}"
        );
    }
}

#[tokio::test]
async fn a_missing_object_is_a_page_on_misses_and_hits_and_for_head() {
    let bucket = Bucket::new().await;
    let edge = Edge::bucket(&bucket)
        .workers(1)
        .policy("cache: {ttl: {\"404\": 1h}}\n")
        .start()
        .await;
    let mut client = Client::connect(edge.address()).await;
    let head = client.exchange(request("HEAD", "/none", &[])).await;
    assert_eq!((head.status, head.body.len()), (404, 0), "{head}");
    assert_clean_headers(&head, "HEAD");
    for _ in 0..3 {
        assert_clean(&client.get("/none").await, 404, "GET");
    }
    let warm = client.exchange(request("HEAD", "/none", &[])).await;
    assert_clean_headers(&warm, "warm HEAD");
    assert_eq!(warm.header("content-length"), head.header("content-length"));
    assert!(bucket.count("none") <= 2, "{}", bucket.requests().summary());
}

#[tokio::test]
async fn errors_of_requests_that_pass_the_cache_are_clean_too() {
    let bucket = Bucket::new().await;
    bucket.put_stamped("a", 1, 1000).await;
    let edge = Edge::bucket(&bucket).workers(1).start().await;
    let part = edge.send("GET", "/a", &[("range", "bytes=2000-")]).await;
    assert_eq!(part.status, 416, "{part}");
    let none = edge.send("GET", "/none", &[("range", "bytes=0-9")]).await;
    assert_clean(&none, 404, "range");
    let none = edge
        .send("GET", "/none", &[("if-none-match", "\"x\"")])
        .await;
    assert_clean(&none, 404, "condition");
    let failed = edge.send("GET", "/a", &[("if-match", "\"x\"")]).await;
    assert_eq!(failed.status, 412, "{failed}");
    for response in [part, failed] {
        let body = String::from_utf8_lossy(&response.body);
        assert!(
            !body.contains("<Error>") && !body.contains(bucket.name()),
            "{body}"
        );
    }
}

#[tokio::test]
async fn errors_of_any_shape_are_replaced() {
    const XML: &str = "<?xml version=\"1.0\"?><Error><BucketName>site</BucketName></Error>";
    let origin = Origin::start().ready().await;
    let xml = |status| {
        let text = XML.repeat(500);
        let typed = Reply::text(text).header("content-type", "application/xml");
        typed
            .with_status(status)
            .header("x-amz-request-id", "R")
            .etag("e")
    };
    origin.on("/site/403", xml(403));
    origin.on("/site/500", xml(500).chunked());
    origin.on("/site/503", xml(503).header("content-encoding", "identity"));
    origin.on(
        "/site/301",
        xml(301).header("location", "https://site.s3.test/301"),
    );
    let edge = Edge::scripted_bucket(&origin).workers(1).start().await;
    let mut client = Client::connect(edge.address()).await;
    for (status, told) in [(403, 403), (500, 500), (503, 503), (301, 502)] {
        for _ in 0..2 {
            let response = client.get(&format!("/{status}")).await;
            assert_clean(&response, told, "");
        }
    }
    origin.on("/site/empty", Reply::status(404).empty());
    let empty = client.get("/empty").await;
    assert_eq!((empty.status, empty.body.len()), (404, 0), "{empty}");
    assert_eq!(client.get("/403").await.status, 403);
}

#[tokio::test]
async fn the_errors_of_an_http_origin_are_its_own() {
    let origin = Origin::start().ready().await;
    origin.on("/none", Reply::text("nothing here").with_status(404));
    let edge = Edge::http(&origin).start().await;
    let response = edge.get("/none").await;
    assert_eq!(
        (response.status, response.body.as_slice()),
        (404, b"nothing here".as_slice())
    );
}

#[tokio::test]
async fn control_the_bucket_itself_names_bucket_and_request() {
    let bucket = Bucket::new().await;
    let body = bucket.get("none").await.body;
    let body = String::from_utf8_lossy(&body);
    assert!(
        body.contains(bucket.name()) && body.contains("<RequestId>"),
        "{body}"
    );
}
#[tokio::test]
async fn a_bucket_that_is_away_is_a_page_of_the_edges_own() {
    let origin = Origin::start().ready().await;
    origin.refuse().await;
    let edge = Edge::scripted_bucket(&origin).start().await;
    for _ in 0..2 {
        let response = edge.get("/a").await;
        assert!(response.status >= 500, "{response}");
        let body = String::from_utf8_lossy(&response.body);
        assert!(!body.contains("upstream"), "{body}");
    }
}
