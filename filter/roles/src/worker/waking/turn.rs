// SPDX-License-Identifier: Apache-2.0
//! Turns of the coalescer: it handles an event, and the worker carries out the effects.

use sluice_core::coalescing::{Coalescer, Effect, Store as _, Turn};
use sluice_core::metrics::Metric;
use sluice_core::slices::asked::SliceState;
use sluice_core::workers::message::{FlightOutcome, Message};
use sluice_core::workers::{Millis, StreamId};

use crate::reply::DueReply;
use crate::reply::complete_reply::CompleteReply;
use crate::request::account;
use crate::request::call_kind::CallKind;
use crate::worker::Worker;
use crate::worker::own_requests::calls::BackgroundCall;
use crate::worker::waking::resumption;

impl Worker {
    /// Has the coalescer handle an event of `context`, carries out its effects, and resumes requests.
    pub fn turn<R>(
        &mut self,
        context: u32,
        event: impl FnOnce(&mut Coalescer, &mut Turn<'_>) -> R,
    ) -> R {
        let result = self.event(event);
        self.end_turn(context);
        result
    }

    /// Ends the flight that `stream` leads, if it leads one.
    pub fn end_flight(&mut self, context: u32, stream: StreamId, outcome: FlightOutcome) {
        self.turn(context, |coalescer, turn| {
            coalescer.end_flight(stream, outcome, turn);
        });
    }

    /// Resumes requests, and makes `context` the target of host calls again.
    fn end_turn(&mut self, context: u32) {
        resumption::resume_some(self);
        self.arm_timer();
        self.roots.restore(context);
    }

    /// Does the same as [`Worker::turn`], without resuming requests or restoring the context. For use inside a turn.
    pub(in crate::worker) fn event<R>(
        &mut self,
        event: impl FnOnce(&mut Coalescer, &mut Turn<'_>) -> R,
    ) -> R {
        let mut effects = Vec::new();
        let mut turn = Turn {
            store: &*self.host,
            now: self.host.monotonic_millis(),
            effects: &mut effects,
        };
        let result = event(&mut self.coalescer, &mut turn);
        self.carry_out_all(effects);
        result
    }

    fn carry_out_all(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Count(metric, amount) => self.metrics.count(metric, amount),
            Effect::Resume {
                stream,
                next_step,
                waited,
            } => {
                self.has_waited(stream, waited);
                self.wakeups.resume(stream, next_step);
            }
            Effect::Fail {
                stream,
                status,
                waited,
            } => {
                // The response in slices counts the failure of its first slice.
                if self.counts(stream) {
                    self.metrics.count(Metric::FollowersFailed, 1);
                }
                let failure = match self.is_of_former_version(stream) {
                    true => CompleteReply::outdated_slice(SliceState::Changed),
                    false => CompleteReply::failure(&self.identity.name, status, true),
                };
                let failure = DueReply::Complete(failure);
                self.answer_follower(stream, waited, account::FAILED, failure);
            }
            Effect::Confirm { key, target } => self.keys.confirm_current(key, &target),
            Effect::Learn { target, names } => self.keys.learn(&target, names),
            Effect::Notify { worker, message } => {
                let notified = self.roots.send(worker, &Message::Flight(message));
                self.metrics.check(notified);
            }
            Effect::Abort { stream } => match self.fills.context(stream) {
                Some(context) => self.answer_later(context, DueReply::Reset),
                None => self.event(|coalescer, turn| coalescer.fill_broken(stream, turn)),
            },
            Effect::Aborted { key } => {
                let now = self.host.monotonic_millis();
                self.confirmations.note_abort(key, now);
            }
            Effect::Await { key, fill } => {
                let now = self.host.monotonic_millis();
                self.confirmations.await_fill(key, fill, now);
                self.send_lookups();
            }
            Effect::AwaitNoMore { key } => self.confirmations.await_no_more(key),
        }
    }

    /// Whether a request counts as a request of a client.
    fn counts(&self, stream: StreamId) -> bool {
        let stream = self.requests.get(stream);
        stream.is_none_or(|stream| stream.counts)
    }

    /// Whether a request is for a slice of a version that the origin does not have any more.
    fn is_of_former_version(&self, stream: StreamId) -> bool {
        let stream = self.requests.get(stream);
        let slice = stream.and_then(|stream| stream.slice.clone());
        slice.is_some_and(|slice| {
            let etag = slice.of.index.etag();
            !self.slices.has_version(slice.of.object, etag)
        })
    }

    /// Passes the store's news about awaited responses to the coalescer, and asks the store again for the other
    /// responses.
    pub(in crate::worker) fn hear_store(&mut self) {
        let now = self.host.monotonic_millis();
        for (key, news) in self.confirmations.take_news(now) {
            self.turn(self.roots.serving(), |coalescer, turn| {
                coalescer.stored(key, news, turn);
            });
        }
        self.send_lookups();
        self.arm_timer();
    }

    /// Sends the lookups that are due.
    fn send_lookups(&mut self) {
        let now = self.host.monotonic_millis();
        for (key, target) in self.confirmations.take_due(now) {
            self.metrics.count(Metric::StoreLookups, 1);
            if let Some(policy) = self.policies.of_key(target.cache_key()).cloned() {
                let (host, kind) = (&*self.host, CallKind::Confirmation(key));
                self.calls
                    .push(BackgroundCall::new(host, kind, target, policy));
                self.roots.wake();
            }
        }
    }

    /// Records that a request has left the waiting list after `waited` milliseconds.
    pub(in crate::worker) fn has_waited(&mut self, stream: StreamId, waited: Millis) {
        self.metrics.count(Metric::FollowersResumed, 1);
        self.metrics.record(Metric::WaitMilliseconds, waited);
        if let Some(follower) = self.requests.get(stream) {
            follower.progress.account.has_waited(waited);
        }
    }
}
