// SPDX-License-Identifier: Apache-2.0
//! EDGE: between the client and Envoy's cache filter.
//!
//! On the way in it makes the request canonical and lets the coalescer decide whether it leads, waits
//! or passes. On the way out it tells the coalescer what came, and makes the stored response into
//! what the client should see.

use std::cell::Cell;
use std::rc::Rc;

use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;
use sluice_core::cache_status::{CacheStatus, Forward};
use sluice_core::coalescer::{Admission, LeaderResponse, Release};
use sluice_core::entry::{ENTRY_HEADER, Entry};
use sluice_core::flight::StreamId;
use sluice_core::hints::Hint;
use sluice_core::host::HostError;
use sluice_core::key::{CanonicalTarget, Rejection, Target, canonicalize};
use sluice_core::link::{BYPASS_SENTINEL, INTERNAL_PREFIX, LINK_HEADER, Link, Purpose};
use sluice_core::metrics::Metric;
use sluice_core::policy::StoreVersion;
use sluice_core::request::{Disposition, PassReason, RequestFacts, classify};

use crate::headers::Headers;
use crate::host::{self, Map};
use crate::origin::STORED_CACHE_CONTROL;
use crate::stream::{NumberedPolicy, Stream};
use crate::worker;

/// Name of the response header of RFC 9211.
const CACHE_STATUS: &str = "cache-status";

/// Why a request cannot be handled.
enum Refusal {
    /// By its URL or method.
    Rejected(Rejection),
    /// A host call failed, so nothing is known of it.
    Host(HostError),
    /// The worker has no policy.
    Unready,
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
    /// It goes around the store by its own nature.
    Passed(PassReason),
    /// It goes through the store, or around it because its key is uncacheable.
    Cached(Rc<Stream>),
}

/// A request in the EDGE role.
#[derive(Debug)]
pub struct Edge {
    id: StreamId,
    policy: NumberedPolicy,
    state: State,
}

impl Edge {
    /// A request under `policy`.
    pub fn new(context: u32, policy: NumberedPolicy) -> Self {
        Self {
            id: StreamId(context),
            policy,
            state: State::New,
        }
    }

    fn receive(&mut self, end_of_stream: bool) -> Result<Action, Refusal> {
        let headers = Headers::new(host::header_pairs(Map::Request)?);
        #[cfg(feature = "trap")]
        crate::trap::on_demand(&headers, "edge");
        let method = headers.text(":method").unwrap_or_default();
        let mut facts = RequestFacts::new(method, end_of_stream);
        for (name, value) in headers.iter() {
            facts.observe(name, value);
            if name.starts_with(INTERNAL_PREFIX) {
                host::remove_header(Map::Request, name)?;
            }
        }
        let target = self.canonicalize(&headers)?;
        match classify(&self.policy.policy, &facts) {
            Disposition::Reject(rejection) => Err(Refusal::Rejected(rejection)),
            Disposition::Pass(reason) => {
                self.rewrite(&headers, &target)?;
                self.pass(reason, &headers)?;
                Ok(Action::Continue)
            }
            Disposition::Cacheable => {
                self.rewrite(&headers, &target)?;
                self.admit(target, method == "HEAD")
            }
        }
    }

    fn canonicalize(&self, headers: &Headers) -> Result<CanonicalTarget, Refusal> {
        let target = Target {
            scheme: headers.text(":scheme"),
            authority: headers.get(":authority").unwrap_or_default(),
            path: headers.get(":path").unwrap_or_default(),
        };
        canonicalize(&self.policy.policy, &target).map_err(Refusal::Rejected)
    }

    /// Gives the request its canonical target. The scheme is part of Envoy's key but not of ours.
    fn rewrite(&self, headers: &Headers, target: &CanonicalTarget) -> Result<(), HostError> {
        let canonical = [
            (":authority", target.authority()),
            (":path", target.path()),
            (":scheme", "http"),
        ];
        for (name, value) in canonical {
            if headers.get(name) != Some(value.as_bytes()) {
                host::set_header(Map::Request, name, value)?;
            }
        }
        Ok(())
    }

    fn pass(&mut self, reason: PassReason, headers: &Headers) -> Result<(), Refusal> {
        let link = Link {
            purpose: Purpose::Bypass,
            stream: self.id,
            policy: self.policy.number,
        };
        let link = worker::with(|worker| {
            worker.metrics.count(Metric::RequestsPassed, 1);
            worker.encode_link(link)
        });
        host::set_header(Map::Request, LINK_HEADER, &link.ok_or(Refusal::Unready)?)?;
        if !headers.has("if-range") {
            host::set_header(Map::Request, "if-range", BYPASS_SENTINEL)?;
        }
        self.state = State::Passed(reason);
        Ok(())
    }

    /// Takes a cacheable request to the coalescer.
    fn admit(&mut self, target: CanonicalTarget, head: bool) -> Result<Action, Refusal> {
        let (id, policy) = (self.id, self.policy.clone());
        let decided = worker::with(|worker| -> Result<_, HostError> {
            let stream = Rc::new(Stream {
                id,
                key: worker.key_hash(target.cache_key()),
                target: Rc::new(target),
                policy,
                head,
                purpose: Cell::new(Purpose::Alone),
                released: Cell::new(None),
                answered: Cell::new(false),
            });
            worker.open(&stream);
            let admission = if stream.policy.policy.coalesce.enabled {
                worker.turn(id.0, |coalescer, turn| {
                    coalescer.request(&stream.request(), turn)
                })
            } else {
                Admission::Alone
            };
            let purpose = match admission {
                Admission::Fresh => Purpose::Fresh,
                Admission::Lead => Purpose::Lead,
                Admission::HitForMiss => Purpose::Bypass,
                Admission::Alone => Purpose::Alone,
                Admission::Park => return Ok((stream, Action::Pause)),
            };
            worker.send(&stream, purpose)?;
            Ok((stream, Action::Continue))
        });
        let (stream, action) = decided.ok_or(Refusal::Unready)??;
        self.state = State::Cached(stream);
        Ok(action)
    }

    fn refuse(&mut self, refusal: &Refusal) {
        self.state = State::Answered;
        worker::with(|worker| match refusal {
            Refusal::Rejected(_) => worker.metrics.count(Metric::RequestsRejected, 1),
            Refusal::Host(error) => {
                worker.metrics.count(Metric::HostErrors, 1);
                worker.warn(|| format!("sluice: a request could not be read: {error}"));
            }
            Refusal::Unready => {}
        });
        let answered = match refusal {
            Refusal::Rejected(rejection) => answer_rejection(*rejection),
            Refusal::Host(_) | Refusal::Unready => answer_failure(503, false),
        };
        if answered.is_err() {
            // Without an answer the request must not go on either: end the stream.
            let _ = host::reset(host::Half::Request);
        }
    }
}

impl Context for Edge {
    fn on_done(&mut self) -> bool {
        if let State::Cached(stream) = &self.state {
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

    fn on_http_response_headers(&mut self, _: usize, _: bool) -> Action {
        let outcome = match &self.state {
            State::New | State::Answered => Ok(Action::Continue),
            State::Passed(reason) => respond_passed(*reason),
            State::Cached(stream) if stream.answered.get() => Ok(Action::Continue),
            State::Cached(stream) => respond_cached(stream),
        };
        outcome.unwrap_or_else(|error| {
            worker::with(|worker| {
                worker.metrics.count(Metric::HostErrors, 1);
                worker.warn(|| format!("sluice: a response could not be finished: {error}"));
            });
            Action::Continue
        })
    }

    fn on_http_response_body(&mut self, size: usize, _: bool) -> Action {
        // A HEAD that leads fills the store as GET, and Envoy would send a body of unannounced length.
        if let State::Cached(stream) = &self.state
            && stream.head
            && size > 0
        {
            let _ = host::drop_response_body(size);
        }
        Action::Continue
    }
}

fn answer_rejection(rejection: Rejection) -> host::Result<()> {
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

fn respond_passed(reason: PassReason) -> host::Result<Action> {
    let forward = match reason {
        PassReason::Method => Forward::Method,
        PassReason::Upgrade | PassReason::Grpc | PassReason::Body => Forward::Bypass,
        PassReason::Authorization | PassReason::Cookie => Forward::Bypass,
        PassReason::Range | PassReason::Conditional => Forward::Request,
    };
    add_cache_status(&CacheStatus::forwarded(forward).detail(reason.name()))?;
    Ok(Action::Continue)
}

fn respond_cached(stream: &Rc<Stream>) -> host::Result<Action> {
    let Some(value) = host::header(Map::Response, ENTRY_HEADER)? else {
        return respond_without_entry(stream);
    };
    let Some(entry) = std::str::from_utf8(&value).ok().and_then(Entry::parse) else {
        return respond_without_entry(stream);
    };
    if entry.key != stream.target.cache_key() {
        return refuse_mismatch(stream);
    }
    let nonce = worker::with(|worker| worker.nonce).unwrap_or_default();
    let mine = entry.fill.nonce == nonce && entry.fill.stream == stream.id.0;
    let counted = host::header(Map::Response, "age")?.and_then(|age| seconds(&age));
    // Envoy's v2 store drops the age that a response came with.
    let brought = if mine { entry.age } else { 0 };
    let remaining = remaining(&entry, counted.unwrap_or(brought));
    report(stream, &entry, mine, remaining)?;
    restore(&entry)?;
    if counted.is_none() && brought > 0 {
        host::set_header(Map::Response, "age", &entry.age.to_string())?;
    }
    add_cache_status(&describe(stream, &entry, mine, remaining))?;
    Ok(Action::Continue)
}

/// Tells the coalescer and the counters what came.
fn report(
    stream: &Stream,
    entry: &Entry<'_>,
    mine: bool,
    remaining: Option<u64>,
) -> host::Result<()> {
    let filled = if mine && entry.stored {
        Some(filling(stream)?)
    } else {
        None
    };
    worker::with(|worker| {
        worker.metrics.count(result_metric(stream, entry, mine), 1);
        worker.turn(stream.id.0, |coalescer, turn| {
            let until = turn
                .now
                .saturating_add(remaining.unwrap_or(0).saturating_mul(1_000));
            match filled {
                Some(filling) => coalescer.response(stream.id, filling.response(until), turn),
                None if entry.stored => {
                    coalescer.hints().set(stream.key, Hint::Fresh, until);
                    coalescer.response(stream.id, LeaderResponse::Readable { until }, turn);
                }
                // ORIGIN has told that this response is nobody else's.
                None => {}
            }
        });
    });
    Ok(())
}

/// What the store makes of the response of a fill.
#[derive(Clone, Copy, Debug)]
enum Filling {
    /// Others can join it.
    Joinable,
    /// It cannot be read before its end.
    Underway,
    /// The store has let it pass.
    Passed,
}

impl Filling {
    const fn response(self, until: u64) -> LeaderResponse {
        match self {
            Self::Joinable => LeaderResponse::Joinable { until },
            Self::Underway => LeaderResponse::Filling { until },
            Self::Passed => LeaderResponse::Unshared,
        }
    }
}

/// On v2 a fill can be joined from its headers on, unless the store has just learnt that the key is
/// cacheable and has let this response pass, which only Envoy's `response.code_details` tell.
fn filling(stream: &Stream) -> host::Result<Filling> {
    if stream.policy.policy.store == StoreVersion::V1 {
        return Ok(Filling::Underway);
    }
    let details = host::property("response\0code_details")?;
    let joinable = details.is_some_and(|details| details.starts_with(b"cache."));
    Ok(if joinable {
        Filling::Joinable
    } else {
        Filling::Passed
    })
}

fn result_metric(stream: &Stream, entry: &Entry<'_>, mine: bool) -> Metric {
    match (stream.purpose.get(), mine) {
        (_, true) if entry.revalidated => Metric::RequestsRevalidated,
        (_, true) => Metric::RequestsMiss,
        (Purpose::Collapsed, false) => Metric::RequestsCollapsed,
        (_, false) => Metric::RequestsHit,
    }
}

/// Undoes what ORIGIN did to the response so that Envoy's cache would store it.
fn restore(entry: &Entry<'_>) -> host::Result<()> {
    host::remove_header(Map::Response, ENTRY_HEADER)?;
    // The cache filter's own client adds it.
    host::remove_header(Map::Response, "x-envoy-upstream-service-time")?;
    if entry.disguised {
        host::set_header(Map::Response, ":status", &entry.status.to_string())?;
    }
    match host::header(Map::Response, STORED_CACHE_CONTROL)? {
        Some(value) => {
            let value = String::from_utf8_lossy(&value);
            host::set_header(Map::Response, "cache-control", &value)?;
            host::remove_header(Map::Response, STORED_CACHE_CONTROL)?;
        }
        None => host::remove_header(Map::Response, "cache-control")?,
    }
    if entry.neutral_validators {
        host::remove_header(Map::Response, "etag")?;
    }
    Ok(())
}

fn describe(
    stream: &Stream,
    entry: &Entry<'_>,
    mine: bool,
    remaining: Option<u64>,
) -> CacheStatus<'static> {
    let ttl = i64::try_from(remaining.unwrap_or(0)).unwrap_or(i64::MAX);
    if mine && entry.revalidated {
        return CacheStatus::forwarded(Forward::Stale)
            .forward_status(304)
            .ttl(ttl);
    }
    if mine {
        let status = CacheStatus::forwarded(Forward::UriMiss).forward_status(entry.status);
        return if entry.stored {
            status.stored().ttl(ttl)
        } else {
            status
        };
    }
    if stream.released.get() == Some(Release::Collapsed) {
        return CacheStatus::forwarded(Forward::UriMiss)
            .collapsed()
            .ttl(ttl);
    }
    CacheStatus::hit().ttl(ttl)
}

/// A response that ORIGIN has not marked: it went around the store, or is Envoy's own.
fn respond_without_entry(stream: &Rc<Stream>) -> host::Result<Action> {
    let status = host::header(Map::Response, ":status")?;
    let status = status.and_then(|status| std::str::from_utf8(&status).ok()?.parse().ok());
    let status: u16 = status.unwrap_or(502);
    let bypass = stream.purpose.get() == Purpose::Bypass;
    worker::with(|worker| {
        if !bypass {
            worker.metrics.count(Metric::RequestsMiss, 1);
        }
        worker.turn(stream.id.0, |coalescer, turn| {
            let response = if status >= 400 {
                LeaderResponse::Failed { status }
            } else {
                LeaderResponse::Unshared
            };
            coalescer.response(stream.id, response, turn);
        });
    });
    let forward = if bypass {
        Forward::Bypass
    } else {
        Forward::UriMiss
    };
    let mut description = CacheStatus::forwarded(forward).forward_status(status);
    if bypass {
        description = description.detail(match stream.released.get() {
            Some(Release::WaitTimeout) => "wait-timeout",
            _ => "hit-for-miss",
        });
    }
    add_cache_status(&description)?;
    Ok(Action::Continue)
}

/// Envoy's disk store names files by a short hash, so an entry can be of another key.
fn refuse_mismatch(stream: &Stream) -> host::Result<Action> {
    worker::with(|worker| {
        worker.metrics.count(Metric::KeyMismatches, 1);
        worker.warn(|| "sluice: the store gave the response of another key".to_owned());
        worker.turn(stream.id.0, |coalescer, turn| {
            coalescer.response(stream.id, LeaderResponse::Failed { status: 503 }, turn);
        });
    });
    stream.answered.set(true);
    answer_failure(503, false)?;
    Ok(Action::Pause)
}

fn add_cache_status(status: &CacheStatus<'_>) -> host::Result<()> {
    host::add_header(Map::Response, CACHE_STATUS, &status.to_string())
}

/// Seconds for which a stored response of this entry and age is fresh; `None` if it is not stored.
pub fn remaining_seconds(entry: &[u8], age: Option<&[u8]>) -> Option<u64> {
    let entry = Entry::parse(std::str::from_utf8(entry).ok()?)?;
    remaining(&entry, age.and_then(seconds).unwrap_or(0))
}

fn remaining(entry: &Entry<'_>, age: u64) -> Option<u64> {
    entry.stored.then(|| entry.ttl.saturating_sub(age))
}

fn seconds(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}
