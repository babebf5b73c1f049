// SPDX-License-Identifier: Apache-2.0
//! EDGE: the role between the client and Envoy's cache filter.
//!
//! The request path makes the request canonical and lets the coalescer decide whether the request leads, waits or
//! passes (`request`). The response path reports the response to the coalescer and turns it into what the client
//! should see (`response`).

mod access;
mod authorization_sharing;
mod cors;
mod first_byte;
mod hot;
mod invalidation;
mod peer;
mod peer_slice;
mod record;
pub mod request;
mod response;
mod site;
mod website;

use crate::worker::coalescing::requests::OpenRequests;
use crate::worker::keys::Keys;
use crate::worker::metrics::Metrics;
use crate::worker::purges::purge_calls::PurgeCalls;
use crate::worker::roots::Roots;
use std::rc::Rc;

use access::{CheckerAnswer, Question};
use cors::Cors;
use first_byte::FirstByteTimer;
use invalidation::Invalidation;
pub use peer::hear_of_feed;
use record::RequestRecord;
use response::own_response::{respond_filled, respond_refreshed};
use response::sliced::{note_slice, respond as respond_sliced};
use response::{respond_cached, respond_passed};
pub use site::server_name;
use sluice_core::admission::PassReason;
use sluice_core::coalescing::StoreRequest;
use sluice_core::host::HostError;
use sluice_core::key::{CanonicalTarget, Rejection};
use sluice_core::metrics::Metric;
use sluice_core::policy::CorsPolicy;
use sluice_core::purge::AppliedPurges;
use sluice_core::sites::SiteIndex;
use sluice_core::workers::StreamId;

use crate::callbacks::StreamContext;
use crate::reply::answer_rejection;
use crate::reply::complete_reply::CompleteReply;
use crate::request::EdgeRequest;
use crate::request::account::{result_of, tell_result, tell_slices};
use crate::request::policy::{Generation, NumberedPolicy};
use crate::request::sliced::RequestedSlice;
use crate::worker::own_requests::substitutes;
use crate::worker::{Worker, identity::Identity};
use sluice_host::{self as host, Action, Half, Host, Map};

/// The reason why a request cannot be handled.
enum Refusal {
    /// The request's URL or method is rejected.
    Rejected(Rejection),
    /// A host call failed, so the request could not be read.
    Host(HostError),
    /// The request arrived through the background listener, but belongs to no call of this worker: a former VM has
    /// sent it.
    Stranger,
    /// A server that was asked refuses the client.
    Checker(Box<CheckerAnswer>),
    /// The request arrived at the port for peers, but no peer has sent it.
    NoPeer,
    /// A peer has sent it, which has applied purges that this edge lacks.
    LacksPurges,
}

impl Refusal {
    /// Counts the refusal of a request under that policy.
    fn count(&self, metrics: &Metrics, policy: &NumberedPolicy) {
        match self {
            // The request belongs to no site.
            Self::Rejected(Rejection::Misdirected | Rejection::NoSite) => {
                metrics.count(Metric::RequestsRejected, 1);
            }
            Self::Rejected(_) | Self::Checker(_) => {
                metrics.count_of(policy, Metric::RequestsRejected);
            }
            Self::Host(error) => metrics.fault("a request could not be read", *error),
            Self::NoPeer => metrics.count(Metric::PeersRefused, 1),
            Self::LacksPurges => metrics.count(Metric::PeersLacking, 1),
            Self::Stranger => {}
        }
    }
}

impl From<HostError> for Refusal {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

/// The state of a request in EDGE.
#[derive(Debug)]
enum State {
    /// EDGE changes nothing: the headers have not arrived, or the filter has sent the request, as a lookup or a similar
    /// request, or back to EDGE.
    Unchanged,
    /// The first part of its body has not arrived. A bucket's request with a body is refused.
    Awaiting(CanonicalTarget),
    /// A server is asked whether its client may read the site.
    Asking(Box<Question>),
    /// EDGE has answered it.
    Answered {
        /// Whether the answer has a media type. Envoy adds one to an answer that has none, which must be removed.
        typed: bool,
    },
    /// Its method or headers make it bypass the store.
    Passed(PassReason, CanonicalTarget),
    /// The slicer's request for a slice, which a peer owns.
    SentToPeer(Rc<RequestedSlice>),
    /// Sent to the store, or around it because its key is uncacheable. Or it waits.
    Cached(Rc<EdgeRequest>),
}

/// A request in the EDGE role.
#[derive(Debug)]
pub struct Edge {
    id: StreamId,
    generation: Rc<Generation>,
    /// The site of the request, unless that has been removed.
    site: Option<SiteIndex>,
    /// The policy of that site.
    policy: NumberedPolicy,
    identity: Rc<Identity>,
    /// Whether the client has used HTTPS.
    is_secure: bool,
    state: State,
    /// Cross-origin resource sharing for the request, if the edge answers for that.
    cors: Option<Cors>,
    /// The URLs that the request invalidates when it succeeds, if its method is unsafe.
    invalidation: Option<Invalidation>,
    /// The cookies that a server which was asked sets for the client.
    client_cookies: Vec<Vec<u8>>,
    /// Whether it waits for the first part of its body.
    awaits_body: bool,
    first_byte: FirstByteTimer,
    /// Bytes of the body of a response that EDGE does not look at.
    unseen_bytes: u64,
    /// The status that reports to a background call, which buffers the response, that the response is too large.
    too_large: Option<u16>,
    /// Whether the slicer has sent it. Its client is the client of another request.
    is_slicers: bool,
    /// Whether it has arrived at the port for peers.
    is_at_peers_port: bool,
    /// The purges that the peer has applied which has sent it.
    peers_purges: Option<AppliedPurges>,
    /// The record of the request, if it is recorded.
    record: Option<Box<RequestRecord>>,
}

impl Edge {
    /// Creates a request for one of the sites of `generation`. `identity` vouches for it in ORIGIN. Until its site is
    /// known, it has `policy`, that of the first site.
    pub fn new(
        context: u32,
        generation: Rc<Generation>,
        policy: NumberedPolicy,
        identity: Rc<Identity>,
    ) -> Self {
        Self {
            id: StreamId(context),
            generation,
            site: Some(0),
            policy,
            identity,
            is_secure: false,
            state: State::Unchanged,
            cors: None,
            invalidation: None,
            client_cookies: Vec::new(),
            awaits_body: false,
            first_byte: FirstByteTimer::Off,
            unseen_bytes: 0,
            too_large: None,
            is_slicers: false,
            is_at_peers_port: false,
            peers_purges: None,
            record: None,
        }
    }

    fn cors_policy(&self) -> Option<&CorsPolicy> {
        self.policy.policy.website.cors.as_ref()
    }

    /// Adds the CORS and HSTS headers to the response.
    fn mark_response(&self, host: &dyn Host) -> Result<(), HostError> {
        self.mark_secure(host)?;
        match (&self.cors, self.cors_policy()) {
            (Some(cors), Some(policy)) => cors.mark_response(host, policy),
            _ => Ok(()),
        }
    }

    /// Loads the record of the request, which the worker may have replaced while the request waited.
    fn pick_up_record(&mut self, requests: &OpenRequests) {
        if let State::Cached(stream) = &mut self.state
            && let Some(known) = requests.get(stream.id)
        {
            *stream = known;
        }
    }

    fn invalidate(
        &self,
        host: &dyn Host,
        keys: &mut Keys,
        roots: &mut Roots,
        purge_calls: &mut PurgeCalls,
    ) -> Result<(), HostError> {
        let change = self.invalidation.as_ref();
        change.map_or(Ok(()), |change| {
            change.note(host, keys, roots, purge_calls, &self.policy.policy)
        })
    }

    /// Writes the result of the request into Envoy's filter state for the access log, if the log shows that.
    fn tell(&self, host: &dyn Host, metrics: &Metrics) {
        if !self.policy.policy.response.account {
            return;
        }
        let told = match &self.state {
            State::Cached(stream) if !stream.is_own() => {
                stream.progress.account.tell(host, stream.key.key)
            }
            State::Passed(..) => tell_result(host, result_of(Metric::RequestsPassed)),
            _ => Ok(()),
        };
        if let Err(error) = told {
            metrics.fault("the access log lacks a request", error);
        }
    }

    /// The bytes of the body that the client got. The filter's own requests have no client.
    fn bytes_sent(&self) -> u64 {
        match &self.state {
            _ if self.is_slicers => 0,
            State::Unchanged | State::SentToPeer(_) => 0,
            State::Awaiting(_) | State::Asking(_) | State::Answered { .. } | State::Passed(..) => {
                self.unseen_bytes
            }
            State::Cached(stream) if stream.is_own() => 0,
            State::Cached(stream) => stream.body.sent.get(),
        }
    }

    /// Handles the headers of the response, which ends with them if `end_of_stream`.
    fn respond(&mut self, worker: &mut Worker, end_of_stream: bool) -> Action {
        self.pick_up_record(&worker.coalescing.requests);
        if let State::Cached(stream) = &self.state {
            stream.body.missing.set(end_of_stream);
        }
        // This comes first, because the next step may take the response's headers away.
        let marked = self.mark_response(&*worker.host);
        let outcome = self.make_response(worker);
        let action = outcome
            .and_then(|action| marked.map(|()| action))
            .unwrap_or_else(|error| {
                worker
                    .metrics
                    .fault("a response could not be finished", error);
                Action::Continue
            });
        if let State::Cached(stream) = &self.state
            && let Some(slice) = &stream.slice
        {
            worker.metrics.check(note_slice(&*worker.host, slice));
        }
        self.tell(&*worker.host, &worker.metrics);
        if action == Action::Continue {
            self.pass_first_byte(&*worker.host, &worker.metrics);
        }
        action
    }

    /// Notes that the response begins to reach its client.
    fn pass_first_byte(&mut self, host: &dyn Host, metrics: &Metrics) {
        let metric = match &self.state {
            State::Answered { .. } => Some(Metric::FirstByteHit),
            State::Passed(..) => Some(Metric::FirstByteMiss),
            State::Cached(stream) => stream.first_byte_metric(),
            State::Unchanged | State::Awaiting(_) | State::Asking(_) | State::SentToPeer(_) => None,
        };
        if let Some(metric) = metric {
            self.first_byte.stop(host, metrics, &self.policy, metric);
        }
    }

    /// Turns the response into the one that its client, or the worker that requested it, should get.
    fn make_response(&self, worker: &mut Worker) -> host::Result<Action> {
        let Worker {
            host,
            metrics,
            identity,
            keys,
            roots,
            coalescing,
            purge_calls,
            ..
        } = worker;
        let host = &**host;
        match &self.state {
            State::Unchanged
            | State::Awaiting(_)
            | State::Asking(_)
            | State::Answered { typed: true } => Ok(Action::Continue),
            State::SentToPeer(slice) => self.respond_to_slicer(worker, slice),
            State::Answered { typed: false } => host
                .remove_header(Map::Response, "content-type")
                .map(|()| Action::Continue),
            State::Cached(stream) if stream.progress.answered_untyped.get() => host
                .remove_header(Map::Response, "content-type")
                .map(|()| Action::Continue),
            State::Passed(reason, target) => self
                .invalidate(host, keys, roots, purge_calls)
                .and_then(|()| {
                    let policy = &self.policy.policy;
                    respond_passed(host, identity, *reason, policy, target)
                }),
            State::Cached(stream) if stream.progress.answered.get() => Ok(Action::Continue),
            State::Cached(stream) if stream.for_others => respond_filled(worker, stream),
            State::Cached(stream) => match stream.progress.request() {
                StoreRequest::Refresh => respond_refreshed(identity, keys, coalescing, stream),
                StoreRequest::Slice => {
                    let action = respond_sliced(host, metrics, identity, stream)?;
                    self.tell_large(host).map(|()| action)
                }
                _ => {
                    let action = respond_cached(worker, stream)?;
                    let bound = |status| website::bound_document(&*worker.host, stream, status);
                    self.too_large.map_or(Ok(()), bound).map(|()| action)
                }
            },
        }
    }

    /// Counts a request whose headers have been handled. Forgets it if it is refused.
    fn note_received(&self, worker: &mut Worker, received: &Result<Action, Refusal>) {
        match received {
            Ok(_) if matches!(self.state, State::Passed(..)) && !self.awaits_body => {
                worker
                    .metrics
                    .count_of(&self.policy, Metric::RequestsPassed);
            }
            Ok(_) => {}
            Err(refusal) => {
                worker.close(self.id);
                refusal.count(&worker.metrics, &self.policy);
            }
        }
    }

    /// Records for the operator and the access log that the request is rejected.
    fn note_rejected(&mut self, host: &dyn Host) {
        self.record_result(Metric::RequestsRejected);
        if self.policy.policy.response.account {
            // A failure affects only the access log, so the client still gets its answer.
            let _ = tell_result(host, result_of(Metric::RequestsRejected));
        }
    }

    fn refuse(&mut self, host: &dyn Host, refusal: &Refusal) {
        self.state = State::Answered { typed: true };
        let answered = match refusal {
            Refusal::Rejected(rejection) => {
                self.note_rejected(host);
                answer_rejection(
                    host,
                    &self.identity.name,
                    &self.challenges(*rejection),
                    *rejection,
                )
            }
            Refusal::Checker(answer) => {
                self.state = State::Answered {
                    typed: answer.is_typed(),
                };
                self.note_rejected(host);
                answer.send(host, &self.identity.name)
            }
            Refusal::NoPeer => peer::answer_stranger(host),
            Refusal::LacksPurges => peer::send_elsewhere(host),
            Refusal::Host(_) | Refusal::Stranger => {
                CompleteReply::failure(&self.identity.name, 503, false).send(host)
            }
        };
        if answered.is_err() {
            // Without an answer the request must not continue either: end the stream.
            let _ = host.reset(Half::Request);
        }
    }
}

impl StreamContext for Edge {
    fn on_request_headers(
        &mut self,
        host: &dyn Host,
        mut worker: Option<&mut Worker>,
        ends: bool,
    ) -> Action {
        let received = self.receive(host, worker.as_deref_mut(), ends);
        if let Some(worker) = worker {
            self.note_received(worker, &received);
        }
        received.unwrap_or_else(|refusal| {
            self.refuse(host, &refusal);
            Action::Pause
        })
    }

    fn on_request_body(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        size: usize,
        ends: bool,
    ) -> Action {
        match &mut self.state {
            _ if self.awaits_body => self.take_body(host, worker, size > 0, ends),
            State::Asking(question) => {
                question.note_body(size > 0, ends);
                Action::Pause
            }
            State::Answered { .. } => Action::Pause,
            _ => Action::Continue,
        }
    }

    fn on_request_trailers(&mut self, host: &dyn Host, worker: Option<&mut Worker>) -> Action {
        self.on_request_body(host, worker, 0, true)
    }

    fn on_response_headers(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        ends: bool,
    ) -> Action {
        let action = match worker {
            Some(worker) => {
                let action = self.respond(worker, ends);
                // NB: behind everything that copies the response for other clients.
                self.tell_purges(host, &worker.keys);
                action
            }
            None => {
                // If this fails, the client sees the `Cache-Control` that was meant for Envoy's cache.
                let _ = sluice_store::unmark_around(host);
                Action::Continue
            }
        };
        // NB: behind everything that copies the response for other clients.
        let cookies = self.client_cookies.iter();
        let added = cookies.map(|cookie| host.add_header(Map::Response, "set-cookie", cookie));
        // The host has no headers of a response that is answered in a later turn.
        let _ = added.collect::<Result<Vec<_>, _>>();
        self.record_response(host);
        action
    }

    fn on_call_response(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        answered: bool,
        size: usize,
    ) {
        self.hear_checker(host, worker, answered, size);
    }

    fn on_response_body(
        &mut self,
        host: &dyn Host,
        mut worker: Option<&mut Worker>,
        size: usize,
        ends: bool,
    ) -> Action {
        let State::Cached(stream) = &self.state else {
            self.unseen_bytes += size as u64;
            self.record_body(size);
            return Action::Continue;
        };
        let passed = stream.body.wait(host, size, ends).and_then(|waits| {
            if waits {
                if let Some(worker) = &mut worker {
                    substitutes::settle(&mut worker.coalescing, &mut worker.calls, stream);
                }
                return Ok(Action::Pause);
            }
            stream.body.bytes.set(stream.body.bytes.get() + size as u64);
            if (ends || stream.body.is_copied())
                && let Some(worker) = &mut worker
            {
                hot::observe_body(&mut worker.keys, &mut worker.coalescing, stream, size, ends);
            }
            stream.body.pass(host, size).map(|()| Action::Continue)
        });
        let action = passed.unwrap_or_else(|error| {
            if let Some(worker) = worker.as_deref() {
                worker.metrics.fault("a response was cut off", error);
            }
            let _ = host.reset(Half::Response);
            Action::Pause
        });
        if let (Action::Continue, Some(worker)) = (action, worker) {
            // The response was held at its headers.
            self.pass_first_byte(&*worker.host, &worker.metrics);
        }
        action
    }

    fn on_response_trailers(&mut self, host: &dyn Host, worker: Option<&mut Worker>) -> Action {
        let State::Cached(stream) = &self.state else {
            return Action::Continue;
        };
        match stream.body.kept() {
            Some(size) => self.on_response_body(host, worker, size, true),
            None => Action::Continue,
        }
    }

    /// Also reports a client that has left before its response.
    fn on_log(&mut self, _: &dyn Host, worker: Option<&mut Worker>) {
        let Some(worker) = worker else { return };
        if let State::Cached(stream) = &self.state {
            self.tell(&*worker.host, &worker.metrics);
            let sliced = stream.progress.sliced.borrow().clone();
            if let Some(sliced) = sliced.filter(|_| self.policy.policy.response.account) {
                let told = tell_slices(&*worker.host, sliced.begun.get(), sliced.led.get());
                if let Err(error) = told {
                    worker.metrics.fault("the access log lacks slices", error);
                }
            }
        }
        self.end_record(
            &*worker.host,
            &worker.coalescing.requests,
            &mut worker.recorder,
        );
    }

    fn on_done(&mut self, mut worker: Option<&mut Worker>) {
        if self.awaits_body
            && let Some(worker) = &mut worker
        {
            worker.bodies.end(self.id);
        }
        let Some(worker) = worker else { return };
        let sent = self.bytes_sent();
        worker.metrics.add_of(&self.policy, Metric::BytesSent, sent);
        match &self.state {
            State::Cached(stream) => worker.close(stream.id),
            State::SentToPeer(slice) => {
                let client = worker.coalescing.requests.get(slice.of.client);
                slice.ends(self.unseen_bytes, client.is_some());
            }
            _ => {}
        }
    }
}
