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
//!           ├ ORIGIN: it cannot be stored, perhaps for the request's own
//!           │ headers ────────────────────────────────────────────────────────► Own
//!           ├ ORIGIN: the same, for the second leader in a row ───────────────► HitForMiss
//!           ├ EDGE: the store has no room for it ─┬ it is too large to copy ──► NoRoom
//!           │                                     └ its copy has been shared ─► NothingShared
//!           ├ ORIGIN: the origin failed, and the store keeps what it has ─────► Kept
//!           ├ ORIGIN: its key does not have all that it varies with, and it is
//!           │ not stored ─────────────────────────────────────────────────────► Varies
//!           ├ ORIGIN or EDGE: the origin failed, perhaps for the request's own
//!           │ headers ────────────────────────────────────────────────────────► Own
//!           ├ ORIGIN or EDGE: the same, for the second leader in a row ───────► Failed
//!           ├ ORIGIN or EDGE: the request may be why the origin refused it ───► NothingShared
//!           ├ the client left ────────────────────────────────────────────────► NothingShared
//!           └ ORIGIN: it goes into the store ─► Filling
//!
//! Filling ─┬ it ended ─► Committing ─┬ a probe found it ──────────────────────► Stored
//!          │                         ├ the same, and nobody waited at the end ─► Found
//!          │                         ├ the same, of what each use validates ───► Validated
//!          │                         ├ nobody came while its lease lasted ─────► believed to be stored
//!          │                         └ none did for half of max_wait, or there
//!          │                           is no room ────────────────────────────► NothingShared
//!          ├ it broke ────────────────────────────────────────────────────────► Own, Failed
//!          └ the client left ─► Aborting ─┬ it ended all the same ─► Committing
//!                                         └ it broke, or max_wait passed ─────► NothingShared
//! ```
//!
//! After `NothingShared` and `Own` another request leads: of the same worker if one waits there, else of the first
//! worker that hears of it. Where the store has twice not taken a response to one worker, the outcome is
//! `HitForMiss` instead. A client that leaves in `Committing` changes nothing.
//!
//! Where leader after leader gets an error of its own, more and more requests stop waiting, so that those for a URL that
//! is refused to everybody do not go to the origin one by one.
//!
//! Where a response that is stored proves to be one of several of its URL, the flight goes on, and its followers leave
//! it for those of their own variants ([`Coalescer::part_variants`]).
//!
//! Envoy's cache makes an entry readable some time after the response has ended. While followers wait, on this worker or
//! on another, which says so, probes ask the store whether it has the response: at once, and again. Without followers no
//! probe is sent: the fill is unconfirmed. Its lease stays on the board, so that the next request on any worker is a
//! follower. Where the lease is too short for that, a probe is sent a moment later, when the store has the response as a
//! rule: a probe that finds nothing goes all the way to ORIGIN and costs as much as a fill.
//!
//! Envoy's cache crashes when the client of a fill leaves, and takes no other response to the same entry while the fill
//! lasts. So a fill whose client has gone is aborted before the next leader begins ([`Effect::Abort`]). A client whose
//! answer may be 304 may leave with it. Its request does not lead: the caller leads with a request of its own instead.

pub mod ahead;
pub mod board;
pub mod claims;
pub mod flight;
mod followers;
mod handover;
pub mod hints;
mod leaders;
mod next_step;
mod own_responses;
mod refreshes;
mod requests;
mod timer;
mod unconfirmed;
pub mod unread;
pub mod varying;

use std::rc::Rc;

use own_responses::{Doubts, Heirless};
use unconfirmed::Unconfirmed;

use crate::coalescing::board::{Board, FlightKey};
use crate::coalescing::flight::{
    Commit, FlightPolicy, LONGEST_TICK_MILLIS, Leader, LocalFlight, Role,
};
use crate::coalescing::hints::Hints;
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
    /// Ask the store whether it has `target`; answer with [`Coalescer::probed`].
    Probe {
        /// The key.
        key: KeyHash,
        /// What to ask for.
        target: Rc<CanonicalTarget>,
    },
    /// The store is believed to have `target` since the newest soft purge, if there was one.
    Confirm {
        /// The key.
        key: KeyHash,
        /// What was fetched.
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

/// What a probe of the store has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probed {
    /// The response of the flight, or a newer one.
    Readable {
        /// Until when it is fresh.
        until: Millis,
        /// Whether a call can bring it.
        small: bool,
    },
    /// The response of the flight, which is validated at each use.
    Validated,
    /// A response from before a soft purge. Envoy's cache takes one fill of a key at a time, and drops others: where a fill
    /// from before the purge was under way, it may have dropped that of the flight.
    Outdated,
    /// Nothing, and the store has no room now.
    NoRoom,
    /// Nothing.
    Missing,
}

/// The coalescing of one worker.
#[derive(Debug)]
pub struct Coalescer {
    worker: WorkerId,
    sequence: u32,
    flights: NumberMap<KeyHash, LocalFlight>,
    unconfirmed: Unconfirmed,
    streams: NumberMap<StreamId, KeyHash>,
    hints: Hints,
    /// Keys whose last request the origin has failed.
    failures: Doubts,
    /// Keys whose last response was not stored.
    unstored: Doubts,
    /// Keys whose last fill was aborted.
    aborts: Doubts,
    /// Keys whose followers go on without an heir.
    heirless: Heirless,
    /// Flights that end before another key of their entry is led on this worker, with that key. Mostly empty.
    successors: Vec<(FlightId, KeyHash)>,
    parked: usize,
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
            unconfirmed: Unconfirmed::default(),
            streams: NumberMap::default(),
            hints: Hints::new(hints),
            failures: Doubts::default(),
            unstored: Doubts::default(),
            aborts: Doubts::default(),
            heirless: Heirless::default(),
            successors: Vec::new(),
            parked: 0,
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
        self.parked
    }

    /// Keys in flight, as far as this worker takes part.
    pub fn flights(&self) -> usize {
        self.flights.len()
    }

    /// The request of this worker that leads for `key`.
    pub fn leader(&self, key: KeyHash) -> Option<Leader> {
        match self.role(key)? {
            Role::Leading(leader) => Some(leader),
            Role::Following { .. } => None,
        }
    }

    /// What this worker has to do with `key`.
    pub fn role(&self, key: KeyHash) -> Option<Role> {
        self.flights.get(&key).map(|flight| flight.role)
    }

    /// Places on waiting lists, those of requests that have gone away included.
    pub fn remembered_waiters(&self) -> usize {
        self.flights
            .values()
            .map(|flight| flight.waiters.len())
            .sum()
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

    fn probe(&mut self, key: KeyHash, commit: &mut Commit, target: Rc<CanonicalTarget>) {
        commit.next_probe = None;
        commit.probes += 1;
        self.count(Metric::StoreProbes);
        self.push(Effect::Probe { key, target });
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
