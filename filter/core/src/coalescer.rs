// SPDX-License-Identifier: Apache-2.0
//! Coalescing (collapsed forwarding) as one worker does it: events in, effects out.
//!
//! Each worker has one [`Coalescer`]. It alone owns the worker's flights, hints and waiting lists;
//! what workers must agree on is on the [`Board`]. An event may read and change the board, and says
//! what is to be done by [`Effect`]s, which the caller carries out after the call has returned. Every
//! parked request leaves by exactly one `Resume` or `Fail`, or by going away itself
//! ([`Coalescer::closed`]).
//!
//! How a flight goes:
//!
//! ```text
//!             ┌ response was in the store already ──────────────────────► Stored
//!             ├ response is being stored (v1) ─► Filling ─► Committing ──► Stored
//! Fetching ───┼ response can be joined (v2) ───► Streaming ──────────────► Stored
//!             ├ response cannot be stored ───────────────────────────────► HitForMiss
//!             ├ the origin failed ───────────────────────────────────────► Failed
//!             └ the client left, or the store did not take it ───────────► LeaderLost: another leads
//! ```
//!
//! On v2 the leader's own worker joins the running fill from its headers on; other workers are told
//! when it has ended. Were the origin to cut the response short, Envoy's v2 store would reset those who
//! joined from another worker's thread on the wrong one, and they would hang or crash the process.

use std::collections::HashMap;
use std::rc::Rc;

use crate::board::{Acquired, Board, BoardError, FlightId, KeyHash, Millis, WorkerId};
use crate::flight::{
    Commit, FlightPolicy, Leader, LocalFlight, Phase, Role, Rush, StreamId, Waiter,
};
use crate::hints::{Hint, Hints};
use crate::host::SharedStore;
use crate::key::CanonicalTarget;
use crate::message::{Message, Outcome};
use crate::metrics::Metric;
use crate::policy::StoreVersion;

/// What those who wait for a response are told that broke off.
const BAD_GATEWAY: u16 = 502;
/// Time between the batches that leave a stalled leader.
const RUSH_MILLIS: Millis = 100;
/// Probes of the v1 store that follow each other at once.
const EAGER_PROBES: u32 = 4;
/// Time between further probes.
const PROBE_MILLIS: Millis = 10;
/// Requests that have gone away and keep their place on a waiting list, beside one for each that waits.
const GONE_WAITERS: usize = 32;
/// Timer period while requests wait or lead.
const TICK_MILLIS: Millis = 50;

/// A request that would take part.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The request.
    pub stream: StreamId,
    /// Its key.
    pub key: KeyHash,
    /// What it asks for.
    pub target: &'a Rc<CanonicalTarget>,
    /// Whether its response can fill the store (a HEAD cannot on v1).
    pub may_lead: bool,
    /// The rules.
    pub policy: FlightPolicy,
}

/// What a request does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Go to the store, which has a fresh response.
    Fresh,
    /// Go to the store and fetch on behalf of all who wait.
    Lead,
    /// Wait.
    Park,
    /// Go around the store: the key is known to be uncacheable.
    HitForMiss,
    /// Go to the store without waiting for or leading anyone: a bound was reached, the board is out
    /// of use, or the request cannot fill the store.
    Alone,
}

/// How a parked request goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// To the store, where the response of another request is.
    Collapsed,
    /// To the store, as the new leader.
    Lead,
    /// Around the store: its key proved uncacheable.
    HitForMiss,
    /// Around the store: it waited too long.
    WaitTimeout,
    /// To the store, without waiting any longer.
    Alone,
}

/// What the caller has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Let a parked request go on.
    Resume {
        /// The request.
        stream: StreamId,
        /// How it goes on.
        release: Release,
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
        message: Message,
    },
    /// Reset the fill that this request has caused, whose client has gone; answer with
    /// [`Coalescer::fill_broken`] when it is gone.
    Abort {
        /// The request.
        stream: StreamId,
    },
    /// Ask the v1 store whether it has `target`; answer with [`Coalescer::probed`].
    Probe {
        /// The key.
        key: KeyHash,
        /// What to ask for.
        target: Rc<CanonicalTarget>,
    },
    /// Add to a counter.
    Count(Metric, u32),
}

/// What ORIGIN makes of the response headers of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillVerdict {
    /// It goes into the store.
    Store,
    /// It does not; nobody should wait for this key until then.
    HitForMiss {
        /// The end of that time.
        until: Millis,
    },
    /// The origin is in trouble.
    Failed {
        /// Its status.
        status: u16,
    },
}

/// What EDGE sees of the response headers of a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderResponse {
    /// The store had it: nobody who asks it can miss any more.
    Readable {
        /// Until when it is fresh.
        until: Millis,
    },
    /// It is being stored, and the requests of this worker can join (v2).
    Joinable {
        /// Until when it will be fresh.
        until: Millis,
    },
    /// It is being stored and cannot be read yet (v1).
    Filling {
        /// Until when it will be fresh.
        until: Millis,
    },
    /// It should have been stored but was not.
    Unshared,
    /// The origin cannot be reached or did not answer in time.
    Failed {
        /// The status that the client gets.
        status: u16,
    },
}

/// The coalescing of one worker.
#[derive(Debug)]
pub struct Coalescer {
    worker: WorkerId,
    sequence: u32,
    flights: HashMap<KeyHash, LocalFlight>,
    streams: HashMap<StreamId, KeyHash>,
    hints: Hints,
    parked: usize,
}

impl Coalescer {
    /// The coalescer of `worker`, remembering at most `hints` keys.
    pub fn new(worker: WorkerId, hints: usize) -> Self {
        Self {
            worker,
            sequence: 0,
            flights: HashMap::new(),
            streams: HashMap::new(),
            hints: Hints::new(hints),
            parked: 0,
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

    /// What this worker has to do with `key`.
    #[cfg(feature = "testing")]
    pub fn role(&self, key: KeyHash) -> Option<Role> {
        self.flights.get(&key).map(|flight| flight.role)
    }

    /// Places on waiting lists, those of requests that have gone away included.
    #[cfg(feature = "testing")]
    pub fn remembered_waiters(&self) -> usize {
        self.flights.values().map(|flight| flight.waiters.len()).sum()
    }

    /// When the next [`Coalescer::tick`] is wanted; `None` while nothing waits and nothing leads.
    pub fn tick_period(&self) -> Option<Millis> {
        let committing = |flight: &LocalFlight| {
            matches!(flight.role, Role::Leading(Leader { phase: Phase::Committing(_), .. }))
        };
        if self.flights.is_empty() {
            None
        } else if self.flights.values().any(committing) {
            Some(PROBE_MILLIS)
        } else {
            Some(TICK_MILLIS)
        }
    }
}

/// One event's view of the world: the shared store, the time, and the effects so far.
#[derive(Debug)]
pub struct Turn<'a, S: SharedStore + ?Sized> {
    /// The board's store.
    pub store: &'a mut S,
    /// Monotonic time.
    pub now: Millis,
    /// What the event leads to.
    pub effects: &'a mut Vec<Effect>,
}

impl<S: SharedStore + ?Sized> Turn<'_, S> {
    fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    fn count(&mut self, metric: Metric) {
        self.push(Effect::Count(metric, 1));
    }

    /// Uses the board; a fault is counted and leaves the caller without an answer.
    fn board<R>(
        &mut self,
        operation: impl FnOnce(&mut Board<'_, S>) -> Result<R, BoardError>,
    ) -> Option<R> {
        let mut board = Board::new(self.store);
        let result = operation(&mut board);
        let conflicts = board.conflicts;
        if conflicts > 0 {
            self.push(Effect::Count(Metric::BoardConflicts, conflicts));
        }
        match result {
            Ok(value) => Some(value),
            Err(BoardError::Contended) => {
                self.count(Metric::LimitsReached);
                None
            }
            Err(BoardError::Host(_)) => {
                self.count(Metric::HostErrors);
                None
            }
        }
    }
}

/// Requests.
impl Coalescer {
    /// A request has come.
    pub fn request<S: SharedStore + ?Sized>(
        &mut self,
        request: &Request<'_>,
        turn: &mut Turn<'_, S>,
    ) -> Admission {
        match self.hints.get(request.key, turn.now) {
            Some(Hint::Fresh) => return Admission::Fresh,
            Some(Hint::HitForMiss) => return Admission::HitForMiss,
            None => {}
        }
        if self.flights.contains_key(&request.key) {
            return self.park(request, turn);
        }
        if self.flights.len() >= request.policy.keys_in_flight {
            turn.count(Metric::LimitsReached);
            return Admission::Alone;
        }
        let acquired = if request.may_lead {
            self.acquire(request, turn)
        } else {
            let (worker, now) = (self.worker, turn.now);
            turn.board(|board| board.follow(request.key, worker, now)).flatten()
        };
        match acquired {
            Some(Acquired::Lead) => {
                self.lead(request, turn);
                Admission::Lead
            }
            Some(Acquired::Follow { progress, .. }) => {
                let role = Role::Following { progress, checked: turn.now };
                self.insert_flight(request, role);
                self.park(request, turn)
            }
            Some(Acquired::Full) => {
                turn.count(Metric::LimitsReached);
                Admission::Alone
            }
            None => Admission::Alone,
        }
    }

    /// A request for a key believed fresh has reached the origin: the hint was wrong, and whoever
    /// comes now should wait for this one.
    pub fn unexpected_miss<S: SharedStore + ?Sized>(
        &mut self,
        request: &Request<'_>,
        turn: &mut Turn<'_, S>,
    ) {
        turn.count(Metric::UnexpectedMisses);
        self.hints.forget(request.key);
        let room = self.flights.len() < request.policy.keys_in_flight;
        if !request.may_lead || !room || self.flights.contains_key(&request.key) {
            return;
        }
        if let Some(Acquired::Lead) = self.acquire(request, turn) {
            self.lead(request, turn);
        }
    }

    fn acquire<S: SharedStore + ?Sized>(
        &mut self,
        request: &Request<'_>,
        turn: &mut Turn<'_, S>,
    ) -> Option<Acquired> {
        let (id, now) = (self.next_flight(), turn.now);
        turn.board(|board| board.acquire(request.key, id, now, request.policy.lease))
    }

    fn next_flight(&mut self) -> FlightId {
        self.sequence = self.sequence.wrapping_add(1);
        self.current_flight()
    }

    fn current_flight(&self) -> FlightId {
        FlightId { worker: self.worker, sequence: self.sequence }
    }

    fn lead<S: SharedStore + ?Sized>(&mut self, request: &Request<'_>, turn: &mut Turn<'_, S>) {
        turn.count(Metric::FlightsLed);
        let leader = Leader {
            id: self.current_flight(),
            stream: request.stream,
            phase: Phase::Fetching,
            ended: false,
            progress: turn.now,
            renewed: turn.now,
        };
        self.insert_flight(request, Role::Leading(leader));
        self.streams.insert(request.stream, request.key);
    }

    fn insert_flight(&mut self, request: &Request<'_>, role: Role) {
        let flight = LocalFlight::new(Rc::clone(request.target), request.policy, role);
        self.flights.insert(request.key, flight);
    }

    fn park<S: SharedStore + ?Sized>(
        &mut self,
        request: &Request<'_>,
        turn: &mut Turn<'_, S>,
    ) -> Admission {
        let Some(flight) = self.flights.get_mut(&request.key) else { return Admission::Alone };
        if flight.waiting >= request.policy.waiters_per_key {
            turn.count(Metric::LimitsReached);
            return Admission::Alone;
        }
        flight.waiters.push_back(Waiter {
            stream: request.stream,
            since: turn.now,
            may_lead: request.may_lead,
        });
        flight.waiting += 1;
        self.parked += 1;
        self.streams.insert(request.stream, request.key);
        turn.count(Metric::FollowersParked);
        Admission::Park
    }

    /// The client of `stream` has gone, or its response has been sent.
    pub fn closed<S: SharedStore + ?Sized>(&mut self, stream: StreamId, turn: &mut Turn<'_, S>) {
        let Some((&stream, &key)) = self.streams.get_key_value(&stream) else { return };
        let Some(flight) = self.flights.get_mut(&key) else { return };
        if let Some(leader) = flight.leader()
            && leader.stream == stream
        {
            match leader.phase {
                // The store goes on by itself, and ORIGIN tells of the end in this stream's name.
                Phase::Committing(_) | Phase::Streaming { .. } | Phase::Aborting => {}
                // Only when the store has let go of the key can it take it from the next leader.
                Phase::Filling => {
                    leader.phase = Phase::Aborting;
                    turn.push(Effect::Abort { stream });
                }
                Phase::Fetching => self.finish(key, Outcome::LeaderLost, turn),
            }
            return;
        }
        self.streams.remove(&stream);
        flight.waiting -= 1;
        self.parked -= 1;
        if flight.waiting == 0 {
            flight.waiters.clear();
            if !flight.leads() {
                self.flights.remove(&key);
            }
        } else if flight.waiters.len() > 2 * flight.waiting + GONE_WAITERS {
            let streams = &self.streams;
            flight.waiters.retain(|waiter| streams.contains_key(&waiter.stream));
        }
    }
}

/// Leaders.
impl Coalescer {
    /// ORIGIN has seen the response headers of the fill that `stream` caused.
    pub fn fill_headers<S: SharedStore + ?Sized>(
        &mut self,
        stream: StreamId,
        verdict: FillVerdict,
        turn: &mut Turn<'_, S>,
    ) {
        let Some((key, leader)) = self.leader_of(stream) else { return };
        leader.progress = turn.now;
        match verdict {
            FillVerdict::Store => {}
            FillVerdict::HitForMiss { until } => {
                self.finish(key, Outcome::HitForMiss { until }, turn);
            }
            FillVerdict::Failed { status } => self.finish(key, Outcome::Failed { status }, turn),
        }
    }

    /// More of the body of the fill has come from the origin.
    pub fn fill_progress(&mut self, stream: StreamId, now: Millis) {
        if let Some((_, leader)) = self.leader_of(stream) {
            leader.progress = now;
        }
    }

    /// The response of the fill has come to its end.
    pub fn fill_ended<S: SharedStore + ?Sized>(
        &mut self,
        stream: StreamId,
        turn: &mut Turn<'_, S>,
    ) {
        let now = turn.now;
        let Some((key, leader)) = self.leader_of(stream) else { return };
        leader.ended = true;
        leader.progress = now;
        if let Phase::Streaming { until } = leader.phase {
            self.finish(key, Outcome::Stored { until }, turn);
            return;
        }
        let Some(flight) = self.flights.get_mut(&key) else { return };
        if flight.policy.store == StoreVersion::V1 {
            let target = Rc::clone(&flight.target);
            if let Some(leader) = flight.leader() {
                let commit = Commit { since: now, probes: 1, next_probe: None };
                leader.phase = Phase::Committing(commit);
            }
            turn.count(Metric::StoreProbes);
            turn.push(Effect::Probe { key, target });
        }
    }

    /// The origin's side of the fill has gone before its end.
    pub fn fill_broken<S: SharedStore + ?Sized>(
        &mut self,
        stream: StreamId,
        turn: &mut Turn<'_, S>,
    ) {
        let Some((key, leader)) = self.leader_of(stream) else { return };
        let outcome = match leader.phase {
            Phase::Filling | Phase::Streaming { .. } => Outcome::Failed { status: BAD_GATEWAY },
            Phase::Aborting => Outcome::LeaderLost,
            // EDGE sees the error that Envoy makes of it; a commit has all that it needs.
            Phase::Fetching | Phase::Committing(_) => return,
        };
        self.hints.forget(key);
        self.finish(key, outcome, turn);
    }

    /// EDGE has seen the response headers of `stream`.
    pub fn response<S: SharedStore + ?Sized>(
        &mut self,
        stream: StreamId,
        response: LeaderResponse,
        turn: &mut Turn<'_, S>,
    ) {
        let Some((key, leader)) = self.leader_of(stream) else { return };
        leader.progress = turn.now;
        match response {
            LeaderResponse::Readable { until } => {
                self.finish(key, Outcome::Stored { until }, turn);
            }
            LeaderResponse::Joinable { until } if leader.ended => {
                self.finish(key, Outcome::Stored { until }, turn);
            }
            LeaderResponse::Joinable { until } => {
                leader.phase = Phase::Streaming { until };
                self.hints.set(key, Hint::Fresh, until);
                self.join(key, until, turn);
            }
            LeaderResponse::Filling { .. } => {
                if leader.phase == Phase::Fetching {
                    leader.phase = Phase::Filling;
                }
            }
            LeaderResponse::Unshared => self.not_stored(key, turn),
            LeaderResponse::Failed { status } => {
                self.finish(key, Outcome::Failed { status }, turn);
            }
        }
    }

    /// A probe of the v1 store has been answered: until when the entry is fresh, or `None` when the
    /// store does not have it.
    pub fn probed<S: SharedStore + ?Sized>(
        &mut self,
        key: KeyHash,
        until: Option<Millis>,
        turn: &mut Turn<'_, S>,
    ) {
        let Some(flight) = self.flights.get_mut(&key) else { return };
        let Some(Leader { phase: Phase::Committing(commit), .. }) = flight.leader() else { return };
        if let Some(until) = until {
            self.finish(key, Outcome::Stored { until }, turn);
        } else {
            let pause = if commit.probes < EAGER_PROBES { 0 } else { PROBE_MILLIS };
            commit.next_probe = Some(turn.now + pause);
            self.probe_if_due(key, turn);
        }
    }

    fn leader_of(&mut self, stream: StreamId) -> Option<(KeyHash, &mut Leader)> {
        let key = *self.streams.get(&stream)?;
        let leader = self.flights.get_mut(&key)?.leader()?;
        (leader.stream == stream).then_some((key, leader))
    }

    /// Lets the waiting requests of this worker join the running fill.
    fn join<S: SharedStore + ?Sized>(
        &mut self,
        key: KeyHash,
        until: Millis,
        turn: &mut Turn<'_, S>,
    ) {
        let Some(flight) = self.flights.get_mut(&key) else { return };
        flight.waiting = 0;
        for waiter in std::mem::take(&mut flight.waiters) {
            self.release(waiter, Outcome::Stored { until }, turn);
        }
    }

    /// Goes on asking the store, or gives up. An answer may be lost with the root context that asked.
    fn probe_if_due<S: SharedStore + ?Sized>(&mut self, key: KeyHash, turn: &mut Turn<'_, S>) {
        let Some(flight) = self.flights.get_mut(&key) else { return };
        let (target, max_wait) = (Rc::clone(&flight.target), flight.policy.max_wait);
        let Some(Leader { phase: Phase::Committing(commit), .. }) = flight.leader() else { return };
        if commit.since.saturating_add(max_wait) <= turn.now {
            self.not_stored(key, turn);
        } else if commit.next_probe.is_some_and(|due| due <= turn.now) {
            commit.next_probe = None;
            commit.probes += 1;
            turn.count(Metric::StoreProbes);
            turn.push(Effect::Probe { key, target });
        }
    }

    /// The store has not taken a response that it should have: another request tries once more, and
    /// then nobody waits for this key any longer.
    fn not_stored<S: SharedStore + ?Sized>(&mut self, key: KeyHash, turn: &mut Turn<'_, S>) {
        let Some(flight) = self.flights.get_mut(&key) else { return };
        turn.count(Metric::Unshared);
        let outcome = if std::mem::replace(&mut flight.unshared, true) {
            Outcome::HitForMiss { until: turn.now.saturating_add(flight.policy.hit_for_miss) }
        } else {
            Outcome::LeaderLost
        };
        self.finish(key, outcome, turn);
    }

    /// Ends the flight that this worker leads: tells the other workers, and lets its own go.
    fn finish<S: SharedStore + ?Sized>(
        &mut self,
        key: KeyHash,
        outcome: Outcome,
        turn: &mut Turn<'_, S>,
    ) {
        let Some(flight) = self.flights.get_mut(&key) else { return };
        let Some(leader) = flight.leader().copied() else { return };
        self.streams.remove(&leader.stream);
        if outcome == Outcome::LeaderLost && self.promote(key, true, turn) {
            return;
        }
        let waiting = turn.board(|board| board.finish(key, leader.id)).flatten();
        for worker in waiting.unwrap_or_default() {
            if worker != self.worker {
                turn.push(Effect::Notify { worker, message: Message { key, outcome } });
            }
        }
        self.settle(key, outcome, turn);
    }

    /// Waits on where another worker leads, else makes the first request of this worker that may lead
    /// the leader. False when neither can be. `leader_lost` says that the former leader is known to be
    /// gone, rather than not heard of.
    fn promote<S: SharedStore + ?Sized>(
        &mut self,
        key: KeyHash,
        leader_lost: bool,
        turn: &mut Turn<'_, S>,
    ) -> bool {
        let Some(flight) = self.flights.get_mut(&key) else { return false };
        let streams = &self.streams;
        flight.waiters.retain(|waiter| streams.contains_key(&waiter.stream));
        if flight.waiters.is_empty() {
            return false;
        }
        let heir = flight.waiters.iter().position(|waiter| waiter.may_lead);
        let lease = flight.policy.lease;
        let (id, now) = (self.next_flight(), turn.now);
        let acquired = turn.board(|board| match heir {
            Some(_) => board.acquire(key, id, now, lease).map(Some),
            None => board.follow(key, id.worker, now),
        });
        let Some(flight) = self.flights.get_mut(&key) else { return false };
        let id = match (acquired, &mut flight.role) {
            (Some(Some(Acquired::Follow { progress, .. })), role) => {
                *role = Role::Following { progress, checked: now };
                return true;
            }
            (Some(Some(Acquired::Lead | Acquired::Full) | None), _) => id,
            // The board is out of use. Our own flight is still on it and can be renewed and ended.
            (None, Role::Leading(leader)) => leader.id,
            // Nobody else would learn of this flight, but it serves this worker.
            (None, Role::Following { .. }) if leader_lost => id,
            // Somebody else may lead: there is time until the next look, within max_wait.
            (None, Role::Following { checked, .. }) => {
                *checked = now;
                return true;
            }
        };
        let Some(waiter) = heir.and_then(|heir| flight.waiters.remove(heir)) else { return false };
        flight.waiting -= 1;
        self.parked -= 1;
        flight.rush = Rush::FIRST;
        flight.role = Role::Leading(Leader {
            id,
            stream: waiter.stream,
            phase: Phase::Fetching,
            ended: false,
            progress: now,
            renewed: now,
        });
        turn.count(Metric::Handovers);
        turn.count(Metric::FlightsLed);
        turn.push(Effect::Resume {
            stream: waiter.stream,
            release: Release::Lead,
            waited: now.saturating_sub(waiter.since),
        });
        true
    }
}

/// Followers.
impl Coalescer {
    /// News from another worker.
    pub fn message<S: SharedStore + ?Sized>(&mut self, message: Message, turn: &mut Turn<'_, S>) {
        let Message { key, outcome } = message;
        match self.flights.get_mut(&key) {
            // A lease of ours that ran out made two leaders; each tells its own.
            Some(flight) if flight.leads() => {}
            Some(_) if outcome == Outcome::LeaderLost => {
                if !self.promote(key, true, turn) {
                    self.settle(key, outcome, turn);
                }
            }
            Some(_) => self.settle(key, outcome, turn),
            None => self.remember(key, outcome),
        }
    }

    fn remember(&mut self, key: KeyHash, outcome: Outcome) {
        match outcome {
            Outcome::Stored { until } => self.hints.set(key, Hint::Fresh, until),
            Outcome::HitForMiss { until } => self.hints.set(key, Hint::HitForMiss, until),
            Outcome::Failed { .. } | Outcome::LeaderLost => {}
        }
    }

    /// Ends the flight on this worker: everyone who waits leaves.
    fn settle<S: SharedStore + ?Sized>(
        &mut self,
        key: KeyHash,
        outcome: Outcome,
        turn: &mut Turn<'_, S>,
    ) {
        self.remember(key, outcome);
        let Some(flight) = self.flights.remove(&key) else { return };
        for waiter in flight.waiters {
            self.release(waiter, outcome, turn);
        }
    }

    fn release<S: SharedStore + ?Sized>(
        &mut self,
        waiter: Waiter,
        outcome: Outcome,
        turn: &mut Turn<'_, S>,
    ) {
        let stream = waiter.stream;
        if self.streams.remove(&stream).is_none() {
            return;
        }
        self.parked -= 1;
        let waited = turn.now.saturating_sub(waiter.since);
        let release = match outcome {
            Outcome::Stored { .. } => Release::Collapsed,
            Outcome::HitForMiss { .. } => Release::HitForMiss,
            Outcome::LeaderLost => Release::Alone,
            Outcome::Failed { status } => {
                turn.push(Effect::Fail { stream, status, waited });
                return;
            }
        };
        turn.push(Effect::Resume { stream, release, waited });
    }

    /// Time has passed: leases are renewed, lost news is looked for, stalled leaders are left.
    pub fn tick<S: SharedStore + ?Sized>(&mut self, turn: &mut Turn<'_, S>) {
        let keys: Vec<KeyHash> = self.flights.keys().copied().collect();
        for key in keys {
            let Some(flight) = self.flights.get(&key) else { continue };
            match flight.role {
                Role::Leading(leader) => {
                    self.renew(key, leader, turn);
                    self.probe_if_due(key, turn);
                }
                Role::Following { checked, .. } => {
                    if checked + flight.policy.rescan() <= turn.now {
                        self.rescan(key, turn);
                    }
                }
            }
            self.leave_stalled(key, turn);
        }
    }

    /// Looks at the board for every key that another worker leads, and asks the store anew, as after
    /// the loss of a queue and of the answers under way.
    pub fn rescan_all<S: SharedStore + ?Sized>(&mut self, turn: &mut Turn<'_, S>) {
        let keys: Vec<KeyHash> = self.flights.keys().copied().collect();
        for key in keys {
            match self.flights.get_mut(&key).map(|flight| &mut flight.role) {
                Some(Role::Following { .. }) => self.rescan(key, turn),
                Some(Role::Leading(Leader { phase: Phase::Committing(commit), .. })) => {
                    commit.next_probe = Some(turn.now);
                    self.probe_if_due(key, turn);
                }
                Some(Role::Leading(_)) | None => {}
            }
        }
    }

    /// Waits on if somebody leads, else leads.
    fn rescan<S: SharedStore + ?Sized>(&mut self, key: KeyHash, turn: &mut Turn<'_, S>) {
        if !self.promote(key, false, turn) {
            self.settle(key, Outcome::LeaderLost, turn);
        }
    }

    fn renew<S: SharedStore + ?Sized>(
        &mut self,
        key: KeyHash,
        leader: Leader,
        turn: &mut Turn<'_, S>,
    ) {
        let now = turn.now;
        let Some(flight) = self.flights.get_mut(&key) else { return };
        let lease = flight.policy.lease;
        if leader.renewed + flight.policy.renewal() > now {
            return;
        }
        if let Some(current) = flight.leader() {
            current.renewed = now;
        }
        turn.board(|board| board.renew(key, leader.id, now + lease, leader.progress));
    }

    /// Releases the next batch of those who wait for a leader that has stalled.
    fn leave_stalled<S: SharedStore + ?Sized>(&mut self, key: KeyHash, turn: &mut Turn<'_, S>) {
        let now = turn.now;
        let Some(flight) = self.flights.get_mut(&key) else { return };
        if !flight.is_stalled(now) {
            flight.rush = Rush::FIRST;
        }
        if flight.waiting == 0 || !flight.is_stalled(now) || flight.rush.due > now {
            return;
        }
        let mut left = flight.rush.batch;
        flight.rush = Rush { batch: left.saturating_mul(2), due: now + RUSH_MILLIS };
        while left > 0
            && let Some(waiter) = flight.waiters.pop_front()
        {
            if self.streams.remove(&waiter.stream).is_none() {
                continue;
            }
            left -= 1;
            flight.waiting -= 1;
            self.parked -= 1;
            turn.count(Metric::WaitTimeouts);
            turn.push(Effect::Resume {
                stream: waiter.stream,
                release: Release::WaitTimeout,
                waited: now.saturating_sub(waiter.since),
            });
        }
        if flight.waiting == 0 && !flight.leads() {
            self.flights.remove(&key);
        }
    }
}
