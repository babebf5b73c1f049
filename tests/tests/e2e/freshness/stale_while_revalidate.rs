// SPDX-License-Identifier: Apache-2.0
//! Within its window a stale object is served at once, and one request in the background refreshes it.

use super::validation::{conditional, tagged};
use sluice_tests::bare::Bare;
use sluice_tests::client::crowd::{Crowd, stampede};
use sluice_tests::client::storm::Storm;
use sluice_tests::client::{Client, Response, until_hit};
use sluice_tests::edge::direct::Direct;
use sluice_tests::edge::store::Store;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::http::body::Stamp;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use test_case::test_case;
use tokio::task::JoinSet;

const WINDOW: &str = "max-age=1, stale-while-revalidate=600";
const POLICY: &str = "origin: {kind: http}\ncache: {retry_interval: 1s}\n";

fn brief(size: usize) -> Reply {
    Reply::ok(size).header("cache-control", WINDOW)
}

fn edge(origin: &Origin, workers: usize) -> Builder {
    Edge::http(origin).workers(workers).policy(POLICY)
}

/// The seconds of freshness left. The number is not positive for a stale hit.
fn ttl(response: &Response) -> i64 {
    let parameters = response.cache_status().split(';').map(str::trim);
    let mut ttl = parameters.filter_map(|parameter| parameter.strip_prefix("ttl="));
    ttl.next().map_or(i64::MAX, |ttl| ttl.parse().unwrap())
}

/// Requests the object on one connection, again and again, until the origin has got this number of validations.
async fn ask_until_validated(address: SocketAddr, origin: Arc<Origin>, validations: usize) {
    let mut client = Client::connect(address).await;
    while conditional(&origin) < validations {
        for _ in 0..200 {
            let response = client.get("/a").await;
            assert_eq!(response.status, 200, "{response}");
            let _ = response.stamp("/a");
        }
    }
}

/// Number of unconditional requests that busy clients cost the origin during four validations of an object.
async fn fetches_of_busy_clients(address: SocketAddr, origin: &Arc<Origin>) -> usize {
    until_hit(address, "/a").await;
    let mut clients = JoinSet::new();
    for _ in 0..16 {
        clients.spawn(ask_until_validated(address, Arc::clone(origin), 4));
    }
    clients.join_all().await;
    origin.count("/a") - conditional(origin)
}

/// An origin with an object that is unchanged at each validation.
async fn unchanging_origin() -> Arc<Origin> {
    let origin = Origin::start().ready().await;
    let object = tagged(10_000, "1").header("content-type", "text/plain");
    origin.on("/a", object.header("cache-control", WINDOW));
    Arc::new(origin)
}

/// The edge waits a quarter of a second for an object that the store rewrites. The store may need longer on a busy
/// machine, so a run with further fetches is repeated. Each worker has one such fetch for each validation at most.
#[tokio::test]
async fn busy_clients_cost_the_origin_a_validation_at_a_time_and_nothing_else() {
    let mut seen = Vec::new();
    for _ in 0..3 {
        let origin = unchanging_origin().await;
        // All requests reach the store, which rewrites the whole object at each validation.
        let edge = edge(&origin, 2)
            .env("SLUICE_CACHE", "memory")
            .env("SLUICE_HOT_BYTES", "0")
            .start()
            .await;
        let fetches = fetches_of_busy_clients(edge.address(), &origin).await;
        assert!(fetches <= 1 + 2 * conditional(&origin), "{fetches}");
        if fetches == 1 {
            return;
        }
        seen.push(fetches);
    }
    panic!("{seen:?} fetches, where the first one should be the only one");
}

#[tokio::test]
async fn control_bare_envoy_does_not_have_an_object_while_it_writes_it_anew() {
    let origin = unchanging_origin().await;
    let bare = Bare::start(&origin, Store::V1_DISK, 2).await;
    let _ = bare.get("/a").await;
    eventually("it is stored", async || {
        bare.get("/a").await.headers.get("age").is_some()
    })
    .await;
    let before = origin.count("/a");
    let mut clients = JoinSet::new();
    for _ in 0..16 {
        let origin = Arc::clone(&origin);
        clients.spawn(ask_until_validated(bare.address(), origin, 100));
    }
    clients.join_all().await;
    let fetches = origin.count("/a") - before - conditional(&origin);
    assert!(fetches > 1, "{fetches}");
}

/// Fills the key, and waits until a refresh has reached the gate.
async fn go_stale(edge: &Edge, path: &str, gate: &Gate) -> Stamp {
    let first = edge.get(path).await.stamp(path);
    let before = gate.reached();
    eventually("a refresh", async || {
        let response = edge.get(path).await;
        assert_eq!(response.stamp(path), first, "{response}");
        gate.reached() > before
    })
    .await;
    first
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn clients_get_the_stale_object_at_once_while_one_refresh_runs(workers: usize) {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    let object = brief(20_000).etag("v1");
    origin.on_each("/a", [object.clone(), object.hold(&gate)]);
    let edge = edge(&origin, workers).start().await;
    let first = go_stale(&edge, "/a", &gate).await;
    let crowd = stampede(edge.address(), 50, "/a").await;
    for response in crowd.all(200) {
        assert_eq!(response.stamp("/a"), first, "{response}");
        assert!(response.is_hit() && ttl(response) <= 0, "{response}");
        assert!(
            response.headers.number("age").is_some_and(|age| age >= 1),
            "{response}"
        );
        assert_eq!(response.header("etag"), "\"v1\"", "{response}");
    }
    assert_eq!(origin.count("/a"), 2);
    assert_eq!(edge.counter("sluice_refreshes").await, 1);
    gate.open();
    eventually("it is fresh again", async || {
        ttl(&edge.get("/a").await) > 0 || origin.count("/a") > 2
    })
    .await;
    let asked = origin.requests().of("/a");
    assert_eq!(asked[1].headers.get("if-none-match"), Some("\"v1\""));
    assert_eq!(asked[1].headers.get("cache-control"), None);
    assert_eq!(edge.counter("sluice_refresh_failures").await, 0);
}

#[tokio::test]
async fn control_bare_envoy_makes_its_clients_wait() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    let object = brief(20_000).etag("v1");
    origin.on_each("/a", [object.clone(), object.hold(&gate)]);
    let bare = Bare::start(&origin, Store::V1_DISK, 1).await;
    let first = bare.get("/a").await.stamp("/a");
    let waiting = async {
        loop {
            assert_eq!(bare.get("/a").await.stamp("/a"), first);
        }
    };
    let reached = async {
        gate.wait_reached(1).await;
        // The client that sent the validation gets no response until the origin answers.
        tokio::time::timeout(Duration::from_millis(200), std::future::pending::<()>()).await
    };
    tokio::select! {
        () = waiting => {}
        _ = reached => {}
    }
    gate.open();
    assert_eq!(bare.get("/a").await.status, 200);
}

#[tokio::test]
async fn a_changed_object_takes_the_place_of_the_stale_one() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    let new = brief(30_000).etag("v2").header("x-version", "2");
    origin.on_each(
        "/a",
        [brief(20_000).etag("v1"), new.clone().hold(&gate), new],
    );
    let edge = edge(&origin, 2).start().await;
    go_stale(&edge, "/a", &gate).await;
    gate.open();
    eventually("the new object", async || {
        let response = edge.get("/a").await;
        let _ = response.stamp("/a");
        response.header("etag") == "\"v2\"" && response.header("x-version") == "2"
    })
    .await;
}

#[tokio::test]
async fn an_object_with_only_a_date_or_no_validator_is_refreshed_too() {
    let origin = Origin::start().ready().await;
    let date = "Wed, 21 Oct 2015 07:28:00 GMT";
    origin.on("/dated", brief(1_000).header("last-modified", date));
    origin.on("/plain", brief(1_000));
    let edge = edge(&origin, 1).start().await;
    for path in ["/dated", "/plain"] {
        let _ = edge.get(path).await;
        eventually("a refresh", async || {
            assert_eq!(edge.get(path).await.status, 200);
            origin.count(path) > 1
        })
        .await;
        eventually("it is stored", async || ttl(&edge.get(path).await) > -1).await;
    }
    let asked = origin.requests().of("/dated");
    assert_eq!(asked[1].headers.get("if-modified-since"), Some(date));
    assert_eq!(edge.get("/dated").await.header("last-modified"), date);
    let asked = origin.requests().of("/plain");
    assert_eq!(asked[1].headers.get("if-modified-since"), None);
    assert_eq!(asked[1].headers.get("if-none-match"), None);
    let response = edge.get("/plain").await;
    assert_eq!(response.headers.get("etag"), None, "{response}");
}

#[tokio::test]
async fn a_refresh_that_fails_keeps_the_object_and_is_not_repeated_at_once() {
    let origin = Origin::start().ready().await;
    let object = brief(20_000).etag("v1");
    origin.on_each("/a", [object.clone(), Reply::status(503)]);
    let edge = edge(&origin, 2).start().await;
    let first = edge.get("/a").await.stamp("/a");
    edge.wait_for_value("sluice_refresh_failures", 0).await;
    let begun = tokio::time::Instant::now();
    while begun.elapsed() < Duration::from_millis(3_500) {
        let response = edge.get("/a").await;
        assert_eq!(response.stamp("/a"), first, "{response}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let count = origin.count("/a");
    // The clients send some hundred requests, and each worker learns of the failure separately.
    assert!((2..=8).contains(&count), "{count}");
    assert!(edge.counter("sluice_refresh_failures").await >= 1);
    origin.on("/a", object);
    eventually("it is fresh again", async || ttl(&edge.get("/a").await) > 0).await;
}

/// A failed refresh does not keep later requests from the origin forever.
#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn an_object_past_its_window_is_asked_for_though_its_last_refresh_failed(workers: usize) {
    let origin = Origin::start().ready().await;
    let short = Reply::ok(1_000).etag("v1");
    let short = short.header("cache-control", "max-age=1, stale-while-revalidate=1");
    // Envoy repeats a request once.
    let reset = Reply::ok(0).reset();
    origin.on_each("/a", [short.clone(), reset.clone(), reset, short]);
    let edge = Edge::http(&origin).workers(workers).start().await;
    eventually("a refresh that fails", async || {
        let response = edge.get("/a").await;
        assert_eq!(response.status, 200, "{response}");
        edge.counter("sluice_refresh_failures").await > 0
    })
    .await;
    // The object may no longer be served stale now. No event shows this moment, so the test waits for a time.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let response = edge.get("/a").await;
    assert_eq!(response.status, 200, "{response}");
}

#[tokio::test]
async fn an_object_of_any_size_is_refreshed_in_the_background() {
    const SIZE: usize = 64 << 20;
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    let refreshed = brief(SIZE).etag("v2");
    origin.on_each("/a", [brief(SIZE).etag("v1"), refreshed.hold(&gate)]);
    let edge = edge(&origin, 1).env("SLUICE_CACHE_MAX_OBJECT_BYTES", "64MiB");
    let edge = edge.start().await;
    go_stale(&edge, "/a", &gate).await;
    let before = edge.resident_kib();
    gate.open();
    eventually("the new object", async || {
        let head = edge.send("HEAD", "/a", &[]).await;
        head.header("etag") == "\"v2\""
    })
    .await;
    let _ = edge.get("/a").await.stamp("/a");
    let grown = edge.resident_kib().saturating_sub(before);
    assert!(grown < 48 << 10, "{grown} KiB more");
}

#[tokio::test]
async fn a_refresh_outlives_neither_its_policy_nor_harms_the_store() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    let begin = brief(200_000).etag("v1");
    let cut = brief(200_000).etag("v2").hold_after(50_000, &gate);
    origin.on_each("/a", [begin, cut, brief(200_000).etag("v3")]);
    let edge = edge(&origin, 2)
        .direct(Direct {
            listener_file: true,
            ..Direct::default()
        })
        .start()
        .await;
    let first = edge.get("/a").await.stamp("/a");
    eventually("a refresh", async || {
        let _ = edge.get("/a").await;
        gate.reached() > 0
    })
    .await;
    for round in 1..=3 {
        edge.update_policy(&|policy| {
            policy["cache"]["hit_for_miss"] = format!("{}s", 100 + round).into();
        });
        edge.wait_for_counter("listener_manager.listener_modified", round)
            .await;
        assert_eq!(edge.get("/a").await.stamp("/a"), first);
    }
    gate.open();
    eventually("a new object", async || {
        edge.get("/a").await.header("etag") != "\"v1\""
    })
    .await;
    let _ = edge.get("/a").await.stamp("/a");
}

#[tokio::test]
async fn the_edge_drains_while_a_refresh_runs() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on_each("/a", [brief(1_000).etag("v1"), brief(1_000).hold(&gate)]);
    let edge = edge(&origin, 2)
        .env("SLUICE_DRAIN_SECONDS", "1")
        .start()
        .await;
    go_stale(&edge, "/a", &gate).await;
    let (code, log) = edge.stop();
    assert_eq!(code, Some(0), "{log}");
    gate.open();
}

#[tokio::test]
async fn a_large_object_that_has_changed_is_refreshed() {
    // Size above the part of the body that arrives with the headers.
    const LARGE: usize = 400_000;
    let origin = Origin::start().ready().await;
    let edge = edge(&origin, 1).start().await;
    let paths: Vec<_> = (0..12).map(|n| format!("/large{n}")).collect();
    for path in &paths {
        origin.on(path, brief(LARGE).etag("v1"));
        let _ = edge.get(path).await.stamp(path);
        origin.on(path, brief(LARGE).etag("v2"));
    }
    for path in &paths {
        eventually("the change", async || {
            edge.get(path).await.header("etag") == "\"v2\""
        })
        .await;
    }
}

#[tokio::test]
async fn clients_that_leave_while_objects_are_refreshed_and_revalidated_do_no_harm() {
    let origin = Origin::start().ready().await;
    let slow = |reply: Reply| reply.delay(Duration::from_millis(30));
    let paced = |reply: Reply| reply.pace(5_000, Duration::from_millis(3));
    origin.on("/same*", slow(brief(50_000).etag("v1")));
    origin.on("/other*", slow(paced(brief(50_000))));
    origin.on(
        "/short*",
        slow(paced(Reply::ok(50_000).max_age(1).etag("v1"))),
    );
    let error = "max-age=1, stale-if-error=600";
    let kept = Reply::ok(50_000).header("cache-control", error).etag("v1");
    for n in 0..8 {
        origin.on_each(
            &format!("/down{n}"),
            [kept.clone(), slow(Reply::status(503))],
        );
    }
    let kinds = ["same", "other", "short", "down"];
    let paths: Vec<_> = (0..32)
        .map(|n| format!("/{}{}", kinds[n % 4], n / 4))
        .collect();
    let mut edge = edge(&origin, 2).start().await;
    for path in &paths {
        let _ = edge.get(path).await.stamp(path);
    }
    // The store serves an object some time after the end of its fill.
    edge.wait_for_value("sluice_flights_now", 0).await;
    for seed in 0..4 {
        let storm = Storm {
            clients: 300,
            at_once: 60,
            paths: paths.clone(),
            seed,
            span: Duration::from_millis(80),
        };
        let wreckage = storm.rage(edge.address()).await;
        edge.check();
        assert!(wreckage.wrong.is_empty(), "{:?}", wreckage.wrong);
        assert!(wreckage.failed.is_empty(), "{:?}", wreckage.failed);
        let refused = edge.log_lines(" 503 ");
        assert!(wreckage.other.is_empty(), "{refused:#?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let after = Crowd::connect(edge.address(), 20).await.fire("/same0");
    after.land().await.all(200);
    edge.wait_for_value("sluice_parked_now", 0).await;
    let errors = edge.counter("sluice_host_errors").await;
    assert_eq!(errors, 0, "{:?}", edge.log_lines("sluice: "));
}
