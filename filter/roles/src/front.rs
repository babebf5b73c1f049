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
use sluice_core::internal_headers::{KEY_HEADER, LARGE_HEADER, OWN_HEADER, PURGES_HEADER};
use sluice_core::key::{CanonicalTarget, Rejection, Target, canonicalize};
use sluice_core::metrics::Metric;
use sluice_core::purge::AppliedPurges;

use crate::callbacks::StreamContext;
use crate::edge::{hear_of_feed, server_name};
use crate::reply::answer_rejection;
use crate::request::account::{result_of, tell_result};
use crate::request::policy::{Generation, NumberedPolicy};
use crate::worker::Worker;
use crate::worker::identity::Identity;
use crate::worker::keys::Keys;
use crate::worker::metrics::Metrics;
use crate::worker::slices::KnownObjects;
use sluice_host::{Action, Host, Map};

/// Methods whose requests may be retried on another edge after one has received them (RFC 9110, 9.2.2). The route
/// configures the other retries, and their number.
const READS: [&str; 2] = ["GET", "HEAD"];
/// Response headers by which an edge tells FRONT facts.
const TOLD: [&str; 2] = [PURGES_HEADER, LARGE_HEADER];

/// A request in the FRONT role.
#[derive(Debug)]
pub struct Front {
    generation: Rc<Generation>,
    identity: Rc<Identity>,
    /// The object of a GET or a HEAD.
    read: Option<CanonicalTarget>,
}

impl Front {
    /// Creates a request for one of these sites, which must be those of the edges behind FRONT.
    pub const fn new(generation: Rc<Generation>, identity: Rc<Identity>) -> Self {
        Self {
            generation,
            identity,
            read: None,
        }
    }

    fn receive(
        &mut self,
        host: &dyn Host,
        metrics: &Metrics,
        keys: &mut Keys,
        slices: &KnownObjects,
    ) -> Result<Action, HostError> {
        let headers = host.headers(Map::Request)?;
        let reads = READS.iter().any(|read| headers.is(":method", read));
        if reads {
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
                if reads && slices.is_large(|| keys.identity.large_url(&key)) {
                    // This edge requests each slice from its owner.
                    host.set_header(Map::Request, OWN_HEADER, "1")?;
                }
                // One edge owns all responses of a URL, and learns which headers they vary with.
                host.set_header(Map::Request, KEY_HEADER, key.url())?;
                self.read = reads.then_some(key);
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

    /// Takes the facts that an edge tells with its response, so that the client does not get them.
    fn learn(&self, host: &dyn Host, worker: &mut Worker) -> Result<(), HostError> {
        hear_of_feed(host, worker)?;
        if host.header(Map::Response, LARGE_HEADER)?.is_some() {
            if let Some(read) = &self.read {
                let large = self.identity.large_url(read);
                worker.slices.note_large(large);
            }
            host.remove_header(Map::Response, LARGE_HEADER)?;
        }
        Ok(())
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
            let (keys, slices) = (&mut worker.keys, &worker.slices);
            let received = self.receive(host, &worker.metrics, keys, slices);
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
        match worker {
            Some(worker) => {
                let learnt = self.learn(host, worker);
                let consequence = "a client sees headers of the filter";
                worker.metrics.note_fault(consequence, learnt);
            }
            None => {
                let removed = TOLD.map(|name| host.remove_header(Map::Response, name));
                // If this fails, the client sees the headers.
                let _ = removed;
            }
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
