// SPDX-License-Identifier: Apache-2.0
//! The body of a client's request whose headers do not end it. HTTP/2 may end a request without a body by an empty
//! frame or by trailers, HTTP/1.1 by an empty chunk.
//!
//! Envoy's cache filter ignores a request that does not end with its headers, whatever follows. Therefore a request
//! that proves to have no body is sent back to EDGE through the background listener. There it ends with its headers,
//! and is coalesced like any other.

use super::headers::strip_internal;
use crate::edge::{Edge, Refusal, State};
use crate::request::headers::keep_path;
use crate::worker::bodies::AwaitedBodies;
use crate::worker::metrics::Metrics;
use crate::worker::roots::Roots;
use crate::worker::{
    Worker,
    bodies::{self, Late},
};
use sluice_core::coalescing::StoreRequest;
use sluice_core::host::HostError;
use sluice_core::internal_headers::{EMPTY_HEADER, ORIGINAL_PATH_HEADER};
use sluice_core::key::{NAME_END, Rejection};
use sluice_core::metrics::Metric;
use sluice_core::policy::Origin;
use sluice_host::headers::Headers;
use sluice_host::{Action, Host, Map};
use sluice_store::{BYPASS_SENTINEL, LINK_HEADER, Link};

impl Edge {
    /// Waits for the body of a request that the store would answer if it had no body. If the origin is a bucket, a
    /// request with a body is refused. A request to an HTTP origin already has the headers with which it passes.
    pub(in crate::edge) fn await_body(
        &mut self,
        host: &dyn Host,
        metrics: &Metrics,
        bodies: &mut AwaitedBodies,
        roots: &mut Roots,
    ) -> Action {
        let late = if self.is_for_bucket() {
            Late::Refused
        } else {
            Late::Passes
        };
        metrics.count(Metric::BodiesAwaited, 1);
        bodies::begin(host, bodies, roots, self.id, late);
        self.awaits_body = true;
        Action::Pause
    }

    pub(in crate::edge) fn is_for_bucket(&self) -> bool {
        matches!(self.policy.policy.origin, Origin::Bucket(_))
    }

    /// Handles the first part of the body, with or without `bytes`, or trailers in its place.
    pub(in crate::edge) fn take_body(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        bytes: bool,
        ends: bool,
    ) -> Action {
        let Some(worker) = worker.filter(|_| bytes || ends) else {
            return Action::Pause;
        };
        self.awaits_body = false;
        let waited = worker.bodies.end(self.id);
        let passes = matches!(self.state, State::Passed(..));
        let outcome = match (waited, bytes) {
            // The wait has ended already.
            (false, _) if passes => return Action::Continue,
            (false, _) => return Action::Pause,
            (true, true) if passes => {
                worker
                    .metrics
                    .count_of(&self.policy, Metric::RequestsPassed);
                return Action::Continue;
            }
            (true, true) => Err(Refusal::Rejected(Rejection::UnexpectedBody)),
            (true, false) => self.send_back(host).map_err(Refusal::Host),
        };
        match outcome {
            Ok(()) => Action::Continue,
            Err(refusal) => {
                refusal.count(&worker.metrics, &self.policy);
                self.refuse(host, &refusal);
                Action::Pause
            }
        }
    }

    /// Sends a request without a body back to EDGE through the hop. The hop's codec omits the empty body because the
    /// length is known. The guard accepts the request under its canonical path.
    fn send_back(&mut self, host: &dyn Host) -> Result<(), HostError> {
        let headers = host.headers(Map::Request)?;
        let state = std::mem::replace(&mut self.state, State::Unchanged);
        if let State::Awaiting(target) = &state {
            keep_path(host, &headers, headers.target().path, target.path())?;
            host.set_header(Map::Request, ":path", target.path())?;
        }
        if headers.is("if-range", BYPASS_SENTINEL) {
            host.remove_header(Map::Request, "if-range")?;
        }
        let link = Link {
            request: StoreRequest::Empty,
            stream: self.id,
            policy: self.policy.number,
        };
        let link = self
            .identity
            .vouching
            .encode(link, &self.policy.policy.site.name);
        let set = [
            (LINK_HEADER, link.as_str()),
            (EMPTY_HEADER, "1"),
            ("content-length", "0"),
        ];
        set.into_iter()
            .try_for_each(|(name, value)| host.set_header(Map::Request, name, value))
    }
}

/// Restores the headers that the client sent, in a request that was sent back.
pub fn restore(host: &dyn Host, headers: &Headers) -> Result<(), HostError> {
    strip_internal(host, headers)?;
    host.remove_header(Map::Request, "content-length")?;
    let mut parts = headers
        .target()
        .authority
        .splitn(2, |byte| NAME_END.as_bytes() == [*byte]);
    if let Some(authority) = parts.nth(1) {
        host.set_header(Map::Request, ":authority", authority)?;
    }
    if let Some(path) = headers.get(ORIGINAL_PATH_HEADER) {
        host.set_header(Map::Request, ":path", path)?;
        host.remove_header(Map::Request, ORIGINAL_PATH_HEADER)?;
    }
    Ok(())
}
