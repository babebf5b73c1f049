// SPDX-License-Identifier: Apache-2.0
//! One fetch at a time for each key that can be stored, and why there were more.

use super::fetches::{Ending, Fetch, Overlap};
use super::ledger::Wrong;
use super::world::World;
use std::time::Duration;

/// Judges all fetches that ran beside others of their key.
pub fn judge(world: &World, fetches: &[Fetch], overlaps: &[Overlap]) {
    let mut most = 1;
    for overlap in overlaps {
        let fetch = &fetches[overlap.fetch];
        let object = &world.shelf.objects[fetch.object];
        if !object.kind.is_shared() {
            continue;
        }
        most = most.max(overlap.running.len() + 1);
        match reason(world, fetches, overlap) {
            Some(reason) => world.ledger.count(reason),
            None => {
                let beside = overlap.running.iter().map(|&number| &fetches[number]);
                let beside: Vec<_> = beside.map(|other| format!("{other:?}")).collect();
                let from = fetch.begun.saturating_sub(Duration::from_secs(2));
                let before = fetches[..overlap.fetch]
                    .iter()
                    .rev()
                    .take_while(|before| before.begun >= from);
                let before: Vec<_> = before
                    .filter(|before| before.object == fetch.object)
                    .collect();
                let what = format!(
                    "{} {} {fetch:?} beside {}; before {before:?}",
                    overlap.fetch,
                    object.path,
                    beside.join(", ")
                );
                world.ledger.complain(Wrong::Fetches, fetch.begun, &what);
            }
        }
    }
    world
        .ledger
        .add("most fetches of a key at one time", most as u64);
}

/// How long a stall has an effect on who leads.
const LEASE: Duration = Duration::from_secs(2);
/// How long the v1 store takes to write the headers of a 304 with the object beside them.
const REWRITE: Duration = Duration::from_millis(300);

fn reason(world: &World, fetches: &[Fetch], overlap: &Overlap) -> Option<&'static str> {
    let fetch = &fetches[overlap.fetch];
    let running = overlap.running.iter().map(|&number| &fetches[number]);
    let earliest = running.clone().map(|other| other.begun).min()?;
    let path = &world.shelf.objects[fetch.object].path;
    if world.outages.touch(earliest, fetch.begun) {
        return Some("fetched twice as the edge was killed");
    }
    if world.purges.touch(path, earliest, fetch.begun) {
        return Some("fetched twice as a purge came in between");
    }
    if world
        .stalls
        .touch(earliest.saturating_sub(LEASE), fetch.begun)
    {
        return Some("fetched twice as a worker stood still");
    }
    let leaving = |other: &Fetch| {
        let (ending, at) = other.ended;
        ending == Ending::Left && at < fetch.begun + Duration::from_millis(500)
    };
    if running.clone().all(leaving) {
        return Some("fetched twice as the leader has left");
    }
    let before = fetches[..overlap.fetch].iter().rev();
    let before = before.take_while(|before| before.begun + REWRITE >= earliest);
    let mut same =
        before.filter(|before| before.object == fetch.object && before.variant == fetch.variant);
    same.any(|before| before.conditional && before.unchanged)
        .then_some("fetched twice as the store wrote the headers of a 304")
}
