// SPDX-License-Identifier: Apache-2.0
//! What is one client's own is not stored, unless the policy strips what makes it so.

use sluice_tests::edge::Edge;
use sluice_tests::edge::store::on_each;
use sluice_tests::origin::{Origin, Reply};

const STRIPPING: &str = r#"
origin: {kind: http}
request: {authorization: strip, cookies: strip}
cache: {set_cookie: strip}
"#;

fn set_cookie() -> Reply {
    Reply::ok(1000).max_age(60).header("set-cookie", "id=1")
}

#[tokio::test]
async fn responses_with_cookies_or_for_credentials_are_not_stored() {
    on_each(&[1], async |cell| {
        let origin = Origin::start().ready().await;
        origin.on("/cookie", set_cookie());
        let public = Reply::ok(1000).header("cache-control", "public, s-maxage=60");
        origin.on("/secret", public);
        let edge = Edge::http(&origin).cell(cell).start().await;
        for n in 1..=2 {
            let cookie = edge.get("/cookie").await;
            assert_eq!(cookie.header("set-cookie"), "id=1", "{cell}: {cookie}");
            assert_eq!(origin.count("/cookie"), n, "{cell}");
            let secret = edge
                .send("GET", "/secret", &[("authorization", "Basic x")])
                .await;
            assert_eq!(secret.status, 200, "{cell}: {secret}");
            assert_eq!(origin.count("/secret"), n, "{cell}");
        }
        let plain = edge.get("/secret").await;
        assert!(!plain.is_hit(), "{cell}: {plain}");
        assert_eq!(origin.count("/secret"), 3, "{cell}");
    })
    .await;
}

#[tokio::test]
async fn what_the_policy_strips_does_not_keep_a_response_from_the_store() {
    on_each(&[1], async |cell| {
        let origin = Origin::start().ready().await;
        origin.on("/cookie", set_cookie());
        origin.on("/private", set_cookie().header("cache-control", "private"));
        origin.on("/secret", Reply::ok(1000).max_age(60));
        let edge = Edge::http(&origin)
            .cell(cell)
            .policy(STRIPPING)
            .start()
            .await;
        for n in 1..=2 {
            let cookie = edge.get("/cookie").await;
            assert_eq!(cookie.headers.get("set-cookie"), None, "{cell}: {cookie}");
            let headers = [("authorization", "Basic x"), ("cookie", "id=1")];
            let secret = edge.send("GET", "/secret", &headers).await;
            assert_eq!(secret.status, 200, "{cell}: {secret}");
            // Nothing is taken from a response that is one client's anyway.
            let private = edge.get("/private").await;
            assert_eq!(private.header("set-cookie"), "id=1", "{cell}: {private}");
            assert_eq!(origin.count("/private"), n, "{cell}");
        }
        for path in ["/cookie", "/secret"] {
            assert_eq!(origin.count(path), 1, "{path} on {cell}");
        }
        for request in origin.requests().of("/secret") {
            assert_eq!(request.headers.get("authorization"), None, "{cell}");
            assert_eq!(request.headers.get("cookie"), None, "{cell}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_bucket_serves_clients_with_credentials_from_the_store() {
    on_each(&[1], async |cell| {
        let origin = Origin::start().ready().await;
        origin.on("/site/a", Reply::ok(1000));
        let edge = Edge::scripted_bucket(&origin).cell(cell).start().await;
        for _ in 0..2 {
            let headers = [("authorization", "Basic x"), ("cookie", "id=1")];
            let response = edge.send("GET", "/a", &headers).await;
            assert_eq!(response.status, 200, "{cell}: {response}");
        }
        assert_eq!(origin.requests().total(), 1, "{cell}");
    })
    .await;
}
