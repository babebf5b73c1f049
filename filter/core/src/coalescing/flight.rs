// SPDX-License-Identifier: Apache-2.0
//! A flight as one worker sees it: its role, and its own requests that wait.

use std::rc::Rc;

use super::waiting_list::{WaitingList, WaitingPlace};
use crate::coalescing::shared::board::FlightKey;
use crate::key::CanonicalTarget;
use crate::policy::Policy;
use crate::workers::message::Doubt;
use crate::workers::{FlightId, Millis, OwnHeaders, StreamId, millis};

/// Longest time between two reads of the board.
const RESCAN_MILLIS: Millis = 500;
/// Timer period while requests wait.
const TICK_MILLIS: Millis = 50;
/// Longest timer period, for a leader without followers.
pub(super) const LONGEST_TICK_MILLIS: Millis = 1_000;

/// The settings of the policy under which the flights of a key began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlightPolicy {
    /// How long followers wait without progress.
    pub max_wait: Millis,
    /// How long leadership lasts without renewal.
    pub lease: Millis,
    /// Longest time for which a key whose responses are not stored is hit-for-miss.
    pub hit_for_miss: Millis,
    /// Most requests of this worker that wait for one key.
    pub waiters_per_key: usize,
    /// Most keys in flight on this worker.
    pub keys_in_flight: usize,
}

impl FlightPolicy {
    /// The part of `policy` that flights need.
    pub fn of(policy: &Policy) -> Self {
        Self {
            max_wait: millis(policy.coalesce.max_wait),
            lease: millis(policy.edge.lease),
            hit_for_miss: millis(policy.cache.hit_for_miss),
            waiters_per_key: policy.edge.limits.waiters_per_key,
            keys_in_flight: policy.edge.limits.keys_in_flight,
        }
    }

    /// Interval at which a leader renews its lease and publishes its progress. It is short enough for followers to
    /// see the progress before they consider the leader stalled.
    pub fn renewal(&self) -> Millis {
        self.lease.min(self.max_wait) / 3
    }

    /// Time within which the store has to make a finished response readable.
    pub fn patience(&self) -> Millis {
        self.max_wait / 2
    }

    /// Interval at which a follower's worker reads the board, for progress and for messages that were lost.
    pub fn rescan(&self) -> Millis {
        RESCAN_MILLIS.min(self.max_wait / 3)
    }
}

/// Progress of a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No response headers have arrived.
    Fetching,
    /// The response is being written to the store, and cannot be read before its end.
    Filling,
    /// The client has disconnected while the response was being written to the store. The fill must not continue.
    Aborting {
        /// Time at which the client disconnected.
        since: Millis,
    },
    /// The response has ended, and the store has not confirmed yet that it can be read.
    Storing {
        /// Whether the store knows that requests wait for it.
        urged: bool,
    },
}

/// The leader of a flight, on its own worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leader {
    /// The flight on the board.
    pub id: FlightId,
    /// The leading request.
    pub stream: StreamId,
    /// The headers that it sends to the origin beside those of its key.
    pub own_headers: OwnHeaders,
    /// Its progress.
    pub phase: Phase,
    /// When it last made progress.
    pub progress: Millis,
    /// Time at which the origin answered with a response that is stored, if it has answered.
    pub answered: Option<Millis>,
    /// Time until which the store serves that response without asking the origin, if it is known.
    pub fresh_until: Option<Millis>,
    /// When the lease was last renewed.
    pub renewed: Millis,
}

impl Leader {
    /// A leader that has just started.
    pub fn new(id: FlightId, stream: StreamId, own_headers: OwnHeaders, now: Millis) -> Self {
        Self {
            id,
            stream,
            own_headers,
            phase: Phase::Fetching,
            progress: now,
            answered: None,
            fresh_until: None,
            renewed: now,
        }
    }

    /// Notes that the response is written to the store.
    pub(super) fn begin_to_fill(&mut self) {
        if self.phase == Phase::Fetching {
            self.phase = Phase::Filling;
        }
    }

    /// Whether the response has ended, and only the store's confirmation is missing.
    pub fn is_storing(&self) -> bool {
        matches!(self.phase, Phase::Storing { .. })
    }
}

/// A worker's part in a flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// One of its requests leads.
    Leading(Leader),
    /// Another worker's request leads.
    Following {
        /// Its flight, as far as this worker knows.
        leader: FlightId,
        /// When the leader last made progress, as far as this worker knows.
        progress: Millis,
        /// When this worker last read the board.
        checked: Millis,
    },
}

/// An entry that the store is about to make readable for a flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AwaitedEntry {
    /// The response that the leader fetches.
    Fill,
    /// The response of a fill that ended while no request waited: a hit for the requests that wait now.
    EarlierFill,
    /// An object that the store served a moment ago and is about to serve again: a hit as well. No request fetches.
    Returning,
}

/// Releases followers of a stalled leader in growing batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rush {
    /// Size of the next batch.
    pub batch: usize,
    /// Time at which it is due.
    pub due: Millis,
}

impl Rush {
    /// One request, at once.
    pub const FIRST: Self = Self { batch: 1, due: 0 };
}

/// A flight of one key on one worker.
#[derive(Debug)]
pub struct LocalFlight {
    /// The target that is fetched.
    pub target: Rc<CanonicalTarget>,
    /// Its key on the board.
    pub key: FlightKey,
    /// The settings under which it began.
    pub policy: FlightPolicy,
    /// This worker's part in it.
    pub role: Role,
    /// The requests of this worker that wait for it.
    pub waiters: WaitingList,
    /// Whether requests of other workers may wait for this worker's leader.
    pub awaited: bool,
    /// The entry that the store is to make readable.
    pub awaits: AwaitedEntry,
    /// Release of the followers of a stalled leader.
    pub rush: Rush,
    /// Whether the store has already not taken a response of this flight.
    pub unshared: bool,
    /// The own headers of a leader for which the origin failed, perhaps because of them. The next failure is shared
    /// by all.
    failed: Option<OwnHeaders>,
    /// The own headers of a leader whose response was not stored, perhaps because of them.
    unstored: Option<OwnHeaders>,
    /// Number of requests that stop waiting when a leader's response is again for its client only.
    pub leaving: usize,
}

impl LocalFlight {
    /// A flight without waiters.
    pub fn new(
        target: Rc<CanonicalTarget>,
        key: FlightKey,
        policy: FlightPolicy,
        role: Role,
    ) -> Self {
        Self {
            target,
            key,
            policy,
            role,
            waiters: WaitingList::default(),
            awaited: false,
            awaits: AwaitedEntry::Fill,
            rush: Rush::FIRST,
            unshared: false,
            failed: None,
            unstored: None,
            leaving: 0,
        }
    }

    /// The leader, if it is this worker's.
    pub fn leader(&self) -> Option<&Leader> {
        match &self.role {
            Role::Leading(leader) => Some(leader),
            Role::Following { .. } => None,
        }
    }

    /// The leader, to be changed, if it is this worker's.
    pub fn leader_mut(&mut self) -> Option<&mut Leader> {
        match &mut self.role {
            Role::Leading(leader) => Some(leader),
            Role::Following { .. } => None,
        }
    }

    /// The timer period in which [`Coalescer::tick`](super::Coalescer::tick) must visit this flight.
    pub fn tick_period(&self) -> Millis {
        if !self.leads() || self.is_awaited() || self.is_storing() {
            TICK_MILLIS
        } else {
            // Twice as often as the lease is renewed, so that no renewal is late by a whole period.
            let renewals = self.policy.renewal() / 2;
            renewals.clamp(TICK_MILLIS, LONGEST_TICK_MILLIS)
        }
    }

    /// Returns the own headers of a former leader that may have caused a response of that kind.
    pub fn doubted(&self, doubt: Doubt) -> Option<OwnHeaders> {
        match doubt {
            Doubt::Failed => self.failed,
            Doubt::NotStored => self.unstored,
        }
    }

    /// Remembers the own headers of a leader that may have caused a response of that kind.
    pub fn set_doubted(&mut self, doubt: Doubt, own_headers: OwnHeaders) {
        let doubted = match doubt {
            Doubt::Failed => &mut self.failed,
            Doubt::NotStored => &mut self.unstored,
        };
        *doubted = Some(own_headers);
    }

    /// The place of the request that becomes the next leader on this worker.
    pub fn heir(&self) -> Option<WaitingPlace> {
        self.waiters.heir([self.failed, self.unstored])
    }

    /// Whether a request waits for this worker's leader, as far as this worker knows.
    pub fn is_awaited(&self) -> bool {
        self.awaited || !self.waiters.is_empty()
    }

    /// Whether the leader's response has ended, and only the store's confirmation is missing.
    pub fn is_storing(&self) -> bool {
        self.leader().is_some_and(Leader::is_storing)
    }

    /// Whether the response that this worker's leader fetched has expired, so that the store would ask the origin
    /// again.
    pub fn has_expired(&self, now: Millis) -> bool {
        let until = self.leader().and_then(|leader| leader.fresh_until);
        self.is_storing() && until.is_some_and(|until| until <= now)
    }

    /// Whether the leader is a request of this worker.
    pub fn leads(&self) -> bool {
        self.leader().is_some()
    }

    /// When the leader last made progress, as far as this worker knows.
    pub fn progress(&self) -> Millis {
        match self.role {
            Role::Leading(leader) => leader.progress,
            Role::Following { progress, .. } => progress,
        }
    }

    /// Whether the leader of flight `flight` is a request of this worker.
    pub fn leads_as(&self, flight: FlightId) -> bool {
        self.leader().is_some_and(|leader| leader.id == flight)
    }

    /// Whether this worker's requests wait for flight `flight` to end.
    pub fn follows(&self, flight: FlightId) -> bool {
        matches!(self.role, Role::Following { leader, .. } if leader == flight)
    }

    /// Whether followers should no longer wait.
    pub fn is_stalled(&self, now: Millis) -> bool {
        self.progress().saturating_add(self.policy.max_wait) <= now
    }

    /// Whether this worker has no part in it any more: the leader is not its own, and none of its requests waits.
    pub fn is_over(&self) -> bool {
        !self.leads() && self.waiters.is_empty()
    }
}
