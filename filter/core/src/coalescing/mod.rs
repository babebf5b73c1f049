// SPDX-License-Identifier: Apache-2.0
//! Coalescing (collapsed forwarding) on one worker: events in, effects out.
//!
//! Each worker has one [`Coalescer`]. It alone owns the worker's flights, hints and waiting lists. State on which
//! workers must agree is on the [`Board`]. An event may read and change the board. It returns the work to do as
//! [`Effect`]s, which the caller carries out after the call has returned. Each parked request leaves by exactly one
//! `Resume` or `Fail`, with two exceptions: its client disconnects ([`Coalescer::closed`]), or the caller has another
//! answer for it ([`Coalescer::answer_waiting`]).
//!
//! Course of a flight, by [`Phase`](crate::coalescing::flight::Phase) and
//! [`FlightOutcome`](crate::workers::message::FlightOutcome):
//!
//! ```text
//! Fetching ─┬ the store had it already ───────────────────────────────────────► Found
//!           ├ it cannot be stored, perhaps due to the request's own headers ──► Own
//!           ├ the same, for the second leader in a row ───────────────────────► HitForMiss
//!           ├ it is served in slices ─────────────────────────────────────────► Sliced
//!           ├ the store has no room for it ─┬ it is too large to copy ────────► NoRoom
//!           │                               └ its copy has been shared ───────► NothingShared
//!           ├ the origin failed, and the store keeps what it has ─────────────► Kept
//!           ├ its key lacks a header that it varies with, and it is not
//!           │ stored ─────────────────────────────────────────────────────────► Varies
//!           ├ the origin failed, perhaps due to the request's own headers ────► Own
//!           ├ the same, for the second leader in a row ───────────────────────► Failed
//!           ├ the origin refused it, perhaps due to the request itself ───────► NothingShared
//!           ├ the client left ────────────────────────────────────────────────► NothingShared
//!           └ it goes into the store ─► Filling
//!
//! Filling ─┬ it ended ─► Storing ─┬ the store has it ─────────────────────────► Stored
//!          │                      ├ the same, and no request waited at the end ► Found
//!          │                      ├ the same, and each use validates it ──────► Validated
//!          │                      ├ no request came while its lease lasted ───► believed to be stored
//!          │                      ├ the store has lost it, or has no room ────► NothingShared
//!          │                      └ the store has not taken it ───────────────► NothingShared, HitForMiss
//!          ├ it broke ────────────────────────────────────────────────────────► Own, Failed
//!          └ the client left ─► Aborting ─┬ it ended nevertheless ─► Storing
//!                                         └ it broke, or max_wait passed ─────► NothingShared
//! ```
//!
//! After `NothingShared` and `Own` another request becomes the leader: one of the same worker if one waits there,
//! else one of the first worker that receives the message. If the store has not taken a response to one worker twice,
//! the outcome is `HitForMiss` instead. A client that disconnects in `Storing` changes nothing.
//!
//! If one leader after the other gets an error that is only for its client, more and more requests stop waiting.
//! Otherwise the requests for a URL that is refused to all clients would be sent to the origin one by one.
//!
//! If a stored response proves to be one of several of its URL, the flight goes on, and its followers join the
//! flights of their variants ([`Coalescer::part_variants`]).
//!
//! The store reports some time after the end of a response that it can be read ([`StoreNews`]). It is asked for that
//! while followers wait, on this worker or on another that has sent a message ([`Effect::Await`]). Without followers
//! the fill rests: its lease stays on the board, so that the next request on any worker is a follower. If the lease
//! is too short for that, the store is asked a moment later.
//!
//! A store may lose a fill whose client disconnects, and may not accept another response to the same entry meanwhile.
//! So a fill whose client is gone is aborted before the next leader starts ([`Effect::Abort`]). A client that may get
//! a 304 may disconnect after it. Its request is not made a leader: the caller starts another request as the
//! leader.

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

pub use next_step::{NextStep, StoreRequest};
pub use refreshes::CLAIM_MILLIS;
pub use storing::{AwaitedFill, SMALL_BYTES, Store, StoreNews};

/// A request that may take part in a flight.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The request.
    pub stream: StreamId,
    /// Its key.
    pub key: FlightKey,
    /// The target that it requests.
    pub target: &'a Rc<CanonicalTarget>,
    /// The headers that it sends to the origin beside those of its key.
    pub own_headers: OwnHeaders,
    /// Whether its response can fill the store.
    pub may_lead: bool,
    /// Whether it is a background fill, which is the leader for others or ends.
    pub for_others: bool,
    /// The settings of its policy.
    pub policy: FlightPolicy,
}

/// Work for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Resume a parked request.
    Resume {
        /// The request.
        stream: StreamId,
        /// The way in which it continues.
        next_step: NextStep,
        /// How long it waited.
        waited: Millis,
    },
    /// Answer a parked request with an error.
    Fail {
        /// The request.
        stream: StreamId,
        /// The status that the leader received.
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
    /// Reset the fill of this request, whose client has disconnected. The caller confirms the end of the fill by
    /// [`Coalescer::fill_broken`].
    Abort {
        /// The request.
        stream: StreamId,
    },
    /// Note that a fill of the key was aborted, on this worker or on another. The store may still be busy with it.
    Aborted {
        /// The key.
        key: KeyHash,
    },
    /// Have the store report by [`Coalescer::stored`] when a finished response can be read.
    Await {
        /// The key.
        key: KeyHash,
        /// The response.
        fill: AwaitedFill,
    },
    /// Cancel the request for that report.
    AwaitNoMore {
        /// The key.
        key: KeyHash,
    },
    /// Note that the store is believed to have `target` since the newest soft purge, if there was one.
    Confirm {
        /// The key.
        key: KeyHash,
        /// The target that was fetched.
        target: Rc<CanonicalTarget>,
    },
    /// Remember that responses for the URL of `target` vary with `names`. Do so before a request of this turn is
    /// resumed.
    Learn {
        /// A target of that URL.
        target: Rc<CanonicalTarget>,
        /// Names of request headers.
        names: VaryNames,
    },
    /// Add to a counter.
    Count(Metric, u32),
}

/// A response that is not stored, and allows a conclusion about the next response for its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotStored {
    /// The key.
    pub key: KeyHash,
    /// The headers that its request sent to the origin beside those of the key.
    pub own_headers: OwnHeaders,
    /// The reason why it is not stored.
    pub reason: UncacheableReason,
    /// Longest time for which the key becomes hit-for-miss, if such responses follow each other.
    pub most: Millis,
}

/// The part of one of this worker's requests in the flight of a key.
#[derive(Clone, Copy, Debug)]
struct FlightPart {
    key: KeyHash,
    /// Its place in the waiting list; `None` for the leader.
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
    /// Flights that must end before another key of their entry gets a leader on this worker, with that key. Mostly
    /// empty.
    successors: Vec<(FlightId, KeyHash)>,
    /// The shortest timer period that a flight has needed at the last tick or since.
    period: Millis,
}

impl Coalescer {
    /// The coalescer of `worker`, with at most `hints` hints.
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

    /// The hints about keys.
    pub fn hints(&mut self) -> &mut Hints {
        &mut self.hints
    }

    /// The hints about keys, to be read only.
    pub fn known_hints(&self) -> &Hints {
        &self.hints
    }

    /// Number of requests that wait now.
    pub fn parked(&self) -> usize {
        let waiting = self.flights.values().map(|flight| flight.waiters.len());
        waiting.sum()
    }

    /// Number of flights in which this worker takes part.
    pub fn flights(&self) -> usize {
        self.flights.len()
    }

    /// The flights in which this worker takes part.
    pub fn all(&self) -> impl Iterator<Item = &LocalFlight> {
        self.flights.values()
    }

    /// The flight of `key`, if this worker takes part in it.
    pub fn flight(&self, key: KeyHash) -> Option<&LocalFlight> {
        self.flights.get(&key)
    }

    /// The leader for `key`, if it is a request of this worker.
    pub fn leader(&self, key: KeyHash) -> Option<Leader> {
        self.flights.get(&key)?.leader().copied()
    }

    /// This worker's part in the flight of `key`.
    pub fn role(&self, key: KeyHash) -> Option<Role> {
        self.flights.get(&key).map(|flight| flight.role)
    }

    /// Removes a request that no longer waits. Returns its waiting time in milliseconds.
    fn dismiss(&mut self, waiter: Waiter, now: Millis) -> Millis {
        self.parts.remove(&waiter.stream);
        now.saturating_sub(waiter.since)
    }

    /// Removes the flight of `key` from this worker, if this worker has no part in it any more.
    fn forget_if_over(&mut self, key: KeyHash) {
        if self.flights.get(&key).is_some_and(LocalFlight::is_over) {
            self.flights.remove(&key);
        }
    }
}

/// The context of one event: the shared store, the time, and the effects so far.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The board's store.
    pub store: &'a dyn SharedStore,
    /// Monotonic time.
    pub now: Millis,
    /// Effects of the event.
    pub effects: &'a mut Vec<Effect>,
}

impl Turn<'_> {
    fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    fn count(&mut self, metric: Metric) {
        self.push(Effect::Count(metric, 1));
    }

    /// Makes this worker a follower of `leader`, which is on another worker, or on this one for another key of the
    /// entry. Sends the leader a message each time, because an earlier one may have been lost. Without the message a
    /// leader does not ask the store on behalf of followers.
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

    /// Sends a leader the message that requests of this worker wait for it.
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

    /// Uses the board. Counts an error, and returns `None` for it.
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

    /// Returns the answer of shared data. Counts an error, and returns `None` for it.
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
