// SPDX-License-Identifier: Apache-2.0
//! The second origin gets only requests that are safe to repeat, and no client's credentials unless it is set.

use super::world::{Pair, named};
use sluice_tests::edge::Edge;
use sluice_tests::origin::Reply;

/// The status of a request to a first origin that fails.
async fn status(edge: &Edge, method: &str, target: &str, headers: &[(&str, &str)]) -> u16 {
    edge.send(method, target, headers).await.status
}

#[tokio::test]
async fn only_reads_without_a_body_and_without_credentials_reach_the_second_origin() {
    let pair = Pair::start().await;
    pair.first.on("/*", Reply::status(503));
    let edge = pair
        .servers()
        .policy("request: {cookies: ignore}")
        .start()
        .await;
    // A success in between keeps the first origin in use.
    pair.first.on("/well*", named("first"));
    for (name, method, header) in [
        ("post", "POST", ("x-a", "1")),
        ("body", "GET", ("content-length", "0")),
        ("auth", "GET", ("authorization", "Basic YTpi")),
        ("cookie", "GET", ("cookie", "session=1")),
    ] {
        let target = format!("/{name}");
        let told = status(&edge, method, &target, &[header]).await;
        assert_eq!(told, 503, "{name}");
        assert_eq!(pair.second.count(&target), 0, "{name}");
        assert_eq!(
            status(&edge, "GET", &format!("/well-{name}"), &[]).await,
            200
        );
    }
    assert_eq!(status(&edge, "GET", "/plain", &[]).await, 200);
    assert_eq!(pair.second.count("/plain"), 1);
}

#[tokio::test]
async fn credentials_reach_the_second_origin_where_it_is_set() {
    let pair = Pair::start().await;
    pair.first.on("/*", Reply::status(503));
    let edge = pair
        .servers()
        .env("SLUICE_FAILOVER_PASS_CLIENT_CREDENTIALS", "on")
        .start()
        .await;
    let credentials = ("authorization", "Basic YTpi");
    assert_eq!(status(&edge, "GET", "/auth", &[credentials]).await, 200);
    let asked = pair.second.requests().of("/auth");
    assert_eq!(asked[0].headers.get("authorization"), Some("Basic YTpi"));
}

#[tokio::test]
async fn validators_of_one_server_never_reach_the_other() {
    let pair = Pair::start().await;
    // Equal by chance.
    let of = |name: &str| {
        Reply::text(name)
            .etag("1")
            .header("cache-control", "max-age=0")
    };
    pair.first.on_each("/a", [of("first"), Reply::status(503)]);
    pair.second.on("/a", of("second"));
    let edge = pair.servers().origin_decides().start().await;
    assert_eq!(edge.get("/a").await.body, b"first");
    let response = edge.send("GET", "/a", &[("if-none-match", "\"1\"")]).await;
    assert_eq!(
        (response.status, &*response.body),
        (200, &b"second"[..]),
        "{response}"
    );
    assert_eq!(response.headers.get("etag"), None, "{response}");
    let asked = pair.second.requests().of("/a");
    assert_eq!(asked[0].headers.get("if-none-match"), None);
    pair.first.on("/a", of("first"));
    assert_eq!(edge.get("/a").await.body, b"first");
    let asked = pair.first.requests().of("/a");
    let last = asked.last().unwrap();
    assert_eq!(
        last.headers.get("if-none-match"),
        None,
        "a validator of the second server"
    );
}
