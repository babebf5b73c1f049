// SPDX-License-Identifier: Apache-2.0
//! EDGE: between the client and Envoy's cache filter.
//!
//! On the way in it makes the request canonical and lets the coalescer decide whether it leads, waits
//! or passes. What it makes of the response is in [`crate::response`].

use std::rc::Rc;

use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;
use sluice_core::admission::{Disposition, PassReason, RequestFacts, classify};
use sluice_core::coalescing::Admission;
use sluice_core::host::HostError;
use sluice_core::hot::Wanted;
use sluice_core::http::client_control::{RequestControl, Way};
use sluice_core::http::demand::Demand;
use sluice_core::key::vary::TooLong;
use sluice_core::key::{CanonicalTarget, Rejection, Target, canonicalize};
use sluice_core::link::{
    BYPASS_SENTINEL, INTERNAL_PREFIX, LINK_HEADER, Link, PATH_HEADER, Purpose, Vouched,
};
use sluice_core::metrics::Metric;
use sluice_core::policy::{CorsPolicy, Obedience, Policy};
use sluice_core::site::Visit;
use sluice_core::workers::KeyHash;
use sluice_core::workers::StreamId;

use crate::account::{result_of, tell_result};
use crate::change::Change;
use crate::cors::Cors;
use crate::delivery;
use crate::headers::Headers;
use crate::host::{self, Map};
use crate::hot;
use crate::response::{respond_cached, respond_filled, respond_passed, respond_refreshed};
use crate::site::{self, StandIn};
use crate::stream::{NumberedPolicy, Stream};
use crate::worker;

/// Name of the response header of RFC 9211.
pub const CACHE_STATUS: &str = "cache-status";

/// Name of the background listener's route in Envoy's configuration.
const BACKGROUND_ROUTE: &[u8] = b"sluice_background";

/// Why a request cannot be handled.
enum Refusal {
    /// By its URL or method.
    Rejected(Rejection),
    /// A host call failed, so nothing is known of it.
    Host(HostError),
    /// The worker has no policy.
    Unready,
    /// It came by the background listener, and this VM has not sent it: one before it has.
    Stranger,
}

impl From<HostError> for Refusal {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

/// What EDGE is doing with a request.
#[derive(Debug)]
enum State {
    /// Its headers have not come.
    New,
    /// It was answered here.
    Answered,
    /// The same, with an object that has no media type.
    AnsweredUntyped,
    /// It is of the filter's own, and goes on as it came.
    Background,
    /// It is of the filter's own, and for a response that is served stale.
    Refreshing(Rc<Stream>),
    /// It is of the filter's own, and leads for others.
    Filling(Rc<Stream>),
    /// It goes around the store by its own nature.
    Passed(PassReason, CanonicalTarget),
    /// It goes through the store, or around it because its key is uncacheable.
    Cached(Rc<Stream>),
}

/// A request in the EDGE role.
#[derive(Debug)]
pub struct Edge {
    id: StreamId,
    policy: NumberedPolicy,
    state: State,
    /// Where the edge answers for cross-origin resource sharing.
    cors: Option<Cors>,
    change: Option<Change>,
    /// The filter collects the response in its memory.
    bounded: bool,
}

impl Edge {
    /// A request under `policy`.
    pub fn new(context: u32, policy: NumberedPolicy) -> Self {
        Self {
            id: StreamId(context),
            policy,
            state: State::New,
            cors: None,
            change: None,
            bounded: false,
        }
    }

    fn receive(&mut self, end_of_stream: bool) -> Result<Action, Refusal> {
        let headers = Headers::new(host::header_pairs(Map::Request)?);
        #[cfg(feature = "trap")]
        crate::trap::on_demand(&headers, "edge");
        let facts = RequestFacts::of(headers.fields(), end_of_stream);
        if facts.internal {
            if let Some(link) = own_link(&headers)? {
                return self.receive_own(link, &headers);
            }
            strip_internal(&headers)?;
        }
        self.cors = self.cors_policy().map(|_| Cors::of(&headers));
        let canonical = canonicalize(&self.policy.policy, &facts.target);
        let target = canonical.map_err(Refusal::Rejected)?;
        match classify(&self.policy.policy, &facts) {
            Disposition::Reject(rejection) => Err(Refusal::Rejected(rejection)),
            Disposition::Preflight => {
                self.answer_preflight()?;
                Ok(Action::Pause)
            }
            Disposition::Pass(reason) => {
                let policy = &self.policy.policy;
                self.change = Change::of(policy, facts.method, &headers, target.url());
                rewrite(&facts.target, &target)?;
                self.pass(reason, target, &headers)?;
                Ok(Action::Continue)
            }
            Disposition::Cacheable => self.visit(target, &headers, &facts),
        }
    }

    /// Takes a request for an object, or for what is known to take its place.
    fn visit(
        &mut self,
        mut target: CanonicalTarget,
        headers: &Headers,
        facts: &RequestFacts<'_>,
    ) -> Result<Action, Refusal> {
        let policy = &self.policy.policy;
        let mut visit = Visit::of(policy, &target, facts.target.path, || {
            headers.text("accept")
        });
        let mut stand_in = None;
        if let Some(visitor) = &visit {
            match site::way(policy, visitor, &target) {
                site::Way::Straight => {}
                site::Way::Redirect(location) => {
                    self.state = State::Answered;
                    site::answer_redirect(&location)?;
                    return Ok(Action::Pause);
                }
                site::Way::Instead(standing, document) => {
                    (visit, stand_in) = (None, Some(standing));
                    target = document;
                }
            }
        }
        let head = facts.method == "HEAD";
        let keyed = self.qualify(&mut target, headers, head)?;
        let control = self.control(facts.control, headers);
        let way = self.way(control, &target);
        let key = match keyed {
            Ok(key) if way != Way::Around => key,
            keyed => {
                let reason = keyed.map_or(PassReason::Vary, |_| PassReason::NoStore);
                rewrite(&facts.target, &target)?;
                self.pass(reason, target, headers)?;
                return Ok(Action::Continue);
            }
        };
        let mut demand = facts.demand.then(|| delivery::demand(headers));
        let ordinary = stand_in.is_none() && way == Way::Shared;
        if ordinary && self.answer_hot(&target, key, demand.as_ref(), head)? {
            return Ok(Action::Pause);
        }
        rewrite(&facts.target, &target)?;
        keep_to_the_store(facts, headers)?;
        if facts.demand {
            delivery::set_aside(headers)?;
        }
        if stand_in.is_some_and(|standing: StandIn| !standing.takes_demands()) {
            demand = None;
        }
        let (target, policy) = (Rc::new(target), self.policy.clone());
        let stream = Stream {
            demand,
            control,
            visit,
            stand_in,
            ..Stream::new(self.id, key, target, policy, head)
        };
        self.admit(stream, &way)
    }

    /// Puts into the key of `target` all that tells its responses apart, and gives its hash.
    fn qualify(
        &self,
        target: &mut CanonicalTarget,
        headers: &Headers,
        head: bool,
    ) -> Result<Result<KeyHash, TooLong>, Refusal> {
        let policy = &self.policy.policy;
        let keyed = worker::with(|worker| {
            worker.qualify_generation(policy, target);
            worker.qualify(policy, target, headers)?;
            if head {
                worker.turn_to_headers(target);
            }
            Ok(worker.key_hash(target.cache_key()))
        });
        keyed.ok_or(Refusal::Unready)
    }

    /// Answers out of the worker's memory, if that has what is asked for.
    fn answer_hot(
        &mut self,
        target: &CanonicalTarget,
        key: KeyHash,
        demand: Option<&Demand>,
        head: bool,
    ) -> Result<bool, HostError> {
        let wanted = Wanted {
            key: target.cache_key(),
            known_as: key,
            policy: self.policy.number,
        };
        let account = self.policy.policy.response.account;
        let Some(answered) = hot::answer(&wanted, demand, head, account)? else {
            return Ok(false);
        };
        self.state = if answered.typed {
            State::Answered
        } else {
            State::AnsweredUntyped
        };
        Ok(true)
    }

    /// Takes a request of the filter's own, whose target is canonical.
    fn receive_own(&mut self, link: Link, headers: &Headers) -> Result<Action, Refusal> {
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

    /// Leads for those who wait for this call, unless there is no need.
    fn receive_fill(&mut self, link: Link) -> Result<Action, Refusal> {
        let id = self.id;
        let opened = worker::with(|worker| -> Option<host::Result<_>> {
            let sent = worker.call(link.stream)?;
            let key = worker.key_hash(sent.target.cache_key());
            let stream = Rc::new(Stream {
                for_others: true,
                ..Stream::new(id, key, sent.target, sent.policy, false)
            });
            worker.open(&stream);
            let admission = worker.turn(id.0, |coalescer, turn| {
                coalescer.request(&stream.request(), turn)
            });
            worker.prepared(sent.call, id.0);
            let sent = match admission {
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
            Some(sent.map(|action| (stream, action)))
        });
        let (stream, action) = opened.flatten().ok_or(Refusal::Stranger)??;
        self.state = State::Filling(stream);
        Ok(action)
    }

    /// Has the store revalidate a response for nobody.
    fn receive_refresh(&mut self, link: Link) -> Result<Action, Refusal> {
        let id = self.id;
        let opened = worker::with(|worker| -> Option<host::Result<Rc<Stream>>> {
            let sent = worker.call(link.stream)?;
            let key = worker.key_hash(sent.target.cache_key());
            let stream = Rc::new(Stream::new(id, key, sent.target, sent.policy, false));
            worker.open(&stream);
            Some(worker.send(&stream, link.purpose).map(|()| stream))
        });
        let stream = opened.flatten().ok_or(Refusal::Stranger)??;
        self.state = State::Refreshing(stream);
        Ok(Action::Continue)
    }

    /// Takes a request for a document, as if a client that takes it as it is had sent it.
    fn receive_for_substitute(&mut self, link: Link, headers: &Headers) -> Result<Action, Refusal> {
        let keyed = worker::with(|worker| {
            let sent = worker.call(link.stream)?;
            let mut target = CanonicalTarget::clone(&sent.target);
            worker.qualify_generation(&sent.policy.policy, &mut target);
            let varies = worker.qualify(&sent.policy.policy, &mut target, headers);
            let key = worker.key_hash(target.cache_key());
            varies.is_ok().then_some((key, target, sent.policy))
        });
        let (key, target, policy) = keyed.flatten().ok_or(Refusal::Stranger)?;
        let facts = RequestFacts::of(headers.fields(), true);
        rewrite(&facts.target, &target)?;
        self.bounded = true;
        let control = self.control(facts.control, headers);
        let way = self.way(control, &target);
        let stream = Stream {
            control,
            ..Stream::new(self.id, key, Rc::new(target), policy, false)
        };
        self.admit(stream, &way)
    }

    /// What the client `asks` of caches, where the policy obeys.
    fn control(&self, asks: bool, headers: &Headers) -> RequestControl {
        if !asks || self.policy.policy.request.cache_control == Obedience::Ignore {
            return RequestControl::default();
        }
        let cache_control = headers.joined("cache-control");
        RequestControl::parse(cache_control.as_deref(), headers.text("pragma"))
    }

    /// How the client wants its request to go on.
    fn way(&self, control: RequestControl, target: &CanonicalTarget) -> Way {
        let rule = self.policy.policy.rule(target.path());
        control.way(rule.stale_while_revalidate.as_secs())
    }

    fn cors_policy(&self) -> Option<&CorsPolicy> {
        self.policy.policy.site.cors.as_ref()
    }

    fn answer_preflight(&mut self) -> Result<(), HostError> {
        self.state = State::Answered;
        // The answer says all by itself.
        let cors = self.cors.take();
        match (cors, self.cors_policy()) {
            (Some(cors), Some(policy)) => cors.answer_preflight(policy),
            _ => Ok(()),
        }
    }

    /// Says on the response who may read it.
    fn mark_response(&self) -> Result<(), HostError> {
        match (&self.cors, self.cors_policy()) {
            (Some(cors), Some(policy)) => cors.mark_response(policy),
            _ => Ok(()),
        }
    }

    fn pass(
        &mut self,
        reason: PassReason,
        target: CanonicalTarget,
        headers: &Headers,
    ) -> Result<(), Refusal> {
        let link = Link {
            purpose: Purpose::Bypass,
            stream: self.id,
            policy: self.policy.number,
        };
        let link = worker::with(|worker| {
            worker.metrics.count(Metric::RequestsPassed, 1);
            worker.encode_link(link)
        });
        host::add_header(Map::Request, LINK_HEADER, &link.ok_or(Refusal::Unready)?)?;
        if !headers.has("if-range") {
            host::set_header(Map::Request, "if-range", BYPASS_SENTINEL)?;
        }
        self.state = State::Passed(reason, target);
        Ok(())
    }

    /// Takes a cacheable request to the coalescer.
    fn admit(&mut self, stream: Stream, way: &Way) -> Result<Action, Refusal> {
        let (id, head) = (self.id, stream.head);
        let decided = worker::with(|worker| -> Result<_, HostError> {
            let stream = Rc::new(stream);
            worker.open(&stream);
            if matches!(way, Way::Checked(_)) {
                worker.keep_for_rescue(&stream);
            }
            if let Some(purpose) = ask_the_store(way, head)? {
                worker.send(&stream, purpose)?;
                return Ok((stream, Action::Continue));
            }
            let admitted = worker.turn(id.0, |coalescer, turn| stream.admission(coalescer, turn));
            let Some(purpose) = admitted.and_then(|purpose| worker.ready(&stream, purpose)) else {
                return Ok((stream, Action::Pause));
            };
            worker.send(&stream, purpose)?;
            Ok((stream, Action::Continue))
        });
        let (stream, action) = decided.ok_or(Refusal::Unready)??;
        self.state = State::Cached(stream);
        Ok(action)
    }

    /// Takes over what the worker has made of the request while it waited.
    fn renew(&mut self) {
        if let State::Cached(stream) | State::Filling(stream) = &mut self.state
            && let Some(known) = worker::with(|worker| worker.stream(stream.id)).flatten()
        {
            *stream = known;
        }
    }

    fn note_change(&self) -> Result<(), HostError> {
        let change = self.change.as_ref();
        change.map_or(Ok(()), |change| change.note(&self.policy.policy))
    }

    /// Tells the access log what has become of the request, if it shows that.
    fn tell(&self) {
        if !self.policy.policy.response.account {
            return;
        }
        let told = match &self.state {
            State::Cached(stream) => stream.account.tell(stream.key),
            State::Passed(..) => tell_result(result_of(Metric::RequestsPassed)),
            _ => Ok(()),
        };
        if let Err(error) = told {
            worker::with(|worker| worker.fault("the access log lacks a request", error));
        }
    }

    fn refuse(&mut self, refusal: &Refusal) {
        self.state = State::Answered;
        worker::with(|worker| match refusal {
            Refusal::Rejected(_) => worker.metrics.count(Metric::RequestsRejected, 1),
            Refusal::Host(error) => worker.fault("a request could not be read", *error),
            Refusal::Unready | Refusal::Stranger => {}
        });
        let answered = match refusal {
            Refusal::Rejected(rejection) => {
                if self.policy.policy.response.account {
                    // The access log may lack it, the client not.
                    let _ = tell_result(result_of(Metric::RequestsRejected));
                }
                answer_rejection(*rejection)
            }
            Refusal::Host(_) | Refusal::Unready | Refusal::Stranger => answer_failure(503, false),
        };
        if answered.is_err() {
            // Without an answer the request must not go on either: end the stream.
            let _ = host::reset(host::Half::Request);
        }
    }
}

impl Context for Edge {
    fn on_done(&mut self) -> bool {
        if let State::Cached(stream) | State::Refreshing(stream) | State::Filling(stream) =
            &self.state
        {
            worker::with(|worker| worker.close(stream.id));
        }
        true
    }
}

impl HttpContext for Edge {
    fn on_http_request_headers(&mut self, _: usize, end_of_stream: bool) -> Action {
        match self.receive(end_of_stream) {
            Ok(action) => action,
            Err(refusal) => {
                self.refuse(&refusal);
                Action::Pause
            }
        }
    }

    fn on_http_response_headers(&mut self, _: usize, end_of_stream: bool) -> Action {
        self.renew();
        if let State::Cached(stream) = &self.state {
            stream.bodiless.set(end_of_stream);
        }
        // What is made of the response may take its headers along.
        let marked = self.mark_response();
        let outcome = match &self.state {
            State::New | State::Answered | State::Background => Ok(Action::Continue),
            State::AnsweredUntyped => {
                host::remove_header(Map::Response, "content-type").map(|()| Action::Continue)
            }
            State::Cached(stream) if stream.answered_untyped.get() => {
                host::remove_header(Map::Response, "content-type").map(|()| Action::Continue)
            }
            State::Passed(reason, target) => self
                .note_change()
                .and_then(|()| respond_passed(*reason, &self.policy.policy, target)),
            State::Cached(stream) | State::Refreshing(stream) | State::Filling(stream)
                if stream.answered.get() =>
            {
                Ok(Action::Continue)
            }
            State::Filling(stream) => respond_filled(stream),
            State::Refreshing(stream) => respond_refreshed(stream),
            State::Cached(stream) if self.bounded => respond_cached(stream)
                .and_then(|action| site::bound_document(stream).map(|()| action)),
            State::Cached(stream) => respond_cached(stream),
        };
        let action = outcome
            .and_then(|action| marked.map(|()| action))
            .unwrap_or_else(|error| {
                worker::with(|worker| worker.fault("a response could not be finished", error));
                Action::Continue
            });
        self.tell();
        action
    }

    fn on_http_response_body(&mut self, size: usize, end_of_stream: bool) -> Action {
        let (State::Cached(stream) | State::Refreshing(stream) | State::Filling(stream)) =
            &self.state
        else {
            return Action::Continue;
        };
        stream.bytes.set(stream.bytes.get() + size as u64);
        hot::take_body(stream, size, end_of_stream);
        if end_of_stream && let Some(body) = stream.unannounced.get() {
            let (key, bytes) = (stream.target.cache_key(), stream.bytes.get());
            worker::with(|worker| worker.note_body_length(key, body, bytes));
        }
        if let Err(error) = pass_body(stream, size) {
            worker::with(|worker| worker.fault("a response was cut off", error));
            let _ = host::reset(host::Half::Response);
            return Action::Pause;
        }
        Action::Continue
    }

    /// A client that has gone before its response is told of as well.
    fn on_log(&mut self) {
        if matches!(self.state, State::Cached(_)) {
            self.tell();
        }
    }
}

/// Replaces the body if need be, and lets through what the client wants of it.
fn pass_body(stream: &Stream, size: usize) -> host::Result<()> {
    let size = stream.body.borrow_mut().pass(size)?;
    delivery::pass_body(stream, size)
}

/// Takes from a client's request what only the filter may say.
fn strip_internal(headers: &Headers) -> Result<(), HostError> {
    headers
        .iter()
        .filter(|(name, _)| name.starts_with(INTERNAL_PREFIX))
        .try_for_each(|(name, _)| host::remove_header(Map::Request, name))
}

/// Gives the request its canonical target in the place of the one that was `sent`. The scheme is part of Envoy's key but
/// not of ours.
fn rewrite(sent: &Target<'_>, target: &CanonicalTarget) -> Result<(), HostError> {
    worker::keep_path(sent.path, target.path())?;
    let scheme = sent.scheme.unwrap_or_default();
    let canonical = [
        (":authority", sent.authority, target.authority()),
        (":path", sent.path, target.path()),
        (":scheme", scheme.as_bytes(), "http"),
    ];
    for (name, sent, value) in canonical {
        if sent != value.as_bytes() {
            host::set_header(Map::Request, name, value)?;
        }
    }
    Ok(())
}

/// The link of a request of the filter's own; that of any other is nothing.
fn own_link(headers: &Headers) -> Result<Option<Link>, Refusal> {
    let Some(link) = headers.get(LINK_HEADER) else {
        return Ok(None);
    };
    let vouched = worker::with(|worker| worker.decode_link(link)).flatten();
    if let Some(Vouched::Here(link)) = vouched
        && link.purpose.is_background()
    {
        return Ok(Some(link));
    }
    let route = host::property("xds\0route_name")?;
    if route.as_deref() == Some(BACKGROUND_ROUTE) {
        return Err(Refusal::Stranger);
    }
    Ok(None)
}

/// Passes on to the store what the client wants of it; the purpose of a request that goes there by itself.
/// A HEAD is not worth a validation.
fn ask_the_store(way: &Way, head: bool) -> Result<Option<Purpose>, HostError> {
    let (purpose, directives) = match way {
        Way::Checked(directives) if !head => (Purpose::Checked, directives),
        Way::StoreOnly(directives) => (Purpose::StoreOnly, directives),
        Way::Shared | Way::Around | Way::Checked(_) => return Ok(None),
    };
    if !directives.is_empty() {
        host::set_header(Map::Request, "cache-control", directives)?;
    }
    Ok(Some(purpose))
}

/// The store obeys what is asked for here, which is the filter's to ask.
fn keep_to_the_store(facts: &RequestFacts<'_>, headers: &Headers) -> Result<(), HostError> {
    if !facts.authorization && !facts.control {
        return Ok(());
    }
    for name in ["authorization", "cache-control", "pragma"] {
        if headers.has(name) {
            host::remove_header(Map::Request, name)?;
        }
    }
    Ok(())
}

/// Gives a request of the filter's own its path with qualifiers, which Envoy takes from nobody but a filter.
fn take_path(headers: &Headers) -> Result<(), HostError> {
    let Some(path) = headers.text(PATH_HEADER) else {
        return Ok(());
    };
    host::set_header(Map::Request, ":path", path)?;
    host::remove_header(Map::Request, PATH_HEADER)
}

/// What a client's request asks for, in the one spelling of it, or why there is none.
pub fn canonical_target(policy: &Policy, headers: &Headers) -> Result<CanonicalTarget, Rejection> {
    let target = Target {
        scheme: headers.text(":scheme"),
        authority: headers.get(":authority").unwrap_or_default(),
        path: headers.get(":path").unwrap_or_default(),
    };
    canonicalize(policy, &target)
}

/// Answers the effective context's request, which goes no further.
pub fn answer_rejection(rejection: Rejection) -> host::Result<()> {
    let mut headers = vec![
        ("content-type", "text/plain; charset=utf-8"),
        (CACHE_STATUS, "sluice; detail=rejected"),
    ];
    if let Rejection::MethodNotAllowed { allow } = rejection {
        headers.push(("allow", allow));
    }
    let body = format!("{}\n", rejection.reason());
    host::respond(rejection.status(), rejection.name(), &headers, &body)
}

/// Answers the effective context's request with an error of the origin's or of the edge's own.
pub fn answer_failure(status: u16, collapsed: bool) -> host::Result<()> {
    let cache_status = if collapsed {
        "sluice; fwd=miss; collapsed"
    } else {
        "sluice; detail=unavailable"
    };
    let headers = [
        ("content-type", "text/plain; charset=utf-8"),
        ("cache-control", "no-store"),
        (CACHE_STATUS, cache_status),
    ];
    host::respond(
        status,
        "sluice_origin_failed",
        &headers,
        "The origin could not answer.\n",
    )
}
