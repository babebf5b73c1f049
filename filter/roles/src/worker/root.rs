// SPDX-License-Identifier: Apache-2.0
//! Work that the root context does for the worker: it has the timer and the queue, and runs everything that waits for
//! its turn.

use std::rc::Rc;

use sluice_core::coalescing::Store as _;
use sluice_core::metrics::Metric;
use sluice_core::purge::WORKERS_PATIENCE;
use sluice_core::slices::index::SliceIndex;
use sluice_core::workers::Millis;
use sluice_core::workers::message::Message;

use crate::worker::own_requests::{background, call_ends};
use crate::worker::slices::Knowledge;
use crate::worker::waking::resumption;
use crate::worker::{Worker, bodies, fills};

/// Time without a reading of the queue after which a worker reads the purges in it in front of a request. It is half
/// of the time after which the worker may have been expelled from the roster.
const STANDSTILL: Millis = WORKERS_PATIENCE / 2;

impl Worker {
    /// Makes up for the messages, answers to calls and turns that the former root context can no longer receive.
    pub(in crate::worker) fn resync(&mut self) {
        // The answers to these calls are lost with the root context that made them.
        for call in self.calls.take_all() {
            call_ends::end_call(self, &call, false);
        }
        self.purge_calls.requeue();
        self.coalescing
            .turn(|coalescer, turn| coalescer.rescan_all(turn));
        self.confirmations.ask_anew(self.host.monotonic_millis());
        self.hear_store();
        self.roots.wake();
    }

    /// Forgets a root context that ends. It may have the timer and the queue without being the oldest one: if a
    /// policy is withdrawn before all requests under it have ended, Envoy returns to the earlier root context.
    pub fn lose_root(&mut self, root: u32) {
        if !self.roots.remove(root) {
            return;
        }
        let registered = self.roots.take_over();
        self.metrics.check(registered);
        self.resync();
    }

    /// The shortest timer period that any part of the worker needs, in milliseconds; 0 means none.
    fn needed_period(&self) -> Millis {
        let needed = [
            self.coalescing.coalescer.tick_period(),
            self.confirmations.tick_period(),
            self.bodies.tick_period(),
            self.fills.tick_period(),
            self.calls.tick_period(),
            self.purge_calls.tick_period(),
            self.feed.tick_period(),
            self.recorder.tick_period(),
            self.questions.tick_period(),
        ];
        needed.into_iter().flatten().min().unwrap_or(0)
    }

    /// Starts the timer if it is needed, or shortens its period. Only [`Worker::tick`] lengthens the period or stops
    /// the timer, so that successive requests do not start and stop it repeatedly.
    pub(crate) fn arm_timer(&mut self) {
        self.roots.shorten_period(self.needed_period());
    }

    /// Handles all messages in this worker's queue.
    pub fn receive(&mut self) {
        self.read_messages();
        if self.keys.lacks_lines() || self.feed.expects_lines() {
            self.read_feed();
        }
        self.go_on_as_root();
        // A resumed request may wait again, and its call needs the timer.
        self.arm_timer();
        self.roots.restore(self.roots.serving());
    }

    /// Reads this worker's queue ahead in front of a request, if the worker has not read the queue for [`STANDSTILL`].
    /// The other workers may have expelled a worker that stood still, and then they do not wait for it when they purge.
    /// Returns the Unix time in milliseconds, so that a hot hit reads the clock once.
    pub(crate) fn catch_up(&mut self) -> Millis {
        let now = self.host.unix_millis();
        if self.roots.has_not_read(now, STANDSTILL) {
            self.roots.note_reading(now);
            self.read_ahead();
        }
        now
    }

    /// Applies the purges, and the facts about the purge feed and objects in slices, that are in this worker's queue.
    /// Other messages, and a reading of the feed, wait for the root context.
    pub(crate) fn read_ahead(&mut self) {
        let mut waits = false;
        while let Ok(Some(bytes)) = self.roots.take_from_queue() {
            match Message::decode(&bytes) {
                Some(
                    message @ (Message::Purged { .. }
                    | Message::SliceIndex { .. }
                    | Message::SlicesChanged { .. }),
                ) => self.receive_message(message),
                Some(message @ Message::FeedLines { .. }) => {
                    self.receive_message(message);
                    waits = true;
                }
                _ => {
                    self.roots.hold(bytes);
                    waits = true;
                }
            }
        }
        if waits {
            self.roots.wake();
        }
    }

    fn read_messages(&mut self) {
        self.roots.note_reading(self.host.unix_millis());
        loop {
            match self.roots.receive() {
                Ok(Some(bytes)) => {
                    if let Some(message) = Message::decode(&bytes) {
                        self.receive_message(message);
                        self.carry_out_effects();
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    self.metrics.check(Err(error));
                    break;
                }
            }
        }
    }

    fn receive_message(&mut self, message: Message) {
        match message {
            Message::Flight(message) => self.coalescing.turn(|coalescer, turn| {
                coalescer.message(message, turn);
            }),
            Message::Purged {
                caller,
                call,
                records,
            } => {
                let (keys, roots) = (&mut self.keys, &mut self.roots);
                self.purge_calls
                    .receive(keys, roots, caller, call, &records);
            }
            Message::Asked {
                asker,
                call,
                question,
            } => self.questions.receive(asker, call, &question),
            Message::Answered {
                worker,
                call,
                answer,
            } => self.questions.answer(call, worker, &answer),
            Message::Acknowledged { worker, call } => self.purge_calls.acknowledge(worker, call),
            Message::BodyLength {
                key, body, bytes, ..
            } => self.keys.learn_body_length(key, body, bytes),
            Message::SliceIndex { key, url, index } => {
                if let Some(index) = SliceIndex::decode(&index) {
                    let knowledge = Knowledge::Sliced(Rc::new(index));
                    self.slices.learn(key, url, knowledge);
                }
            }
            Message::SlicesChanged { key, etag } => {
                self.slices.forget(key, &etag);
            }
            Message::FeedLines { told } => self.receive_feed_lines(told),
            Message::Varies {
                plain,
                flight,
                plain_variant,
                names,
            } => {
                self.keys.learn_plain_variant(plain, plain_variant, names);
                self.coalescing.turn(|coalescer, turn| {
                    coalescer.part_variants(flight, turn);
                });
            }
        }
    }

    /// Handles the timer. Due work is also done here, in case no message arrives in the queue.
    pub fn tick(&mut self) {
        if self.purge_calls.tick_period().is_some() {
            // An acknowledgement may have come in time although this worker has not read it yet.
            self.read_messages();
        }
        self.coalescing.turn(|coalescer, turn| coalescer.tick(turn));
        self.hear_store();
        let (roots, coalescing) = (&self.roots, &mut self.coalescing);
        bodies::give_up_overdue(&self.identity, &mut self.bodies, roots, coalescing);
        fills::give_up_overdue(&mut self.fills, coalescing);
        background::renew_claims(coalescing, &mut self.calls);
        self.recorder.tick(self.host.monotonic_millis());
        self.read_feed();
        self.go_on_as_root();
        self.roots.set_period(self.needed_period());
        self.coalescing.publish_gauges(self.slices.count());
        let dropped = self.slices.take_dropped();
        if dropped > 0 {
            let dropped = u32::try_from(dropped).unwrap_or(u32::MAX);
            self.metrics.count(Metric::SliceIndexesDropped, dropped);
        }
        self.keys.publish_hot();
    }

    /// Does the work that only the root context can do, or that waited for its turn.
    fn go_on_as_root(&mut self) {
        self.carry_out_effects();
        resumption::resume_some(self);
        self.coalescing.take_change();
        self.coalescing.send_answers(&self.roots, &self.identity);
        call_ends::send_calls(self);
        self.purge_calls.go_on(&mut self.roots);
        self.arm_timer();
    }
}
