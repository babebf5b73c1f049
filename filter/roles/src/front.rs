// SPDX-License-Identifier: Apache-2.0
//! FRONT: the role in front of a fleet of edges. Gateways of a mesh have it, and no cache. An edge with peers has it at
//! its listeners for clients.
//!
//! FRONT sets a header with the key under which the edges cache the requested object. The mesh or Envoy sends each key
//! to the edge that owns it, by consistent hashing of that header. FRONT also sets whether the request may be retried
//! on another edge. The request is otherwise forwarded unchanged, because the edge decides on it.

use std::rc::Rc;

use sluice_core::access::credentials::SignedPath;
use sluice_core::host::HostError;
use sluice_core::internal_headers::{KEY_HEADER, PURGES_HEADER};
use sluice_core::key::{CanonicalTarget, Rejection, Target, canonicalize};
use sluice_core::metrics::Metric;
use sluice_core::purge::{AppliedPurges, FeedPosition};

use crate::callbacks::StreamContext;
use crate::edge::server_name;
use crate::reply::answer_rejection;
use crate::request::account::{result_of, tell_result};
use crate::request::policy::{Generation, NumberedPolicy};
use crate::worker::Worker;
use crate::worker::identity::Identity;
use crate::worker::keys::Keys;
use crate::worker::metrics::Metrics;
use sluice_host::{Action, Host, Map};

/// Methods whose requests may be retried on another edge after one has received them (RFC 9110, 9.2.2). The route
/// configures the other retries, and their number.
const READS: [&str; 2] = ["GET", "HEAD"];

/// A request in the FRONT role.
#[derive(Debug)]
pub struct Front {
    generation: Rc<Generation>,
    identity: Rc<Identity>,
}

impl Front {
    /// Creates a request for one of these sites, which must be those of the edges behind FRONT.
    pub const fn new(generation: Rc<Generation>, identity: Rc<Identity>) -> Self {
        Self {
            generation,
            identity,
        }
    }

    fn receive(
        &self,
        host: &dyn Host,
        metrics: &Metrics,
        keys: &mut Keys,
    ) -> Result<Action, HostError> {
        let headers = host.headers(Map::Request)?;
        if READS.iter().any(|read| headers.is(":method", read)) {
            host.set_header(Map::Request, "x-envoy-retry-on", "reset")?;
        }
        let target = headers.target();
        let site = self
            .generation
            .sites
            .find(&target, || server_name(host))
            .and_then(|site| self.generation.policy(site).ok_or(Rejection::NoSite));
        let key = site.and_then(|policy| Ok((policy, key_target(policy, target)?)));
        match key {
            Ok((policy, key)) => {
                keys.join_roster();
                let applied = AppliedPurges::of(keys.feed_position(), &policy.policy, &key);
                if applied != AppliedPurges::default() {
                    host.set_header(Map::Request, PURGES_HEADER, applied.to_string())?;
                }
                // One edge owns all responses of a URL, and learns which headers they vary with.
                host.set_header(Map::Request, KEY_HEADER, key.url())?;
                Ok(Action::Continue)
            }
            // An edge may redirect it to a directory.
            Err(Rejection::NoObject) => Ok(Action::Continue),
            Err(rejection) => {
                self.reject(host, metrics, site.ok(), rejection)?;
                Ok(Action::Pause)
            }
        }
    }

    /// Answers a request that no edge gets, and counts it for the site of that policy.
    fn reject(
        &self,
        host: &dyn Host,
        metrics: &Metrics,
        policy: Option<&NumberedPolicy>,
        rejection: Rejection,
    ) -> Result<(), HostError> {
        match policy {
            Some(policy) => {
                metrics.count_of(policy, Metric::RequestsRejected);
                if policy.policy.response.account {
                    tell_result(host, result_of(Metric::RequestsRejected))?;
                }
            }
            None => metrics.count(Metric::RequestsRejected, 1),
        }
        answer_rejection(host, &self.identity.name, &[], rejection)
    }
}

impl StreamContext for Front {
    fn on_request_headers(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        _: bool,
    ) -> Action {
        let received = worker.and_then(|worker| {
            let received = self.receive(host, &worker.metrics, &mut worker.keys);
            let metrics = &worker.metrics;
            metrics.note_fault("a request's key could not be named", received)
        });
        // Without a key any edge may be chosen, which checks the request in the same way.
        received.unwrap_or(Action::Continue)
    }

    fn on_response_headers(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        _: bool,
    ) -> Action {
        let told = host.header(Map::Response, PURGES_HEADER);
        if let Some(told) = told.ok().flatten() {
            let position = std::str::from_utf8(&told);
            let position = position.ok().and_then(FeedPosition::parse);
            if let Some((position, worker)) = position.zip(worker) {
                worker.keys.hear_of_feed(position);
            }
            // If this fails, the client sees how far the edge has read the feed.
            let _ = host.remove_header(Map::Response, PURGES_HEADER);
        }
        Action::Continue
    }
}

/// The canonical target of a client's request, or the reason for which it has none. It lacks the signature of a link.
fn key_target(policy: &NumberedPolicy, target: Target<'_>) -> Result<CanonicalTarget, Rejection> {
    let access = policy.policy.access.as_ref();
    let signed = access.and_then(|access| access.signed());
    let path = signed.and_then(|_| SignedPath::of(target.path));
    let path = path.as_ref().map_or(target.path, |path| &path.rest);
    canonicalize(&policy.policy, &Target { path, ..target })
}
