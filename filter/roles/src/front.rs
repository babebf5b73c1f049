// SPDX-License-Identifier: Apache-2.0
//! FRONT: the role in the gateways in front of a fleet of edges. The gateways have no cache.
//!
//! FRONT sets a header with the key under which the edges cache the requested object. The mesh sends each key to the
//! edge that owns it, by consistent hashing of that header. FRONT also sets whether the request may be retried on
//! another edge. The request is otherwise forwarded unchanged, because the edge decides on it.

use std::rc::Rc;

use sluice_core::host::HostError;
use sluice_core::internal_headers::KEY_HEADER;
use sluice_core::key::{CanonicalTarget, Rejection, canonicalize};
use sluice_core::metrics::Metric;

use crate::callbacks::StreamContext;
use crate::reply::answer_rejection;
use crate::request::policy::Generation;
use crate::worker::Worker;
use crate::worker::identity::Identity;
use crate::worker::metrics::Metrics;
use sluice_host::headers::Headers;
use sluice_host::{Action, Host, Map};

/// Methods whose requests may be retried on another edge after one has received them (RFC 9110, 9.2.2). The route
/// configures the other retries, and their number.
const READS: [&str; 2] = ["GET", "HEAD"];

/// A request in the FRONT role.
#[derive(Debug)]
pub struct Front {
    generation: Rc<Generation>,
}

impl Front {
    /// Creates a request for one of these sites, which must be those of the edges behind the gateway.
    pub const fn new(generation: Rc<Generation>) -> Self {
        Self { generation }
    }

    fn receive(
        &self,
        host: &dyn Host,
        metrics: &Metrics,
        identity: &Identity,
    ) -> Result<Action, HostError> {
        let headers = host.headers(Map::Request)?;
        match canonical_target(&self.generation, &headers) {
            Ok(target) => {
                // One edge owns all responses of a URL, and learns which headers they vary with.
                host.set_header(Map::Request, KEY_HEADER, target.url())?;
                if READS.iter().any(|read| headers.is(":method", read)) {
                    host.set_header(Map::Request, "x-envoy-retry-on", "reset")?;
                }
                Ok(Action::Continue)
            }
            Err(rejection) => {
                metrics.count(Metric::RequestsRejected, 1);
                answer_rejection(host, &identity.name, &[], rejection)?;
                Ok(Action::Pause)
            }
        }
    }
}

impl StreamContext for Front {
    fn on_request_headers(&mut self, _: &dyn Host, worker: Option<&mut Worker>, _: bool) -> Action {
        let received = worker.and_then(|worker| {
            let received = self.receive(&*worker.host, &worker.metrics, &worker.identity);
            let fault = |error| {
                worker
                    .metrics
                    .fault("a request's key could not be named", error)
            };
            received.map_err(fault).ok()
        });
        // Without a key the mesh may choose any edge, which checks the request in the same way.
        received.unwrap_or(Action::Continue)
    }
}

/// The canonical target of a client's request, or the reason for which it has none.
fn canonical_target(
    generation: &Generation,
    headers: &Headers,
) -> Result<CanonicalTarget, Rejection> {
    let target = headers.target();
    let site = generation.sites.find(&target, || None)?;
    let policy = generation.policy(site).ok_or(Rejection::NoSite)?;
    canonicalize(&policy.policy, &target)
}
