// SPDX-License-Identifier: Apache-2.0
//! Replies to paused requests, which wait for the root context's turn.

use std::rc::Rc;

use sluice_core::http::conditional::demand::Demand;
use sluice_core::metrics::Metric;
use sluice_core::workers::{Millis, StreamId};

use super::Coalescing;
use super::slice_arrivals::note_arrival;
use crate::reply::DueReply;
use crate::reply::complete_reply::CompleteReply;
use crate::request::EdgeRequest;
use crate::request::account::result_of;
use crate::worker::identity::Identity;
use crate::worker::roots::Roots;

impl Coalescing {
    /// Answers a follower that has waited for `waited` milliseconds. The access log shows `result`.
    pub(in crate::worker) fn answer_follower(
        &mut self,
        stream: StreamId,
        waited: Millis,
        result: &'static str,
        answer: DueReply,
    ) {
        self.has_waited(stream, waited);
        if let Some(follower) = self.requests.get(stream) {
            follower.progress.answered.set(true);
            let account = &follower.progress.account;
            account.results_in(result);
            if follower.counts {
                self.metrics
                    .count_uncacheable(&follower.policy, account.uncacheable());
            }
            self.wakeups.answer(stream.0, answer);
        }
    }

    /// Sends the replies for one turn of the root context.
    pub(in crate::worker) fn send_answers(&mut self, roots: &Roots, identity: &Identity) {
        for (context, answer) in self.wakeups.take_replies() {
            if matches!(answer, DueReply::Reset) {
                self.metrics.count(Metric::FillsAborted, 1);
            }
            let acting = roots.act_as(context);
            let answered = acting.and_then(|host| answer.send(host, &identity.name));
            self.metrics.check(answered);
        }
        roots.restore(roots.serving());
    }

    /// Answers the conditional followers of `filled` for which the headers of its response suffice.
    pub fn answer_followers(
        &mut self,
        filled: &EdgeRequest,
        answer: impl Fn(&Demand) -> Option<CompleteReply>,
    ) {
        self.answer_alike(filled, |follower| {
            let demand = follower.demand.as_ref();
            let demand = demand.filter(|_| follower.needs_background_leader());
            demand.and_then(&answer).map(DueReply::Complete)
        });
    }

    /// Answers the followers of `leader` on this worker for which `answer` has a reply.
    pub fn answer_alike(
        &mut self,
        leader: &EdgeRequest,
        answer: impl Fn(&Rc<EdgeRequest>) -> Option<DueReply>,
    ) {
        let (now, requests) = (self.host.monotonic_millis(), &self.requests);
        let answered = self.coalescer.answer_waiting(leader.key.key, now, |id| {
            let follower = requests.get(id)?;
            let alike = follower.is_alike(leader);
            alike.then(|| answer(&follower)).flatten()
        });
        for (id, waited, answer) in answered {
            let result = Metric::RequestsCollapsed;
            self.count_shared(leader, id, result);
            self.answer_follower(id, waited, result_of(result), answer);
        }
    }

    /// Counts a request, or the request for a slice, that gets the response to another one.
    fn count_shared(&self, leader: &EdgeRequest, follower: StreamId, result: Metric) {
        let follower = self.requests.get(follower);
        if let Some(slice) = follower.as_ref().and_then(|it| it.slice.as_ref()) {
            note_arrival(&self.metrics, &leader.policy, slice, result);
        }
        if follower.is_none_or(|follower| follower.counts) {
            self.metrics.count_of(&leader.policy, result);
        }
    }
}
