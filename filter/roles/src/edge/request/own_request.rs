// SPDX-License-Identifier: Apache-2.0
//! Requests of the filter, which arrive in EDGE through the background listener.

use std::rc::Rc;

use sluice_core::admission::RequestFacts;
use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_core::freshness::UncacheableReason;
use sluice_core::key::CanonicalTarget;
use sluice_store::{LINK_HEADER, Link};

use super::headers::{set_target, take_path};
use crate::edge::{Edge, Refusal, State};
use crate::reply::substitute::TOO_LARGE;
use crate::request::EdgeRequest;
use crate::request::call_kind::CallKind;
use crate::request::headers::{avoid_the_store, may_share};
use crate::worker::Worker;
use crate::worker::own_requests::{
    call_ends::{self, Told},
    calls::BackgroundCall,
};
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
            StoreRequest::Refresh => self.receive_refresh(worker, link),
            StoreRequest::Fill => self.receive_fill(worker, link, headers),
            StoreRequest::Substitute => self.receive_for_substitute(worker, link, headers),
            StoreRequest::Index => self.receive_index(worker, link, headers),
            StoreRequest::Slice => self.receive_slice(worker, link, headers),
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

    /// Leads for the requests that wait for this call, unless they do not need that any more.
    fn receive_fill(
        &mut self,
        worker: &mut Worker,
        link: Link,
        headers: &Headers,
    ) -> Result<Action, Refusal> {
        let id = self.id;
        let call = worker.calls.get(link.stream).ok_or(Refusal::Stranger)?;
        let key = worker.keys.flight_key(&call.target);
        let (policy, cache_key) = (&call.policy.policy, call.target.cache_key());
        let may_share = may_share(policy, cache_key, headers);
        let own_headers = self.identity.own_headers(policy, cache_key, headers);
        let stream = Rc::new(EdgeRequest {
            for_others: true,
            counts: call.slice.is_none(),
            slice: call.slice,
            selecting: Some(Rc::new(headers.clone())),
            own_headers,
            may_share,
            may_lead: may_share,
            ..EdgeRequest::new(id, key, call.target, call.policy, false)
        });
        worker.requests.open(&stream);
        let admission = worker.turn(id.0, |coalescer, turn| {
            coalescer.request(&stream.request(), turn)
        });
        call_ends::prepared(worker, call.kind, &Told::default(), id.0);
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
        self.state = State::Own(stream);
        Ok(action)
    }

    /// Makes the store revalidate a response for which no client waits.
    fn receive_refresh(&mut self, worker: &mut Worker, link: Link) -> Result<Action, Refusal> {
        let call = worker.calls.get(link.stream).ok_or(Refusal::Stranger)?;
        let key = worker.keys.flight_key(&call.target);
        let stream = EdgeRequest::new(self.id, key, call.target, call.policy, false);
        let stream = Rc::new(stream);
        worker.requests.open(&stream);
        resumption::send(worker, &stream, NextStep::Send(link.request))?;
        self.state = State::Own(stream);
        Ok(Action::Continue)
    }

    /// Handles a request for a document like that of a client without conditions.
    fn receive_for_substitute(
        &mut self,
        worker: &mut Worker,
        link: Link,
        headers: &Headers,
    ) -> Result<Action, Refusal> {
        let call = worker.calls.get(link.stream).ok_or(Refusal::Stranger)?;
        let variant = matches!(call.kind, CallKind::Variant(_));
        let keyless = variant && call.target.is_stored_plainly();
        if keyless || matches!(call.kind, CallKind::Around(_)) {
            return self.receive_around(worker, call);
        }
        let (mut target, policy) = (CanonicalTarget::clone(&call.target), call.policy);
        let is_exact = variant || matches!(call.kind, CallKind::Again(_));
        if !is_exact {
            worker.keys.qualify_generation(&policy.policy, &mut target);
            let varies = worker.keys.qualify(&policy.policy, &mut target, headers);
            varies.map_err(|_| Refusal::Stranger)?;
        }
        let key = worker.keys.flight_key(&target);
        let facts = RequestFacts::of(&policy.policy, headers.fields(), true);
        let path = self.identity.store_path(&target);
        set_target(
            &*worker.host,
            headers,
            &facts.target,
            target.authority(),
            &path,
        )?;
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
        self.admit(worker, stream, &way)
    }

    /// Fetches an object around the store, because the file of another key hides it or it has no key.
    fn receive_around(
        &mut self,
        worker: &mut Worker,
        call: BackgroundCall,
    ) -> Result<Action, Refusal> {
        let reason = match call.kind {
            CallKind::Around(_) => UncacheableReason::KeyMismatch,
            _ => UncacheableReason::Vary,
        };
        let key = worker.keys.flight_key(&call.target);
        let stream = EdgeRequest::new(self.id, key, call.target, call.policy, false);
        let stream = Rc::new(stream);
        worker.requests.open(&stream);
        resumption::send(worker, &stream, NextStep::HitForMiss(reason))?;
        self.too_large = Some(TOO_LARGE);
        self.state = State::Cached(stream);
        Ok(Action::Continue)
    }
}
