// SPDX-License-Identifier: Apache-2.0
//! Coalescing (collapsed forwarding) as one worker does it: events in, effects out.
//!
//! Each worker has one [`Coalescer`]. It alone owns the worker's flights, hints and waiting lists;
//! what workers must agree on is on the [`Board`]. An event may read and change the board, and says
//! what is to be done by [`Effect`]s, which the caller carries out after the call has returned. Every
//! parked request leaves by exactly one `Resume` or `Fail`, or by itself: by going away
//! ([`Coalescer::closed`]), or where the caller has an answer for it or another way
//! ([`Coalescer::answer_waiting`]).
//!
//! How a flight goes, by [`Phase`](crate::coalescing::flight::Phase) and [`FlightOutcome`](crate::workers::message::FlightOutcome):
//!
//! ```text
//! Fetching ─┬ the store had it already ───────────────────────────────────────► Found
//!           ├ it cannot be stored, perhaps for the request's own headers ─────► Own
//!           ├ the same, for the second leader in a row ───────────────────────► HitForMiss
//!           ├ the store has no room for it ─┬ it is too large to copy ────────► NoRoom
//!           │                               └ its copy has been shared ───────► NothingShared
//!           ├ the origin failed, and the store keeps what it has ─────────────► Kept
//!           ├ its key does not have all that it varies with, and it is not
//!           │ stored ─────────────────────────────────────────────────────────► Varies
//!           ├ the origin failed, perhaps for the request's own headers ───────► Own
//!           ├ the same, for the second leader in a row ───────────────────────► Failed
//!           ├ the request may be why the origin refused it ───────────────────► NothingShared
//!           ├ the client left ────────────────────────────────────────────────► NothingShared
//!           └ it goes into the store ─► Filling
//!
//! Filling ─┬ it ended ─► Storing ─┬ the store has it ─────────────────────────► Stored
//!          │                      ├ the same, and no request waited at the end ► Found
//!          │                      ├ the same, of what each use validates ─────► Validated
//!          │                      ├ no request came while its lease lasted ───► believed to be stored
//!          │                      ├ the store has lost it, or has no room ────► NothingShared
//!          │                      └ the store has not taken it ───────────────► NothingShared, HitForMiss
//!          ├ it broke ────────────────────────────────────────────────────────► Own, Failed
//!          └ the client left ─► Aborting ─┬ it ended all the same ─► Storing
//!                                         └ it broke, or max_wait passed ─────► NothingShared
//! ```
//!
//! After `NothingShared` and `Own` another request leads: of the same worker if one waits there, else of the first
//! worker that hears of it. Where the store has twice not taken a response to one worker, the outcome is
//! `HitForMiss` instead. A client that leaves in `Storing` changes nothing.
//!
//! Where leader after leader gets an error of its own, more and more requests stop waiting, so that those for a URL that
//! is refused to everybody do not go to the origin one by one.
//!
//! Where a response that is stored proves to be one of several of its URL, the flight goes on, and its followers leave
//! it for those of their own variants ([`Coalescer::part_variants`]).
//!
//! The store says some time after the end of a response that it can be read ([`StoreNews`]). It is asked to while
//! followers wait, on this worker or on another, which says so ([`Effect::Await`]). Without followers the fill rests: its
//! lease stays on the board, so that the next request on any worker is a follower. Where the lease is too short for that,
//! the store is asked a moment later.
//!
//! A store may lose a fill whose client leaves, and may take no other response to the same entry meanwhile. So a fill
//! whose client has gone is aborted in front of the next leader ([`Effect::Abort`]). A client whose answer may be 304 may
//! leave with it. Its request does not lead: the caller leads with a request of its own instead.

pub mod beside;
pub mod flight;
mod followers;
mod handover;
mod leaders;
pub mod learnt;
mod next_step;
mod own_responses;
mod refreshes;
mod requests;
mod resting;
pub mod shared;
mod storing;
mod timer;
mod waiting_list;

use std::rc::Rc;

use own_responses::OwnResponses;
use resting::RestingFills;
use waiting_list::{Waiter, WaitingPlace};

use crate::coalescing::flight::{FlightPolicy, LONGEST_TICK_MILLIS, Leader, LocalFlight, Role};
use crate::coalescing::learnt::hints::Hints;
use crate::coalescing::shared::board::{Board, FlightKey};
use crate::freshness::UncacheableReason;
use crate::host::SharedStore;
use crate::key::CanonicalTarget;
use crate::key::vary::VaryNames;
use crate::metrics::Metric;
use crate::workers::message::{Event, FlightMessage};
use crate::workers::shared_value::SharedError;
use crate::workers::{FlightId, KeyHash, Millis, NumberMap, OwnHeaders, StreamId, WorkerId};

pub use next_step::NextStep;
pub use refreshes::CLAIM_MILLIS;
pub use storing::{AwaitedFill, SMALL_BYTES, Store, StoreNews};

/// A request that would take part.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The request.
    pub stream: StreamId,
    /// Its key.
    pub key: FlightKey,
    /// What it asks for.
    pub target: &'a Rc<CanonicalTarget>,
    /// What it takes to the origin beside its key.
    pub own_headers: OwnHeaders,
    /// Whether its response can fill the store.
    pub may_lead: bool,
    /// Whether it is a fill in the background: it leads for others, or it ends.
    pub for_others: bool,
    /// The rules.
    pub policy: FlightPolicy,
}

/// What the caller has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Let a parked request go on.
    Resume {
        /// The request.
        stream: StreamId,
        /// How it goes on.
        next_step: NextStep,
        /// How long it waited.
        waited: Millis,
    },
    /// Answer a parked request with an error.
    Fail {
        /// The request.
        stream: StreamId,
        /// The status that the leader got.
        status: u16,
        /// How long it waited.
        waited: Millis,
    },
    /// Put a message into another worker's queue.
    Notify {
        /// The worker.
        worker: WorkerId,
        /// The message.
        message: FlightMessage,
    },
    /// Reset the fill that this request has caused, whose client has gone; answer with
    /// [`Coalescer::fill_broken`] when it is gone.
    Abort {
        /// The request.
        stream: StreamId,
    },
    /// A fill of the key was aborted, on this worker or on another: the store may still be busy with it.
    Aborted {
        /// The key.
        key: KeyHash,
    },
    /// Have the store say when a response that has ended can be read, by [`Coalescer::stored`].
    Await {
        /// The key.
        key: KeyHash,
        /// The response.
        fill: AwaitedFill,
    },
    /// The store need not say it any more.
    AwaitNoMore {
        /// The key.
        key: KeyHash,
    },
    /// The store is believed to have `target` since the newest soft purge, if there was one.
    Confirm {
        /// The key.
        key: KeyHash,
        /// The target that was fetched.
        target: Rc<CanonicalTarget>,
    },
    /// Remember that responses for the URL of `target` vary with `names`, before anyone of this turn goes on.
    Learn {
        /// A target of that URL.
        target: Rc<CanonicalTarget>,
        /// Names of request headers.
        names: VaryNames,
    },
    /// Add to a counter.
    Count(Metric, u32),
}

/// A response that is not stored, and says something about the next one for its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotStored {
    /// The key.
    pub key: KeyHash,
    /// What its request has taken to the origin beside that.
    pub own_headers: OwnHeaders,
    /// Why it is not stored.
    pub reason: UncacheableReason,
    /// For how long requests for the key do not wait for each other at most, where such responses follow each other.
    pub most: Millis,
}

/// The part that a request of this worker takes in the flight of a key.
#[derive(Clone, Copy, Debug)]
struct FlightPart {
    key: KeyHash,
    /// Its place among the requests that wait; `None` for the leader.
    place: Option<WaitingPlace>,
}

/// The coalescing of one worker.
#[derive(Debug)]
pub struct Coalescer {
    worker: WorkerId,
    sequence: u32,
    flights: NumberMap<KeyHash, LocalFlight>,
    resting: RestingFills,
    parts: NumberMap<StreamId, FlightPart>,
    hints: Hints,
    own_responses: OwnResponses,
    /// Flights that end before another key of their entry is led on this worker, with that key. Mostly empty.
    successors: Vec<(FlightId, KeyHash)>,
    /// The shortest timer period that a flight has needed at the last tick or since.
    period: Millis,
}

impl Coalescer {
    /// The coalescer of `worker`, remembering at most `hints` keys.
    pub fn new(worker: WorkerId, hints: usize) -> Self {
        Self {
            worker,
            sequence: 0,
            flights: NumberMap::default(),
            resting: RestingFills::default(),
            parts: NumberMap::default(),
            hints: Hints::new(hints),
            own_responses: OwnResponses::default(),
            successors: Vec::new(),
            period: LONGEST_TICK_MILLIS,
        }
    }

    /// The worker's number.
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// What is remembered of keys.
    pub fn hints(&mut self) -> &mut Hints {
        &mut self.hints
    }

    /// Requests that wait now.
    pub fn parked(&self) -> usize {
        let waiting = self.flights.values().map(|flight| flight.waiters.len());
        waiting.sum()
    }

    /// Keys in flight, as far as this worker takes part.
    pub fn flights(&self) -> usize {
        self.flights.len()
    }

    /// The request of this worker that leads for `key`.
    pub fn leader(&self, key: KeyHash) -> Option<Leader> {
        self.flights.get(&key)?.leader().copied()
    }

    /// This worker's part in the flight of `key`.
    pub fn role(&self, key: KeyHash) -> Option<Role> {
        self.flights.get(&key).map(|flight| flight.role)
    }

    /// Notes that a request waits no longer. How long it has waited, in milliseconds.
    fn dismiss(&mut self, waiter: Waiter, now: Millis) -> Millis {
        self.parts.remove(&waiter.stream);
        now.saturating_sub(waiter.since)
    }

    /// Forgets the flight of `key` on this worker, if nothing is left of it.
    fn forget_if_over(&mut self, key: KeyHash) {
        if self.flights.get(&key).is_some_and(LocalFlight::is_over) {
            self.flights.remove(&key);
        }
    }
}

/// One event's view of the world: the shared store, the time, and the effects so far.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The board's store.
    pub store: &'a dyn SharedStore,
    /// Monotonic time.
    pub now: Millis,
    /// What the event leads to.
    pub effects: &'a mut Vec<Effect>,
}

impl Turn<'_> {
    fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    fn count(&mut self, metric: Metric) {
        self.push(Effect::Count(metric, 1));
    }

    /// Waits for the leader of `key`, on another worker, or on this one for another key of the entry. It is told so, again
    /// too: it may not have heard of it, and then asks the store for nobody.
    fn follow(
        &mut self,
        key: KeyHash,
        flight: &mut LocalFlight,
        leader: FlightId,
        progress: Millis,
    ) {
        flight.role = Role::Following {
            leader,
            progress,
            checked: self.now,
        };
        self.tell_leader(key, leader);
    }

    /// Tells a leader that requests of this worker wait for it.
    fn tell_leader(&mut self, key: KeyHash, leader: FlightId) {
        let message = FlightMessage {
            key,
            flight: leader,
            event: Event::Awaited,
        };
        self.push(Effect::Notify {
            worker: leader.worker,
            message,
        });
    }

    /// Uses the board; a fault is counted and leaves the caller without an answer.
    fn board<R>(
        &mut self,
        operation: impl FnOnce(&mut Board<'_>) -> Result<R, SharedError>,
    ) -> Option<R> {
        let mut board = Board::new(self.store);
        let result = operation(&mut board);
        let conflicts = board.conflicts();
        if conflicts > 0 {
            self.push(Effect::Count(Metric::BoardConflicts, conflicts));
        }
        self.answer(result)
    }

    /// What shared data has answered; a fault is counted.
    fn answer<R>(&mut self, result: Result<R, SharedError>) -> Option<R> {
        match result {
            Ok(value) => Some(value),
            Err(SharedError::Contended) => {
                self.count(Metric::LimitsReached);
                None
            }
            Err(SharedError::Host(_)) => {
                self.count(Metric::HostErrors);
                None
            }
        }
    }
}
