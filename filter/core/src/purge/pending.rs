// SPDX-License-Identifier: Apache-2.0
//! The purge calls under way: what each still waits for before it is answered.

use crate::workers::{Millis, WorkerId};

/// Calls under way at one time, on one worker.
const CALLS: usize = 256;
/// How long workers may take to acknowledge. One that takes longer has lost its VM, as a rule, and reads
/// the purges from shared data before it serves again.
const WORKERS_PATIENCE: Millis = 2_000;
/// How long the journal may take: as long as a disk may that others write much to. A purge that it has a moment later
/// was answered as if a restart could undo it.
pub const JOURNAL_PATIENCE: Millis = 10_000;

#[derive(Debug)]
struct PendingCall {
    id: u32,
    context: u32,
    waiting: Vec<WorkerId>,
    /// Whether the journal has it, if it needs to; `None` until the journal has answered.
    recorded: Option<bool>,
    opened: Millis,
    number: u64,
    /// Those who had to hear of it.
    workers: usize,
}

/// What the caller is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeReceipt {
    /// The context of the caller's request.
    pub context: u32,
    /// The number of the purge.
    pub number: u64,
    /// How many workers have applied it.
    pub workers: usize,
    /// Who has not.
    pub missing: Vec<WorkerId>,
    /// Whether it outlives a restart, as far as entries do.
    pub recorded: bool,
}

/// The calls.
#[derive(Debug, Default)]
pub struct PendingPurges {
    /// The oldest first.
    calls: Vec<PendingCall>,
    last: u32,
}

impl PendingPurges {
    /// A purge has been written, and the `others` have been told. Gives its number for [`PendingPurges::acknowledge`];
    /// `None` with too many calls under way.
    pub fn open(
        &mut self,
        context: u32,
        number: u64,
        others: Vec<WorkerId>,
        journaled: bool,
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
            recorded: (!journaled).then_some(true),
            opened: now,
            number,
        });
        Some(self.last)
    }

    /// Whether there is room for a call.
    pub fn has_room(&self) -> bool {
        self.calls.len() < CALLS
    }

    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// A worker has applied the purge.
    pub fn acknowledge(&mut self, call: u32, worker: WorkerId) {
        if let Some(call) = self.call(call) {
            call.waiting.retain(|waiting| *waiting != worker);
        }
    }

    /// The journal has it, or has failed.
    pub fn journaled(&mut self, call: u32, recorded: bool) {
        if let Some(call) = self.call(call) {
            call.recorded = Some(recorded);
        }
    }

    /// Takes the calls out that wait for nothing any more, or have waited for too long.
    pub fn take_done(&mut self, now: Millis) -> Vec<PurgeReceipt> {
        let is_done = |call: &mut PendingCall| {
            let waited = now.saturating_sub(call.opened);
            let heard = call.waiting.is_empty() || waited >= WORKERS_PATIENCE;
            let written = call.recorded.is_some() || waited >= JOURNAL_PATIENCE;
            heard && written
        };
        let done = self.calls.extract_if(.., is_done);
        done.map(|call| PurgeReceipt {
            context: call.context,
            number: call.number,
            workers: call.workers - call.waiting.len(),
            missing: call.waiting,
            recorded: call.recorded == Some(true),
        })
        .collect()
    }

    fn call(&mut self, id: u32) -> Option<&mut PendingCall> {
        self.calls.iter_mut().find(|call| call.id == id)
    }
}
