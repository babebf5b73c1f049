// SPDX-License-Identifier: Apache-2.0
//! A purge has taken effect on every worker when its call returns, and no purged object is served again.

use serde_json::json;
use sluice_tests::bucket::Bucket;
use sluice_tests::client::crowd::stampede;
use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;
use sluice_tests::edge::purger::{Purger, TOKEN};
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use test_case::test_case;

const LONG: u32 = 3_600;

/// A URL as the tests' clients request it.
fn url(path: &str) -> String {
    format!("http://edge.test{path}")
}

async fn purgeable(origin: &Origin, workers: usize) -> (Edge, Purger) {
    let purger = Purger::new();
    let edge = purger
        .open(Edge::http(origin))
        .workers(workers)
        .start()
        .await;
    (edge, purger)
}

/// Sends requests until, as far as a client can see, every worker serves the object from the store.
async fn warm(edge: &Edge, path: &str) {
    eventually("a hit", async || edge.get(path).await.is_hit()).await;
    for _ in 0..8 {
        edge.get(path).await;
    }
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[test_case(4; "with four workers")]
#[tokio::test]
async fn all_workers_stop_serving_before_the_call_returns(workers: usize) {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(5_000).max_age(LONG));
    origin.on("/other", Reply::ok(5_000).max_age(LONG));
    let (edge, purger) = purgeable(&origin, workers).await;
    warm(&edge, "/other").await;
    let mut connections = Vec::new();
    for _ in 0..24 {
        connections.push(Client::connect(edge.address()).await);
    }
    for round in 1..=2 {
        warm(&edge, "/a").await;
        let fetched = origin.count("/a");
        let receipt = purger.purge(json!({"url": url("/a")})).await;
        assert!(
            receipt["workers"].as_u64() <= Some(workers as u64),
            "{receipt}"
        );
        for connection in &mut connections {
            let stamp = connection.get("/a").await.stamp("/a");
            assert!(stamp.sequence >= fetched as u64, "{stamp:?}");
        }
        let again = origin.count("/a") - fetched;
        assert_eq!(again, 1, "round {round}");
    }
    assert_eq!(origin.count("/other"), 1);
    assert!(edge.get("/other").await.is_hit());
    assert_eq!(edge.counter("sluice_purges").await, 2);
    assert_eq!(edge.counter("sluice_purges_unacknowledged").await, 0);
}

#[tokio::test]
async fn a_fill_under_way_cannot_bring_back_what_was_purged() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    let (old, new) = (
        Reply::ok(50_000).max_age(LONG),
        Reply::ok(50_000).max_age(LONG),
    );
    origin.on_each("/a", [old.hold_after(10_000, &gate), new]);
    let (edge, purger) = purgeable(&origin, 2).await;
    let mut client = Client::connect(edge.address()).await;
    client.send(request("GET", "/a", &[])).await.unwrap();
    gate.wait_reached(1).await;
    purger.purge(json!({"url": url("/a")})).await;
    let new = edge.get("/a").await.stamp("/a");
    gate.open();
    let old = client.response().await.unwrap().stamp("/a");
    assert!(old.sequence < new.sequence);
    eventually("a hit", async || edge.get("/a").await.is_hit()).await;
    for response in stampede(edge.address(), 40, "/a").await.all(200) {
        assert_eq!(response.stamp("/a").sequence, new.sequence);
    }
    assert_eq!(origin.count("/a"), 2);
}

#[tokio::test]
async fn a_prefix_and_everything_cover_what_they_name() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1_000).max_age(LONG));
    let (edge, purger) = purgeable(&origin, 2).await;
    let paths = ["/css/one", "/css/two", "/cs", "/js/one"];
    for path in paths {
        warm(&edge, path).await;
    }
    purger.purge(json!({"prefix": url("/css/")})).await;
    for path in paths {
        edge.get(path).await;
    }
    let counts = paths.map(|path| origin.count(path));
    assert_eq!(counts, [2, 2, 1, 1]);
    purger.purge(json!({"everything": true})).await;
    for path in paths {
        edge.get(path).await;
    }
    let counts = paths.map(|path| origin.count(path));
    assert_eq!(counts, [3, 3, 2, 2]);
}

#[test_case(1; "with one worker")]
#[test_case(4; "with four workers")]
#[tokio::test]
async fn surrogate_keys_are_found_on_all_workers_and_shown_to_nobody(workers: usize) {
    let origin = Origin::start().ready().await;
    let tagged = |name, tags| Reply::ok(1_000).max_age(LONG).header(name, tags);
    origin.on("/red", tagged("Surrogate-Key", "all red"));
    origin.on("/blue", tagged("xkey", "all, blue"));
    origin.on("/plain", Reply::ok(1_000).max_age(LONG));
    let (edge, purger) = purgeable(&origin, workers).await;
    let paths = ["/red", "/blue", "/plain"];
    for path in paths {
        let response = edge.get(path).await;
        assert!(
            response.headers.get("surrogate-key").is_none(),
            "{response}"
        );
        assert!(response.headers.get("xkey").is_none(), "{response}");
        warm(&edge, path).await;
    }
    for (tags, expected) in [
        (json!(["green"]), [1, 1, 1]),
        (json!(["red"]), [2, 1, 1]),
        (json!(["green", "blue"]), [2, 2, 1]),
        (json!(["all"]), [3, 3, 1]),
    ] {
        purger.purge(json!({"surrogate_keys": tags})).await;
        for path in paths {
            edge.get(path).await;
            warm(&edge, path).await;
        }
        let counts = paths.map(|path| origin.count(path));
        assert_eq!(counts, expected, "{tags}");
    }
}

#[tokio::test]
async fn an_objects_surrogate_keys_may_be_in_its_metadata() {
    let bucket = Bucket::new().await;
    let tags = [("x-amz-meta-surrogate-key", "article-7 home")];
    let cloudfront = [("x-amz-meta-cache-tag", "article-7, Page:Home")];
    bucket.put("tagged", &tags, b"one").await;
    bucket.put("cloudfront", &cloudfront, b"one").await;
    bucket.put("other", &[], b"one").await;
    let purger = Purger::new();
    let edge = purger.open(Edge::bucket(&bucket)).workers(2);
    let edge = edge.start().await;
    for path in ["/tagged", "/cloudfront", "/other"] {
        warm(&edge, path).await;
    }
    bucket.put("tagged", &tags, b"two").await;
    bucket.put("cloudfront", &cloudfront, b"two").await;
    bucket.put("other", &[], b"two").await;
    purger.purge(json!({"surrogate_keys": ["home"]})).await;
    assert_eq!(edge.get("/cloudfront").await.body, b"one");
    purger.purge(json!({"surrogate_keys": ["page:home"]})).await;
    assert_eq!(edge.get("/cloudfront").await.body, b"two");
    let purged = edge.get("/tagged").await;
    assert_eq!(purged.body, b"two");
    assert!(!purged.headers.any_with_prefix("x-amz-"), "{purged}");
    assert_eq!(edge.get("/other").await.body, b"one");
}

#[tokio::test]
async fn a_fill_whose_surrogate_key_was_purged_meanwhile_is_not_stored() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    let tagged = || {
        Reply::ok(1_000)
            .max_age(LONG)
            .header("Surrogate-Key", "red")
    };
    origin.on_each("/a", [tagged().hold(&gate), tagged()]);
    let (edge, purger) = purgeable(&origin, 2).await;
    let mut client = Client::connect(edge.address()).await;
    client.send(request("GET", "/a", &[])).await.unwrap();
    gate.wait_reached(1).await;
    purger.purge(json!({"surrogate_keys": ["red"]})).await;
    gate.open();
    let old = client.response().await.unwrap().stamp("/a");
    let new = edge.get("/a").await.stamp("/a");
    assert!(new.sequence > old.sequence);
    eventually("a hit", async || edge.get("/a").await.is_hit()).await;
    assert_eq!(origin.count("/a"), 2);
}

/// Sends all kinds of calls without the token.
async fn call_without_the_token(purger: &Purger) {
    let order = json!({"everything": true}).to_string();
    for authorization in [
        None,
        Some("Bearer wrong"),
        Some(TOKEN),
        Some(&*format!("Bearer {TOKEN}x")),
        Some(&*format!("Basic {TOKEN}")),
    ] {
        let headers: Vec<_> = authorization
            .map(|value| ("authorization", value))
            .into_iter()
            .collect();
        for (method, path) in [
            ("POST", "/purge"),
            ("POST", "/s3"),
            ("PURGE", "/a"),
            ("GET", "/"),
        ] {
            let response = purger.send(method, path, &headers, &order).await;
            assert_eq!(response.status, 401, "{authorization:?}: {response}");
            assert_eq!(response.header("www-authenticate"), "Bearer");
        }
    }
}

/// Sends calls with the token that name nothing to purge.
async fn call_without_sense(purger: &Purger) {
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("authorization", bearer.as_str())];
    for (method, path, body, status, text) in [
        ("POST", "/purge", "", 400, "the body"),
        (
            "POST",
            "/purge",
            r#"{"url": "/a"}"#,
            400,
            r#"url: \"/a\": expected a URL"#,
        ),
        (
            "POST",
            "/purge",
            r#"{"uri": "/a"}"#,
            400,
            "uri: unknown field",
        ),
        ("POST", "/s3", "[]", 400, "an event of a bucket"),
        ("GET", "/purge", "", 405, "POST"),
        ("POST", "/", "{}", 404, "POST /purge"),
    ] {
        let response = purger.send(method, path, &headers, body).await;
        assert_eq!(
            response.status, status,
            "{method} {path} {body}: {response}"
        );
        let text_of = String::from_utf8_lossy(&response.body).into_owned();
        assert!(text_of.contains(text), "{text_of}");
    }
    let large = format!("{{\"surrogate_keys\": [\"{}\"]}}", "x".repeat(2 << 20));
    assert_eq!(
        purger.send("POST", "/purge", &headers, &large).await.status,
        413
    );
}

#[tokio::test]
async fn calls_without_the_token_and_malformed_calls_purge_nothing() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1_000).max_age(LONG));
    let (edge, purger) = purgeable(&origin, 2).await;
    warm(&edge, "/a").await;
    call_without_the_token(&purger).await;
    call_without_sense(&purger).await;
    assert_eq!(origin.count("/a"), 1);
    assert_eq!(edge.counter("sluice_purges").await, 0);
    assert!(!edge.log().contains(TOKEN));
    let dump = edge.admin_get("/config_dump").await;
    assert!(!String::from_utf8_lossy(&dump.body).contains(TOKEN));
}

#[tokio::test]
async fn a_dead_vm_holds_up_no_purge_for_long_and_its_successor_knows_all() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1_000).max_age(LONG));
    let purger = Purger::new();
    let edge = purger.open(Edge::http(&origin)).workers(2).trapping();
    let edge = edge.start().await;
    warm(&edge, "/a").await;
    let mut trap = Client::connect(edge.address()).await;
    let request = request("GET", "/trap", &[("x-trap", "edge")]);
    let _ = trap.try_exchange(request).await;
    let fetched = origin.count("/a");
    let order = json!({"url": url("/a")});
    // The worker answers with status 503 until Envoy has a new VM.
    eventually("a purge", async || {
        matches!(purger.call(&order).await.status, 200 | 202)
    })
    .await;
    eventually("a new VM", async || edge.get("/a").await.status == 200).await;
    for _ in 0..24 {
        let response = edge.get("/a").await;
        if response.status != 503 {
            assert!(response.stamp("/a").sequence >= fetched as u64);
        }
    }
    let receipt = purger.purge(order).await;
    assert!(receipt["missing"].is_null(), "{receipt}");
}

#[tokio::test]
async fn a_purge_request_names_its_own_url() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1_000).max_age(LONG));
    let (edge, purger) = purgeable(&origin, 2).await;
    warm(&edge, "/a").await;
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("authorization", bearer.as_str())];
    let response = purger.send("PURGE", "/a", &headers, "").await;
    assert_eq!(response.status, 200, "{response}");
    edge.get("/a").await;
    assert_eq!(origin.count("/a"), 2);
}
