// SPDX-License-Identifier: Apache-2.0
//! Small objects that are requested often are served from a worker's memory, as the store would serve them.

use serde_json::json;
use sluice_tests::client::http2::Http2;
use sluice_tests::client::{Client, Response, request};
use sluice_tests::edge::direct::Direct;
use sluice_tests::edge::purger::Purger;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::machine::standstill::unless_the_machine_stands_still;
use sluice_tests::origin::{Origin, Reply};
use std::time::Duration;
use test_case::test_case;

const LONG: u32 = 3_600;
const SIZE: usize = 10_000;

fn ttl(response: &Response) -> Option<usize> {
    let mut parts = response.cache_status().split("; ");
    parts.find_map(|part| part.strip_prefix("ttl=")?.parse().ok())
}

async fn connections(edge: &Edge, count: usize) -> Vec<Client> {
    let mut connections = Vec::new();
    for _ in 0..count {
        connections.push(Client::connect(edge.address()).await);
    }
    connections
}

/// Bytes in which neighbours always differ.
fn noise(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at % 251) as u8).collect()
}

#[tokio::test]
async fn the_hit_after_the_first_comes_out_of_memory_and_is_the_same() {
    let origin = Origin::start().ready().await;
    let reply = Reply::ok(SIZE).max_age(60).etag("v1");
    let reply = reply.header("link", "</a>").header("link", "</b>");
    origin.on("/typed", reply.clone().header("content-type", "text/x"));
    origin.on("/untyped", reply);
    let edge = Edge::http(&origin).workers(1).start().await;
    let mut client = Client::connect(edge.address()).await;
    for path in ["/typed", "/untyped"] {
        let mut stored = client.get(path).await;
        while !stored.is_hit() {
            stored = client.get(path).await;
        }
        assert!(!stored.is_hot(), "{stored}");
        let hot = client.get(path).await;
        assert!(hot.is_hot(), "{hot}");
        assert_eq!(hot.stored_fields(), stored.stored_fields());
        assert_eq!(hot.header("date"), stored.header("date"));
        assert!(hot.body == stored.body);
        assert_eq!(origin.count(path), 1);
    }
    assert_eq!(edge.counter("sluice_hot_hits").await, 2);
    assert_eq!(edge.counter("sluice_requests_hit").await, 4, "all of them");
    assert_eq!(edge.counter("sluice_hot_admissions").await, 2);
    assert_eq!(edge.counter("sluice_hot_objects_now").await, 2);
    let bytes = edge.counter("sluice_hot_bytes_now").await;
    assert!((20_000..22_000).contains(&bytes), "{bytes}");
}

#[tokio::test]
async fn without_a_tier_every_hit_comes_out_of_the_store() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(SIZE).max_age(60));
    let edge = Edge::http(&origin).workers(1).env("SLUICE_HOT_BYTES", "0");
    let edge = edge.start().await;
    let mut client = Client::connect(edge.address()).await;
    for _ in 0..20 {
        assert!(!client.get("/a").await.is_hot());
    }
    assert!(client.get("/a").await.is_hit());
    assert_eq!(edge.counter("sluice_hot_hits").await, 0);
    assert_eq!(edge.counter("sluice_hot_bytes_now").await, 0);
}

#[tokio::test]
async fn the_hot_tier_answers_every_request_as_the_store_does() {
    const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    let origin = Origin::start().ready().await;
    let reply = Reply::text(noise(SIZE)).max_age(60).etag("v1");
    origin.on("/a", reply.header("last-modified", MODIFIED));
    let builder = Edge::http(&origin).workers(1);
    let with = builder.clone().start().await;
    let without = builder.env("SLUICE_HOT_BYTES", "0").start().await;
    let mut hot = Client::connect(with.address()).await;
    let mut stored = Client::connect(without.address()).await;
    hot.heat("/a", &[]).await;
    while !stored.get("/a").await.is_hit() {}
    for (method, headers) in [
        ("GET", &[][..]),
        ("HEAD", &[]),
        ("GET", &[("if-none-match", "\"v1\"")]),
        ("HEAD", &[("if-none-match", "\"v1\"")]),
        ("GET", &[("if-none-match", "\"v0\"")]),
        ("GET", &[("if-modified-since", MODIFIED)]),
        ("GET", &[("if-match", "\"v0\"")]),
        ("GET", &[("range", "bytes=0-99")]),
        ("HEAD", &[("range", "bytes=0-99")]),
        ("GET", &[("range", "bytes=-1")]),
        ("GET", &[("range", "bytes=9999-")]),
        ("GET", &[("range", "bytes=10000-")]),
        ("GET", &[("range", "bytes=0-1,5-6")]),
        ("GET", &[("range", "bytes=5-"), ("if-range", "\"v1\"")]),
        ("GET", &[("range", "bytes=5-"), ("if-range", "\"v0\"")]),
    ] {
        let asked = format!("{method} {headers:?}");
        let from_store = stored.exchange(request(method, "/a", headers)).await;
        let from_memory = hot.exchange(request(method, "/a", headers)).await;
        assert!(from_memory.is_hot(), "{asked}: {from_memory}");
        assert!(!from_store.is_hot(), "{asked}: {from_store}");
        assert_eq!(from_memory.status, from_store.status, "{asked}");
        assert_eq!(
            from_memory.stored_fields(),
            from_store.stored_fields(),
            "{asked}"
        );
        assert!(from_memory.body == from_store.body, "{asked}");
        let aged = |response: &Response| response.headers.get("age").is_some();
        assert_eq!(aged(&from_memory), aged(&from_store), "{asked}");
    }
    assert_eq!(origin.count("/a"), 2, "one for each edge");
}

#[tokio::test]
async fn hot_objects_age_and_stale_ones_are_not_hot() {
    let slack = Duration::from_millis(500);
    unless_the_machine_stands_still(slack, async || {
        let origin = Origin::start().ready().await;
        origin.on("/a", Reply::ok(SIZE).max_age(3));
        let edge = Edge::http(&origin).workers(1).start().await;
        let mut client = Client::connect(edge.address()).await;
        client.heat("/a", &[]).await;
        let mut ages = Vec::new();
        while origin.count("/a") == 1 {
            let response = client.get("/a").await;
            if response.is_hot() {
                let age = response.headers.number("age").unwrap();
                assert_eq!(age + ttl(&response).unwrap(), 3, "{response}");
                ages.push(age);
            }
        }
        assert!(ages.is_sorted());
        assert_eq!(ages.last(), Some(&2));
        // The new object becomes hot in turn.
        let again = client.heat("/a", &[]).await;
        assert!(again.stamp("/a").sequence > 0);
    })
    .await;
}

#[test_case(1; "with one worker")]
#[test_case(4; "with four workers")]
#[tokio::test]
async fn a_purged_object_is_hot_on_no_worker_once_the_call_is_answered(workers: usize) {
    let origin = Origin::start().ready().await;
    let reply = Reply::ok(SIZE).max_age(LONG);
    origin.on("/a/b", reply.header("surrogate-key", "tag"));
    let purger = Purger::new();
    let edge = purger
        .open(Edge::http(&origin))
        .workers(workers)
        .start()
        .await;
    let mut clients = connections(&edge, 16).await;
    for order in [
        json!({"url": "http://edge.test/a/b"}),
        json!({"prefix": "http://edge.test/a/"}),
        json!({"surrogate_keys": ["tag"]}),
        json!({"everything": true}),
    ] {
        for client in &mut clients {
            client.heat("/a/b", &[]).await;
        }
        let fetched = origin.count("/a/b");
        purger.purge(order.clone()).await;
        for client in &mut clients {
            let stamp = client.get("/a/b").await.stamp("/a/b");
            assert!(stamp.sequence >= fetched as u64, "{order}");
        }
        assert_eq!(origin.count("/a/b"), fetched + 1, "{order}");
    }
}

#[test_case(1; "with one worker")]
#[test_case(4; "with four workers")]
#[tokio::test]
async fn a_softly_purged_or_changed_object_is_revalidated_before_it_is_hot(workers: usize) {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(SIZE).max_age(LONG).etag("v0"));
    let purger = Purger::new();
    let edge = purger
        .open(Edge::http(&origin))
        .workers(workers)
        .start()
        .await;
    let mut clients = connections(&edge, 16).await;
    for round in 1..=4 {
        for client in &mut clients {
            client.heat("/a", &[]).await;
        }
        let tag = format!("v{round}");
        origin.on("/a", Reply::ok(SIZE).max_age(LONG).etag(&tag));
        match round {
            1 => purger
                .purge(json!({"url": "http://edge.test/a", "soft": true}))
                .await
                .to_string(),
            2 => purger
                .purge(json!({"everything": true, "soft": true}))
                .await
                .to_string(),
            _ => edge.send("POST", "/a", &[]).await.to_string(),
        };
        // The other workers learn of a change a moment later.
        if round > 2 {
            for client in &mut clients {
                eventually("the news of a change", async || {
                    client.get("/a").await.header("etag") == format!("\"{tag}\"")
                })
                .await;
            }
        }
        for client in &mut clients {
            let response = client.get("/a").await;
            assert_eq!(response.header("etag"), format!("\"{tag}\""), "{response}");
        }
    }
}

/// The test has one worker: other workers would serve their copies for some seconds more, because no worker learns of
/// another's refresh.
#[tokio::test]
async fn a_refreshed_object_is_no_longer_hot_in_its_old_version() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(SIZE).max_age(LONG).etag("old"));
    let edge = Edge::http(&origin).workers(1);
    let edge = edge.policy("origin: {kind: http}\nrequest: {cache_control: obey}\n");
    let edge = edge.start().await;
    let mut clients = connections(&edge, 16).await;
    for client in &mut clients {
        client.heat("/a", &[]).await;
    }
    origin.on("/a", Reply::ok(SIZE).max_age(LONG).etag("new"));
    let headers = [("cache-control", "no-cache")];
    let asked = edge.send("GET", "/a", &headers).await;
    assert_eq!(asked.header("etag"), "\"new\"", "{asked}");
    // The store commits the object a moment later.
    for client in &mut clients {
        eventually("the new one", async || {
            client.get("/a").await.header("etag") == "\"new\""
        })
        .await;
    }
    let told = clients[0].heat("/a", &[]).await;
    assert_eq!(told.header("etag"), "\"new\"");
    let asked = clients[0].exchange(request("GET", "/a", &headers)).await;
    assert!(!asked.is_hot(), "{asked}");
}

#[tokio::test]
async fn large_and_empty_objects_and_other_statuses_are_not_hot() {
    let origin = Origin::start().ready().await;
    origin.on("/fits", Reply::ok(2_048).max_age(LONG));
    origin.on("/large", Reply::ok(2_049).max_age(LONG));
    origin.on("/empty", Reply::ok(100).empty().max_age(LONG));
    origin.on("/missing", Reply::status(404).max_age(LONG));
    let edge = Edge::http(&origin).workers(1);
    let edge = edge.env("SLUICE_HOT_OBJECT_BYTES", "2KiB").start().await;
    let mut client = Client::connect(edge.address()).await;
    client.heat("/fits", &[]).await;
    for path in ["/large", "/empty", "/missing"] {
        while !client.get(path).await.is_hit() {}
        for _ in 0..5 {
            assert!(!client.get(path).await.is_hot(), "{path}");
        }
    }
}

#[tokio::test]
async fn each_variant_is_hot_by_itself() {
    let origin = Origin::start().ready().await;
    let page = |language: &str| {
        let text = format!("{language} ").repeat(3_000);
        Reply::text(text)
            .max_age(LONG)
            .header("content-type", "text/plain")
            .header("vary", "accept-language")
            .header("content-language", language)
    };
    origin.on("/page", page("en"));
    let edge = Edge::http(&origin).workers(1);
    let edge = edge.policy("origin: {kind: http}\ncompression: {enabled: true}\n");
    let edge = edge.start().await;
    let mut client = Client::connect(edge.address()).await;
    for language in ["en", "de"] {
        origin.on("/page", page(language));
        for coding in ["gzip", "br", "identity"] {
            let headers = [("accept-language", language), ("accept-encoding", coding)];
            client.heat("/page", &headers).await;
        }
    }
    for language in ["en", "de"] {
        for coding in ["gzip", "br", "identity"] {
            let headers = [("accept-language", language), ("accept-encoding", coding)];
            let hot = client.exchange(request("GET", "/page", &headers)).await;
            assert!(hot.is_hot(), "{hot}");
            assert_eq!(hot.header("content-language"), language);
            let told = hot.headers.get("content-encoding").unwrap_or("identity");
            assert_eq!(told, coding, "{hot}");
            let plain = format!("{language} ").repeat(3_000);
            assert_eq!(coding == "identity", hot.body == plain.as_bytes(), "{hot}");
        }
    }
}

#[tokio::test]
async fn each_hot_hit_has_the_cors_headers_for_its_own_page() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(SIZE).max_age(LONG));
    let policy = "origin: {kind: http}\nwebsite: {cors: {allowed_origins: ['https://a.test', 'https://b.test']}}\n";
    let edge = Edge::http(&origin).workers(1).policy(policy).start().await;
    let mut client = Client::connect(edge.address()).await;
    client.heat("/a", &[("origin", "https://a.test")]).await;
    for (origin, allowed) in [
        ("https://b.test", Some("https://b.test")),
        ("https://evil.test", None),
        ("https://a.test", Some("https://a.test")),
    ] {
        let hot = client
            .exchange(request("GET", "/a", &[("origin", origin)]))
            .await;
        assert!(hot.is_hot(), "{hot}");
        let mut told = hot.headers.all("access-control-allow-origin");
        assert_eq!((told.next(), told.next()), (allowed, None), "{hot}");
        assert_eq!(hot.headers.all("vary").collect::<Vec<_>>(), ["Origin"]);
    }
}

#[tokio::test]
async fn a_new_policy_begins_with_nothing_hot() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(SIZE).max_age(LONG));
    let ruled = |builder: Builder| {
        builder.policy("origin: {kind: http}\nrules: [{match: ['*'], headers: {x-rule: old}}]\n")
    };
    let edge = ruled(Edge::http(&origin)).direct(Direct {
        listener_file: true,
        ..Direct::default()
    });
    let edge = edge.start().await;
    for client in &mut connections(&edge, 8).await {
        let hot = client.heat("/a", &[]).await;
        assert_eq!(hot.header("x-rule"), "old");
    }
    edge.update_policy(&|policy| policy["rules"][0]["headers"]["x-rule"] = "new".into());
    edge.wait_for_counter("listener_manager.listener_modified", 1)
        .await;
    edge.wait_for_value("listener_manager.total_listeners_warming", 0)
        .await;
    for client in &mut connections(&edge, 8).await {
        assert_eq!(client.get("/a").await.header("x-rule"), "new");
        let hot = client.heat("/a", &[]).await;
        assert_eq!(hot.header("x-rule"), "new");
    }
    assert_eq!(origin.count("/a"), 1, "it was stored");
}

#[tokio::test]
async fn a_hot_object_is_read_from_the_store_now_and_then() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(SIZE).max_age(LONG));
    let edge = Edge::http(&origin).workers(1).start().await;
    let mut client = Client::connect(edge.address()).await;
    client.heat("/a", &[]).await;
    eventually("a hit out of the store", async || {
        let hit = client.get("/a").await;
        assert!(hit.is_hit(), "{hit}");
        !hit.is_hot()
    })
    .await;
    client.heat("/a", &[]).await;
    assert_eq!(edge.counter("sluice_hot_admissions").await, 1, "the same");
    assert_eq!(origin.count("/a"), 1);
}

#[tokio::test]
async fn http2_clients_get_hot_hits_too() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(60_000).max_age(LONG));
    let edge = Edge::http(&origin).workers(1).start().await;
    let mut client = Client::connect(edge.address()).await;
    let stamp = client.heat("/a", &[]).await.stamp("/a");
    let multiplexed = Http2::connect(edge.address()).await;
    let (status, headers, body) = multiplexed.get("/a").await.unwrap();
    assert_eq!(
        (status, headers.number("content-length")),
        (200, Some(60_000))
    );
    let told = headers.get("cache-status").unwrap_or_default();
    assert!(told.ends_with("detail=hot"), "{told}");
    let found = sluice_tests::http::body::check("/a", &body).unwrap();
    assert_eq!(found.sequence, stamp.sequence);
}
