// SPDX-License-Identifier: Apache-2.0
//! The end of a callback: the worker carries out the effects of the coalescer's events, and resumes requests.

use sluice_core::coalescing::{Effect, Store as _};
use sluice_core::metrics::Metric;
use sluice_core::slices::asked::SliceState;
use sluice_core::workers::message::Message;
use sluice_core::workers::{Millis, StreamId};

use crate::reply::DueReply;
use crate::reply::complete_reply::CompleteReply;
use crate::reply::substitute::FailedResponse;
use crate::request::account;
use crate::request::call_kind::CallKind;
use crate::worker::Worker;
use crate::worker::coalescing::requests::OpenRequests;
use crate::worker::own_requests::calls::{BackgroundCall, Calls};
use crate::worker::own_requests::substitutes::look_for_substitute;
use crate::worker::policies::Policies;
use crate::worker::slices::KnownObjects;
use crate::worker::waking::resumption;
use sluice_store::Confirmations;

impl Worker {
    /// Ends a callback: carries out the effects of its events, resumes requests, and requests a turn of the root
    /// context for everything that waits for one. Afterwards host calls are directed at the root context.
    pub fn settle(&mut self) {
        if self.coalescing.take_change() {
            self.carry_out_effects();
            resumption::resume_some(self);
            self.coalescing.take_change();
            self.arm_timer();
            self.roots.restore(self.roots.serving());
        }
        if self.coalescing.wakeups.take_demand() | self.calls.take_demand() {
            self.roots.wake();
        }
    }

    /// Carries out the effects of the events that the coalescer has handled.
    pub(in crate::worker) fn carry_out_effects(&mut self) {
        for effect in self.coalescing.take_effects() {
            match effect {
                Effect::Count(metric, amount) => self.metrics.count(metric, amount),
                Effect::Resume {
                    stream,
                    next_step,
                    waited,
                } => {
                    self.coalescing.has_waited(stream, waited);
                    self.coalescing.wakeups.resume(stream, next_step);
                }
                Effect::Fail {
                    stream,
                    status,
                    waited,
                } => {
                    // The response in slices counts the failure of its first slice.
                    let follower = self.coalescing.requests.get(stream);
                    if follower.is_none_or(|follower| follower.counts) {
                        self.metrics.count(Metric::FollowersFailed, 1);
                    }
                    self.fail(stream, status, waited);
                }
                Effect::Confirm { key, target } => self.keys.confirm_current(key, &target),
                Effect::Learn { target, names } => self.keys.learn(&target, names),
                Effect::Notify { worker, message } => {
                    let notified = self.roots.send(worker, &Message::Flight(message));
                    self.metrics.check(notified);
                }
                Effect::Abort { stream } => match self.fills.context(stream) {
                    Some(context) => self.coalescing.wakeups.reset(context),
                    None => {
                        self.coalescing
                            .turn(|coalescer, turn| coalescer.fill_broken(stream, turn));
                        self.carry_out_effects();
                    }
                },
                Effect::Aborted { key } => {
                    let now = self.host.monotonic_millis();
                    self.confirmations.note_abort(key, now);
                }
                Effect::Await { key, fill } => {
                    let now = self.host.monotonic_millis();
                    self.confirmations.await_fill(key, fill, now);
                    send_lookups(&mut self.confirmations, &self.policies, &mut self.calls);
                }
                Effect::AwaitNoMore { key } => self.confirmations.await_no_more(key),
            }
        }
    }

    /// Answers a follower whose leader got an error with this `status`: by the error document, if the site has one.
    fn fail(&mut self, stream: StreamId, status: u16, waited: Millis) {
        let follower = self.coalescing.requests.get(stream);
        let error = FailedResponse::dropped(status);
        let documented = follower.as_ref().is_some_and(|follower| {
            look_for_substitute(&self.keys, &mut self.calls, follower, error, None)
        });
        if let Some(follower) = follower.as_ref().filter(|_| documented) {
            self.coalescing.has_waited(stream, waited);
            follower.progress.answered.set(true);
            follower.progress.account.results_in(account::FAILED);
            return;
        }
        let outdated = is_of_former_version(&self.coalescing.requests, &self.slices, stream);
        let failure = match outdated {
            true => CompleteReply::outdated_slice(SliceState::Changed),
            false => CompleteReply::failure(&self.identity.name, status, true),
        };
        let failure = match follower.filter(|_| !outdated) {
            Some(follower) => failure.explained(&follower.policy.policy),
            None => failure,
        };
        let failure = DueReply::Complete(failure);
        self.coalescing
            .answer_follower(stream, waited, account::FAILED, failure);
    }

    /// Passes the store's news about awaited responses to the coalescer, and asks the store again for the other
    /// responses.
    pub(in crate::worker) fn hear_store(&mut self) {
        self.carry_out_effects();
        let now = self.host.monotonic_millis();
        for (key, news) in self.confirmations.take_news(now) {
            self.coalescing
                .turn(|coalescer, turn| coalescer.stored(key, news, turn));
            self.carry_out_effects();
        }
        send_lookups(&mut self.confirmations, &self.policies, &mut self.calls);
        self.arm_timer();
    }
}

/// Whether a request is for a slice of a version that the origin does not have any more.
fn is_of_former_version(requests: &OpenRequests, slices: &KnownObjects, stream: StreamId) -> bool {
    let stream = requests.get(stream);
    let slice = stream.and_then(|stream| stream.slice.clone());
    slice.is_some_and(|slice| {
        let etag = slice.of.index.etag();
        !slices.has_version(slice.of.object, etag)
    })
}

/// Sends the lookups that are due.
fn send_lookups(confirmations: &mut Confirmations, policies: &Policies, calls: &mut Calls) {
    let now = calls.host.monotonic_millis();
    for (key, target) in confirmations.take_due(now) {
        calls.metrics.count(Metric::StoreLookups, 1);
        if let Some(policy) = policies.of_key(target.cache_key()).cloned() {
            let kind = CallKind::Confirmation(key);
            calls.push(BackgroundCall::new(kind, target, policy));
        }
    }
}
