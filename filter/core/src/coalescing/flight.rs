// SPDX-License-Identifier: Apache-2.0
//! A flight as one worker sees it: who leads, and which of its own requests wait.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::coalescing::board::FlightKey;
use crate::key::CanonicalTarget;
use crate::policy::Policy;
use crate::workers::message::Doubt;
use crate::workers::{FlightId, Millis, OwnHeaders, StreamId};

/// Longest time between two looks at the board.
const RESCAN_MILLIS: Millis = 500;
/// Timer period while requests wait, or the store is to be asked.
const TICK_MILLIS: Millis = 50;
/// Longest timer period, while a request leads for nobody else.
pub(super) const LONGEST_TICK_MILLIS: Millis = 1_000;
/// How long the store may take to write an object anew. As a rule it takes some milliseconds.
const REWRITE_MILLIS: Millis = 250;
/// How long the store may take with the response that follows an aborted one. While the store writes the last bytes of
/// the aborted one, it drops the next response.
const AFTER_ABORT_MILLIS: Millis = 500;
/// Time between probes of the store that find nothing, once the first few have followed each other at once.
pub(super) const PROBE_MILLIS: Millis = 10;

/// What the flights of a key take from the policy under which they began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlightPolicy {
    /// How long followers wait without progress.
    pub max_wait: Millis,
    /// How long leadership lasts without renewal.
    pub lease: Millis,
    /// For how long a key whose responses the store does not take is left alone.
    pub hit_for_miss: Millis,
    /// Most requests of this worker that wait for one key.
    pub waiters_per_key: usize,
    /// Most keys in flight on this worker.
    pub keys_in_flight: usize,
}

impl FlightPolicy {
    /// The part of `policy` that flights need.
    pub fn of(policy: &Policy) -> Self {
        let millis =
            |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self {
            max_wait: millis(policy.coalesce.max_wait),
            lease: millis(policy.edge.lease),
            hit_for_miss: millis(policy.cache.hit_for_miss),
            waiters_per_key: policy.edge.limits.waiters_per_key,
            keys_in_flight: policy.edge.limits.keys_in_flight,
        }
    }
}

impl FlightPolicy {
    /// How often a leader renews its lease and says how far it has come: often enough for followers
    /// to learn of its progress before they take it for stalled.
    pub fn renewal(&self) -> Millis {
        self.lease.min(self.max_wait) / 3
    }

    /// How long the store may take to make a response readable that has ended.
    pub fn longest_commit(&self) -> Millis {
        self.max_wait / 2
    }

    /// How long it may take where the fill before was aborted a moment ago.
    pub fn commit_after_abort(&self) -> Millis {
        self.longest_commit().min(AFTER_ABORT_MILLIS)
    }

    /// How often a follower's worker looks at the board, for progress and for news that was lost.
    pub fn rescan(&self) -> Millis {
        RESCAN_MILLIS.min(self.max_wait / 3)
    }
}

/// How far a leader has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No response headers yet.
    Fetching,
    /// The response is on its way into the store, and cannot be read before its end.
    Filling,
    /// The client has gone while the response was on its way into the store, which must not go on.
    Aborting {
        /// Since when.
        since: Millis,
    },
    /// The response has ended and the store is busy making it readable.
    Committing(Commit),
}

/// The wait for a store that makes an entry readable some time after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// When the response ended.
    pub since: Millis,
    /// Probes sent.
    pub probes: u32,
    /// When to probe next; `None` while a probe is under way.
    pub next_probe: Option<Millis>,
    /// How long the store may take.
    pub patience: Millis,
}

/// The leader of a flight, on its own worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leader {
    /// The flight on the board.
    pub id: FlightId,
    /// The leading request.
    pub stream: StreamId,
    /// What it takes to the origin beside its key.
    pub own_headers: OwnHeaders,
    /// How far it has come.
    pub phase: Phase,
    /// When it last made progress.
    pub progress: Millis,
    /// When the origin answered with what goes into the store, if it has.
    pub answered: Option<Millis>,
    /// Until when the store will serve that unasked, if that is known.
    pub fresh_until: Option<Millis>,
    /// When the lease was last renewed.
    pub renewed: Millis,
}

impl Leader {
    /// A request that begins to lead.
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

    /// The response goes into the store.
    pub(super) fn begin_to_fill(&mut self) {
        if self.phase == Phase::Fetching {
            self.phase = Phase::Filling;
        }
    }
}

/// What a worker has to do with a flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// One of its requests leads.
    Leading(Leader),
    /// Another worker's request leads.
    Following {
        /// Its flight, as far as is known here.
        leader: FlightId,
        /// When the leader last made progress, as far as is known here.
        progress: Millis,
        /// When the board was last looked at.
        checked: Millis,
    },
}

/// The entry that the store is to make readable for a flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AwaitedEntry {
    /// The response that its leader brings.
    Fill,
    /// The response of a fill that ended while no request waited: a hit for the requests that wait now.
    EarlierFill,
    /// An object that the store had a moment ago, and is thought to write anew: a hit as well. No request fetches.
    Rewrite,
}

/// A request that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// The request.
    pub stream: StreamId,
    /// Since when it waits.
    pub since: Millis,
    /// What it takes to the origin beside its key.
    pub own_headers: OwnHeaders,
    /// Whether its response can fill the store, so that it may lead.
    pub may_lead: bool,
    /// Whether it is there to lead for others, and for nothing else.
    pub for_others: bool,
}

/// Releases followers of a stalled leader in growing batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rush {
    /// Size of the next batch.
    pub batch: usize,
    /// When it is due.
    pub due: Millis,
}

impl Rush {
    /// One request, at once.
    pub const FIRST: Self = Self { batch: 1, due: 0 };
}

/// A key that is being fetched, on one worker.
#[derive(Debug)]
pub struct LocalFlight {
    /// What is fetched.
    pub target: Rc<CanonicalTarget>,
    /// How the board knows it.
    pub key: FlightKey,
    /// The rules under which it began.
    pub policy: FlightPolicy,
    /// Who leads.
    pub role: Role,
    /// Who waits, in order of arrival. A request that has gone away stays here until it is passed over.
    pub waiters: VecDeque<Waiter>,
    /// How many of them have not gone away.
    pub waiting: usize,
    /// Whether requests of other workers may wait for this worker's leader.
    pub awaited: bool,
    /// The entry that the store is to make readable.
    pub awaits: AwaitedEntry,
    /// How they leave a leader that has stalled.
    pub rush: Rush,
    /// Whether the store has already failed to take a response.
    pub unshared: bool,
    /// The own headers of a leader that the origin has failed, perhaps because of them. The next failure is for all.
    failed: Option<OwnHeaders>,
    /// The same of a leader whose response was not stored.
    unstored: Option<OwnHeaders>,
    /// How many requests stop waiting when a leader's response is its own the next time.
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
            waiters: VecDeque::new(),
            waiting: 0,
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
    pub fn leader(&mut self) -> Option<&mut Leader> {
        match &mut self.role {
            Role::Leading(leader) => Some(leader),
            Role::Following { .. } => None,
        }
    }

    /// Waits for the store, which is thought to write the object anew, in the place of a response.
    pub fn await_rewrite(&mut self, now: Millis) {
        self.awaits = AwaitedEntry::Rewrite;
        if let Some(leader) = self.leader() {
            leader.phase = Phase::Committing(Commit {
                since: now,
                probes: 0,
                next_probe: Some(now),
                patience: REWRITE_MILLIS,
            });
        }
    }

    /// Its wait for the store, if that is what its leader, a request of this worker, is about.
    pub fn commit(&mut self) -> Option<&mut Commit> {
        match &mut self.leader()?.phase {
            Phase::Committing(commit) => Some(commit),
            _ => None,
        }
    }

    /// The timer period in which [`Coalescer::tick`](super::Coalescer::tick) must look at it.
    pub fn tick_period(&self) -> Millis {
        if self.is_probed_again() {
            PROBE_MILLIS
        } else if !self.leads() || self.is_awaited() || self.is_committing() {
            TICK_MILLIS
        } else {
            // Twice as often as the lease is renewed, so that no renewal is late by a whole period.
            let renewals = self.policy.renewal() / 2;
            renewals.clamp(TICK_MILLIS, LONGEST_TICK_MILLIS)
        }
    }

    /// The own headers of a former leader whose response may have been of that kind because of them.
    pub fn doubted(&self, doubt: Doubt) -> Option<OwnHeaders> {
        match doubt {
            Doubt::Failed => self.failed,
            Doubt::NotStored => self.unstored,
        }
    }

    /// Remembers the own headers of such a leader.
    pub fn set_doubted(&mut self, doubt: Doubt, own_headers: OwnHeaders) {
        let doubted = match doubt {
            Doubt::Failed => &mut self.failed,
            Doubt::NotStored => &mut self.unstored,
        };
        *doubted = Some(own_headers);
    }

    /// The place of the request that leads next on this worker: the first that may lead. Where the response of a former
    /// leader may be the doing of its own headers, the first with others comes in front of one with the same.
    pub fn heir(&self) -> Option<usize> {
        let mut waiters = self.waiters.iter();
        let doubted = [self.failed, self.unstored];
        let differs = |waiter: &Waiter| !doubted.contains(&Some(waiter.own_headers));
        let first = waiters.position(|waiter| waiter.may_lead && differs(waiter));
        first.or_else(|| self.waiters.iter().position(|waiter| waiter.may_lead))
    }

    /// Whether anyone waits for this worker's leader, as far as is known here.
    pub fn is_awaited(&self) -> bool {
        self.waiting > 0 || self.awaited
    }

    /// Whether it waits for the store only.
    pub fn is_committing(&self) -> bool {
        matches!(&self.role, Role::Leading(leader) if matches!(leader.phase, Phase::Committing(_)))
    }

    /// Whether the store would ask the origin by now for what this worker's leader has brought.
    pub fn has_expired(&self, now: Millis) -> bool {
        let Role::Leading(leader) = &self.role else {
            return false;
        };
        let until = leader.fresh_until;
        self.is_committing() && until.is_some_and(|until| until <= now)
    }

    /// Whether a probe has not found the response, and another is to follow.
    pub fn is_probed_again(&self) -> bool {
        let Role::Leading(leader) = &self.role else {
            return false;
        };
        matches!(leader.phase, Phase::Committing(commit) if commit.probes > 0 && commit.next_probe.is_some())
    }

    /// Whether one of this worker's requests leads.
    pub fn leads(&self) -> bool {
        matches!(self.role, Role::Leading(_))
    }

    /// When the leader last made progress, as far as is known here.
    pub fn progress(&self) -> Millis {
        match self.role {
            Role::Leading(leader) => leader.progress,
            Role::Following { progress, .. } => progress,
        }
    }

    /// Whether one of this worker's requests leads that flight.
    pub fn leads_as(&self, flight: FlightId) -> bool {
        matches!(self.role, Role::Leading(leader) if leader.id == flight)
    }

    /// Whether it waits for that flight to end.
    pub fn follows(&self, flight: FlightId) -> bool {
        matches!(self.role, Role::Following { leader, .. } if leader == flight)
    }

    /// Whether followers should no longer wait.
    pub fn is_stalled(&self, now: Millis) -> bool {
        self.progress().saturating_add(self.policy.max_wait) <= now
    }
}
