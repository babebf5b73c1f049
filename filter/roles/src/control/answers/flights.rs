// SPDX-License-Identifier: Apache-2.0
//! The flights that a worker leads or follows.

use serde_json::{Value, json};
use sluice_core::coalescing::flight::{Leader, LocalFlight};
use sluice_core::inspection::Answer;
use sluice_core::key::site_of;

use crate::worker::Worker;

/// All flights of this worker, those with most waiting requests first.
pub fn answer(worker: &Worker) -> Answer {
    let mut flights: Vec<_> = worker.coalescer.all().collect();
    flights.sort_by_key(|flight| {
        let key = flight.target.cache_key();
        (std::cmp::Reverse(flight.waiters.len()), key)
    });
    Answer::list(
        "flights",
        flights.into_iter().map(|flight| fact(worker, flight)),
    )
}

/// The facts of one flight. The query of its URL is left out, because it may contain secrets.
pub fn fact(worker: &Worker, flight: &LocalFlight) -> Value {
    let target = &flight.target;
    let path = target.origin_path();
    let (path, query) = path
        .split_once('?')
        .map_or((path, false), |(path, _)| (path, true));
    let policy = worker.policies.of_key(target.cache_key());
    let key = policy.map_or(path, |policy| policy.policy.client_path(path));
    let mut fact = json!({
        "site": site_of(target.cache_key()),
        "key": key,
        "query": query,
        "since_ms": since_millis(worker, flight),
        "bytes": null,
        "length": null,
        "status": null,
        "waiting": flight.waiters.len(),
        "leader": "other worker",
        "client": false,
    });
    if let Some(leader) = flight.leader() {
        add_leader(worker, leader, &mut fact);
    }
    fact
}

/// Adds the facts that only the leader's worker has.
fn add_leader(worker: &Worker, leader: &Leader, fact: &mut Value) {
    let request = worker.requests.get(leader.stream);
    fact["leader"] = "here".into();
    fact["client"] = request.is_some_and(|request| !request.for_others).into();
    let Some(fill) = worker.fills.progress_of(leader.stream) else {
        return;
    };
    fact["bytes"] = fill.bytes.into();
    fact["length"] = fill.length.into();
    fact["status"] = fill.status.into();
}

/// Time since the request to the origin began; for a worker that follows, the longest time that one of its requests
/// has waited.
fn since_millis(worker: &Worker, flight: &LocalFlight) -> u64 {
    let leader = flight.leader();
    let fill = leader.and_then(|leader| worker.fills.progress_of(leader.stream));
    let begun = fill.map(|fill| fill.begun);
    let begun = begun.or_else(|| flight.waiters.oldest());
    let now = worker.host.monotonic_millis();
    now.saturating_sub(begun.unwrap_or_else(|| flight.progress()))
}
