// SPDX-License-Identifier: Apache-2.0
//! EDGE: between the client and Envoy's cache filter.
//!
//! On the way in it makes the request canonical and lets the coalescer decide whether it leads, waits
//! or passes. What it makes of the response is in [`crate::response`].

use std::cell::Cell;
use std::rc::Rc;

use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;
use sluice_core::coalescer::Admission;
use sluice_core::flight::StreamId;
use sluice_core::host::HostError;
use sluice_core::key::{CanonicalTarget, Rejection, Target, canonicalize};
use sluice_core::link::{BYPASS_SENTINEL, INTERNAL_PREFIX, LINK_HEADER, Link, Purpose};
use sluice_core::metrics::Metric;
use sluice_core::request::{Disposition, PassReason, RequestFacts, classify};

use crate::headers::Headers;
use crate::host::{self, Map};
use crate::response::{respond_cached, respond_passed};
use crate::stream::{NumberedPolicy, Stream};
use crate::worker;

/// Name of the response header of RFC 9211.
pub const CACHE_STATUS: &str = "cache-status";

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
            Refusal::Host(error) => worker.fault("a request could not be read", *error),
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
            worker::with(|worker| worker.fault("a response could not be finished", error));
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
