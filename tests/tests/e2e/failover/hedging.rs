// SPDX-License-Identifier: Apache-2.0
//! A GET whose response is late is sent to the origin a second time, within the limit on retries.

use super::world::{Pair, named};
use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const SLOW: Duration = Duration::from_secs(1);

/// The times of requests for new paths, one after the other, in milliseconds.
async fn times(edge: &Edge, method: &str, paths: &[String]) -> Vec<u128> {
    let mut times = Vec::new();
    for path in paths {
        let began = Instant::now();
        let response = edge.send(method, path, &[]).await;
        times.push(began.elapsed().as_millis());
        assert_eq!(response.status, 200, "{response}");
    }
    times.sort_unstable();
    times
}

/// Paths. The first response for every hundredth path is slow.
fn paths(origin: &Origin, name: &str, count: usize) -> Vec<String> {
    let path = |number: usize| {
        let path = format!("/{name}-{number}");
        if number % 100 == 50 {
            let replies = [named("slow").delay(SLOW), named("fast")];
            origin.on_each(&format!("/site{path}"), replies);
        }
        path
    };
    (0..count).map(path).collect()
}

#[tokio::test]
async fn the_slowest_percent_costs_the_set_time_and_few_requests() {
    const COUNT: usize = 400;
    let origin = Origin::start().ready().await;
    origin.on("*", named("fast"));
    let edge = Edge::scripted_bucket(&origin);
    let (edge, control) = tokio::join!(
        edge.clone().env("SLUICE_HEDGE_AFTER", "100ms").start(),
        edge.start()
    );
    let times_of_control = times(&control, "GET", &paths(&origin, "control", 100)).await;
    assert!(
        times_of_control.last() >= Some(&1_000),
        "{times_of_control:?}"
    );
    let before = origin.requests().total();
    let times = times(&edge, "GET", &paths(&origin, "hedged", COUNT)).await;
    let (p99, last) = (times[COUNT * 99 / 100], times[COUNT - 1]);
    let more = origin.requests().total() - before - COUNT;
    eprintln!(
        "p50 {} ms, p99 {p99} ms, last {last} ms, {more} more of {COUNT}",
        times[COUNT / 2]
    );
    assert!(p99 < 200, "{times:?}");
    assert!(last < 400, "{times:?}");
    assert!(more <= COUNT / 50, "{more}");
}

#[tokio::test]
async fn only_a_get_is_sent_a_second_time_and_only_once() {
    let origin = Origin::start().ready().await;
    origin.on("*", named("slow").delay(Duration::from_millis(400)));
    let edge = Edge::http(&origin)
        .env("SLUICE_HEDGE_AFTER", "50ms")
        .start()
        .await;
    for (method, asked) in [("GET", 2), ("HEAD", 1), ("POST", 1)] {
        let path = format!("/{method}");
        assert_eq!(edge.send(method, &path, &[]).await.status, 200);
        assert_eq!(origin.count(&path), asked, "{method}");
    }
}

#[tokio::test]
async fn hedging_does_not_eject_the_first_origin() {
    let pair = Pair::start().await;
    pair.first.on(
        "/site/slow*",
        named("first").delay(Duration::from_millis(200)),
    );
    let edge = pair
        .buckets()
        .env("SLUICE_HEDGE_AFTER", "50ms")
        .start()
        .await;
    for number in 0..6 {
        let response = edge.get(&format!("/slow-{number}")).await;
        assert_eq!(response.body, b"first", "{response}");
    }
    assert_eq!(edge.get("/fast").await.body, b"first");
    assert_eq!(pair.second.requests().total(), 0);
    assert!(pair.first.requests().total() > 7);
    pair.first.on("/site/*", Reply::status(503));
    assert_eq!(edge.get("/failed").await.body, b"second");
}

/// The times of one request of each of so many clients at once, in milliseconds.
async fn times_at_once(edge: &Edge, clients: usize) -> Vec<u128> {
    let mut all = JoinSet::new();
    for number in 0..clients {
        let edge = edge.address();
        all.spawn(async move {
            let began = Instant::now();
            let path = format!("/{number}");
            let response = sluice_tests::client::send(edge, "GET", &path, &[]).await;
            assert_eq!(response.status, 200, "{response}");
            began.elapsed().as_millis()
        });
    }
    let mut times = all.join_all().await;
    times.sort_unstable();
    times
}

#[tokio::test]
async fn an_origin_that_is_slow_as_a_whole_gets_few_more_requests() {
    const CLIENTS: usize = 100;
    let (origin, other) = (Origin::start().ready().await, Origin::start().ready().await);
    for origin in [&origin, &other] {
        origin.on("*", named("slow").delay(Duration::from_millis(500)));
    }
    let (edge, control) = (
        Edge::scripted_bucket(&origin),
        Edge::scripted_bucket(&other),
    );
    let edge = edge.env("SLUICE_HEDGE_AFTER", "100ms").start().await;
    let control = control.start().await;
    // Both edges have the same load of the machine.
    let (times, control) = tokio::join!(
        times_at_once(&edge, CLIENTS),
        times_at_once(&control, CLIENTS)
    );
    let median = |times: &[u128]| times[CLIENTS / 2];
    let more = origin.requests().total() - CLIENTS;
    eprintln!(
        "p50 {} ms, {} ms without, {more} more of {CLIENTS}",
        median(&times),
        median(&control)
    );
    // The budget is a part of the requests under way, which the second requests belong to, and each response frees its
    // part of it: the more, the slower the machine is. Without a budget there would be one more request for each client.
    assert!(more <= 3 * CLIENTS / 5, "{more}");
    assert!(
        median(&times) * 10 <= median(&control) * 12,
        "{times:?}, without: {control:?}"
    );
}
