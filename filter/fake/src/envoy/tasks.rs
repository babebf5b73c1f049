// SPDX-License-Identifier: Apache-2.0
//! The tasks that Envoy carries out after callbacks, in the order in which the callbacks asked for them.

use sluice_host::Half;

use super::FakeEnvoy;
use crate::exchange::Side;
use crate::process::Task;
use crate::records::{Client, Stage};

/// Tasks after callbacks.
impl FakeEnvoy {
    /// Carries out all tasks that are due.
    pub(super) fn run(&mut self) {
        loop {
            let task = self.process.tasks.borrow_mut().pop_front();
            match task {
                Some(task) => self.carry_out(task),
                None => break,
            }
        }
    }

    fn carry_out(&mut self, task: Task) {
        match task {
            Task::Resume(seat, context, half, before) => {
                let Some((client, Side::Edge)) = self.stream_of(seat, context) else {
                    return;
                };
                match half {
                    Half::Request => self.resume_request(client, &before),
                    Half::Response => self.resume_response(client),
                }
            }
            Task::Reset {
                seat,
                context,
                foreign,
            } => {
                if foreign && self.slow_aborts {
                    self.aborts.push_back((seat, context));
                } else {
                    self.reset_stream(seat, context);
                }
            }
            Task::Reply(seat, context, reply) => match self.stream_of(seat, context) {
                Some((client, Side::Edge)) => self.reply(client, reply),
                Some((client, Side::Origin)) => {
                    self.upstream_answers(client, reply.headers, reply.body);
                    self.upstream_sends_rest(client);
                }
                None => {}
            },
            Task::Ready(seat, context) if self.hold_turns => self.turns.push_back((seat, context)),
            Task::Ready(seat, context) => self.give_turn(seat, context),
            Task::Proceed(client, before) => self.proceed(client, &before),
            Task::Call(call) => self.place_call(call),
        }
    }

    pub(super) fn stream_of(&self, seat: usize, context: u32) -> Option<(Client, Side)> {
        self.contexts.get(&(seat, context)).copied()
    }

    fn reset_stream(&mut self, seat: usize, context: u32) {
        match self.stream_of(seat, context) {
            Some((client, Side::Edge)) => self.truncate(client),
            Some((client, Side::Origin)) => self.break_upstream(client),
            None => {}
        }
    }

    /// Gives root contexts the turns that they have asked for.
    pub fn take_turns(&mut self) {
        for (seat, context) in std::mem::take(&mut self.turns) {
            self.give_turn(seat, context);
            self.run();
        }
    }

    fn give_turn(&mut self, seat: usize, context: u32) {
        self.process.hears.set(true);
        self.call_root(seat, context, |root, worker| root.on_queue_ready(worker));
        self.process.hears.set(false);
    }

    /// Carries out the resets in the name of other streams.
    pub fn carry_out_aborts(&mut self) {
        while let Some((seat, context)) = self.aborts.pop_front() {
            self.reset_stream(seat, context);
            self.run();
        }
    }

    /// Drops the resets in the name of other streams.
    pub fn lose_aborts(&mut self) {
        self.aborts.clear();
    }

    pub(super) fn set_stage(&mut self, client: Client, stage: Stage) {
        if !self.is_over(client) {
            self.clients[client.0].stage = stage;
        }
    }

    /// Whether a request is over.
    pub fn is_over(&self, client: Client) -> bool {
        matches!(self.stage(client), Stage::Over(_))
    }
}
