// SPDX-License-Identifier: Apache-2.0
//! The flights that a worker leads or follows.

use serde_json::{Value, json};
use sluice_core::coalescing::flight::LocalFlight;
use sluice_core::inspection::Answer;
use sluice_core::key::site_of;

use crate::worker::coalescing::Coalescing;
use crate::worker::fills::{Fills, OriginProgress};
use crate::worker::policies::Policies;
use sluice_core::workers::Millis;

/// All flights of this worker, those with most waiting requests first.
pub fn answer(policies: &Policies, coalescing: &Coalescing, fills: &Fills) -> Answer {
    let mut flights: Vec<_> = coalescing.coalescer.all().collect();
    flights.sort_by_key(|flight| {
        let key = flight.target.cache_key();
        (std::cmp::Reverse(flight.waiters.len()), key)
    });
    Answer::list(
        "flights",
        flights
            .into_iter()
            .map(|flight| fact(policies, coalescing, fills, flight)),
    )
}

/// The facts of one flight. The query of its URL is left out, because it may contain secrets.
pub fn fact(
    policies: &Policies,
    coalescing: &Coalescing,
    fills: &Fills,
    flight: &LocalFlight,
) -> Value {
    let target = &flight.target;
    let path = target.origin_path();
    let (path, query) = path
        .split_once('?')
        .map_or((path, false), |(path, _)| (path, true));
    let policy = policies.of_key(target.cache_key());
    let key = policy.map_or(path, |policy| policy.policy.client_path(path));
    let leader = flight.leader();
    let request = leader.and_then(|leader| coalescing.requests.get(leader.stream));
    // Only the leader's worker knows the progress of the fill.
    let fill = leader.and_then(|leader| fills.progress_of(leader.stream));
    json!({
        "site": site_of(target.cache_key()),
        "key": key,
        "query": query,
        "since_ms": since_millis(coalescing.now(), flight, fill.as_ref()),
        "bytes": fill.map(|fill| fill.bytes),
        "length": fill.and_then(|fill| fill.length),
        "status": fill.and_then(|fill| fill.status),
        "waiting": flight.waiters.len(),
        "leader": if leader.is_some() { "here" } else { "other worker" },
        "client": request.is_some_and(|request| !request.for_others),
    })
}

/// Time since the request to the origin began; for a worker that follows, the longest time that one of its requests
/// has waited.
fn since_millis(now: Millis, flight: &LocalFlight, fill: Option<&OriginProgress>) -> u64 {
    let begun = fill.map(|fill| fill.begun);
    let begun = begun.or_else(|| flight.waiters.oldest());
    now.saturating_sub(begun.unwrap_or_else(|| flight.progress()))
}
