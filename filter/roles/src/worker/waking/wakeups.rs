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
}

impl Wakeups {
    /// Queues a reply to the paused request of `context`.
    pub fn answer(&mut self, context: u32, reply: DueReply) {
        self.replies.push_back((context, reply));
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
        self.replies.drain(..size).collect()
    }

    /// Whether a reply is due.
    pub fn has_replies(&self) -> bool {
        !self.replies.is_empty()
    }

    /// Queues a request to be resumed.
    pub fn resume(&mut self, stream: StreamId, next_step: NextStep) {
        self.resumes.push_back((stream, next_step));
    }

    /// Takes the next request to resume.
    pub fn next_resume(&mut self) -> Option<(StreamId, NextStep)> {
        self.resumes.pop_front()
    }

    /// Whether a request is to be resumed.
    pub fn resumes(&self) -> bool {
        !self.resumes.is_empty()
    }
}
