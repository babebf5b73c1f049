// SPDX-License-Identifier: Apache-2.0
//! Checks that there is one fetch at a time for each key that can be stored, and explains exceptions.

use super::clock::Moment;
use super::fault::Fault;
use super::fetches::{Fetch, Overlap, Server};
use super::ledger::Wrong;
use super::object::Kind;
use super::peers::NOTICED;
use super::world::World;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a worker that stood still, or a full disk, affects the choice of the leader: the lease of a leader.
const LEASE: Duration = Duration::from_secs(2);
/// Lifetimes are whole seconds, and so is the edge's `Date`.
const ROUNDING: Duration = Duration::from_secs(2);
/// Longest time of a request from EDGE to the origin, on a busy machine.
const ON_THE_WAY: Duration = Duration::from_secs(1);
/// Time in which the v1 store writes the headers of a 304, and the object beside them.
const REWRITE: Duration = Duration::from_millis(300);
/// That time on a busy machine, with the time to write the object that was fetched because it was missed.
const SLOW_REWRITE: Duration = Duration::from_secs(1);
/// How long a large object of the second origin is not shared: the first two times of `cache.hit_for_miss`, which grow
/// from a second.
const PASSES: Duration = Duration::from_secs(3);
/// How far back a complaint lists earlier events.
const CONTEXT: Duration = Duration::from_secs(2);

/// All fetches of a run that ran beside others of their key.
pub struct Overlaps<'a> {
    world: &'a World,
    workers: usize,
    fetches: &'a [Fetch],
    /// Number of workers that have learned what an object varies by, by object and by the life of the edge.
    learnt: BTreeMap<(usize, usize), usize>,
    /// The highest number at one time, by reason.
    most: BTreeMap<&'static str, usize>,
}

impl<'a> Overlaps<'a> {
    /// Creates the overlaps of an edge with this many workers.
    #[must_use]
    pub fn new(world: &'a World, workers: usize, fetches: &'a [Fetch]) -> Self {
        Self {
            world,
            workers,
            fetches,
            learnt: BTreeMap::new(),
            most: BTreeMap::new(),
        }
    }

    /// Judges the overlaps.
    pub fn judge(mut self, overlaps: &[Overlap]) {
        for overlap in overlaps {
            let fetch = &self.fetches[overlap.fetch];
            if !self.world.shelf.objects[fetch.object].kind.is_shared() {
                continue;
            }
            let reason = self.reason(overlap);
            match reason {
                Some(reason) => self.world.ledger.count(reason),
                None => self.complain(overlap),
            }
            let most = self
                .most
                .entry(reason.unwrap_or("fetched twice without a reason"));
            let most = most.or_default();
            *most = overlap.running.len().max(*most);
        }
        for (reason, most) in &self.most {
            println!("{reason}: at most {} at one time", most + 1);
        }
    }

    /// The reason why a fetch ran beside others; `None` if there are more than a reason explains.
    fn reason(&mut self, overlap: &Overlap) -> Option<&'static str> {
        let (world, fetch) = (self.world, &self.fetches[overlap.fetch]);
        let running = overlap.running.iter().map(|&number| &self.fetches[number]);
        let earliest = running.map(|other| other.begun).min()?;
        let beside = overlap.running.len();
        let path = &world.shelf.objects[fetch.object].path;
        let still = earliest.saturating_sub(LEASE);
        if world.outages.touch(earliest, fetch.begun) {
            Some("fetched twice as an edge was killed")
        } else if self.has_two_owners(earliest, fetch.begun) {
            Some("fetched twice as the key had two owners")
        } else if self.is_unknown(fetch) && self.is_of_second(fetch) {
            Some("fetched twice as the second origin sent a large object")
        } else if world.deaths.touch(still, fetch.begun) {
            Some("fetched twice as the first origin died")
        } else if world.purges.between(path, self.asked(overlap), fetch.begun) >= beside {
            Some("fetched twice as purges came in between")
        } else if world
            .departures
            .between(fetch.object, earliest, fetch.begun)
            >= beside
        {
            Some("fetched twice as the leader has left")
        } else if self.passes(fetch) {
            Some("fetched twice as the object has changed")
        } else if self.is_unknown(fetch) && beside < self.workers {
            Some("fetched twice as a worker did not know that the object is large")
        } else if self.learns(overlap.fetch) {
            Some("fetched twice as a worker learnt by what it varies")
        } else if world.stalls.touch(still, fetch.begun) {
            Some("fetched twice as a worker stood still")
        } else if world.full.touch(still, fetch.begun) {
            Some("fetched twice as the disk was full")
        } else if self.follows_refusals(overlap) {
            Some("fetched twice as the leader was refused for its header fields")
        } else if self.is_refreshed(overlap) {
            Some("fetched twice as a refresh ran in the background")
        } else if self.has_just_expired(overlap) {
            Some("fetched twice as the response expired on the way to the store")
        } else if self.is_rewritten(overlap, earliest) {
            Some("fetched twice as the store wrote the headers of a 304")
        } else if self.is_of_second(fetch) {
            Some("fetched twice as the second origin answered")
        } else {
            None
        }
    }

    /// Whether an edge of several has just died or come back, so that the others may send requests to two edges, or
    /// lacks a line of the feed, so that another one answers for it.
    fn has_two_owners(&self, from: Moment, to: Moment) -> bool {
        let world = self.world;
        let has_peers = world.fleet.size() > 1;
        has_peers
            && (world.outages.touch(from.saturating_sub(NOTICED), to)
                || world.lacking.touch(from, to)
                || world.apart.touch(from.saturating_sub(LEASE), to))
    }

    /// The first moment of the clients' requests for which the overlapping fetches were made, or of these fetches. A
    /// request keeps the purge number that it has when it arrives at the edge, which may be some time before it
    /// arrives at the origin.
    fn asked(&self, overlap: &Overlap) -> Moment {
        let all = overlap.running.iter().chain([&overlap.fetch]);
        let moments = all.flat_map(|&number| {
            let leaders = self.world.ledger.leaders(number);
            let asked = leaders.into_iter().map(|leader| leader.asked);
            asked.chain([self.fetches[number].begun])
        });
        moments.min().unwrap_or(Moment::ZERO)
    }

    /// Whether the object is stored in slices and has just changed. Then each response that has not begun becomes the
    /// whole new version, which cannot be shared.
    fn passes(&self, fetch: &Fetch) -> bool {
        let object = &self.world.shelf.objects[fetch.object];
        let before = fetch.begun.saturating_sub(object.reach() + ROUNDING);
        let changed = object.version(before) != object.version(fetch.begun);
        object.is_sliced() && fetch.slice.is_none() && changed
    }

    /// Whether a worker did not know that the object is stored in slices. Then it passes the object as a whole, once,
    /// because it has not heard of the index that another worker has learned a moment ago.
    fn is_unknown(&self, fetch: &Fetch) -> bool {
        self.world.shelf.objects[fetch.object].is_sliced() && fetch.slice.is_none()
    }

    /// Whether the second origin has answered for the object lately. Its large objects are passed as a whole, and are
    /// not shared for a while.
    fn is_of_second(&self, fetch: &Fetch) -> bool {
        let since = fetch.begun.saturating_sub(PASSES);
        let is_of_second = |other: &Fetch| other.server == Server::Second;
        let fetches = &self.world.shelf.fetches;
        fetches.any(fetch.object, since, is_of_second)
    }

    /// Whether a worker learns from this fetch what an object varies by. Each worker learns that once, from a response
    /// that is not stored. So each worker may cause a fetch beside another worker's, and one more can arrive meanwhile.
    fn learns(&mut self, number: usize) -> bool {
        let fetch = &self.fetches[number];
        let object = &self.world.shelf.objects[fetch.object];
        let life = self.world.outages.within(Moment::ZERO, fetch.begun).len();
        let learnt = self.learnt.entry((fetch.object, life)).or_default();
        let learns = object.kind == Kind::Varying && *learnt < 2 * self.workers;
        *learnt += usize::from(learns);
        learns
    }

    /// Whether requests with padding were just refused, so that some of the waiting requests stop waiting.
    fn follows_refusals(&self, overlap: &Overlap) -> bool {
        let fetch = &self.fetches[overlap.fetch];
        let since = fetch.begun.saturating_sub(CONTEXT);
        let shelf = &self.world.shelf;
        let refused = |_: &Fetch, fault| fault == Fault::Refused;
        shelf.fetches.failed(fetch.object, since, refused)
    }

    /// Whether a refresh of a stale response is under way, which no client waits for, and the response must no longer
    /// be served.
    fn is_refreshed(&self, overlap: &Overlap) -> bool {
        let [other] = overlap.running[..] else {
            return false;
        };
        let object = &self.world.shelf.objects[self.fetches[other].object];
        let leaders = self.world.ledger.leaders(other);
        object.windows != (0, 0) && self.fetches[other].conditional && leaders.is_empty()
    }

    /// Whether the response has just expired: requests were released to the store while it was fresh, and arrived
    /// there when it was not. By then another request may lead.
    fn has_just_expired(&self, overlap: &Overlap) -> bool {
        let second = &self.fetches[overlap.fetch];
        let lifetime = Duration::from_secs(self.world.shelf.objects[second.object].lifetime);
        let of_key = |before: &&Fetch| before.key() == second.key() && before.body;
        let expires_before = |other: usize| {
            let first = &self.fetches[other];
            let stored = self.fetches[..other].iter().rev().find(of_key);
            let expired =
                stored.is_some_and(|stored| second.begun <= stored.ended.1 + lifetime + ROUNDING);
            expired && first.conditional && second.begun <= first.begun + ON_THE_WAY
        };
        second.conditional && overlap.running.iter().all(|&other| expires_before(other))
    }

    /// Whether the store is rewriting its entry. It misses the entry while it writes that the entry is still valid. A
    /// request that is sent to the origin then has no validator.
    fn is_rewritten(&self, overlap: &Overlap, earliest: Moment) -> bool {
        let fetch = &self.fetches[overlap.fetch];
        let running = overlap.running.iter().map(|&number| &self.fetches[number]);
        let missed = running.chain([fetch]).any(|fetch| !fetch.conditional);
        let rewrite = if missed { SLOW_REWRITE } else { REWRITE };
        let before = self.fetches[..overlap.fetch].iter().rev();
        let mut before = before.take_while(|before| before.begun + rewrite >= earliest);
        before.any(|before| before.key() == fetch.key() && before.unchanged)
    }

    fn complain(&self, overlap: &Overlap) {
        let fetch = &self.fetches[overlap.fetch];
        let since = fetch.begun.saturating_sub(CONTEXT);
        let before = self.fetches[..overlap.fetch].iter().rev();
        let before = before.take_while(|before| before.begun >= since);
        let before: Vec<_> = before
            .filter(|before| before.object == fetch.object)
            .take(8)
            .collect();
        let Overlap { running, .. } = overlap;
        let path = &self.world.shelf.objects[fetch.object].path;
        let all = running.iter().chain([&overlap.fetch]);
        let leaders: Vec<_> = all
            .map(|&number| self.world.ledger.leaders(number))
            .collect();
        let world = self.world;
        let purges = world.purges.within(path, since, fetch.begun);
        let departures = world.departures.within(fetch.object, since, fetch.begun);
        let [stalls, full] =
            [&world.stalls, &world.full].map(|spans| spans.within(since, fetch.begun));
        let what = format!(
            "fetched twice; {path} {} {fetch:?} beside {running:?}; for {leaders:?}; before {before:?}; \
             purges {purges:?}; departures {departures:?}; stalls {stalls:?}; full {full:?}",
            overlap.fetch
        );
        self.world
            .ledger
            .complain(Wrong::Fetches, fetch.begun, &what);
    }
}
