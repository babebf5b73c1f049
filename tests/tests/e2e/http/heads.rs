// SPDX-License-Identifier: Apache-2.0
//! HEAD requests for objects that are not stored are coalesced like GETs. They never wait for a body, and no GET
//! waits for them.

use serde_json::json;
use sluice_tests::bare::Bare;
use sluice_tests::client::crowd::{Crowd, stampede};
use sluice_tests::client::http2::Http2;
use sluice_tests::client::{Client, Response, request};
use sluice_tests::edge::Edge;
use sluice_tests::edge::purger::Purger;
use sluice_tests::edge::store::Store;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

const SIZE: usize = 20_000;
const LARGE: usize = 64 << 20;

fn object() -> Reply {
    Reply::ok(SIZE).max_age(600).etag("v1")
}

/// Number of requests with this method that the origin got for `path`.
fn count(origin: &Origin, method: &str, path: &str) -> usize {
    origin
        .requests()
        .matching(|request| request.method == method && request.target == path)
}

async fn heads(edge: &Edge, count: usize) -> Crowd {
    Crowd::connect(edge.address(), count).await
}

async fn head(edge: &Edge, path: &str) -> Response {
    edge.send("HEAD", path, &[]).await
}

fn assert_head(response: &Response, size: usize) {
    assert_eq!(response.status, 200, "{response}");
    let length = response.headers.number("content-length");
    assert_eq!(length, Some(size), "{response}");
    assert!(response.body.is_empty(), "{response}");
    let internal = response.headers.any_with_prefix("x-sluice-");
    assert!(!internal, "{response}");
}

#[tokio::test]
async fn a_stampede_of_heads_is_one_origin_request_and_leaves_connections_in_order() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", object().hold(&gate));
    origin.on("/b", object());
    let edge = Edge::http(&origin).workers(2).start().await;
    let mut clients = JoinSet::new();
    for _ in 0..200 {
        let mut client = Client::connect(edge.address()).await;
        clients.spawn(async move {
            let cold = client.exchange(request("HEAD", "/a", &[])).await;
            let again = client.exchange(request("HEAD", "/a", &[])).await;
            (cold, again, client.get("/b").await)
        });
    }
    edge.wait_for_value("sluice_parked_now", 199).await;
    gate.open();
    let mut collapsed = 0;
    for (cold, again, other) in clients.join_all().await {
        for response in [&cold, &again] {
            assert_head(response, SIZE);
            assert_eq!(response.header("etag"), "\"v1\"", "{response}");
            assert_eq!(response.header("cache-control"), "max-age=600");
        }
        collapsed += usize::from(cold.cache_status().contains("collapsed"));
        let _ = other.stamp("/b");
    }
    assert_eq!(collapsed, 199);
    assert_eq!(origin.count("/a"), 1);
    assert_eq!(count(&origin, "HEAD", "/a"), 1);
}

#[tokio::test]
async fn control_on_bare_envoy_each_cold_head_is_an_origin_request() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", object().hold(&gate));
    let bare = Bare::start(&origin, Store::V1_DISK, 2).await;
    let crowd = Crowd::connect(bare.address(), 50).await;
    let crowd = crowd.fire_each(|_| request("HEAD", "/a", &[]));
    origin.wait_for_requests("/a", 50).await;
    gate.open();
    crowd.land().await.all(200);
}

#[tokio::test]
async fn heads_and_gets_together_are_one_request_of_each_kind_at_most() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", object().hold(&gate));
    let edge = Edge::http(&origin).workers(2).start().await;
    let (kinds, leaders) = (2, 2);
    let crowd = Crowd::connect(edge.address(), 200).await;
    let crowd = crowd.fire_each(|n| request(["GET", "HEAD"][n % 2], "/a", &[]));
    edge.wait_for_value("sluice_parked_now", 200 - leaders)
        .await;
    gate.open();
    for response in crowd.land().await.all(200) {
        if response.body.is_empty() {
            assert_head(response, SIZE);
        } else {
            assert_eq!(response.stamp("/a").size, SIZE);
        }
    }
    assert_eq!(origin.count("/a"), kinds);
    assert_eq!(count(&origin, "GET", "/a"), 1);
    // The object is stored now, and answers both methods.
    assert!(head(&edge, "/a").await.is_hit());
    stampede(edge.address(), 20, "/a").await.same_object("/a");
    assert_eq!(origin.count("/a"), kinds);
}

#[tokio::test]
async fn a_head_does_not_wait_for_the_body_of_a_running_fill() {
    let origin = Origin::start().ready().await;
    let rest = Gate::new();
    origin.on("/a", object().hold_after(1_000, &rest));
    let edge = Edge::http(&origin).workers(1).start().await;
    let fill = heads(&edge, 1).await.fire("/a");
    rest.wait_reached(1).await;
    let crowd = heads(&edge, 20).await;
    let crowd = crowd.fire_each(|_| request("HEAD", "/a", &[]));
    for response in crowd.land().await.all(200) {
        assert_head(response, SIZE);
    }
    assert_eq!(count(&origin, "GET", "/a"), 1);
    assert!(count(&origin, "HEAD", "/a") <= 1);
    rest.open();
    fill.land().await.same_object("/a");
}

#[tokio::test]
async fn the_access_log_has_the_method_of_the_client() {
    let origin = Origin::start().ready().await;
    origin.on("/a", object());
    let edge = Edge::http(&origin).workers(1).start().await;
    assert_head(&head(&edge, "/a").await, SIZE);
    assert_eq!(count(&origin, "HEAD", "/a"), 1);
    edge.wait_for_log("HTTP/1.1 HEAD /a 200").await;
    let _ = edge.get("/a").await.stamp("/a");
    edge.wait_for_log("HTTP/1.1 GET /a 200").await;
    for request in origin.requests().of("/a") {
        let internal = request.headers.any_with_prefix("x-sluice-");
        assert!(!internal, "{:?}", request.headers);
    }
}

#[tokio::test]
async fn a_get_does_not_wait_for_a_head() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on_each("/a", [object().hold(&gate), object()]);
    let edge = Edge::http(&origin).workers(2).start().await;
    let crowd = heads(&edge, 20).await;
    let crowd = crowd.fire_each(|_| request("HEAD", "/a", &[]));
    edge.wait_for_value("sluice_parked_now", 19).await;
    gate.wait_reached(1).await;
    stampede(edge.address(), 20, "/a").await.same_object("/a");
    gate.open();
    crowd.land().await.all(200);
    assert_eq!(origin.count("/a"), 2);
}

#[tokio::test]
async fn a_head_right_after_a_get_is_no_origin_request_of_its_own() {
    let origin = Origin::start().ready().await;
    origin.on("/a*", object());
    let edge = Edge::http(&origin).workers(1).start().await;
    let mut client = Client::connect(edge.address()).await;
    for n in 0..50 {
        let path = format!("/a{n}");
        let _ = client.get(&path).await.stamp(&path);
        let response = client.exchange(request("HEAD", &path, &[])).await;
        assert_head(&response, SIZE);
        assert_eq!(origin.count(&path), 1);
    }
}

#[tokio::test]
async fn a_warm_object_answers_heads_on_workers_that_have_not_met_it() {
    let origin = Origin::start().ready().await;
    origin.on("/a", object());
    let edge = Edge::http(&origin).workers(4).start().await;
    let _ = edge.get("/a").await.stamp("/a");
    eventually("a hit", async || edge.get("/a").await.is_hit()).await;
    let crowd = heads(&edge, 40).await;
    let crowd = crowd.fire_each(|_| request("HEAD", "/a", &[]));
    for response in crowd.land().await.all(200) {
        assert_head(response, SIZE);
    }
    assert_eq!(origin.count("/a"), 1);
}

#[tokio::test]
async fn a_cold_head_of_64_mib_is_harmless_and_the_object_right_afterwards() {
    let origin = Origin::start().ready().await;
    let rest = Gate::new();
    origin.on(
        "/a",
        Reply::ok(LARGE).max_age(600).hold_after(100_000, &rest),
    );
    let mut edge = Edge::http(&origin).workers(2).start().await;
    assert_head(&head(&edge, "/a").await, LARGE);
    for n in 0..20 {
        let mut client = Client::connect(edge.address()).await;
        client.send(request("HEAD", "/a", &[])).await.unwrap();
        match n % 2 {
            0 => client.reset(),
            _ => client.finish().await,
        }
    }
    assert_eq!(origin.bytes_sent(), 0, "a HEAD pulls no body");
    rest.open();
    assert_eq!(edge.get("/a").await.stamp("/a").size, LARGE);
    assert_head(&head(&edge, "/a").await, LARGE);
    assert_eq!(count(&origin, "GET", "/a"), 1);
    edge.check();
}

#[tokio::test]
async fn heads_whose_clients_all_leave_leave_nothing_behind() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on_each("/a", [object().hold(&gate), object()]);
    let mut edge = Edge::http(&origin).workers(2).start().await;
    let mut clients = Vec::new();
    for _ in 0..40 {
        let mut client = Client::connect(edge.address()).await;
        client.send(request("HEAD", "/a", &[])).await.unwrap();
        clients.push(client);
    }
    edge.wait_for_value("sluice_parked_now", 39).await;
    gate.wait_reached(1).await;
    clients.into_iter().for_each(Client::reset);
    edge.wait_for_value("sluice_parked_now", 0).await;
    edge.wait_for_value("sluice_flights_now", 0).await;
    gate.open();
    assert_head(&head(&edge, "/a").await, SIZE);
    stampede(edge.address(), 20, "/a").await.same_object("/a");
    edge.check();
}

#[tokio::test]
async fn heads_that_leave_at_any_time_are_harmless() {
    let origin = Origin::start().ready().await;
    origin.on("/a*", object().delay(Duration::from_millis(2)));
    let mut edge = Edge::http(&origin).workers(2).start().await;
    let mut clients = JoinSet::new();
    for n in 0..1_000_u64 {
        let address = edge.address();
        let path = format!("/a{}", n / 5);
        clients.spawn(async move {
            sleep(Duration::from_micros(n / 50 * 10_000)).await;
            let mut client = Client::connect(address).await;
            client.send(request("HEAD", &path, &[])).await.unwrap();
            // The aborts are spread over the whole time of a request.
            sleep(Duration::from_micros(n * 37 % 8_000)).await;
            client.reset();
        });
    }
    clients.join_all().await;
    edge.wait_for_value("sluice_flights_now", 0).await;
    for path in ["/a0", "/a199"] {
        assert_head(&head(&edge, path).await, SIZE);
        assert_eq!(edge.get(path).await.stamp(path).size, SIZE);
    }
    edge.check();
}

#[tokio::test]
async fn heads_of_an_uncacheable_url_do_not_wait_for_each_other() {
    let origin = Origin::start().ready().await;
    let (first, rest) = (Gate::new(), Gate::new());
    let private = || Reply::ok(SIZE).header("cache-control", "private");
    origin.on_each("/a", [private().hold(&first), private().hold(&rest)]);
    let edge = Edge::http(&origin).workers(2).start().await;
    let crowd = heads(&edge, 30).await;
    let crowd = crowd.fire_each(|_| request("HEAD", "/a", &[]));
    edge.wait_for_value("sluice_parked_now", 29).await;
    first.open();
    rest.wait_reached(29).await;
    rest.open();
    for response in crowd.land().await.all(200) {
        assert_head(response, SIZE);
    }
    assert_eq!(origin.count("/a"), 30);
    let later = head(&edge, "/a").await;
    assert!(later.cache_status().contains("fwd"), "{later}");
    assert_eq!(origin.count("/a"), 31);
}

#[tokio::test]
async fn heads_of_a_failing_url_share_the_failure() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/busy", Reply::status(503).hold(&gate));
    origin.on("/none", Reply::status(404).hold(&gate));
    origin.on("/gone", Reply::ok(SIZE).hold(&gate).reset());
    let edge = Edge::http(&origin).workers(2).start().await;
    // Envoy repeats a request once if the connection breaks.
    for (path, status, requests) in [("/busy", 503, 1), ("/none", 404, 1), ("/gone", 503, 2)] {
        gate.close();
        let crowd = heads(&edge, 50).await;
        let crowd = crowd.fire_each(|_| request("HEAD", path, &[]));
        edge.wait_for_value("sluice_parked_now", 49).await;
        gate.open();
        let landed = crowd.land().await;
        for response in landed.all(status) {
            assert!(response.body.is_empty(), "{response}");
        }
        assert!(origin.count(path) <= requests, "{path}");
    }
}

#[tokio::test]
async fn heads_of_objects_too_large_to_store_fetch_no_body() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", Reply::ok(LARGE).max_age(600).hold(&gate));
    let edge = Edge::http(&origin).workers(2);
    let edge = edge
        .env("SLUICE_CACHE_MAX_OBJECT_BYTES", "1MiB")
        .start()
        .await;
    let crowd = heads(&edge, 50).await;
    let crowd = crowd.fire_each(|_| request("HEAD", "/a", &[]));
    edge.wait_for_value("sluice_parked_now", 49).await;
    gate.open();
    for response in crowd.land().await.all(200) {
        assert_head(response, LARGE);
    }
    println!(
        "{} bytes, {}",
        origin.bytes_sent(),
        origin.requests().summary()
    );
    assert_eq!((origin.count("/a"), origin.bytes_sent()), (1, 0));
    assert_eq!(edge.get("/a").await.stamp("/a").size, LARGE);
    assert_head(&head(&edge, "/a").await, LARGE);
}

#[tokio::test]
async fn shared_headers_are_asked_for_again_after_a_moment() {
    let origin = Origin::start().ready().await;
    origin.on("/a", object());
    let edge = Edge::http(&origin).workers(2).start().await;
    let first = head(&edge, "/a").await;
    assert!(first.cache_status().contains("stored"), "{first}");
    eventually("a hit", async || head(&edge, "/a").await.is_hit()).await;
    assert_eq!(origin.count("/a"), 1);
    let anew = async || head(&edge, "/a").await.cache_status().contains("stored");
    eventually("another request", anew).await;
    eventually("a hit", async || head(&edge, "/a").await.is_hit()).await;
    let asked = origin.requests().of("/a");
    assert_eq!(asked.len(), 2);
    let pause = asked[1].at - asked[0].at;
    assert!(pause.as_secs() >= 4, "{pause:?}");
}

#[tokio::test]
async fn heads_of_a_stale_object_share_one_revalidation() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    let brief = || Reply::ok(SIZE).max_age(1).etag("v1");
    origin.on_each("/a", [brief(), brief().hold(&gate)]);
    let edge = Edge::http(&origin).workers(2).start().await;
    let _ = edge.get("/a").await.stamp("/a");
    sleep(Duration::from_millis(2_100)).await;
    let crowd = heads(&edge, 50).await;
    let crowd = crowd.fire_each(|_| request("HEAD", "/a", &[]));
    gate.wait_reached(1).await;
    edge.wait_for_counter("sluice_parked_now", 49).await;
    gate.open();
    for response in crowd.land().await.all(200) {
        assert_head(response, SIZE);
    }
    assert_eq!(origin.count("/a"), 2, "{}", origin.requests().summary());
    let asked = origin.requests().of("/a");
    assert_eq!(asked[1].headers.get("if-none-match"), Some("\"v1\""));
}

#[tokio::test]
async fn heads_are_served_stale_where_the_origin_fails() {
    let origin = Origin::start().ready().await;
    let brief = Reply::ok(SIZE).header("cache-control", "max-age=1, stale-if-error=600");
    origin.on_each("/a", [brief.etag("v1"), Reply::status(503)]);
    let edge = Edge::http(&origin).workers(2).start().await;
    let _ = edge.get("/a").await.stamp("/a");
    // In its last fresh second, all workers serve the object.
    eventually("its last second", async || {
        edge.get("/a").await.headers.number("age") == Some(1)
    })
    .await;
    stampede(edge.address(), 50, "/a").await.all(200);
    sleep(Duration::from_millis(1_100)).await;
    let crowd = heads(&edge, 50).await;
    let crowd = crowd.fire_each(|_| request("HEAD", "/a", &[]));
    for response in crowd.land().await.all(200) {
        assert_head(response, SIZE);
        assert!(response.cache_status().contains("ttl=-"), "{response}");
    }
    // The fill, a refresh in the background, and one request of each worker.
    let count = origin.count("/a");
    assert!(count <= 4, "{}", origin.requests().summary());
}

#[tokio::test]
async fn a_purge_removes_the_headers_that_heads_share() {
    let origin = Origin::start().ready().await;
    let second = Reply::ok(SIZE + 1).max_age(600).etag("v2");
    origin.on_each("/a", [object(), second]);
    let purger = Purger::new();
    let edge = purger.open(Edge::http(&origin)).workers(2).start().await;
    assert_head(&head(&edge, "/a").await, SIZE);
    eventually("a hit", async || head(&edge, "/a").await.is_hit()).await;
    purger.purge(json!({"url": "http://edge.test/a"})).await;
    for _ in 0..8 {
        assert_head(&head(&edge, "/a").await, SIZE + 1);
    }
    assert_eq!(origin.count("/a"), 2);
}

#[tokio::test]
async fn heads_of_variants_are_kept_apart() {
    let origin = Origin::start().ready().await;
    origin.on("/a", object().header("vary", "Accept-Language"));
    let edge = Edge::http(&origin).workers(2).start().await;
    for language in ["de", "fr", "de", "fr"] {
        let headers = [("accept-language", language)];
        let hit = async || {
            let response = edge.send("HEAD", "/a", &headers).await;
            assert_head(&response, SIZE);
            assert_eq!(response.header("vary"), "Accept-Language", "{response}");
            let asked =
                &origin.requests().all()[response.headers.number("x-origin-sequence").unwrap()];
            assert_eq!(asked.headers.get("accept-language"), Some(language));
            response.is_hit()
        };
        eventually("a hit", hit).await;
    }
}

#[tokio::test]
async fn a_head_over_http2_ends_with_its_headers() {
    let origin = Origin::start().ready().await;
    origin.on("/a", object());
    let edge = Edge::http(&origin).workers(1).start().await;
    let client = Http2::connect(edge.address()).await;
    for _ in 0..3 {
        let (status, headers, body) = client.send("HEAD", "/a", &[]).await.unwrap();
        assert_eq!(
            (status, headers.number("content-length")),
            (200, Some(SIZE))
        );
        assert!(body.is_empty());
    }
    assert_eq!(origin.count("/a"), 1);
}
