// SPDX-License-Identifier: Apache-2.0
//! The body of a client's request that its headers have not ended. HTTP/2 may end a request without a body by an empty
//! frame or by trailers, HTTP/1.1 by an empty chunk.
//!
//! Envoy's cache filter ignores a request that its headers do not end, whatever follows. So a request that proves to have
//! no body comes back to EDGE by the background listener, where its headers end it, and is coalesced like any other.

use super::headers::strip_internal;
use crate::edge::{Edge, Refusal, State};
use crate::request::headers::keep_path;
use crate::worker::{
    Worker,
    bodies::{self, Late},
};
use sluice_core::host::HostError;
use sluice_core::internal_headers::{EMPTY_HEADER, ORIGINAL_PATH_HEADER};
use sluice_core::key::{NAME_END, Rejection};
use sluice_core::metrics::Metric;
use sluice_core::policy::Origin;
use sluice_host::headers::Headers;
use sluice_host::{Action, Host, Map};
use sluice_store::{BYPASS_SENTINEL, LINK_HEADER, Link, StoreRequest};

impl Edge {
    /// Waits for the body of a request that the store would answer if it had none. Towards a bucket it goes no further
    /// with a body; towards an HTTP origin it has what it needs to pass.
    pub(in crate::edge) fn await_body(&mut self, worker: &mut Worker) -> Action {
        let late = if self.is_for_bucket() {
            Late::Refused
        } else {
            Late::Passes
        };
        worker.metrics.count(Metric::BodiesAwaited, 1);
        bodies::begin(worker, self.id, late);
        self.awaits_body = true;
        Action::Pause
    }

    pub(in crate::edge) fn is_for_bucket(&self) -> bool {
        matches!(self.policy.policy.origin, Origin::Bucket(_))
    }

    /// The first part of the body has come, with `bytes` or without, or trailers in its place.
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
            // The wait has ended before, in one way or the other.
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

    /// Sends a request without a body back to EDGE, by way of the hop, whose codec leaves the empty body out where the
    /// length is known. The guard lets it out under its canonical path.
    fn send_back(&mut self, host: &dyn Host) -> Result<(), HostError> {
        let headers = host.headers(Map::Request)?;
        let state = std::mem::replace(&mut self.state, State::Background);
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

/// Makes of a request that has come back what its client has sent.
pub fn restore(host: &dyn Host, headers: &Headers) -> Result<(), HostError> {
    strip_internal(host, headers)?;
    host.remove_header(Map::Request, "content-length")?;
    let mut parts = headers
        .target()
        .authority
        .splitn(2, |byte| char::from(*byte) == NAME_END);
    if let Some(authority) = parts.nth(1) {
        host.set_header(Map::Request, ":authority", authority)?;
    }
    if let Some(path) = headers.get(ORIGINAL_PATH_HEADER) {
        host.set_header(Map::Request, ":path", path)?;
        host.remove_header(Map::Request, ORIGINAL_PATH_HEADER)?;
    }
    Ok(())
}
