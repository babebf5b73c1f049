// SPDX-License-Identifier: Apache-2.0
//! Replies to paused requests, and requests that have left the waiting list. Both wait for a turn of the root
//! context.

use std::collections::VecDeque;

use sluice_core::coalescing::NextStep;
use sluice_core::workers::StreamId;

use crate::reply::DueReply;

/// Maximum number of requests that are answered, and that are resumed, in one turn. Envoy runs the actions of a
/// callback after it has returned, each one nested in the one before. A VM dies if they exhaust the thread's stack.
pub const BATCH: usize = 16;

/// Replies and requests that are due.
#[derive(Debug, Default)]
pub struct Wakeups {
    /// Replies, each with the context of the request to answer.
    replies: VecDeque<(u32, DueReply)>,
    resumes: VecDeque<(StreamId, NextStep)>,
    /// Whether a queue has changed since [`Wakeups::take_demand`].
    is_demanding: bool,
}

impl Wakeups {
    /// Queues a reply to the paused request of `context`, for the root context's next turn. An answer within another
    /// stream's callback would make Envoy stop that stream too. Envoy's cache filter crashes if ORIGIN answers while
    /// the cache filter is still sending the request.
    pub fn answer(&mut self, context: u32, reply: DueReply) {
        self.replies.push_back((context, reply));
        self.is_demanding = true;
    }

    /// Queues a reset of the request of `context`, unless one is due.
    pub fn reset(&mut self, context: u32) {
        let is_reset =
            |(of, reply): &(u32, DueReply)| *of == context && matches!(reply, DueReply::Reset);
        if !self.replies.iter().any(is_reset) {
            self.answer(context, DueReply::Reset);
        }
    }

    /// Whether a reply to `context` is due.
    pub fn answers(&self, context: u32) -> bool {
        self.replies.iter().any(|(of, _)| *of == context)
    }

    /// Drops the replies to `context`, which has ended.
    pub fn forget(&mut self, context: u32) {
        self.replies.retain(|(of, _)| *of != context);
    }

    /// Takes the replies for one turn.
    pub fn take_replies(&mut self) -> Vec<(u32, DueReply)> {
        let size = self.replies.len().min(BATCH);
        self.is_demanding = true;
        self.replies.drain(..size).collect()
    }

    /// Queues a request to be resumed.
    pub fn resume(&mut self, stream: StreamId, next_step: NextStep) {
        self.resumes.push_back((stream, next_step));
        self.is_demanding = true;
    }

    /// Takes the next request to resume.
    pub fn next_resume(&mut self) -> Option<(StreamId, NextStep)> {
        self.is_demanding = true;
        self.resumes.pop_front()
    }

    /// Whether the root context must get a turn, because a queue has changed since the last call and is not empty.
    pub fn take_demand(&mut self) -> bool {
        let is_due = !self.replies.is_empty() || !self.resumes.is_empty();
        std::mem::take(&mut self.is_demanding) && is_due
    }
}
