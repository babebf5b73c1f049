// SPDX-License-Identifier: Apache-2.0
//! Requests of the filter's own, which come back to EDGE by the background listener.

use std::rc::Rc;

use proxy_wasm::types::Action;
use sluice_core::admission::RequestFacts;
use sluice_core::coalescing::Admission;
use sluice_core::key::CanonicalTarget;
use sluice_core::link::{BYPASS_SENTINEL, LINK_HEADER, Link, Purpose};

use super::request_headers::{rewrite, take_path};
use super::{Edge, Refusal, State};
use crate::host::headers::Headers;
use crate::host::{self, Map};
use crate::request::EdgeRequest;
use crate::worker;

impl Edge {
    /// Handles a request of the filter's own, whose target is canonical.
    pub(super) fn receive_own(&mut self, link: Link, headers: &Headers) -> Result<Action, Refusal> {
        take_path(headers)?;
        if link.purpose.is_relinked() {
            host::remove_header(Map::Request, LINK_HEADER)?;
        }
        match link.purpose {
            Purpose::Refresh => self.receive_refresh(link),
            Purpose::Fill => self.receive_fill(link),
            Purpose::Substitute => self.receive_for_substitute(link, headers),
            purpose => {
                self.state = State::Background;
                if purpose == Purpose::Size {
                    host::set_header(Map::Request, "if-range", BYPASS_SENTINEL)?;
                }
                Ok(Action::Continue)
            }
        }
    }

    /// Leads for the requests that wait for this call, unless there is no need.
    fn receive_fill(&mut self, link: Link) -> Result<Action, Refusal> {
        let id = self.id;
        let opened = worker::with(|worker| -> Option<host::Result<_>> {
            let call = worker.call(link.stream)?;
            let key = worker.flight_key(call.target.cache_key());
            let stream = Rc::new(EdgeRequest {
                for_others: true,
                ..EdgeRequest::new(id, key, call.target, call.policy, false)
            });
            worker.open(&stream);
            let admission = worker.turn(id.0, |coalescer, turn| {
                coalescer.request(&stream.request(), turn)
            });
            worker.prepared(call.kind, id.0);
            let action = match admission {
                Admission::Lead => worker
                    .send(&stream, Purpose::Lead)
                    .map(|()| Action::Continue),
                // Another leads, and may leave.
                Admission::Park => Ok(Action::Pause),
                Admission::Fresh | Admission::HitForMiss | Admission::Alone => {
                    stream.answered.set(true);
                    host::respond(204, "sluice_unneeded", &[], "").map(|()| Action::Pause)
                }
            };
            Some(action.map(|action| (stream, action)))
        });
        let (stream, action) = opened.flatten().ok_or(Refusal::Stranger)??;
        self.state = State::Filling(stream);
        Ok(action)
    }

    /// Has the store revalidate a response that no client waits for.
    fn receive_refresh(&mut self, link: Link) -> Result<Action, Refusal> {
        let id = self.id;
        let opened = worker::with(|worker| -> Option<host::Result<Rc<EdgeRequest>>> {
            let call = worker.call(link.stream)?;
            let key = worker.flight_key(call.target.cache_key());
            let stream = Rc::new(EdgeRequest::new(id, key, call.target, call.policy, false));
            worker.open(&stream);
            Some(worker.send(&stream, link.purpose).map(|()| stream))
        });
        let stream = opened.flatten().ok_or(Refusal::Stranger)??;
        self.state = State::Refreshing(stream);
        Ok(Action::Continue)
    }

    /// Handles a request for a document, as if a client without conditions had sent it.
    fn receive_for_substitute(&mut self, link: Link, headers: &Headers) -> Result<Action, Refusal> {
        let keyed = worker::with(|worker| {
            let call = worker.call(link.stream)?;
            let mut target = CanonicalTarget::clone(&call.target);
            worker.qualify_generation(&call.policy.policy, &mut target);
            let varies = worker.qualify(&call.policy.policy, &mut target, headers);
            let key = worker.flight_key(target.cache_key());
            varies.is_ok().then_some((key, target, call.policy))
        });
        let (key, target, policy) = keyed.flatten().ok_or(Refusal::Stranger)?;
        let facts = RequestFacts::of(headers.fields(), true);
        rewrite(&facts.target, &target)?;
        self.bounded = true;
        let control = self.control(facts.control, headers);
        let way = self.way(control, &target);
        let stream = EdgeRequest {
            control,
            ..EdgeRequest::new(self.id, key, Rc::new(target), policy, false)
        };
        self.admit(stream, &way)
    }
}
