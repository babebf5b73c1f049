// SPDX-License-Identifier: Apache-2.0
//! Leaders: how far each has come, how its flight ends, and who leads next.

use std::rc::Rc;

use super::{Coalescer, Effect, FillVerdict, LeaderResponse, Release, Turn};
use crate::board::{Acquired, KeyHash, Millis};
use crate::flight::{Commit, Leader, Phase, Role, Rush, StreamId};
use crate::hints::Hint;
use crate::host::SharedStore;
use crate::message::{Message, Outcome};
use crate::metrics::Metric;
use crate::policy::StoreVersion;

/// What those who wait for a response are told that broke off.
const BAD_GATEWAY: u16 = 502;
/// Probes of the v1 store that follow each other at once.
const EAGER_PROBES: u32 = 4;
/// Time between further probes.
pub(super) const PROBE_MILLIS: Millis = 10;

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
            FillVerdict::Store => {
                if leader.phase == Phase::Fetching {
                    leader.phase = Phase::Filling;
                }
            }
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
        let Some((key, leader)) = self.leader_of(stream) else { return };
        leader.ended = true;
        leader.progress = turn.now;
        match leader.phase {
            Phase::Streaming { until } if until > turn.now => {
                self.finish(key, Outcome::Stored { until }, turn);
            }
            // All would find it stale at once.
            Phase::Streaming { .. } => self.not_stored(key, turn),
            // Only EDGE knows until when it is fresh, or the next who asks the store.
            Phase::Abandoned => self.finish(key, Outcome::LeaderLost, turn),
            Phase::Fetching | Phase::Filling | Phase::Aborting { .. } | Phase::Committing(_) => {
                self.commit(key, turn);
            }
        }
    }

    /// Asks the v1 store whether what has ended can be read. On v2 EDGE will see that it can.
    fn commit<S: SharedStore + ?Sized>(&mut self, key: KeyHash, turn: &mut Turn<'_, S>) {
        let Some(flight) = self.flights.get_mut(&key) else { return };
        if flight.policy.store == StoreVersion::V1 {
            let target = Rc::clone(&flight.target);
            if let Some(leader) = flight.leader() {
                let commit = Commit { since: turn.now, probes: 1, next_probe: None };
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
            Phase::Aborting { .. } | Phase::Abandoned => Outcome::LeaderLost,
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
    pub(super) fn probe_if_due<S: SharedStore + ?Sized>(&mut self, key: KeyHash, turn: &mut Turn<'_, S>) {
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

    /// Hands over though ORIGIN has not told of the end of an aborted fill, which must not keep the key
    /// for ever.
    pub(super) fn give_up_abort<S: SharedStore + ?Sized>(
        &mut self,
        key: KeyHash,
        turn: &mut Turn<'_, S>,
    ) {
        let Some(flight) = self.flights.get_mut(&key) else { return };
        let max_wait = flight.policy.max_wait;
        let Some(Leader { phase: Phase::Aborting { since }, .. }) = flight.leader() else { return };
        if since.saturating_add(max_wait) <= turn.now {
            self.finish(key, Outcome::LeaderLost, turn);
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
    pub(super) fn finish<S: SharedStore + ?Sized>(
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
                let message = Message { key, flight: leader.id, outcome };
                turn.push(Effect::Notify { worker, message });
            }
        }
        self.settle(key, outcome, turn);
    }

    /// Waits on where another worker leads, else makes the first request of this worker that may lead
    /// the leader. False when neither can be. `leader_lost` says that the former leader is known to be
    /// gone, rather than not heard of.
    pub(super) fn promote<S: SharedStore + ?Sized>(
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
        let (role, lease, now) = (flight.role, flight.policy.lease, turn.now);
        // Other workers know a flight of ours by its number, which the next leader takes over.
        let id = match role {
            Role::Leading(leader) => leader.id,
            Role::Following { .. } => self.next_flight(),
        };
        let acquired = turn.board(|board| match heir {
            Some(_) => board.acquire(key, id, now, lease).map(Some),
            None => board.follow(key, id.worker, now),
        });
        let Some(flight) = self.flights.get_mut(&key) else { return false };
        match (acquired, &mut flight.role) {
            (Some(Some(Acquired::Follow { leader, progress })), role) => {
                *role = Role::Following { leader, progress, checked: now };
                return true;
            }
            (Some(Some(Acquired::Lead | Acquired::Full) | None), _) => {}
            // The board is out of use. Our own flight is still on it and can be renewed and ended.
            (None, Role::Leading(_)) => {}
            // Nobody else would learn of this flight, but it serves this worker.
            (None, Role::Following { .. }) if leader_lost => {}
            // Somebody else may lead: there is time until the next look, within max_wait.
            (None, Role::Following { checked, .. }) => {
                *checked = now;
                return true;
            }
        }
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
