// SPDX-License-Identifier: Apache-2.0
//! What waits for a turn: replies to paused requests, and requests that have left the waiting list.

use std::collections::VecDeque;

use sluice_core::coalescing::NextStep;
use sluice_core::workers::StreamId;

use crate::reply::DueReply;

/// Most requests that are answered, and most that are resumed, in one turn. Envoy carries out what a callback asks for
/// when the callback has returned, each thing inside of the one before, and a VM dies where the thread's stack is full.
pub const BATCH: usize = 16;

/// Replies and requests that are due.
#[derive(Debug, Default)]
pub struct Wakeups {
    /// By the context of the request that is answered.
    replies: VecDeque<(u32, DueReply)>,
    resumes: VecDeque<(StreamId, NextStep)>,
}

impl Wakeups {
    /// A reply to the paused request of `context` is due.
    pub fn answer(&mut self, context: u32, reply: DueReply) {
        self.replies.push_back((context, reply));
    }

    /// Whether a reply to `context` is due.
    pub fn answers(&self, context: u32) -> bool {
        self.replies.iter().any(|(of, _)| *of == context)
    }

    /// Drops the replies to `context`, which has gone.
    pub fn forget(&mut self, context: u32) {
        self.replies.retain(|(of, _)| *of != context);
    }

    /// Takes the replies of one turn.
    pub fn take_replies(&mut self) -> Vec<(u32, DueReply)> {
        let size = self.replies.len().min(BATCH);
        self.replies.drain(..size).collect()
    }

    /// Whether a reply is due.
    pub fn has_replies(&self) -> bool {
        !self.replies.is_empty()
    }

    /// A request is due to go on.
    pub fn resume(&mut self, stream: StreamId, next_step: NextStep) {
        self.resumes.push_back((stream, next_step));
    }

    /// Takes the next request that is due to go on.
    pub fn next_resume(&mut self) -> Option<(StreamId, NextStep)> {
        self.resumes.pop_front()
    }

    /// Whether a request is due to go on.
    pub fn resumes(&self) -> bool {
        !self.resumes.is_empty()
    }
}
