// SPDX-License-Identifier: Apache-2.0
//! Functions that several tests of the roles need.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

pub mod steps;
pub mod world;

use proptest::test_runner::{Config, RngAlgorithm};
use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_core::workers::Millis;
use sluice_fake::{Answer, Client, FakeEnvoy, FetchId, FetchPhase};

/// The path of most requests.
pub const KEY: u64 = 7;
/// The first request to the origin.
pub const FIRST: FetchId = FetchId(0);

/// A policy document for an HTTP origin and an empty cache, with small bounds that make a worker cheap, and with
/// these sections.
pub fn document(sections: &str) -> String {
    let comma = if sections.is_empty() { "" } else { ", " };
    let purge = format!(
        r#"{{"warm": false, "token_sha256": "{}"}}"#,
        FakeEnvoy::token_hash()
    );
    format!(
        r#"{{"origin": {{"kind": "http"}}, "purge": {purge}, "limits": {{"hints": 64, "varying_urls": 64}}{comma}{sections}}}"#
    )
}

/// A number of workers under the default policy.
pub fn envoy(workers: usize) -> FakeEnvoy {
    FakeEnvoy::new(&document(""), workers)
}

/// A number of workers that have read their initial values from shared data.
pub fn warm_envoy(workers: usize) -> FakeEnvoy {
    let mut envoy = envoy(workers);
    envoy.hold_calls = true;
    for seat in 0..workers {
        let client = envoy.conditional(seat, KEY);
        envoy.abort(client);
    }
    envoy
}

/// Sends a GET without headers beside its key.
pub fn plain(envoy: &mut FakeEnvoy, seat: usize) -> Client {
    envoy.request(seat, "GET", KEY, &[])
}

/// Ends a fill whose worker knows its followers, makes the store commit, and delivers all messages.
pub fn fill(envoy: &mut FakeEnvoy, fetch: FetchId) {
    let key = envoy.fetches[fetch.0].key;
    let seat = envoy.clients[envoy.fetches[fetch.0].client.0].seat;
    while envoy.messages(seat) > 0 {
        envoy.deliver(seat);
    }
    if envoy.fetches[fetch.0].phase == FetchPhase::Sent {
        envoy.answer(fetch, Answer::Storable);
    }
    envoy.end(fetch);
    envoy.commit(key);
    await_lookup(envoy, seat);
    for seat in 0..envoy.workers() {
        envoy.answer_lookup(seat);
    }
    envoy.deliver_all();
    envoy.close_all();
}

/// Waits until the worker of an ended fill looks in the store, as it does for a waiting request. Without such a
/// request, waits until the worker assumes that the response is stored.
pub fn await_lookup(envoy: &mut FakeEnvoy, seat: usize) {
    let Some(coalescer) = envoy.coalescer(seat) else {
        return;
    };
    if coalescer.resting() > 0 {
        let end = envoy.now() + envoy.policy.lease;
        while envoy.now() < end && envoy.lookups(seat) == 0 {
            live(envoy, 10);
            envoy.deliver_all();
        }
    } else if envoy.lookups(seat) == 0 && coalescer.flights() > 0 {
        envoy.advance(50);
        envoy.tick(seat);
    }
}

/// Lets time pass in small steps, with the timers running.
pub fn live(envoy: &mut FakeEnvoy, millis: Millis) {
    for _ in 0..millis / 10 {
        envoy.advance(10);
        envoy.tick_all();
        envoy.check();
    }
}

/// Kind of request to the store as which a request continued at once, or `None` if it waited.
pub fn admission(envoy: &FakeEnvoy, client: Client) -> Option<StoreRequest> {
    envoy.clients[client.0].admission
}

/// Reason for which a request left the waiting list.
pub fn release(envoy: &FakeEnvoy, client: Client) -> Option<NextStep> {
    envoy.clients[client.0].release
}

/// Number of these clients that left the waiting list for this reason.
pub fn releases(envoy: &FakeEnvoy, clients: &[Client], wanted: NextStep) -> usize {
    let left = |client: &&Client| release(envoy, **client) == Some(wanted);
    clients.iter().filter(left).count()
}

/// Checks that no request, lease or timer is left.
pub fn assert_all_over(envoy: &mut FakeEnvoy) {
    envoy.check();
    assert_eq!(envoy.open_clients(), []);
    assert!(envoy.leases().is_empty(), "no request leads");
    for seat in 0..envoy.workers() {
        let coalescer = envoy.coalescer(seat).unwrap();
        assert_eq!((coalescer.flights(), coalescer.parked()), (0, 0));
        assert_eq!(coalescer.resting(), 0);
        assert_eq!(coalescer.tick_period(), None, "no timer without work");
    }
}

/// Settings for a property with `count` cases.
pub fn cases(count: u32) -> Config {
    Config {
        cases: count,
        failure_persistence: None,
        // The default generator takes half of the time in a debug build.
        rng_algorithm: RngAlgorithm::XorShift,
        ..Config::default()
    }
}
