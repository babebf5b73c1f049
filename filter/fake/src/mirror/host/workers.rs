// SPDX-License-Identifier: Apache-2.0
//! What happens to workers: time, messages, probes, faults.

use sluice_core::coalescing::{Coalescer, Probed};
use sluice_core::workers::message::Message;
use sluice_core::workers::{KeyHash, Millis, WorkerId};

use super::{FakeHost, Seat};

/// What happens to workers.
impl FakeHost {
    /// Time passes.
    pub fn advance(&mut self, millis: Millis) {
        self.now += millis;
    }

    /// The timer of a worker, if it wants one. Says whether it did.
    pub fn tick(&mut self, seat: usize) -> bool {
        let wanted = self
            .coalescer(seat)
            .is_some_and(|worker| worker.tick_period().is_some());
        if wanted {
            self.turn(seat, |coalescer, turn| coalescer.tick(turn));
            self.run();
        }
        wanted
    }

    /// The timers of all workers.
    pub fn tick_all(&mut self) {
        for seat in 0..self.workers() {
            self.tick(seat);
        }
    }

    /// The oldest message to a worker arrives.
    pub fn deliver(&mut self, seat: usize) {
        let Some(message) = self.next_message(seat) else {
            return;
        };
        let Some(Message::Flight(message)) = Message::decode(&message) else {
            panic!("a message of ours");
        };
        self.turn(seat, |coalescer, turn| coalescer.message(message, turn));
        self.run();
    }

    /// All messages arrive, and those that they lead to.
    pub fn deliver_all(&mut self) {
        while let Some(seat) = (0..self.workers()).find(|seat| self.messages(*seat) > 0) {
            self.deliver(seat);
        }
    }

    /// The oldest message to a worker is lost.
    pub fn lose(&mut self, seat: usize) {
        self.next_message(seat);
    }

    pub(super) fn next_message(&mut self, seat: usize) -> Option<Vec<u8>> {
        let worker = self.worker(seat)?;
        self.queues.get_mut(&worker)?.pop_front()
    }

    /// The oldest probe of a worker is answered.
    pub fn answer_probe(&mut self, seat: usize) {
        let Some(key) = self.seats[seat].probes.pop_front() else {
            return;
        };
        let readable = |until| Probed::Readable { until };
        let found = self.store.look_up(key, self.now);
        self.answer_probe_with(seat, key, found.map_or(Probed::Missing, readable));
    }

    /// A probe of a worker for `key` has found this.
    pub fn answer_probe_with(&mut self, seat: usize, key: KeyHash, probed: Probed) {
        self.turn(seat, |coalescer, turn| coalescer.probed(key, probed, turn));
        self.run();
    }

    /// The store has nothing for the oldest probe of a worker, and no room.
    pub fn refuse_probe(&mut self, seat: usize) {
        if let Some(key) = self.seats[seat].probes.pop_front() {
            self.turn(seat, |coalescer, turn| {
                coalescer.probed(key, Probed::NoRoom, turn)
            });
            self.run();
        }
    }

    /// The answer to the oldest probe of a worker is lost.
    pub fn lose_probe(&mut self, seat: usize) {
        self.seats[seat].probes.pop_front();
    }

    /// A worker looks for what it may have missed, as after a policy update.
    pub fn rescan_all(&mut self, seat: usize) {
        self.turn(seat, |coalescer, turn| coalescer.rescan_all(turn));
        self.run();
    }

    /// A worker's VM dies, and with it all that it was doing.
    pub fn kill(&mut self, seat: usize) {
        self.seats[seat] = Seat::empty();
        for client in self.open_clients() {
            if self.clients[client.0].seat == seat {
                self.detach(client);
            }
        }
        self.run();
    }

    /// A dead worker gets a new VM, with a number of its own.
    pub fn revive(&mut self, seat: usize) {
        if self.seats[seat].coalescer.is_none() {
            self.last_worker += 1;
            self.seats[seat].coalescer = Some(Coalescer::new(WorkerId(self.last_worker), 64));
        }
    }
}
