// SPDX-License-Identifier: Apache-2.0
//! In front of an HTTP origin, requests that are one client's own pass the cache and never wait.

use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;

/// Method, headers, body.
type Own = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

#[tokio::test]
async fn what_is_for_operators_or_hides_another_path_never_reaches_the_origin() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1000).header("cache-control", "private"));
    let policy =
        "origin: {kind: http}\nrules: [{match: [/assets/*], honor_cache_control: false}]\n";
    let edge = Edge::http(&origin).policy(policy).start().await;
    for method in ["PURGE", "purge", "BAN", "TRACE", "TRACK", "CONNECT"] {
        let response = edge.send(method, "/assets/a", &[]).await;
        assert!(matches!(response.status, 400 | 405), "{method}: {response}");
    }
    for path in [
        "/assets/..;/account",
        "/assets/..%3bx/account",
        "/assets/%2e%2e;x=1/account",
    ] {
        let response = edge.get(path).await;
        assert_eq!(response.status, 400, "{path}: {response}");
    }
    assert_eq!(origin.requests().total(), 0);
    // Control: under the rule, a response with `private` is shared.
    let _ = edge.get("/assets/a").await;
    eventually("a hit", async || edge.get("/assets/a").await.is_hit()).await;
}

#[tokio::test]
async fn requests_with_credentials_a_body_or_another_method_reach_the_origin_each_time() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000).max_age(60));
    let edge = Edge::http(&origin).workers(1).start().await;
    let first = edge.get("/a").await.stamp("/a");
    let own: [Own; 10] = [
        ("OPTIONS", &[], ""),
        ("GET", &[("authorization", "Basic eDp5")], ""),
        ("GET", &[("cookie", "id=1")], ""),
        ("GET", &[("content-length", "2")], "hi"),
        ("GET", &[("content-type", "application/grpc")], ""),
        ("POST", &[("content-length", "2")], "hi"),
        ("PUT", &[("content-length", "0")], ""),
        ("DELETE", &[], ""),
        ("M-SEARCH", &[], ""),
        ("PATCH", &[("content-length", "2")], "hi"),
    ];
    for (n, (method, headers, content)) in own.iter().enumerate() {
        let mut bytes = request(method, "/a", headers);
        bytes.extend_from_slice(content.as_bytes());
        let response = Client::connect(edge.address()).await.exchange(bytes).await;
        assert_eq!(response.status, 200, "{method} {headers:?}: {response}");
        assert_ne!(
            response.stamp("/a"),
            first,
            "{method} {headers:?} got the stored object"
        );
        assert!(
            response.cache_status().contains("fwd=bypass")
                || response.cache_status().contains("fwd=method")
        );
        assert_eq!(origin.count("/a"), n + 2, "{method} {headers:?}");
        // None of the responses was stored. A request that changes the object invalidates it.
        if matches!(*method, "GET" | "OPTIONS") {
            let stored = edge.get("/a").await.stamp("/a");
            assert_eq!(stored, first, "{method} {headers:?}");
        }
    }
    // The request with `Authorization` has looked in the store, which may have a response with `public`.
    assert_eq!(
        edge.counter("sluice_requests_passed").await,
        own.len() as u64 - 1
    );
    let seen = origin.requests().all();
    assert!(
        seen.iter()
            .any(|r| r.headers.get("authorization") == Some("Basic eDp5"))
    );
    assert!(seen.iter().any(|r| r.headers.get("cookie") == Some("id=1")));
}

#[tokio::test]
async fn requests_that_pass_the_cache_never_wait() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", Reply::ok(1000).max_age(60).hold(&gate));
    let edge = Edge::http(&origin).workers(1).start().await;
    let mut clients = Vec::new();
    for headers in [&[][..], &[("cookie", "a=1")], &[("authorization", "x")]] {
        let mut client = Client::connect(edge.address()).await;
        client.send(request("GET", "/a", headers)).await.unwrap();
        clients.push(client);
    }
    // All requests are at the origin at the same time, though one of them leads the key.
    gate.wait_reached(clients.len()).await;
    assert_eq!(edge.counter("sluice_followers_parked").await, 0);
    gate.open();
    for mut client in clients {
        assert_eq!(client.response().await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn a_policy_may_strip_cookies() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000).max_age(60));
    let edge = Edge::http(&origin)
        .policy("origin: {kind: http}\nrequest: {cookies: strip}\n")
        .start()
        .await;
    for cookie in ["a=1", "a=2"] {
        assert_eq!(
            edge.send("GET", "/a", &[("cookie", cookie)]).await.status,
            200
        );
    }
    assert_eq!(origin.count("/a"), 1);
    assert_eq!(origin.requests().of("/a")[0].headers.get("cookie"), None);
}

#[tokio::test]
async fn the_host_header_is_passed_on_unchanged() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000));
    let edge = Edge::http(&origin).start().await;
    edge.send("GET", "/a", &[("host", "www.example.test")])
        .await;
    edge.send(
        "POST",
        "/a",
        &[("host", "www.example.test"), ("content-length", "0")],
    )
    .await;
    for request in origin.requests().of("/a") {
        assert_eq!(
            request.headers.get("host"),
            Some("www.example.test"),
            "{}",
            request.method
        );
    }
}

#[tokio::test]
async fn the_origins_cache_control_wins_over_the_policys_ttl() {
    let origin = Origin::start().ready().await;
    origin.on("/silent", Reply::ok(1000));
    origin.on(
        "/never",
        Reply::ok(1000).header("cache-control", "no-store"),
    );
    let edge = Edge::http(&origin).start().await;
    for path in ["/silent", "/never"] {
        for _ in 0..3 {
            let _ = edge.get(path).await.stamp(path);
        }
    }
    assert_eq!((origin.count("/silent"), origin.count("/never")), (1, 3));
}

#[tokio::test]
async fn an_origins_missing_or_wrong_date_does_not_prevent_caching() {
    let origin = Origin::start().ready().await;
    origin.on("/undated", Reply::ok(1000).undated());
    origin.on(
        "/old",
        Reply::ok(1000)
            .undated()
            .header("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
    );
    let edge = Edge::http(&origin).workers(1).start().await;
    for path in ["/undated", "/old"] {
        let _ = edge.get(path).await.stamp(path);
        let _ = edge.get(path).await.stamp(path);
        assert_eq!(origin.count(path), 1, "{path}");
    }
    let stored = edge.get("/old").await;
    assert_eq!(stored.header("date"), "Sun, 06 Nov 1994 08:49:37 GMT");
}

#[tokio::test]
async fn x_forwarded_for_is_the_same_on_misses_validations_and_passes() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000).etag("v1").max_age(1));
    let edge = Edge::http(&origin).workers(1).start().await;
    let headers = [("x-forwarded-for", "203.0.113.7"), ("content-length", "0")];
    // The request is a miss, then a validation, then a request around the cache.
    edge.send("GET", "/a", &headers).await;
    eventually("a validation", async || {
        edge.send("GET", "/a", &headers).await;
        origin.count("/a") == 2
    })
    .await;
    edge.send("POST", "/a", &headers).await;
    let asked = origin.requests().of("/a");
    let told: Vec<_> = asked
        .iter()
        .map(|request| request.headers.all("x-forwarded-for").collect::<Vec<_>>())
        .collect();
    // The field lists the client, and the peer that sent the request to Envoy.
    let around = told[2].clone();
    assert_eq!(around[0].split(',').count(), 2, "{around:?}");
    assert!(around[0].starts_with("203.0.113.7,"), "{around:?}");
    assert_eq!(told, [around.clone(), around.clone(), around]);
}
