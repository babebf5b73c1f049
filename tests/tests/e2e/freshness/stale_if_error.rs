// SPDX-License-Identifier: Apache-2.0
//! While the origin is down, slow or failing, clients get the stored object, and the origin gets few requests.

use sluice_tests::bare::Bare;
use sluice_tests::client::crowd::{Crowd, stampede};
use sluice_tests::client::{Client, Response, request};
use sluice_tests::edge::store::Store;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::http::body::Stamp;
use sluice_tests::machine::standstill::unless_the_machine_stands_still;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::time::Duration;
use test_case::test_case;
use tokio::time::{Instant, sleep};

/// Limits under which no follower stops waiting before the origin has answered.
const POLICY: &str = "origin: {kind: http}\n\
                      coalesce: {lease: 600s, max_wait: 600s}\n\
                      cache: {retry_interval: 1s, stale_if_error_timeout: 100s, hit_for_miss: 1s}\n";

fn brief() -> Reply {
    object("max-age=1, stale-if-error=600")
}

fn object(cache_control: &str) -> Reply {
    Reply::ok(20_000)
        .header("cache-control", cache_control)
        .etag("v1")
}

fn edge(origin: &Origin, workers: usize) -> Builder {
    Edge::http(origin).workers(workers).policy(POLICY)
}

/// Fills the key, and lets it go stale.
async fn go_stale(edge: &Edge, path: &str) -> Stamp {
    let first = edge.get(path).await.stamp(path);
    sleep(Duration::from_millis(2_100)).await;
    first
}

fn is_fresh(response: &Response) -> bool {
    let parameters = response.cache_status().split(';').map(str::trim);
    let mut ttl = parameters.filter_map(|parameter| parameter.strip_prefix("ttl="));
    ttl.next()
        .is_some_and(|ttl| ttl.parse::<i64>().unwrap() > 0)
}

/// Sends requests for `time`, and checks that every response is the stale object.
async fn ask_for(edge: &Edge, path: &str, first: Stamp, time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        let response = edge.get(path).await;
        assert_eq!(response.status, 200, "{response}");
        assert_eq!(response.stamp(path), first, "{response}");
        assert!(!is_fresh(&response), "{response}");
        assert_eq!(response.header("etag"), "\"v1\"", "{response}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_origin_in_error_is_hidden_and_left_alone() {
    let origin = Origin::start().ready().await;
    origin.on_each("/a", [brief(), Reply::status(503)]);
    let edge = edge(&origin, 2).start().await;
    let first = go_stale(&edge, "/a").await;
    let told = edge.get("/a").await;
    assert_eq!(told.stamp("/a"), first, "{told}");
    assert!(
        told.cache_status()
            .contains("fwd=stale; fwd-status=503; ttl=-"),
        "{told}"
    );
    assert!(
        told.headers.number("age").is_some_and(|age| age >= 2),
        "{told}"
    );
    for response in stampede(edge.address(), 50, "/a").await.all(200) {
        assert_eq!(response.stamp("/a"), first, "{response}");
    }
    ask_for(&edge, "/a", first, Duration::from_secs(3)).await;
    let count = origin.count("/a");
    // The fill, one request of each worker, and one in every interval.
    assert!((2..=7).contains(&count), "{count} requests");
    origin.on("/a", brief());
    eventually("recovery", async || is_fresh(&edge.get("/a").await)).await;
    let after = origin.count("/a") - count;
    assert!(after <= 3, "{after} requests after recovery");
}

#[tokio::test]
async fn control_bare_envoy_passes_the_error_on() {
    let origin = Origin::start().ready().await;
    origin.on_each("/a", [brief(), Reply::status(503)]);
    let bare = Bare::start(&origin, Store::V1_DISK, 1).await;
    let _ = bare.get("/a").await.stamp("/a");
    eventually("the error", async || bare.get("/a").await.status == 503).await;
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn followers_of_a_revalidation_that_fails_get_the_stale_object(workers: usize) {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on_each("/a", [brief(), Reply::status(500).hold(&gate)]);
    let patient = POLICY.replace("retry_interval: 1s", "retry_interval: 5s");
    let edge = edge(&origin, workers).policy(&patient).start().await;
    let first = go_stale(&edge, "/a").await;
    let flight = Crowd::connect(edge.address(), 30).await.fire("/a");
    gate.wait_reached(1).await;
    sleep(Duration::from_millis(100)).await;
    gate.open();
    for response in flight.land().await.all(200) {
        assert_eq!(response.stamp("/a"), first, "{response}");
    }
    let count = origin.count("/a");
    assert!(count <= 1 + workers, "{count} requests");
}

#[tokio::test]
async fn a_client_that_leaves_before_the_origin_fails_takes_the_stale_object_from_nobody() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on_each("/a", [brief(), Reply::status(503).hold(&gate)]);
    let edge = edge(&origin, 1).start().await;
    let first = go_stale(&edge, "/a").await;
    let mut leaves = Client::connect(edge.address()).await;
    leaves.send(request("GET", "/a", &[])).await.unwrap();
    gate.wait_reached(1).await;
    leaves.reset();
    // The worker has no flight left, and only waits for the origin's response.
    edge.wait_for_value("sluice_flights_now", 0).await;
    gate.open();
    edge.wait_for_value("cluster.origin.upstream_rq_active", 0)
        .await;
    ask_for(&edge, "/a", first, Duration::from_millis(200)).await;
    let errors = edge.counter("sluice_host_errors").await;
    assert_eq!(errors, 0, "{:?}", edge.log_lines("sluice: "));
}

#[tokio::test]
async fn a_dead_origin_is_hidden_until_it_is_back() {
    let origin = Origin::start().ready().await;
    origin.on("/a", brief());
    let edge = edge(&origin, 2).start().await;
    let first = go_stale(&edge, "/a").await;
    origin.refuse().await;
    for response in stampede(edge.address(), 50, "/a").await.all(200) {
        assert_eq!(response.stamp("/a"), first, "{response}");
    }
    ask_for(&edge, "/a", first, Duration::from_secs(2)).await;
    // An object that was never stored has no stale response.
    assert!((502..=504).contains(&edge.get("/never").await.status));
    origin.listen().await;
    eventually("recovery", async || is_fresh(&edge.get("/a").await)).await;
}

#[tokio::test]
async fn a_silent_origin_delays_nobody_for_long() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on_each("/a", [brief(), brief().hold(&gate)]);
    let impatient = POLICY.replace("100s", "500ms");
    let edge = edge(&origin, 2).policy(&impatient).start().await;
    let first = go_stale(&edge, "/a").await;
    for response in stampede(edge.address(), 30, "/a").await.all(200) {
        assert_eq!(response.stamp("/a"), first, "{response}");
    }
    // Envoy's own timeout would be a minute.
    assert!(edge.counter("sluice_origin_overdue").await > 0);
    ask_for(&edge, "/a", first, Duration::from_secs(2)).await;
    gate.open();
    eventually("recovery", async || is_fresh(&edge.get("/a").await)).await;
}

#[tokio::test]
async fn beyond_the_window_the_error_passes() {
    let slack = Duration::from_secs(3);
    unless_the_machine_stands_still(slack, async || {
        let origin = Origin::start().ready().await;
        let short = object("max-age=1, stale-if-error=6");
        origin.on_each("/a", [short, Reply::status(503)]);
        let edge = edge(&origin, 1).start().await;
        let first = go_stale(&edge, "/a").await;
        assert_eq!(edge.get("/a").await.stamp("/a"), first);
        eventually("the error", async || {
            let response = edge.get("/a").await;
            assert!(matches!(response.status, 200 | 503), "{response}");
            response.status == 503
        })
        .await;
        origin.on("/a", brief());
        eventually("recovery", async || edge.get("/a").await.status == 200).await;
    })
    .await;
}

#[tokio::test]
async fn an_object_that_must_be_revalidated_is_never_served_stale() {
    let origin = Origin::start().ready().await;
    let policy = "origin: {kind: http}\ncache: {stale_if_error: 1d, stale_while_revalidate: 1d}\n";
    let edge = Edge::http(&origin).workers(1).policy(policy).start().await;
    for (path, control) in [
        ("/must", "max-age=1, must-revalidate"),
        ("/proxy", "max-age=1, proxy-revalidate"),
        ("/shared", "s-maxage=1"),
    ] {
        origin.on_each(path, [object(control), Reply::status(503)]);
        let _ = edge.get(path).await.stamp(path);
    }
    sleep(Duration::from_millis(2_100)).await;
    for path in ["/must", "/proxy", "/shared"] {
        let response = edge.get(path).await;
        assert_eq!(response.status, 503, "{path}: {response}");
    }
}

#[tokio::test]
async fn many_objects_outlive_an_outage_and_come_back_one_request_each() {
    const KEYS: usize = 30;
    let origin = Origin::start().ready().await;
    origin.on("/k*", brief());
    let edge = edge(&origin, 2).start().await;
    let paths: Vec<_> = (0..KEYS).map(|n| format!("/k{n}")).collect();
    for path in &paths {
        let _ = edge.get(path).await.stamp(path);
    }
    sleep(Duration::from_millis(2_100)).await;
    origin.on("/k*", Reply::status(502));
    for _ in 0..10 {
        for path in &paths {
            assert_eq!(edge.get(path).await.status, 200, "{path}");
        }
    }
    // From now on the object is long-lived, so that each key needs one request to be fresh.
    origin.on("/k*", object("max-age=600"));
    let before: usize = paths.iter().map(|path| origin.count(path)).sum();
    eventually("all are fresh", async || {
        for path in &paths {
            if !is_fresh(&edge.get(path).await) {
                return false;
            }
        }
        true
    })
    .await;
    let after: usize = paths.iter().map(|path| origin.count(path)).sum();
    assert!(after - before <= 2 * KEYS, "{}", after - before);
}

#[tokio::test]
async fn an_origin_out_of_reach_is_a_504_for_what_must_not_be_stale() {
    let origin = Origin::start().ready().await;
    origin.on("/a", object("max-age=1, must-revalidate"));
    let edge = edge(&origin, 1).start().await;
    go_stale(&edge, "/a").await;
    origin.refuse().await;
    eventually("the error", async || edge.get("/a").await.status != 200).await;
    let refused = edge.get("/a").await;
    assert_eq!(refused.status, 504, "{refused}");
    // Control: nothing is stored here.
    assert_eq!(edge.get("/never").await.status, 503);
    // An origin that answers is not unreachable, whatever its status.
    origin.on("/a", Reply::status(503));
    origin.listen().await;
    eventually("its own word", async || edge.get("/a").await.status == 503).await;
}
