// SPDX-License-Identifier: Apache-2.0
//! Cross-origin resource sharing at the edge. The edge answers preflights. A stored object serves pages of all
//! origins.

use sluice_tests::bucket::Bucket;
use sluice_tests::client::Response;
use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};

const LISTED: &str = "website: {cors: {allowed_origins: ['https://a.test', 'https://*.b.test'], \
                      allowed_headers: [x-one], exposed_headers: [etag], max_age: 5m}}\n";

/// Returns `Access-Control-Allow-Origin`, and `Origin` if `Vary` names it.
fn readers(response: &Response) -> (&str, &str) {
    let mut told = response
        .headers
        .all("vary")
        .flat_map(|vary| vary.split(','));
    (
        response.header("access-control-allow-origin"),
        told.find(|name| name.trim() == "Origin")
            .map_or("", str::trim),
    )
}

#[tokio::test]
async fn one_stored_object_serves_pages_of_all_origins() {
    let bucket = Bucket::new().await;
    bucket.put_stamped("font.woff2", 1, 1000).await;
    let edge = Edge::bucket(&bucket)
        .workers(1)
        .policy(LISTED)
        .start()
        .await;
    for (origin, allowed) in [
        (Some("https://a.test"), "https://a.test"),
        (Some("https://x.b.test"), "https://x.b.test"),
        (Some("https://evil.test"), ""),
        (Some("null"), ""),
        (None, ""),
        (Some("https://a.test"), "https://a.test"),
    ] {
        let headers: Vec<_> = origin.iter().map(|origin| ("origin", *origin)).collect();
        for method in ["GET", "HEAD"] {
            let response = edge.send(method, "/font.woff2", &headers).await;
            assert_eq!(response.status, 200, "{response}");
            assert_eq!(
                readers(&response),
                (allowed, "Origin"),
                "{origin:?}: {response}"
            );
            let exposed = if allowed.is_empty() { "" } else { "etag" };
            assert_eq!(response.header("access-control-expose-headers"), exposed);
        }
    }
    assert_eq!(
        bucket.requests().total(),
        1,
        "{}",
        bucket.requests().summary()
    );
}

#[tokio::test]
async fn preflights_never_reach_the_bucket() {
    let origin = Origin::start().ready().await;
    let edge = Edge::scripted_bucket(&origin).policy(LISTED).start().await;
    let preflight = |origin: &'static str| {
        [
            ("origin", origin),
            ("access-control-request-method", "GET"),
            ("access-control-request-headers", "x-one"),
        ]
    };
    let allowed = edge
        .send("OPTIONS", "/a", &preflight("https://a.test"))
        .await;
    assert_eq!((allowed.status, allowed.body.len()), (204, 0), "{allowed}");
    assert_eq!(readers(&allowed), ("https://a.test", "Origin"));
    for (name, value) in [
        ("access-control-allow-methods", "GET, HEAD"),
        ("access-control-allow-headers", "x-one"),
        ("access-control-max-age", "300"),
    ] {
        assert_eq!(allowed.header(name), value, "{allowed}");
    }
    let refused = edge
        .send("OPTIONS", "/a", &preflight("https://evil.test"))
        .await;
    assert_eq!(refused.status, 204, "{refused}");
    assert!(
        !refused.headers.any_with_prefix("access-control-"),
        "{refused}"
    );
    assert_eq!(
        edge.send("OPTIONS", "/a%2fb", &preflight("https://a.test"))
            .await
            .status,
        400
    );
    let other = edge
        .send("OPTIONS", "/a", &[("origin", "https://a.test")])
        .await;
    assert_eq!(
        (other.status, other.header("allow")),
        (405, "GET, HEAD, OPTIONS"),
        "{other}"
    );
    assert_eq!(
        origin.requests().total(),
        0,
        "{}",
        origin.requests().summary()
    );
}

#[tokio::test]
async fn errors_carry_the_cors_headers_too() {
    let origin = Origin::start().ready().await;
    origin.on("/site/error", Reply::status(503));
    let policy = "website: {cors: {allowed_origins: ['*']}}\n";
    let edge = Edge::scripted_bucket(&origin).policy(policy).start().await;
    for (target, status) in [
        ("/none", 404),
        ("/none", 404),
        ("/error", 503),
        ("/a%2fb", 400),
    ] {
        let response = edge.get(target).await;
        assert_eq!(
            (response.status, readers(&response)),
            (status, ("*", "")),
            "{response}"
        );
    }
}

#[tokio::test]
async fn an_http_origin_is_answered_for_where_the_policy_says_so() {
    let origin = Origin::start().ready().await;
    let own = Reply::ok(100)
        .max_age(60)
        .header("access-control-allow-origin", "https://own.test");
    origin.on("/a", own.header("vary", "Origin"));
    origin.on("/form", Reply::ok(100));
    let edge = Edge::http(&origin).policy(LISTED).start().await;
    for page in ["https://a.test", "https://x.b.test", "https://own.test"] {
        let response = edge.send("GET", "/a", &[("origin", page)]).await;
        let allowed = if page == "https://own.test" { "" } else { page };
        assert_eq!(readers(&response), (allowed, "Origin"), "{response}");
    }
    assert_eq!(origin.count("/a"), 1, "{}", origin.requests().summary());
    assert_eq!(origin.requests().of("/a")[0].headers.get("origin"), None);
    let headers = [("origin", "https://a.test"), ("content-length", "0")];
    let posted = edge.send("POST", "/form", &headers).await;
    assert_eq!(posted.status, 200, "{posted}");
    assert_eq!(readers(&posted), ("https://a.test", "Origin"), "{posted}");
    assert_eq!(
        origin.requests().of("/form")[0].headers.get("origin"),
        Some("https://a.test")
    );
}

#[tokio::test]
async fn control_without_the_policy_a_bucket_says_nothing_of_readers() {
    let bucket = Bucket::new().await;
    bucket.put_stamped("a", 1, 1000).await;
    let edge = Edge::bucket(&bucket).start().await;
    let response = edge
        .send("GET", "/a", &[("origin", "https://a.test")])
        .await;
    assert_eq!(response.status, 200, "{response}");
    assert!(
        !response.headers.any_with_prefix("access-control-"),
        "{response}"
    );
}
