// SPDX-License-Identifier: Apache-2.0
//! A constantly requested object costs the origin one request each time it expires. (`revalidation.rs` shows bare
//! Envoy in this case.)

use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::task::JoinSet;

/// Number of keys, which all expire at one moment.
const KEYS: usize = 16;
const CLIENTS_PER_KEY: usize = 16;
const TIMES: u32 = 2;
const FRESH: Duration = Duration::from_secs(1);
/// Time for which an object with a lifetime of one second is served: until two seconds of the clock have begun,
/// because the stores count whole seconds.
const SERVED: Duration = Duration::from_secs(2);
/// Time on each side of the expiry during which clients send requests.
const AROUND: Duration = Duration::from_millis(12);
/// Delay of the origin's response. The response arrives in the same second as its request.
const DELAY: Duration = Duration::from_millis(50);

fn path(key: usize) -> String {
    format!("/k{key}")
}

/// The next start of a second of the clock that is at least 100 ms away.
fn next_second() -> SystemTime {
    let soon = SystemTime::now() + Duration::from_millis(100);
    let seconds = soon.duration_since(UNIX_EPOCH).unwrap().as_secs() + 1;
    UNIX_EPOCH + Duration::from_secs(seconds)
}

async fn sleep_until(moment: SystemTime) {
    let left = moment.duration_since(SystemTime::now());
    tokio::time::sleep(left.unwrap_or_default()).await;
}

/// Requests each key on open connections. The clients are spread over the time around each moment, so that each of
/// them sends requests on both sides of it.
async fn press(address: SocketAddr, moments: &[SystemTime]) {
    let all = u32::try_from(KEYS * CLIENTS_PER_KEY).unwrap();
    let mut clients = JoinSet::new();
    for number in 0..all {
        let path = path(number as usize % KEYS);
        let mut client = Client::connect(address).await;
        let moments = moments.to_vec();
        clients.spawn(async move {
            for moment in moments {
                sleep_until(moment - AROUND + AROUND * number / all).await;
                for _ in 0..6 {
                    let response = client.exchange(request("GET", &path, &[])).await;
                    assert_eq!(response.status, 200, "{response}");
                    let _ = response.stamp(&path);
                }
            }
        });
    }
    clients.join_all().await;
}

/// Times between the origin's requests for `path`.
fn times_apart(origin: &Origin, path: &str) -> Vec<Duration> {
    let requests = origin.requests().of(path);
    let pairs = requests.windows(2);
    pairs.map(|pair| pair[1].at - pair[0].at).collect()
}

#[tokio::test]
async fn an_object_that_expires_under_load_costs_the_origin_one_request() {
    let origin = Origin::start().ready().await;
    let object = Reply::ok(1_000).max_age(1).etag("v1");
    origin.on("/k*", object.delay(DELAY));
    // Hits are served by the store, and race with the end of their lifetime.
    let edge = Edge::http(&origin).workers(2).env("SLUICE_HOT_BYTES", "0");
    let edge = edge.start().await;
    let begin = next_second();
    let moments: Vec<_> = (0..=TIMES).map(|time| begin + time * SERVED).collect();
    press(edge.address(), &moments).await;
    // If a request was let through in time, but is still under way when the store writes the origin's confirmation,
    // it finds nothing. This adds one request each time.
    for key in 0..KEYS {
        let apart = times_apart(&origin, &path(key));
        let early = apart.iter().filter(|apart| **apart < FRESH).count();
        assert!(early < apart.len(), "{} has not expired", path(key));
        assert!(
            early <= TIMES as usize,
            "{} is asked for after {apart:?}",
            path(key)
        );
    }
}
