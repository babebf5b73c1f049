// SPDX-License-Identifier: Apache-2.0
//! An object that is asked for all the time costs the origin one request each time it expires. (What bare Envoy makes of
//! that is in `revalidation.rs`.)

use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::task::JoinSet;

/// They expire at one moment.
const KEYS: usize = 16;
const CLIENTS_PER_KEY: usize = 16;
const TIMES: u32 = 2;
const FRESH: Duration = Duration::from_secs(1);
/// The stores count in whole seconds: what is fresh for one is served until two seconds of the clock have begun.
const SERVED: Duration = Duration::from_secs(2);
/// Clients come for so long before that and for as long after it.
const AROUND: Duration = Duration::from_millis(12);
/// How long the origin takes: the answers come in the second in which they were asked for.
const DELAY: Duration = Duration::from_millis(50);

fn path(key: usize) -> String {
    format!("/k{key}")
}

/// The next beginning of a second of the clock, which is not too near.
fn next_second() -> SystemTime {
    let soon = SystemTime::now() + Duration::from_millis(100);
    let seconds = soon.duration_since(UNIX_EPOCH).unwrap().as_secs() + 1;
    UNIX_EPOCH + Duration::from_secs(seconds)
}

async fn sleep_until(moment: SystemTime) {
    let left = moment.duration_since(SystemTime::now());
    tokio::time::sleep(left.unwrap_or_default()).await;
}

/// Asks for each key on connections that are open already: each once on either side of every moment, as the clients
/// are spread over the time around it.
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

/// The times between the origin's requests for `path`.
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
    // Hits come out of the store, which races with the end of their time.
    let edge = Edge::http(&origin).workers(2).env("HOT_BYTES", "0");
    let edge = edge.start().await;
    let begin = next_second();
    let moments: Vec<_> = (0..=TIMES).map(|time| begin + time * SERVED).collect();
    press(edge.address(), &moments).await;
    // A request that was let go in time, and is on its way still when the store writes what the origin has
    // confirmed, finds nothing: one more each time.
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
