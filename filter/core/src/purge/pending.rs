// SPDX-License-Identifier: Apache-2.0
//! The purge calls under way, and the acknowledgements that each waits for.

use crate::workers::{Millis, WorkerId};

/// Greatest number of calls under way on one worker.
const CALLS: usize = 256;
/// How long a call waits for the workers' acknowledgements, in milliseconds. A worker that takes longer has usually lost its VM. Its
/// next VM reads the purges from shared data before it serves requests.
pub const WORKERS_PATIENCE: Millis = 2_000;
/// How long a call waits for the journal, which may be on a disk with many other writes. If the journal writes the
/// purge later than this, the caller has already been told that the purge may not survive a restart.
pub const JOURNAL_PATIENCE: Millis = 10_000;

/// How long a call waits for the purge feed, in milliseconds. The feed may get the purge later than this.
pub const FEED_PATIENCE: Millis = 10_000;

/// Recorders that a purge waits for beside the workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Awaited {
    /// Whether the journal records the purge.
    pub journal: bool,
    /// Whether the purge is written to the purge feed.
    pub feed: bool,
}

/// Outcome of the writing to the purge feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedOutcome {
    /// The feed has the purge.
    Written {
        /// Number of its last line.
        number: u64,
        /// Time from which every edge that can read the feed has applied it, as in RFC 3339.
        by: String,
    },
    /// The feed does not have the purge, or that is not known.
    Failed {
        /// Status for the caller, 502 or 503.
        status: u16,
        /// Reason.
        error: String,
    },
}

impl FeedOutcome {
    /// The outcome of a writing that has not ended in time.
    pub fn unanswered() -> Self {
        Self::Failed {
            status: 503,
            error: "no answer in time".to_owned(),
        }
    }
}

#[derive(Debug)]
struct PendingCall {
    id: u32,
    context: u32,
    waiting: Vec<WorkerId>,
    /// Whether the journal has the purge; `None` until the journal has answered. True if the purge needs no journal.
    recorded: Option<bool>,
    /// Whether the feed gets the purge, and the outcome once there is one.
    feed: bool,
    outcome: Option<FeedOutcome>,
    opened: Millis,
    number: u64,
    /// Number of workers that have to apply the purge.
    workers: usize,
}

/// Answer to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeReceipt {
    /// Context of the caller's request.
    pub context: u32,
    /// Number of the purge.
    pub number: u64,
    /// Number of workers that have applied the purge.
    pub workers: usize,
    /// Workers that have not applied the purge.
    pub missing: Vec<WorkerId>,
    /// Whether the purge survives a restart, as far as entries survive it.
    pub recorded: bool,
    /// Outcome of the writing to the purge feed; `None` if the purge is for this edge only.
    pub feed: Option<FeedOutcome>,
}

/// Purge calls under way.
#[derive(Debug, Default)]
pub struct PendingPurges {
    /// Calls, the oldest first.
    calls: Vec<PendingCall>,
    last: u32,
}

impl PendingPurges {
    /// Adds the call of a purge that is written and sent to the `others`. Returns the number of the call for
    /// [`PendingPurges::acknowledge`]; `None` if too many calls are under way.
    pub fn open(
        &mut self,
        context: u32,
        number: u64,
        others: Vec<WorkerId>,
        awaited: Awaited,
        now: Millis,
    ) -> Option<u32> {
        if !self.has_room() {
            return None;
        }
        self.last = self.last.wrapping_add(1);
        self.calls.push(PendingCall {
            id: self.last,
            context,
            workers: others.len() + 1,
            waiting: others,
            recorded: (!awaited.journal).then_some(true),
            feed: awaited.feed,
            outcome: None,
            opened: now,
            number,
        });
        Some(self.last)
    }

    /// Whether there is room for a call.
    pub fn has_room(&self) -> bool {
        self.calls.len() < CALLS
    }

    /// Whether no call is under way.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Records that a worker has applied the purge.
    pub fn acknowledge(&mut self, call: u32, worker: WorkerId) {
        if let Some(call) = self.call(call) {
            call.waiting.retain(|waiting| *waiting != worker);
        }
    }

    /// Records the answer of the journal: whether the journal has the purge.
    pub fn journaled(&mut self, call: u32, recorded: bool) {
        if let Some(call) = self.call(call) {
            call.recorded = Some(recorded);
        }
    }

    /// Records the outcome of the writing to the purge feed.
    pub fn fed(&mut self, call: u32, outcome: FeedOutcome) {
        if let Some(call) = self.call(call) {
            call.outcome = Some(outcome);
        }
    }

    /// Removes and returns the calls that have all answers, or that have waited too long.
    pub fn take_done(&mut self, now: Millis) -> Vec<PurgeReceipt> {
        let is_done = |call: &mut PendingCall| {
            let waited = now.saturating_sub(call.opened);
            let heard = call.waiting.is_empty() || waited >= WORKERS_PATIENCE;
            let written = call.recorded.is_some() || waited >= JOURNAL_PATIENCE;
            let fed = !call.feed || call.outcome.is_some() || waited >= FEED_PATIENCE;
            heard && written && fed
        };
        let done = self.calls.extract_if(.., is_done);
        done.map(|call| PurgeReceipt {
            context: call.context,
            number: call.number,
            workers: call.workers - call.waiting.len(),
            missing: call.waiting,
            recorded: call.recorded == Some(true),
            feed: call
                .feed
                .then(|| call.outcome.unwrap_or_else(FeedOutcome::unanswered)),
        })
        .collect()
    }

    fn call(&mut self, id: u32) -> Option<&mut PendingCall> {
        self.calls.iter_mut().find(|call| call.id == id)
    }
}
