// SPDX-License-Identifier: Apache-2.0
//! Requests of the filter, which arrive in EDGE through the background listener.

use std::rc::Rc;

use sluice_core::admission::RequestFacts;
use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_core::freshness::UncacheableReason;
use sluice_core::http::caching::client_control::ClientDemand;
use sluice_core::key::CanonicalTarget;
use sluice_store::{LINK_HEADER, Link};

use super::headers::{set_target, take_path};
use crate::edge::first_byte::FirstByteTimer;
use crate::edge::{Edge, Refusal, State};
use crate::reply::substitute::TOO_LARGE;
use crate::request::EdgeRequest;
use crate::request::call_kind::CallKind;
use crate::request::headers::{avoid_the_store, may_share};
use crate::worker::Worker;
use crate::worker::keys::Keys;
use crate::worker::own_requests::call_ends;
use crate::worker::own_requests::calls::{BackgroundCall, Calls};
use crate::worker::waking::resumption;
use sluice_host::headers::Headers;
use sluice_host::{Action, Map};

impl Edge {
    /// Handles a request of the filter. Its target is already canonical.
    pub(in crate::edge) fn receive_own(
        &mut self,
        worker: &mut Worker,
        link: Link,
        headers: &Headers,
    ) -> Result<Action, Refusal> {
        take_path(&*worker.host, headers)?;
        if link.request.is_relinked() {
            worker.host.remove_header(Map::Request, LINK_HEADER)?;
        }
        match link.request {
            StoreRequest::Refresh => {
                let stream = self.own_request(&worker.keys, call_of(&worker.calls, link)?);
                let stream = self.forward(worker, stream, NextStep::Send(link.request))?;
                self.state = State::Cached(stream);
                Ok(Action::Continue)
            }
            StoreRequest::Call => self.receive_call(worker, call_of(&worker.calls, link)?, headers),
            StoreRequest::Slice => {
                let action = self.receive_slice(worker, link, headers);
                // Its first byte is not that of a client's response.
                self.first_byte = FirstByteTimer::Off;
                action
            }
            request => {
                self.state = State::Unchanged;
                if request.avoids_the_store() {
                    avoid_the_store(&*worker.host, false)?;
                } else {
                    let now = worker.host.monotonic_millis();
                    worker.room.look_anew(&*worker.host, now)?;
                }
                Ok(Action::Continue)
            }
        }
    }

    /// A request for the response of `call`, under its key.
    fn own_request(&self, keys: &Keys, call: BackgroundCall) -> EdgeRequest {
        let key = keys.flight_key(&call.target);
        EdgeRequest::new(self.id, key, call.target, call.policy, false)
    }

    /// Sends a request of the filter on without a decision of the coalescer.
    pub(super) fn forward(
        &self,
        worker: &mut Worker,
        stream: EdgeRequest,
        next_step: NextStep,
    ) -> Result<Rc<EdgeRequest>, Refusal> {
        let stream = Rc::new(stream);
        worker.coalescing.requests.open(&stream);
        resumption::send(worker, &stream, next_step)?;
        Ok(stream)
    }

    /// Handles a request like a client's, as its call says.
    fn receive_call(
        &mut self,
        worker: &mut Worker,
        mut call: BackgroundCall,
        headers: &Headers,
    ) -> Result<Action, Refusal> {
        match call.kind {
            CallKind::Fill(_) => self.receive_fill(worker, call, headers),
            CallKind::Created => {
                let mut target = CanonicalTarget::clone(&call.target);
                self.complete_target(&mut worker.keys, &call, &mut target, headers)?;
                call.target = Rc::new(target);
                self.receive_fill(worker, call, headers)
            }
            CallKind::Index(_) => {
                let (keys, slices) = (&worker.keys, &worker.slices);
                let stream =
                    self.index_request(keys, slices, &mut worker.coalescing, call, headers)?;
                let action = self.admit(worker, stream, &ClientDemand::Shared);
                // Its first byte is not that of a client's response.
                self.first_byte = FirstByteTimer::Off;
                action
            }
            CallKind::Substitute(_)
            | CallKind::Around(_)
            | CallKind::Again(_)
            | CallKind::Variant(_) => match reason_to_avoid_the_store(&call) {
                Some(reason) => {
                    self.too_large = Some(TOO_LARGE);
                    let stream = self.own_request(&worker.keys, call);
                    let stream = self.forward(worker, stream, NextStep::HitForMiss(reason))?;
                    self.state = State::Cached(stream);
                    Ok(Action::Continue)
                }
                None => {
                    let (stream, way) = self.document_request(&mut worker.keys, call, headers)?;
                    self.admit(worker, stream, &way)
                }
            },
            CallKind::Confirmation(_)
            | CallKind::Look(_)
            | CallKind::Refresh(_)
            | CallKind::Size(_)
            | CallKind::Inspection(_)
            | CallKind::Feed => Err(Refusal::Stranger),
        }
    }

    /// Leads for the requests that wait for this call, unless they do not need that any more.
    fn receive_fill(
        &mut self,
        worker: &mut Worker,
        call: BackgroundCall,
        headers: &Headers,
    ) -> Result<Action, Refusal> {
        let id = self.id;
        let key = worker.keys.flight_key(&call.target);
        let (policy, cache_key) = (&call.policy.policy, call.target.cache_key());
        let may_share = may_share(policy, cache_key, headers);
        let own_headers = self.identity.own_headers(policy, cache_key, headers);
        let stream = Rc::new(EdgeRequest {
            for_others: true,
            is_for_created: call.kind == CallKind::Created,
            selecting: Some(Rc::new(headers.clone())),
            own_headers,
            may_share,
            may_lead: may_share,
            ..EdgeRequest::new(id, key, call.target, call.policy, false)
        });
        worker.coalescing.requests.open(&stream);
        let admission = worker
            .coalescing
            .turn(|coalescer, turn| coalescer.request(&stream.request(), turn));
        call_ends::prepared(
            &worker.keys,
            &mut worker.slices,
            &mut worker.coalescing,
            &mut worker.calls,
            call.kind,
            None,
        );
        let action = match admission {
            Some(NextStep::Send(StoreRequest::Lead)) => {
                resumption::send(worker, &stream, NextStep::Send(StoreRequest::Lead))?;
                Action::Continue
            }
            // Another request leads, and its client may leave, so this one waits.
            None => Action::Pause,
            Some(_) => {
                stream.progress.answered.set(true);
                worker.host.respond(204, "sluice_unneeded", &[], "")?;
                Action::Pause
            }
        };
        self.state = State::Cached(stream);
        Ok(action)
    }

    /// Completes the target of a call like that of a client's request, and sets it.
    fn complete_target(
        &self,
        keys: &mut Keys,
        call: &BackgroundCall,
        target: &mut CanonicalTarget,
        headers: &Headers,
    ) -> Result<(), Refusal> {
        let policy = &call.policy.policy;
        let is_exact = matches!(call.kind, CallKind::Variant(_) | CallKind::Again(_));
        if !is_exact {
            keys.qualify_generation(policy, target);
            let varies = keys.qualify(policy, target, headers);
            varies.map_err(|_| Refusal::Stranger)?;
        }
        let path = self.identity.store_path(target);
        let (host, sent) = (&*keys.host, headers.target());
        Ok(set_target(host, headers, &sent, target.authority(), &path)?)
    }

    /// A request for a document, which is handled like that of a client without conditions, or for a variant or an
    /// object that has its key already.
    fn document_request(
        &mut self,
        keys: &mut Keys,
        call: BackgroundCall,
        headers: &Headers,
    ) -> Result<(EdgeRequest, ClientDemand), Refusal> {
        let is_exact = matches!(call.kind, CallKind::Variant(_) | CallKind::Again(_));
        let mut target = CanonicalTarget::clone(&call.target);
        self.complete_target(keys, &call, &mut target, headers)?;
        let policy = call.policy;
        let key = keys.flight_key(&target);
        let facts = RequestFacts::of(&policy.policy, headers.fields(), true);
        self.too_large = Some(if is_exact { TOO_LARGE } else { 204 });
        let control = self.control(facts.control, headers);
        let way = self.way(control, &target);
        let cache_key = target.cache_key();
        let may_share = may_share(&policy.policy, cache_key, headers);
        let own_headers = self
            .identity
            .own_headers(&policy.policy, cache_key, headers);
        let stream = EdgeRequest {
            control,
            selecting: Some(Rc::new(headers.clone())),
            own_headers,
            may_share,
            may_lead: may_share,
            ..EdgeRequest::new(self.id, key, Rc::new(target), policy, false)
        };
        Ok((stream, way))
    }
}

/// The reason for which a call is sent around the store: the file of another key hides its object, or it has no key.
fn reason_to_avoid_the_store(call: &BackgroundCall) -> Option<UncacheableReason> {
    match call.kind {
        CallKind::Around(_) => Some(UncacheableReason::KeyMismatch),
        CallKind::Variant(_) if call.target.is_stored_plainly() => Some(UncacheableReason::Vary),
        _ => None,
    }
}

/// The call that a link names.
fn call_of(calls: &Calls, link: Link) -> Result<BackgroundCall, Refusal> {
    calls.get(link.stream).ok_or(Refusal::Stranger)
}
