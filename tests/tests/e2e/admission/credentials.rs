// SPDX-License-Identifier: Apache-2.0
//! A response for one client alone is not stored, unless the policy strips the header that makes it so.

use sluice_tests::edge::Edge;
use sluice_tests::eventually;
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
    let origin = Origin::start().ready().await;
    origin.on("/cookie", set_cookie());
    origin.on("/secret", Reply::ok(1000).max_age(60));
    let edge = Edge::http(&origin).workers(1).start().await;
    for n in 1..=2 {
        let cookie = edge.get("/cookie").await;
        assert_eq!(cookie.header("set-cookie"), "id=1", "{cookie}");
        assert_eq!(origin.count("/cookie"), n);
        let secret = edge
            .send("GET", "/secret", &[("authorization", "Basic x")])
            .await;
        assert_eq!(secret.status, 200, "{secret}");
        assert_eq!(origin.count("/secret"), n);
    }
    let plain = edge.get("/secret").await;
    assert!(!plain.is_hit(), "{plain}");
    assert_eq!(origin.count("/secret"), 3);
}

#[tokio::test]
async fn what_the_origin_calls_public_is_stored_for_all_credentials() {
    let origin = Origin::start().ready().await;
    for (path, control) in [
        ("/public", "public, max-age=60"),
        ("/shared", "s-maxage=60"),
        ("/strict", "max-age=60, must-revalidate"),
    ] {
        origin.on(path, Reply::ok(1000).header("cache-control", control));
    }
    let edge = Edge::http(&origin).workers(2).start().await;
    for path in ["/public", "/shared", "/strict"] {
        edge.send("GET", path, &[("authorization", "Basic a")])
            .await;
        eventually("it is stored", async || edge.get(path).await.is_hit()).await;
        let _ = edge.get(path).await.stamp(path);
        let asked = origin.count(path);
        for credentials in ["Basic a", "Basic b", "Bearer c"] {
            for _ in 0..4 {
                let headers = [("authorization", credentials)];
                let response = edge.send("GET", path, &headers).await;
                assert!(response.is_hit(), "{response}");
                let _ = response.stamp(path);
            }
        }
        assert_eq!(origin.count(path), asked);
    }
    let requests = origin.requests();
    let seen = requests.matching(|request| request.headers.get("authorization") == Some("Basic a"));
    assert_eq!(seen, 3);
    let hidden =
        requests.matching(|request| request.headers.get("x-sluice-authorization").is_some());
    assert_eq!(hidden, 0);
}

#[tokio::test]
async fn a_header_that_the_policy_strips_does_not_prevent_storing() {
    let origin = Origin::start().ready().await;
    origin.on("/cookie", set_cookie());
    origin.on("/private", set_cookie().header("cache-control", "private"));
    origin.on("/secret", Reply::ok(1000).max_age(60));
    let edge = Edge::http(&origin)
        .workers(1)
        .policy(STRIPPING)
        .start()
        .await;
    for n in 1..=2 {
        let cookie = edge.get("/cookie").await;
        assert_eq!(cookie.headers.get("set-cookie"), None, "{cookie}");
        let headers = [("authorization", "Basic x"), ("cookie", "id=1")];
        let secret = edge.send("GET", "/secret", &headers).await;
        assert_eq!(secret.status, 200, "{secret}");
        // A response that is one client's anyway keeps its fields.
        let private = edge.get("/private").await;
        assert_eq!(private.header("set-cookie"), "id=1", "{private}");
        assert_eq!(origin.count("/private"), n);
    }
    for path in ["/cookie", "/secret"] {
        assert_eq!(origin.count(path), 1, "{path}");
    }
    for request in origin.requests().of("/secret") {
        assert_eq!(request.headers.get("authorization"), None);
        assert_eq!(request.headers.get("cookie"), None);
    }
}

#[tokio::test]
async fn a_bucket_serves_clients_with_credentials_from_the_store() {
    let origin = Origin::start().ready().await;
    origin.on("/site/a", Reply::ok(1000));
    let edge = Edge::scripted_bucket(&origin).workers(1).start().await;
    for _ in 0..2 {
        let headers = [("authorization", "Basic x"), ("cookie", "id=1")];
        let response = edge.send("GET", "/a", &headers).await;
        assert_eq!(response.status, 200, "{response}");
    }
    assert_eq!(origin.requests().total(), 1);
}
