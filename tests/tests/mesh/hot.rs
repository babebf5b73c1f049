// SPDX-License-Identifier: Apache-2.0
//! A gateway serves responses from its workers' memory, and never against Istio's rules.

use crate::authorization::{
    ask_for_token, assert_private_is_denied, assert_token_is_asked_for, deny, refused,
};
use sluice_tests::client::{Client, Response, request};
use sluice_tests::eventually;
use sluice_tests::mesh::gateway::Gateway;
use sluice_tests::mesh::kustomize::changed_policy;

/// Enough connections that each worker has some.
const CONNECTIONS: usize = 8;
const HOT_HITS: &str = "wasmcustom.sluice_hot_hits";

/// Sends requests until every worker serves `path` from its memory.
async fn heat(gateway: &Gateway, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut last = None;
    for _ in 0..CONNECTIONS {
        let mut client = Client::connect(gateway.http()).await;
        last = Some(client.heat(path, headers).await);
    }
    last.unwrap()
}

/// Asserts that a copy is the same as the stored response, except for fields about the path of the response.
fn assert_same(hot: &Response, stored: &Response) {
    assert_eq!(hot.stored_fields(), stored.stored_fields());
    assert!(hot.body == stored.body, "{hot}");
}

#[tokio::test]
async fn a_gateway_serves_hot_hits_as_the_store_would() {
    let gateway = Gateway::builder("hot-hits").await.start().await;
    gateway.bucket.put_stamped("a.bin", 1, 20_000).await;
    gateway.bucket.put_stamped("large.bin", 1, 100_000).await;
    let stored = gateway.hit("/a.bin").await;
    let hot = heat(&gateway, "/a.bin", &[]).await;
    assert_same(&hot, &stored);
    let etag = hot.header("etag");
    let mut client = Client::connect(gateway.http()).await;
    for (method, headers, status) in [
        ("HEAD", vec![], 200),
        ("GET", vec![("if-none-match", etag)], 304),
        ("GET", vec![("range", "bytes=0-9")], 206),
    ] {
        let answer = client.exchange(request(method, "/a.bin", &headers)).await;
        assert_eq!(answer.status, status, "{answer}");
        assert!(answer.is_hot(), "{method} {headers:?}: {answer}");
    }
    // Control: an object that is too large is served from the store.
    for _ in 0..5 {
        let answer = gateway.hit("/large.bin").await;
        assert!(!answer.is_hot(), "{answer}");
    }
    assert_eq!(gateway.fetches("a.bin"), 1);
}

#[tokio::test]
async fn a_denied_path_is_denied_in_every_spelling_where_it_is_hot() {
    let gateway = Gateway::builder("hot-denied").await.start().await;
    gateway.bucket.put_stamped("private/a.bin", 1, 20_000).await;
    gateway.bucket.put_stamped("public/a.bin", 1, 20_000).await;
    let hot = heat(&gateway, "/private/a.bin", &[]).await;
    heat(&gateway, "/public/a.bin", &[]).await;
    deny(&gateway, "hot-denied", "/private/*");
    for _ in 0..CONNECTIONS {
        eventually("the rule", async || {
            refused(&gateway.get("/private/a.bin").await)
        })
        .await;
    }
    let answered = gateway.pod.statistic(HOT_HITS).await;
    assert_private_is_denied(&gateway, hot.header("etag")).await;
    assert_eq!(gateway.pod.statistic(HOT_HITS).await, answered);
    // Control: an object that is not denied is still hot.
    heat(&gateway, "/public/a.bin", &[]).await;
    assert_eq!(gateway.fetches("private/a.bin"), 1);
}

#[tokio::test]
async fn a_token_is_asked_for_also_where_the_answer_is_hot() {
    let gateway = Gateway::builder("hot-tokens").await.start().await;
    gateway.bucket.put_stamped("a.bin", 1, 20_000).await;
    heat(&gateway, "/a.bin", &[]).await;
    let bearer = ask_for_token(&gateway, "hot-tokens");
    let with_token = [("authorization", bearer.as_str())];
    for _ in 0..CONNECTIONS {
        eventually("the rule and the token", async || {
            gateway.get("/a.bin").await.status == 403
                && gateway.send("GET", "/a.bin", &with_token).await.status == 200
        })
        .await;
    }
    let hot = heat(&gateway, "/a.bin", &with_token).await;
    assert_token_is_asked_for(&gateway, &bearer, hot.header("etag")).await;
    assert_eq!(gateway.fetches("a.bin"), 1);
}

#[tokio::test]
async fn a_policy_with_other_keys_begins_with_nothing_hot() {
    let gateway = Gateway::builder("hot-policy").await.start().await;
    gateway.bucket.put_stamped("static/a.bin", 1, 20_000).await;
    gateway.bucket.put_stamped("a.bin", 2, 20_000).await;
    let _ = heat(&gateway, "/static/a.bin", &[])
        .await
        .stamp("/static/a.bin");
    let stripping = changed_policy("base", |policy| {
        policy["key"]["strip_prefix"] = "/static".into();
    });
    let overlay = gateway.overlay.clone().policy(&stripping);
    gateway.apply(&overlay.build());
    for _ in 0..CONNECTIONS {
        eventually("the other object", async || {
            let answer = gateway.get("/static/a.bin").await;
            sluice_tests::http::body::check("/a.bin", &answer.body).is_ok()
        })
        .await;
    }
    let hot = heat(&gateway, "/static/a.bin", &[]).await;
    let _ = hot.stamp("/a.bin");
    assert_eq!(gateway.fetches("static/a.bin"), 1);
    assert_eq!(gateway.fetches("a.bin"), 1);
}
