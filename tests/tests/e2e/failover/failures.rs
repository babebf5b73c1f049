// SPDX-License-Identifier: Apache-2.0
//! The second origin gets a request after any failure of the first one, and each failure costs little time.

use super::world::{Pair, SECOND_KEY, named};
use sluice_tests::edge::Edge;
use sluice_tests::origin::Reply;
use sluice_tests::server::gate::Gate;
use std::time::Instant;

#[tokio::test]
async fn a_request_that_the_first_bucket_fails_is_answered_by_the_second() {
    let pair = Pair::start().await;
    let failures = [500, 502, 503, 504].map(|status| (status.to_string(), Reply::status(status)));
    let pause = Reply::status(503).header("retry-after", "3600");
    let more = [
        ("reset".to_owned(), Reply::ok(1000).reset()),
        ("pause".to_owned(), pause),
    ];
    let (edge, control) = tokio::join!(
        pair.buckets().start(),
        Edge::scripted_bucket(&pair.first)
            .env("SLUICE_S3_RETRIES", "0")
            .start()
    );
    for (name, failure) in failures.into_iter().chain(more) {
        for method in ["GET", "HEAD"] {
            let path = format!("/{method}-{name}");
            pair.first.on(&format!("/site{path}"), failure.clone());
            let response = edge.send(method, &path, &[]).await;
            assert_eq!(response.status, 200, "{path}: {response}");
            assert!(
                response.cache_status().ends_with("; detail=failover"),
                "{response}"
            );
            assert!(!response.headers.any_with_prefix("x-sluice-"), "{response}");
            assert_eq!(pair.asked_second_bucket(&path), 1, "{path}");
            // The first bucket must not be ejected by the next failures.
            assert_eq!(edge.get(&format!("{path}-well")).await.body, b"first");
        }
        let failed = control.get(&format!("/GET-{name}")).await.status;
        assert!(failed >= 500, "{name}: {failed}");
    }
    let asked = pair.second.requests().all();
    for request in &asked {
        let signature = request.headers.get("authorization").unwrap_or_default();
        let scope = format!("Credential={SECOND_KEY}/");
        assert!(
            signature.contains(&scope) && signature.contains("/eu-west-1/s3/"),
            "{signature}"
        );
        assert!(
            !request.headers.any_with_prefix("x-sluice-"),
            "{:?}",
            request.headers
        );
        assert!(
            !request.headers.any_with_prefix("x-envoy-"),
            "{:?}",
            request.headers
        );
    }
}

#[tokio::test]
async fn an_object_that_both_buckets_fail_does_not_cost_the_others_the_second_bucket() {
    let pair = Pair::start().await;
    pair.first.on("/site/bad*", Reply::status(500));
    pair.second.on("/other/copy/bad*", Reply::status(500));
    let edge = pair.buckets().start().await;
    for number in 0..5 {
        let failed = edge.get(&format!("/bad-{number}")).await.status;
        assert_eq!(failed, 500);
        // The first bucket answers other requests, so it does not fail three times in a row.
        assert_eq!(edge.get(&format!("/well-{number}")).await.body, b"first");
    }
    assert_eq!(pair.asked_second_bucket("/bad-4"), 1);
    pair.first.on("/site/late", Reply::ok(1_000).reset());
    assert_eq!(edge.get("/late").await.body, b"second");
}

#[tokio::test]
async fn an_object_about_which_both_buckets_are_silent_does_not_cost_the_others_the_second_bucket()
{
    let pair = Pair::start().await;
    let gate = Gate::new();
    pair.first.on("/site/bad*", Reply::ok(1_000).hold(&gate));
    pair.second
        .on("/other/copy/bad*", Reply::ok(1_000).hold(&gate));
    let edge = pair.buckets().env("SLUICE_FAILOVER_AFTER_SILENCE", "200ms");
    let edge = edge.start().await;
    for number in 0..5 {
        assert_eq!(edge.get(&format!("/bad-{number}")).await.status, 504);
        assert_eq!(edge.get(&format!("/well-{number}")).await.body, b"first");
    }
    pair.first.on("/site/late", Reply::ok(1_000).reset());
    assert_eq!(edge.get("/late").await.body, b"second");
}

#[tokio::test]
async fn a_404_of_the_first_bucket_is_the_answer() {
    let pair = Pair::start().await;
    pair.first.on("/site/missing", Reply::status(404));
    let edge = pair.buckets().start().await;
    let response = edge.get("/missing").await;
    assert_eq!(response.status, 404, "{response}");
    assert_eq!(pair.second.requests().total(), 0);
}

/// The times of requests for new paths, in milliseconds.
async fn times(edge: &Edge, name: &str, count: usize, status: u16) -> Vec<u128> {
    let mut times = Vec::new();
    for number in 0..count {
        let began = Instant::now();
        let response = edge.get(&format!("/{name}-{number}")).await;
        times.push(began.elapsed().as_millis());
        assert_eq!(response.status, status, "{response}");
    }
    times
}

/// The median of the times of requests that a well origin answers, on this machine at this moment.
async fn usual(pair: &Pair) -> u128 {
    let control = Edge::scripted_bucket(&pair.second).start().await;
    median(&times(&control, "control", 30, 200).await)
}

fn median(times: &[u128]) -> u128 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

#[tokio::test]
async fn a_first_origin_that_refuses_or_fails_costs_a_moment() {
    for refuses in [true, false] {
        let pair = Pair::start().await;
        pair.first.on("*", Reply::status(503));
        if refuses {
            pair.first.refuse().await;
        }
        let edge = pair.buckets().start().await;
        let times = times(&edge, "cold", 30, 200).await;
        let usual = usual(&pair).await;
        eprintln!("refuses={refuses}: {times:?} ms, usual {usual} ms");
        assert!(median(&times[..3]) <= 100 + 3 * usual, "{times:?}, {usual}");
        assert!(median(&times[3..]) <= 10 + 3 * usual, "{times:?}, {usual}");
        let asked = pair.first.requests().total();
        assert!(asked <= 3, "{asked}");
    }
}

#[tokio::test]
async fn a_silent_first_origin_costs_the_set_time_until_it_is_left_alone() {
    let pair = Pair::start().await;
    let gate = Gate::new();
    pair.first.on("*", named("first").hold(&gate));
    let edge = pair
        .buckets()
        .env("SLUICE_FAILOVER_AFTER_SILENCE", "300ms")
        .start()
        .await;
    let times = times(&edge, "cold", 20, 200).await;
    let usual = usual(&pair).await;
    eprintln!("silent: {times:?} ms, usual {usual} ms");
    for time in &times[..3] {
        assert!((300..600 + 3 * usual).contains(time), "{times:?}, {usual}");
    }
    assert!(median(&times[3..]) <= 10 + 3 * usual, "{times:?}, {usual}");
}

#[tokio::test]
async fn with_both_origins_down_the_answer_comes_at_once() {
    let pair = Pair::start().await;
    pair.first.refuse().await;
    pair.second.refuse().await;
    let edge = pair.buckets().start().await;
    let times = times(&edge, "down", 12, 503).await;
    pair.second.listen().await;
    let usual = usual(&pair).await;
    eprintln!("both down: {times:?} ms, usual {usual} ms");
    assert!(median(&times) <= 50 + 3 * usual, "{times:?}, {usual}");
    // The second origin is never left alone.
    let response = edge.get("/back").await;
    assert_eq!(response.body, b"second", "{response}");
}
