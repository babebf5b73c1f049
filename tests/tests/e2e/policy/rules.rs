// SPDX-License-Identifier: Apache-2.0
//! Rules for paths: the time to live, and the headers that clients get.

use sluice_tests::bucket::Bucket;
use sluice_tests::client::Response;
use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};

const POLICY: &str = r#"
origin: {kind: http}
rules:
- match: ["/assets/*"]
  ttl: 1d
  honor_cache_control: false
  client_cache_control: public, max-age=31536000, immutable
  headers: {X-Content-Type-Options: nosniff}
- match: ["*.html", "/"]
  ttl: {"404": 0s}
  client_cache_control: no-cache
- match: ["*"]
  headers: {x-rule: none}
"#;

/// Asserts that clients get these values of `Cache-Control`, and not the value with which the entry is stored.
fn assert_told(response: &Response, cache_control: &[&str], context: &str) {
    let told: Vec<_> = response.headers.all("cache-control").collect();
    assert_eq!(told, cache_control, "{context}: {response}");
}

/// Asserts that the rule also counts for responses that the edge makes itself.
async fn assert_told_by_the_edge_itself(edge: &Edge) {
    for (name, value, status) in [
        ("if-none-match", "\"v1\"", 304),
        ("range", "bytes=0-9", 206),
        ("if-match", "\"v0\"", 412),
        ("range", "bytes=1000-", 416),
    ] {
        for method in ["GET", "HEAD"] {
            let answer = edge.send(method, "/assets/a.js", &[(name, value)]).await;
            // Only GET has ranges.
            let status = if (method, name) == ("HEAD", "range") {
                200
            } else {
                status
            };
            assert_eq!(answer.status, status, "{method} {name}: {answer}");
            let headers: Vec<_> = answer.headers.all("x-content-type-options").collect();
            assert_eq!(headers, ["nosniff"], "{method} {name}: {answer}");
        }
    }
}

/// An origin with an object for each rule.
async fn origin() -> Origin {
    let origin = Origin::start().ready().await;
    let expires = "Thu, 01 Jan 1970 00:00:00 GMT";
    let short = |age| {
        Reply::ok(1000)
            .etag("v1")
            .header("cache-control", "max-age=5")
            .header("expires", expires)
            .header("age", age)
    };
    origin.on("/assets/a.js", short("2"));
    origin.on("/assets/gone.js", Reply::status(404).max_age(60));
    origin.on(
        "/assets/mine",
        Reply::ok(1000).header("set-cookie", "a=1").max_age(60),
    );
    origin.on("/page.html?x", Reply::ok(1000).max_age(60));
    origin.on("/other", Reply::ok(1000));
    origin
}

#[tokio::test]
async fn clients_are_told_what_the_rule_says_and_never_how_it_is_stored() {
    let origin = origin().await;
    let edge = Edge::http(&origin).workers(1).policy(POLICY).start().await;
    let year = "public, max-age=31536000, immutable";
    for n in 0..2 {
        let context = format!("request {n}");
        let asset = edge.get("/assets/a.js").await;
        assert_told(&asset, &[year], &context);
        assert_eq!(asset.headers.get("expires"), None, "{context}: {asset}");
        assert_eq!(asset.headers.get("age"), None, "{context}: {asset}");
        assert_eq!(asset.header("x-content-type-options"), "nosniff");
        assert_eq!(asset.headers.get("x-rule"), None, "the first rule counts");
        let ttl = asset.cache_status().rsplit("ttl=").next();
        let ttl: u32 = ttl.and_then(|ttl| ttl.parse().ok()).unwrap();
        assert!((86_300..=86_400).contains(&ttl), "{context}: {asset}");

        // A missing file must not be missing for a year.
        let gone = edge.get("/assets/gone.js").await;
        assert_told(&gone, &["max-age=60"], &context);
        assert_eq!(gone.header("x-content-type-options"), "nosniff");

        // A response for one visitor does not become public.
        let mine = edge.get("/assets/mine").await;
        assert_told(&mine, &["max-age=60"], &context);

        let page = edge.get("/page.html?x").await;
        assert_told(&page, &["no-cache"], &context);

        let other = edge.get("/other").await;
        assert_told(&other, &[], &context);
        assert_eq!(other.header("x-rule"), "none");
    }
    assert_eq!(origin.count("/assets/a.js"), 1);
    let unchanged = edge
        .send("GET", "/assets/a.js", &[("if-none-match", "\"v1\"")])
        .await;
    assert_eq!(unchanged.status, 304, "{unchanged}");
    assert_told(&unchanged, &[year], "304");
    let part = edge
        .send("GET", "/assets/a.js", &[("range", "bytes=0-9")])
        .await;
    assert_eq!(part.status, 206, "{part}");
    assert_told(&part, &[year], "206");
    assert_told_by_the_edge_itself(&edge).await;
    assert_eq!(origin.count("/assets/a.js"), 1);
}

#[tokio::test]
async fn the_rules_of_a_bucket_see_the_path_behind_its_prefix() {
    let bucket = Bucket::new().await;
    bucket.put_stamped("a b.js", 1, 1000).await;
    bucket.put_stamped("index.html", 2, 1000).await;
    let policy = r#"
origin: {kind: bucket}
key: {index_document: index.html}
rules:
- match: ["/a%20*.js"]
  client_cache_control: max-age=1
- match: ["/index.html"]
  client_cache_control: max-age=2
"#;
    let edge = Edge::bucket(&bucket).policy(policy).start().await;
    for (path, told) in [("/a%20b.js", "max-age=1"), ("/", "max-age=2")] {
        assert_told(&edge.get(path).await, &[told], path);
    }
}

#[tokio::test]
async fn headers_that_the_policy_hides_reach_no_client() {
    let origin = Origin::start().ready().await;
    let reply = Reply::ok(1000).header("x-powered-by", "y");
    let reply = reply.header("x-backend-node", "7").header("x-kept", "1");
    origin.on("*", reply.clone());
    origin.on("/private", reply.header("cache-control", "private"));
    let policy =
        "origin: {kind: http}\nresponse: {remove_headers: [x-powered-by, 'x-backend-*']}\n";
    let edge = Edge::http(&origin).workers(1).policy(policy).start().await;
    for path in ["/a", "/a", "/private", "/private"] {
        let response = edge.get(path).await;
        for prefix in ["x-powered", "x-backend"] {
            assert!(!response.headers.any_with_prefix(prefix), "{response}");
        }
        assert_eq!(response.header("x-kept"), "1", "{path}");
    }
    // Control: without the policy, clients get the headers.
    let edge = Edge::http(&origin).workers(1).start().await;
    assert_eq!(edge.get("/a").await.header("x-backend-node"), "7");
}
