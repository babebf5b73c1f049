// SPDX-License-Identifier: Apache-2.0
//! The response of a site where an object does not exist: a redirect to a directory, the document of an application
//! that routes in the browser, or a page of the site.

use sluice_tests::bucket::Bucket;
use sluice_tests::client::{Client, Response, request};
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use test_case::test_case;

const PAGE: &str = "text/html,application/xhtml+xml,*/*;q=0.8";
const FALLBACK: &str = "website: {fallback_document: app/index.html}\n";

/// A bucket with the documents of a site.
async fn site() -> Bucket {
    let bucket = Bucket::new().await;
    for (key, content) in [
        ("app/index.html", "<h1>application</h1>"),
        ("404.html", "<h1>lost</h1>"),
        ("docs/index.html", "<h1>docs</h1>"),
    ] {
        bucket
            .put(key, &[("content-type", "text/html")], content.as_bytes())
            .await;
    }
    bucket
}

async fn page(client: &mut Client, target: &str) -> Response {
    client
        .exchange(request("GET", target, &[("accept", PAGE)]))
        .await
}

/// Whether `Vary` has `Accept`, so that caches know that the response depends on it.
fn varies_by_accept(response: &Response) -> bool {
    let mut told = response
        .headers
        .all("vary")
        .flat_map(|vary| vary.split(','));
    told.any(|name| name.trim() == "Accept")
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn a_page_that_is_no_object_is_the_fallback_document_with_200(workers: usize) {
    let bucket = site().await;
    let edge = Edge::bucket(&bucket)
        .workers(workers)
        .policy(FALLBACK)
        .start()
        .await;
    let mut client = Client::connect(edge.address()).await;
    for target in ["/users/42", "/users/42", "/other?x=1", "/users/42"] {
        let response = page(&mut client, target).await;
        assert_eq!(response.status, 200, "{target}: {response}");
        assert_eq!(
            response.body, b"<h1>application</h1>",
            "{target}: {response}"
        );
        assert_eq!(response.header("content-type"), "text/html", "{response}");
        assert!(varies_by_accept(&response), "{response}");
        assert!(
            response.cache_status().contains("detail=fallback"),
            "{response}"
        );
    }
    let head = client
        .exchange(request("HEAD", "/users/42", &[("accept", PAGE)]))
        .await;
    assert_eq!(
        (head.status, head.header("content-length")),
        (200, "20"),
        "{head}"
    );
    let head = client
        .exchange(request("HEAD", "/users/43", &[("accept", PAGE)]))
        .await;
    assert_eq!(
        (head.status, head.header("content-length")),
        (200, "20"),
        "{head}"
    );
    // A missing script does not get the page.
    let script = client
        .exchange(request("GET", "/users/42", &[("accept", "*/*")]))
        .await;
    assert_eq!(
        (script.status, varies_by_accept(&script)),
        (404, true),
        "{script}"
    );
    assert_eq!(client.get("/app.js").await.status, 404);
    assert_eq!(
        bucket.count("app/index.html"),
        1,
        "{}",
        bucket.requests().summary()
    );
}

#[tokio::test]
async fn a_crowd_at_a_missing_page_is_two_bucket_requests() {
    let bucket = site().await;
    let edge = Edge::bucket(&bucket)
        .workers(2)
        .policy(
            "website: {fallback_document: app/index.html}\ncache: {ttl: {\"404\": 1m, \"200\": 1h}}\n",
        )
        .start()
        .await;
    let crowd = (0..50).map(|_| async {
        let mut client = Client::connect(edge.address()).await;
        page(&mut client, "/users/42").await
    });
    for response in futures_join(crowd).await {
        assert_eq!(
            (response.status, response.body.as_slice()),
            (200, b"<h1>application</h1>".as_slice())
        );
    }
    assert_eq!(
        bucket.count("app/index.html"),
        1,
        "{}",
        bucket.requests().summary()
    );
    assert!(
        bucket.count("users/42") <= 2,
        "{}",
        bucket.requests().summary()
    );
}

async fn futures_join<F: Future<Output = Response>>(all: impl Iterator<Item = F>) -> Vec<Response> {
    let mut all: Vec<_> = all.map(Box::pin).collect();
    let mut done = Vec::new();
    std::future::poll_fn(|context| {
        all.retain_mut(|each| match each.as_mut().poll(context) {
            std::task::Poll::Ready(response) => {
                done.push(response);
                false
            }
            std::task::Poll::Pending => true,
        });
        if all.is_empty() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    done
}

#[tokio::test]
async fn the_error_document_has_the_status_of_what_is_missing() {
    let bucket = site().await;
    let policy = "website: {error_document: 404.html}\n";
    let edge = Edge::bucket(&bucket)
        .workers(1)
        .policy(policy)
        .start()
        .await;
    let mut client = Client::connect(edge.address()).await;
    for _ in 0..3 {
        let response = client
            .exchange(request(
                "GET",
                "/none",
                &[("range", "bytes=0-3"), ("if-none-match", "*")],
            ))
            .await;
        assert_eq!(response.status, 404, "{response}");
        assert_eq!(response.body, b"<h1>lost</h1>", "{response}");
        for name in [
            "etag",
            "last-modified",
            "cache-control",
            "age",
            "accept-ranges",
        ] {
            assert_eq!(response.headers.get(name), None, "{name}: {response}");
        }
    }
    let head = client.exchange(request("HEAD", "/none", &[])).await;
    assert_eq!(
        (head.status, head.header("content-length")),
        (404, "13"),
        "{head}"
    );
    assert_eq!(
        bucket.count("404.html"),
        1,
        "{}",
        bucket.requests().summary()
    );
}

#[tokio::test]
async fn a_directory_without_its_slash_is_a_redirect() {
    const POLICY: &str = "key: {index_document: index.html, strip_prefix: /site}\n\
                          website: {redirect_directories: true, error_document: 404.html}\n";
    let bucket = site().await;
    let edge = Edge::bucket(&bucket)
        .workers(1)
        .policy(POLICY)
        .start()
        .await;
    let mut client = Client::connect(edge.address()).await;
    for _ in 0..3 {
        let response = client.get("/site/docs?a=1&b").await;
        assert_eq!(response.status, 302, "{response}");
        assert_eq!(
            response.header("location"),
            "/site/docs/?a=1&b",
            "{response}"
        );
        assert_eq!(
            (response.header("content-length"), response.body.len()),
            ("0", 0)
        );
    }
    assert_eq!(client.get("/site/docs/").await.body, b"<h1>docs</h1>");
    for target in ["/site/none", "/site/none/", "/site/docs/index.html/x"] {
        let response = client.get(target).await;
        assert_eq!(
            (response.status, response.body.as_slice()),
            (404, b"<h1>lost</h1>".as_slice()),
            "{target}: {response}"
        );
    }
    assert_eq!(
        bucket.count("docs/index.html"),
        1,
        "{}",
        bucket.requests().summary()
    );
}

#[tokio::test]
async fn an_uploaded_object_replaces_the_fallback_within_a_second() {
    let bucket = site().await;
    let edge = Edge::bucket(&bucket).policy(FALLBACK).start().await;
    let mut client = Client::connect(edge.address()).await;
    assert_eq!(
        page(&mut client, "/late").await.body,
        b"<h1>application</h1>"
    );
    bucket
        .put("late", &[("content-type", "text/html")], b"here")
        .await;
    eventually("the object", async || {
        edge.send("GET", "/late", &[("accept", PAGE)]).await.body == b"here"
    })
    .await;
}

#[tokio::test]
async fn a_status_that_the_policy_takes_for_missing_falls_back_and_others_do_not() {
    let origin = Origin::start().ready().await;
    origin.on("/site/forbidden", Reply::status(403));
    origin.on("/site/broken", Reply::status(503));
    origin.on("/site/app/index.html", Reply::text("app").max_age(60));
    let policy = "website: {fallback_document: app/index.html, fallback_for: all, missing_statuses: [403, 404]}\n";
    let edge = Edge::scripted_bucket(&origin).policy(policy).start().await;
    for (target, status) in [("/forbidden", 200), ("/none", 200), ("/broken", 503)] {
        let response = edge.get(target).await;
        assert_eq!(response.status, status, "{target}: {response}");
        assert_eq!(
            response.body == b"app",
            status == 200,
            "{target}: {response}"
        );
    }
}

#[tokio::test]
async fn without_the_document_itself_the_error_stays() {
    let bucket = Bucket::new().await;
    let policy =
        "website: {fallback_document: none.html, fallback_for: all, error_document: lost.html}\n";
    let edge = Edge::bucket(&bucket)
        .workers(1)
        .policy(policy)
        .start()
        .await;
    for _ in 0..2 {
        let response = edge.get("/a").await;
        assert_eq!(response.status, 404, "{response}");
        assert!(response.body.starts_with(b"<!doctype html>"), "{response}");
    }
}

#[tokio::test]
async fn a_fallback_document_that_is_too_large_is_not_served_and_nothing_breaks() {
    let bucket = site().await;
    bucket.put_stamped("large.html", 1, 40 << 20).await;
    let policy = "website: {fallback_document: large.html, fallback_for: all}\n";
    let edge = Edge::bucket(&bucket)
        .workers(1)
        .policy(policy)
        .start()
        .await;
    assert_eq!(edge.get("/a").await.status, 404);
    assert_eq!(edge.get("/large.html").await.status, 200);
    assert_eq!(edge.get("/a").await.status, 404);
}

#[tokio::test]
async fn control_without_the_policy_a_missing_page_is_missing() {
    let bucket = site().await;
    let edge = Edge::bucket(&bucket).start().await;
    for target in ["/users/42", "/docs"] {
        assert_eq!(
            edge.send("GET", target, &[("accept", PAGE)]).await.status,
            404
        );
    }
}

#[tokio::test]
async fn each_error_of_the_bucket_has_its_stored_document_and_perhaps_another_status() {
    let origin = Origin::start().ready().await;
    origin.on("/site/secret", Reply::status(403));
    origin.on("/site/a", Reply::text("an object").max_age(600));
    let html = |text: &str| Reply::text(text).header("content-type", "text/html");
    origin.on("/site/denied.html", html("denied").etag("v1").max_age(600));
    origin.on("/site/sorry.html", html("sorry").etag("v1").max_age(600));
    let policy = "website:\n  error_documents:\n  - {statuses: [403], document: denied.html, status: 404}\n  \
                  - {statuses: [500, 502, 503, 504], document: sorry.html}\n";
    let edge = Edge::scripted_bucket(&origin)
        .workers(1)
        .env("SLUICE_S3_RETRIES", "0")
        .policy(policy)
        .start()
        .await;
    let mut client = Client::connect(edge.address()).await;
    for _ in 0..3 {
        let headers = [("range", "bytes=0-1"), ("if-none-match", "\"v1\"")];
        let response = client.exchange(request("GET", "/secret", &headers)).await;
        assert_eq!(response.status, 404, "{response}");
        assert_eq!(response.body, b"denied", "{response}");
        assert_eq!(response.header("content-type"), "text/html");
        assert_eq!(response.headers.get("etag"), None, "{response}");
    }
    let head = client.exchange(request("HEAD", "/secret", &[])).await;
    assert_eq!((head.status, head.header("content-length")), (404, "6"));
    assert_eq!(origin.count("/site/denied.html"), 1);
    // The document is stored, and is there when the bucket is not.
    assert_eq!(client.get("/sorry.html").await.status, 200);
    eventually("it is stored", async || {
        client.get("/sorry.html").await.is_hit()
    })
    .await;
    origin.refuse().await;
    let crowd = (0..10).map(|_| edge.get("/cold"));
    for response in futures_join(crowd).await {
        assert_eq!(
            (response.status, &*response.body),
            (503, &b"sorry"[..]),
            "{response}"
        );
        assert_eq!(response.header("cache-control"), "no-store", "{response}");
        assert!(
            response.cache_status().contains("detail=error-document"),
            "{response}"
        );
    }
    // The edge's own refusals have no document.
    for (method, target, status) in [
        ("GET", "/x/..%2f..%2fother", 400),
        ("PURGE", "/secret", 405),
    ] {
        let refused = client.exchange(request(method, target, &[])).await;
        assert_eq!(refused.status, status, "{refused}");
        assert_eq!(refused.header("content-type"), "text/plain; charset=utf-8");
    }
}
