// SPDX-License-Identifier: Apache-2.0
//! Lines of the purge feed that a worker hears of before the feed is read in its interval.
//!
//! The worker that hears of them tells the others. So each of them answers from no cache until it has the lines, and
//! the one that reads the feed reads it at once.

use sluice_core::purge::{FeedPosition, FeedTold};
use sluice_core::workers::message::Message;

use crate::worker::Worker;

/// The consequence of a message that is lost.
const LOST: &str = "a worker did not hear of lines of the purge feed";

impl Worker {
    /// Hears of the last line of the purge feed that a peer has applied. Has it read if this edge lacks it.
    pub fn hear_of_feed(&mut self, told: FeedPosition) {
        if !self.keys.hear_of_feed(told) {
            return;
        }
        // NB: in front of the messages, because a worker that joins the roster later reads it after that.
        if let Err(error) = FeedTold::new(&*self.host).note(told) {
            self.metrics.fault(LOST, error.into());
        }
        let message = Message::FeedLines { told: Some(told) };
        self.roots.tell_others(&message, LOST);
        // The root context may make calls.
        self.roots.wake();
    }

    /// Has lines read that this worker has written to the purge feed, so that its peers hear of them. For the root
    /// context's turn.
    pub(in crate::worker) fn read_own_lines(&mut self) {
        let read = self.keys.feed_position().map_or(0, |read| read.number);
        if self
            .purge_calls
            .take_written()
            .is_none_or(|last| last <= read)
        {
            return;
        }
        let message = Message::FeedLines { told: None };
        self.roots.tell_others(&message, LOST);
        self.receive_feed_lines(None);
        self.read_feed();
    }

    /// Handles another worker's news of lines of the purge feed.
    pub(in crate::worker) fn receive_feed_lines(&mut self, told: Option<FeedPosition>) {
        match told {
            Some(told) => {
                self.keys.hear_of_feed(told);
            }
            None => self.feed.expect_lines(),
        }
    }

    /// Begins a reading of the purge feed, if it is due and this worker's turn. For the root context's turn.
    pub(in crate::worker) fn read_feed(&mut self) {
        let (keys, roots, calls) = (&mut self.keys, &mut self.roots, &mut self.calls);
        let newest = self.policies.newest();
        self.feed
            .tick(keys, roots, calls, &mut self.purge_calls, newest);
    }
}
