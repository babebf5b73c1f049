// SPDX-License-Identifier: Apache-2.0
//! A client's request: its target and key become canonical, and the coalescer decides on its next step.

mod body;
pub mod explanation;
pub(super) mod headers;
mod key;
mod own_request;
mod slices;

use crate::worker::coalescing::Coalescing;
use std::rc::Rc;

use sluice_core::admission::{Disposition, PassReason, RequestFacts, classify};
use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_core::host::HostError;
use sluice_core::hot::HotLookup;
use sluice_core::http::caching::cache_name::CDN_LOOP;
use sluice_core::http::caching::client_control::ClientDemand;
use sluice_core::http::conditional::demand::Demand;
use sluice_core::http::repetition::repeats_too_much;
use sluice_core::internal_headers::SLICE_VERSION_HEADER;
use sluice_core::key::{CanonicalTarget, Rejection, canonicalize};
use sluice_core::metrics::Metric;
use sluice_core::website::{MissingObjectVisit, root_location};
use sluice_core::workers::{KeyHash, Millis, OwnHeaders};
use sluice_store::{LINK_HEADER, Link, Sender};

use super::access::{Admission, TakenCredentials};
use super::authorization_sharing::{self, takes_part};
use super::cors::Cors;
use super::first_byte::FirstByteTimer;
use super::invalidation::Invalidation;
use super::website::{self, Destination};
use super::{Edge, Refusal, State, hot};
use crate::request::EdgeRequest;
use crate::request::headers::{avoid_the_store, demand_of, has_if_range, may_share};
use crate::request::stand_in::StandIn;
use crate::worker::Worker;
use crate::worker::keys::{AuthorizedSharing, Keys};
use crate::worker::own_requests::{background, unread};
use crate::worker::waking::resumption;
use body::restore;
use headers::{ask_the_store, prepare, set_target, strip_internal};
use key::Keyed;
use slices::yields;
use sluice_host::headers::Headers;
use sluice_host::{Action, Host, Map};

/// The object that a request for a page of a site needs.
#[derive(Default)]
struct Sought {
    /// The visitor, if the page itself is requested.
    visit: Option<MissingObjectVisit>,
    /// The document that replaces the page.
    stand_in: Option<StandIn>,
}

impl Edge {
    /// Handles the request's headers. Without the worker a cacheable request bypasses the store and is not coalesced.
    pub(in crate::edge) fn receive(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        end_of_stream: bool,
    ) -> Result<Action, Refusal> {
        let headers = host.headers(Map::Request)?;
        if self.is_at_peers_port {
            let sent = headers;
            let (headers, purges) = self.admit_peer(host, &sent)?;
            self.peers_purges = purges;
            if sent.has(SLICE_VERSION_HEADER) {
                let worker = worker.ok_or(Refusal::Stranger)?;
                return self.receive_peers_slice(worker, &sent, &headers);
            }
            return self.receive_from_client(host, worker, &headers, end_of_stream);
        }
        match self.identity.vouching.sender(host, &headers)? {
            Sender::Client => self.receive_from_client(host, worker, &headers, end_of_stream),
            Sender::Stranger => Err(Refusal::Stranger),
            Sender::Filter(link) => {
                let worker = worker.ok_or(Refusal::Stranger)?;
                self.keep_to_policy(&worker.policies, link)?;
                if link.request != StoreRequest::Empty {
                    return self.receive_own(worker, link, &headers);
                }
                if !end_of_stream {
                    return Err(Refusal::Stranger);
                }
                restore(host, &headers)?;
                let headers = host.headers(Map::Request)?;
                self.begin_record(Some(worker), &headers);
                self.record_site();
                // EDGE has already admitted its client.
                let taken = self.take_credentials(host, &headers, None)?;
                let headers = taken.headers.as_ref().unwrap_or(&headers);
                self.receive_for_site(host, Some(worker), headers, end_of_stream)
            }
        }
    }

    /// Handles the headers of a client's request.
    fn receive_from_client(
        &mut self,
        host: &dyn Host,
        mut worker: Option<&mut Worker>,
        headers: &Headers,
        end_of_stream: bool,
    ) -> Result<Action, Refusal> {
        self.begin_record(worker.as_deref(), headers);
        self.hear_front(host, headers)?;
        let target = self.choose_site(host, headers)?;
        self.record_site();
        let stripped = self.strip_copied(host, headers)?;
        let headers = stripped.as_ref().unwrap_or(headers);
        let links = worker.as_deref().map(|worker| &worker.verified_links);
        let taken = self.take_credentials(host, headers, links)?;
        if self.must_use_https() {
            canonicalize(&self.policy.policy, &target).map_err(Refusal::Rejected)?;
            self.redirect_to_https(host, &target, headers.get(":method"))?;
            return Ok(Action::Pause);
        }
        let sent = headers;
        let headers = taken.headers.as_ref().unwrap_or(sent);
        let parts = worker.as_deref_mut();
        let parts = parts.map(|worker| (&*worker.metrics, &mut worker.verified_links));
        let admission = self.check_access(host, parts, sent, &taken)?;
        if let Admission::Asks(refusal) = admission {
            return self.ask(host, worker, sent, taken, end_of_stream, refusal);
        }
        self.receive_admitted(host, worker, headers, &taken, end_of_stream)
    }

    /// Handles the headers of a client's request after its client is admitted. `headers` are those without credentials.
    pub(in crate::edge) fn receive_admitted(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        headers: &Headers,
        taken: &TakenCredentials,
        end_of_stream: bool,
    ) -> Result<Action, Refusal> {
        if self.redirect(host, headers)? {
            return Ok(Action::Pause);
        }
        let received = self.receive_for_site(host, worker, headers, end_of_stream)?;
        self.keep_shown_path(host, taken)?;
        Ok(received)
    }

    /// Handles the headers of a client's request after its site is known, and its client may read the site.
    fn receive_for_site(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        headers: &Headers,
        end_of_stream: bool,
    ) -> Result<Action, Refusal> {
        let facts = self.facts(headers, end_of_stream);
        let facts = facts.map_err(Refusal::Rejected)?;
        if facts.internal {
            strip_internal(host, headers)?;
        }
        self.cors = self.cors_policy().map(|_| Cors::of(headers));
        let policy = &self.policy.policy;
        let target = match canonicalize(policy, &facts.target) {
            Ok(target) => target,
            Err(rejection) => return self.turn_away(worker, &facts, rejection),
        };
        let treatment = self.treatment(&facts, headers);
        let reason = match (treatment.map_err(Refusal::Rejected)?, worker) {
            (Disposition::Preflight, _) => {
                self.answer_preflight(host)?;
                return Ok(Action::Pause);
            }
            (Disposition::Cacheable, Some(worker)) => {
                return self.visit(worker, target, headers, &facts);
            }
            (Disposition::AwaitsBody, Some(worker)) if self.is_for_bucket() => {
                self.state = State::Awaiting(target);
                return Ok(self.await_body(
                    &*worker.host,
                    &worker.metrics,
                    &mut worker.bodies,
                    &mut worker.roots,
                ));
            }
            // The client sends its body only if the origin wants it (RFC 9110, 10.1.1).
            (Disposition::AwaitsBody, Some(_)) if headers.has("expect") => PassReason::Body,
            (Disposition::AwaitsBody, Some(worker)) => {
                self.go_around(host, PassReason::Body, &facts, target, headers)?;
                return Ok(self.await_body(
                    &*worker.host,
                    &worker.metrics,
                    &mut worker.bodies,
                    &mut worker.roots,
                ));
            }
            (Disposition::AwaitsBody, None) if self.is_for_bucket() => {
                return Err(Refusal::Rejected(Rejection::UnexpectedBody));
            }
            (Disposition::AwaitsBody, None) => PassReason::Body,
            (Disposition::Cacheable, None) if facts.shows_credentials(policy) => {
                PassReason::Authorization
            }
            (Disposition::Cacheable, None) => PassReason::WorkerInUse,
            (Disposition::Pass(reason), _) => {
                self.invalidation = Invalidation::of(policy, facts.method, headers, target.url());
                reason
            }
        };
        self.go_around(host, reason, &facts, target, headers)
    }

    /// How the request is treated. One with facts about its client that the key lacks bypasses the cache.
    fn treatment(
        &self,
        facts: &RequestFacts<'_>,
        headers: &Headers,
    ) -> Result<Disposition, Rejection> {
        Ok(match classify(&self.policy.policy, facts)? {
            Disposition::Cacheable if self.is_personal(headers) => {
                Disposition::Pass(PassReason::AccessHeaders)
            }
            disposition => disposition,
        })
    }

    /// The facts of a request that its headers alone do not refuse.
    fn facts<'a>(
        &self,
        headers: &'a Headers,
        end_of_stream: bool,
    ) -> Result<RequestFacts<'a>, Rejection> {
        if repeats_too_much(headers.fields()) {
            return Err(Rejection::RepeatedHeaders);
        }
        let facts = RequestFacts::of(&self.policy.policy, headers.fields(), end_of_stream);
        if facts.cdn_loop && self.has_come_back(headers) {
            return Err(Rejection::Loop);
        }
        Ok(facts)
    }

    /// Refuses a request whose URL names no object, or redirects it to the directory if its URL lacks the slash at
    /// the end.
    fn turn_away(
        &mut self,
        worker: Option<&mut Worker>,
        facts: &RequestFacts<'_>,
        rejection: Rejection,
    ) -> Result<Action, Refusal> {
        match (self.root(facts, rejection), worker) {
            (Some(location), Some(worker)) => {
                self.state = State::Answered { typed: true };
                website::answer_redirect(
                    &*worker.host,
                    &worker.metrics,
                    &worker.identity,
                    &self.policy,
                    &location,
                )?;
                Ok(Action::Pause)
            }
            _ => Err(Refusal::Rejected(rejection)),
        }
    }

    /// The directory to which a request is redirected because its URL lacks the slash at the end.
    fn root(&self, facts: &RequestFacts<'_>, rejection: Rejection) -> Option<String> {
        let reads = rejection == Rejection::NoObject && matches!(facts.method, "GET" | "HEAD");
        let location = reads.then(|| root_location(&self.policy.policy, &facts.target));
        location.flatten()
    }

    /// Whether the request has already passed through this cache (RFC 8586).
    pub(in crate::edge) fn has_come_back(&self, headers: &Headers) -> bool {
        let mut lines = headers.iter().filter(|(name, _)| *name == CDN_LOOP);
        lines.any(|(_, line)| self.identity.name.is_listed_in(line))
    }

    /// Handles a cacheable request: for an object, or for the document that is known to replace it.
    fn visit(
        &mut self,
        worker: &mut Worker,
        mut target: CanonicalTarget,
        headers: &Headers,
        facts: &RequestFacts<'_>,
    ) -> Result<Action, Refusal> {
        let now = worker.catch_up();
        let lacks_purges = self.lacks_purges(worker, &target);
        let (host, keys) = (&*worker.host, &mut worker.keys);
        if lacks_purges {
            self.check_elsewhere(host)?;
            return self.go_around(host, PassReason::Purges, facts, target, headers);
        }
        let policy = &self.policy.policy;
        let authenticated = facts.shows_credentials(policy);
        let visitor =
            MissingObjectVisit::of(policy, &target, facts.target.path, || headers.get("accept"));
        // A substitute for a missing object is fetched without credentials.
        let Sought { visit, stand_in } = match visitor.filter(|_| !authenticated) {
            Some(visitor) => match self.seek(keys, visitor, &mut target)? {
                Some(sought) => sought,
                None => return Ok(Action::Pause),
            },
            None => Sought::default(),
        };
        let head = facts.method == "HEAD";
        let keyed = self.find_key(
            keys,
            &mut worker.slices,
            &mut worker.coalescing,
            &mut target,
            headers,
            facts,
        );
        let Keyed {
            key,
            control,
            way,
            credentials,
        } = match keyed {
            Ok(keyed) => keyed,
            Err(reason) => return self.go_around(host, reason, facts, target, headers),
        };
        let demand = facts.demand.then(|| demand_of(headers));
        let shared =
            !authenticated || keys.authorized_sharing(key.key) == Some(AuthorizedSharing::All);
        let ordinary = stand_in.is_none() && way == ClientDemand::Shared && shared;
        if ordinary && self.answer_hot(keys, &target, key.key, demand.as_ref(), head, now)? {
            return Ok(Action::Pause);
        }
        prepare(host, &self.identity, facts, headers, &target)?;
        if let Some(credentials) = credentials {
            authorization_sharing::hide(host, credentials)?;
        }
        let demand = demand.filter(|_| stand_in.is_none_or(StandIn::takes_demands));
        let (target, policy) = (Rc::new(target), self.policy.clone());
        let varies = target.is_stored_plainly() && !self.is_for_bucket();
        let selecting = varies.then(|| Rc::new(headers.clone()));
        let own_headers = self.own_headers(&mut worker.coalescing, key.key, &target, headers);
        let has_room = |demand| unread::has_room_for(&mut worker.calls, &policy.policy, demand);
        let may_share = may_share(&policy.policy, target.cache_key(), headers);
        let stream = EdgeRequest {
            authenticated,
            own_headers,
            may_call: !authenticated && !head && stand_in.is_none(),
            may_share,
            may_lead: may_share && demand.as_ref().is_none_or(has_room),
            demand,
            selecting,
            control,
            visit,
            stand_in,
            is_of_peer: self.is_at_peers_port,
            ..EdgeRequest::new(self.id, key, target, policy, head)
        };
        self.admit(worker, stream, &way)
    }

    /// The headers that a request takes to the origin beside those of its key. A hit does not need them.
    fn own_headers(
        &self,
        coalescing: &mut Coalescing,
        key: KeyHash,
        target: &CanonicalTarget,
        headers: &Headers,
    ) -> OwnHeaders {
        if !self.is_for_bucket() && coalescing.believes_fresh(key) {
            return OwnHeaders::UNKNOWN;
        }
        let policy = &self.policy.policy;
        self.identity
            .own_headers(policy, target.cache_key(), headers)
    }

    /// Checks whether the page that a visitor requests is known to be missing. If a document replaces it, changes
    /// `target` to that document. Returns `None` if the visitor was redirected.
    fn seek(
        &mut self,
        keys: &Keys,
        visitor: MissingObjectVisit,
        target: &mut CanonicalTarget,
    ) -> Result<Option<Sought>, Refusal> {
        let mut sought = Sought::default();
        match website::destination(keys, &self.policy.policy, &visitor, target) {
            Destination::Requested => sought.visit = Some(visitor),
            Destination::Redirect(location) => {
                self.state = State::Answered { typed: true };
                website::answer_redirect(
                    &*keys.host,
                    &keys.metrics,
                    &self.identity,
                    &self.policy,
                    &location,
                )?;
                return Ok(None);
            }
            Destination::Document(stand_in, document) => {
                *target = document;
                sought.stand_in = Some(stand_in);
            }
        }
        Ok(Some(sought))
    }

    /// Answers with a hot copy, if the worker has one. Returns whether it has.
    fn answer_hot(
        &mut self,
        keys: &Keys,
        target: &CanonicalTarget,
        key: KeyHash,
        demand: Option<&Demand>,
        head: bool,
        now: Millis,
    ) -> Result<bool, HostError> {
        let wanted = HotLookup {
            key: target.cache_key(),
            known_as: key,
            policy: self.policy.number,
        };
        let Some(answered) = hot::answer(keys, &wanted, demand, head, &self.policy, now)? else {
            return Ok(false);
        };
        let typed = answered.typed;
        self.state = State::Answered { typed };
        self.first_byte = FirstByteTimer::Immediate;
        self.record_result(Metric::RequestsHit);
        Ok(true)
    }

    /// Makes a request bypass the store.
    fn go_around(
        &mut self,
        host: &dyn Host,
        reason: PassReason,
        facts: &RequestFacts<'_>,
        target: CanonicalTarget,
        headers: &Headers,
    ) -> Result<Action, Refusal> {
        set_target(
            host,
            headers,
            &facts.target,
            target.authority(),
            target.path(),
        )?;
        let link = Link {
            request: StoreRequest::Bypass,
            stream: self.id,
            policy: self.policy.number,
        };
        let site = &self.policy.policy.site.name;
        let link = self.identity.vouching.encode(link, site);
        host.add_header(Map::Request, LINK_HEADER, &link)?;
        avoid_the_store(host, has_if_range(headers))?;
        self.state = State::Passed(reason, target);
        self.first_byte = FirstByteTimer::Since(host.monotonic_millis());
        Ok(Action::Continue)
    }

    /// Has the coalescer decide on the next step of a cacheable request.
    pub(in crate::edge) fn admit(
        &mut self,
        worker: &mut Worker,
        stream: EdgeRequest,
        way: &ClientDemand,
    ) -> Result<Action, Refusal> {
        let stream = Rc::new(stream);
        self.first_byte = FirstByteTimer::Since(worker.host.monotonic_millis());
        worker.coalescing.requests.open(&stream);
        if matches!(way, ClientDemand::Checked(_)) {
            background::keep_for_rescue(&worker.metrics, &worker.roots, &stream);
        }
        self.state = State::Cached(Rc::clone(&stream));
        let is_shared = *way == ClientDemand::Shared;
        if is_shared && let Some(action) = self.approach_slices(worker, &stream)? {
            return Ok(action);
        }
        if let Some(request) = ask_the_store(&*worker.host, way, stream.head)? {
            return go_on(worker, &stream, Some(NextStep::Send(request)));
        }
        if !takes_part(&mut worker.keys, &stream) {
            let look = authorization_sharing::look(&mut worker.keys, &mut worker.calls, &stream);
            return go_on(worker, &stream, look);
        }
        let mut admitted = worker.coalescing.admit(&stream);
        let leads = admitted == Some(NextStep::Send(StoreRequest::Lead));
        if is_shared && leads && yields(worker, &stream) {
            match self.approach_slices(worker, &stream)? {
                Some(action) => return Ok(action),
                None => admitted = worker.coalescing.admit(&stream),
            }
        }
        let next_step = admitted.and_then(|next_step| {
            let (roots, coalescing) = (&worker.roots, &mut worker.coalescing);
            background::ready(roots, coalescing, &mut worker.calls, &stream, next_step)
        });
        go_on(worker, &stream, next_step)
    }

    fn answer_preflight(&mut self, host: &dyn Host) -> Result<(), HostError> {
        self.state = State::Answered { typed: true };
        // The answer to a preflight is complete without further CORS headers.
        let cors = self.cors.take();
        match (cors, self.cors_policy()) {
            (Some(cors), Some(policy)) => cors.answer_preflight(host, &self.identity.name, policy),
            _ => Ok(()),
        }
    }
}

/// Sends a request to the store, unless it waits.
fn go_on(
    worker: &mut Worker,
    stream: &EdgeRequest,
    next_step: Option<NextStep>,
) -> Result<Action, Refusal> {
    let Some(next_step) = next_step else {
        return Ok(Action::Pause);
    };
    resumption::send(worker, stream, next_step)?;
    Ok(Action::Continue)
}
