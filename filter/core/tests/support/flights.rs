// SPDX-License-Identifier: Apache-2.0
//! What the tests of coalescing do again and again.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::coalescing::flight::FlightPolicy;
use sluice_core::coalescing::{Admission, Coalescer, Release};
use sluice_core::workers::{KeyHash, Millis};
use sluice_fake::mirror::{Answer, Client, FakeHost, FetchId, FetchPhase};

use super::{bucket, canonicalize_path};

/// The key of most requests.
pub const KEY: u64 = 7;
/// The first request to the origin.
pub const FIRST: FetchId = FetchId(0);

/// The default rules.
pub fn policy() -> FlightPolicy {
    FlightPolicy::of(&bucket())
}

/// That many workers under `policy`.
pub fn host_with(policy: FlightPolicy, workers: usize) -> FakeHost {
    FakeHost::new(
        policy,
        workers,
        canonicalize_path(&bucket(), b"/object").unwrap(),
    )
}

/// That many workers under the default rules.
pub fn host(workers: usize) -> FakeHost {
    host_with(policy(), workers)
}

/// The fill, of which its worker knows who waits for it, comes to its end and everyone is told.
pub fn fill(host: &mut FakeHost, fetch: FetchId) {
    let key = host.fetches[fetch.0].key;
    let seat = host.clients[host.fetches[fetch.0].client.0].seat;
    while host.messages(seat) > 0 {
        host.deliver(seat);
    }
    if host.fetches[fetch.0].phase == FetchPhase::Sent {
        host.answer(fetch, Answer::Storable);
    }
    host.end(fetch);
    host.store().commit(key);
    await_probe(host, seat, key);
    for seat in 0..host.workers() {
        host.answer_probe(seat);
    }
    host.deliver_all();
    host.close_all();
}

/// The worker has asked the store whether it has that response, as it does at once only where somebody waits.
pub fn await_probe(host: &mut FakeHost, seat: usize, key: KeyHash) {
    let commits = |coalescer: &mut Coalescer| coalescer.is_committing(key);
    if host.probes(seat) == 0 && host.coalescer(seat).is_some_and(commits) {
        host.advance(50);
        host.tick(seat);
    }
}

/// Time passes as it does: in small steps, with the timers running.
pub fn live(host: &mut FakeHost, millis: Millis) {
    for _ in 0..millis / 10 {
        host.advance(10);
        host.tick_all();
        host.check();
    }
}

/// What the coalescer made of that request.
pub fn admission(host: &FakeHost, client: Client) -> Admission {
    host.clients[client.0].admission
}

/// How that request left the waiting list.
pub fn release(host: &FakeHost, client: Client) -> Option<Release> {
    host.clients[client.0].release
}

/// How many of them left the waiting list so.
pub fn releases(host: &FakeHost, clients: &[Client], release: Release) -> usize {
    clients
        .iter()
        .filter(|client| host.clients[client.0].release == Some(release))
        .count()
}

/// Nothing is left of anything.
pub fn assert_all_over(host: &mut FakeHost) {
    host.check();
    assert_eq!(host.open_clients(), []);
    assert_eq!(host.board(), [], "the board is empty");
    for seat in 0..host.workers() {
        let coalescer = host.coalescer(seat).unwrap();
        assert_eq!((coalescer.flights(), coalescer.parked()), (0, 0));
        assert_eq!(coalescer.tick_period(), None, "no timer without work");
    }
}
