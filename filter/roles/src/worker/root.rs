// SPDX-License-Identifier: Apache-2.0
//! What the root context does for the worker: it has the timer and the queue, and all that waits for its turn.

use sluice_core::workers::Millis;
use sluice_core::workers::message::Message;

use super::Worker;

impl Worker {
    /// Makes up for what the former root context can no longer receive: messages, answers to its calls, its next turn.
    pub(super) fn resync(&mut self) {
        self.fail_calls();
        self.requeue_journal();
        self.turn(self.roots.newest(), |coalescer, turn| {
            coalescer.rescan_all(turn)
        });
        self.wake_root();
    }

    /// Forgets a root context that goes. It may be the one with the timer and the queue and not the oldest: where a
    /// policy is taken back before all requests under it have ended, Envoy goes on with the root context that it had.
    pub fn lose_root(&mut self, root: u32) {
        if !self.roots.remove(root) {
            return;
        }
        let registered = self
            .act_as(self.roots.newest())
            .and_then(|()| self.roots.register(&*self.host, self.id()))
            .and_then(|()| self.host.set_tick_period(0));
        self.metrics.check(registered);
        self.resync();
    }

    /// Asks Envoy for a turn of the root context, after this callback.
    pub(super) fn wake_root(&mut self) {
        let woken = self.roots.wake(&*self.host);
        self.metrics.check(woken);
    }

    /// The shortest period in which somebody needs the timer, in milliseconds; 0 is none.
    fn needed_period(&self) -> Millis {
        let needed = [
            self.coalescer.tick_period(),
            self.fills.tick_period(),
            self.calls.tick_period(),
            self.purging.tick_period(),
        ];
        needed.into_iter().flatten().min().unwrap_or(0)
    }

    /// Starts the timer if it is needed, or shortens its period. Only [`Worker::tick`] lengthens the period or stops
    /// the timer, so that one request after the other does not start and stop it.
    pub(super) fn arm_timer(&mut self) {
        let period = self.needed_period();
        let current = self.roots.tick_period;
        if period > 0 && (current == 0 || period < current) {
            self.set_period(period);
        }
    }

    fn set_period(&mut self, period: Millis) {
        let set = self.act_as(self.roots.newest()).and_then(|()| {
            self.host
                .set_tick_period(u32::try_from(period).unwrap_or(0))
        });
        if set.is_ok() {
            self.roots.tick_period = period;
        }
        self.metrics.check(set);
    }

    /// Whether `context` is the root context with the timer and the queue.
    pub fn is_root(&self, context: u32) -> bool {
        self.roots.newest() == context
    }

    /// Handles all messages in this worker's queue.
    pub fn receive(&mut self) {
        loop {
            match self.roots.receive(&*self.host) {
                Ok(Some(bytes)) => {
                    if let Some(message) = Message::decode(&bytes) {
                        self.receive_message(message);
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    self.metrics.check(Err(error));
                    break;
                }
            }
        }
        self.go_on_as_root();
        // A request that was resumed may wait again, and a call has to be watched.
        self.arm_timer();
        self.restore_context(self.roots.newest());
    }

    fn receive_message(&mut self, message: Message) {
        match message {
            Message::Flight(message) => self.turn(self.roots.newest(), |coalescer, turn| {
                coalescer.message(message, turn);
            }),
            Message::Purged {
                caller,
                call,
                records,
            } => self.receive_purges(caller, call, &records),
            Message::Acknowledged { worker, call } => self.purging.desk.acknowledge(call, worker),
            Message::BodyLength {
                key, body, bytes, ..
            } => self.known.body_lengths.note(key, body, bytes),
        }
    }

    /// Handles the timer. Due work is done here as well, in case no message comes through the queue.
    pub fn tick(&mut self) {
        self.turn(self.roots.newest(), |coalescer, turn| coalescer.tick(turn));
        self.give_up_overdue();
        self.renew_claims();
        self.go_on_as_root();
        let period = self.needed_period();
        if period != self.roots.tick_period {
            self.set_period(period);
        }
        self.publish_gauges();
    }

    /// Does the work that only the root context can do, or that had to wait for its turn.
    fn go_on_as_root(&mut self) {
        self.resume_some();
        self.send_answers();
        self.send_calls();
        self.end_purges();
    }
}
