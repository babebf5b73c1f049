// SPDX-License-Identifier: Apache-2.0
//! ORIGIN: the role between Envoy's cache filter and the origin, in the cluster's upstream chain.
//!
//! Every miss and every revalidation passes through ORIGIN, and nothing else. ORIGIN stops requests that EDGE has not
//! vouched for, and passes on only allowed headers (`request`). It decides whether and for how long the response is
//! stored (`response`), and reports the progress of the fill to the coalescer (`fetch`).

mod clean;
mod failure;
mod fetch;
mod judged;
mod not_modified;
mod orphaned;
mod outcome;
mod request;
mod response;
mod slice;
mod surrogate_keys;
mod variants;

use crate::worker::metrics::Metrics;

use fetch::Fetch;
use orphaned::OrphanedRequest;
use request::{keeps_unasked, not_served, prepare_request, written};
use response::respond;
use sluice_core::coalescing::StoreRequest;
use sluice_core::internal_headers::{FALLBACK_HEADER, PROOF_HEADER, SERVER_HEADER};
use sluice_core::key::qualifiers::is_for_slice;
use sluice_core::metrics::Metric;
use sluice_store::{LINK_HEADER, Link, Received, Vouched};

use crate::callbacks::StreamContext;
use crate::reply::DueReply;
use crate::reply::complete_reply::CompleteReply;
use crate::request::policy::NumberedPolicy;
use crate::worker::{Worker, fills};
use sluice_host::headers::Headers;
use sluice_host::{self as host, Action, Half, Host, Map};

/// A request in the ORIGIN role.
#[derive(Debug)]
pub struct OriginStream {
    context: u32,
    fetch: Option<Fetch>,
    adopted: Option<OrphanedRequest>,
}

impl OriginStream {
    /// Creates a request whose headers have not arrived.
    pub fn new(context: u32) -> Self {
        Self {
            context,
            fetch: None,
            adopted: None,
        }
    }

    fn receive(&mut self, worker: &mut Worker) -> host::Result<Action> {
        let headers = worker.host.headers(Map::Request)?;
        let vouched = headers
            .get(LINK_HEADER)
            .and_then(|value| worker.identity.vouching.decode(value.bytes()));
        let Some(Received { vouched, site }) = vouched else {
            return Ok(self.stop(worker));
        };
        let policy = match vouched {
            Vouched::Here(link) => worker.policies.get(link.policy),
            Vouched::Elsewhere(_) => {
                let newest = worker.policies.newest();
                newest.and_then(|newest| newest.policy_of(site))
            }
        };
        let policy = policy.filter(|policy| policy.policy.site.name == site);
        let Some(policy) = policy.cloned() else {
            return Ok(self.stop(worker));
        };
        let server = &policy.policy.site.server;
        if !server.is_empty() {
            worker
                .host
                .set_header(Map::Request, SERVER_HEADER, server)?;
        }
        match vouched {
            // The hop can only send it back to EDGE.
            Vouched::Here(Link {
                request: StoreRequest::Empty,
                ..
            })
            | Vouched::Elsewhere(StoreRequest::Empty) => Ok(Action::Continue),
            // Such a request is for the slicer.
            Vouched::Here(Link {
                request: StoreRequest::Slice,
                ..
            }) => Ok(self.stop(worker)),
            Vouched::Here(link) => self.receive_linked(worker, link, policy, &headers),
            Vouched::Elsewhere(request) => self.adopt(worker, request, policy, &headers),
        }
    }

    /// Answers a request that EDGE has not vouched for.
    fn stop(&self, worker: &mut Worker) -> Action {
        worker.metrics.count(Metric::OriginUnlinked, 1);
        worker
            .metrics
            .warn(|| "sluice: a request without the edge role's link was stopped".into());
        self.refuse(worker, CompleteReply::unlinked())
    }

    /// Forwards the request of a client whose EDGE is in another VM.
    fn adopt(
        &mut self,
        worker: &mut Worker,
        request: StoreRequest,
        policy: NumberedPolicy,
        headers: &Headers,
    ) -> host::Result<Action> {
        if matches!(request, StoreRequest::Lookup | StoreRequest::StoreOnly) {
            return Ok(self.refuse(
                worker,
                not_served(&*worker.host, &worker.room, request, headers),
            ));
        }
        let path = written(headers, ":path");
        if request.is_background() || is_for_slice(path) {
            return Ok(self.stop(worker));
        }
        let (host, identity) = (&*worker.host, &*worker.identity);
        prepare_request(host, identity, &policy.policy, request, headers, path)?;
        let cacheable = !request.avoids_the_store();
        self.adopted = Some(OrphanedRequest::new(
            &worker.metrics,
            policy,
            headers,
            cacheable,
        ));
        Ok(Action::Continue)
    }

    /// Handles a request that EDGE has sent to the store, and that the store has forwarded.
    fn receive_linked(
        &mut self,
        worker: &mut Worker,
        link: Link,
        policy: NumberedPolicy,
        headers: &Headers,
    ) -> host::Result<Action> {
        if matches!(link.request, StoreRequest::Lookup | StoreRequest::StoreOnly) {
            return Ok(self.refuse(
                worker,
                not_served(&*worker.host, &worker.room, link.request, headers),
            ));
        }
        let mut fetch = Fetch::of(worker, self.context, link, policy, headers);
        // Only the slicer may request what the store has under the key of a slice.
        if is_for_slice(&fetch.cache_key) != fetch.slice.is_some() {
            return Ok(self.stop(worker));
        }
        if let Some(kept) = fetch.revalidation.as_ref().filter(|stored| {
            stored.left() > 0
                && keeps_unasked(
                    &*worker.host,
                    &worker.keys,
                    &mut worker.coalescing.coalescer,
                    link,
                    &fetch.cache_key,
                )
        }) {
            fills::keep_unwritten(worker, link.stream, kept);
            return Ok(self.refuse(worker, CompleteReply::keeping(kept)));
        }
        let revalidation = fetch.revalidation.as_ref();
        if let Some(stored) = revalidation.filter(|stored| stored.is_late_for(link.request)) {
            worker.coalescing.requests.note_late(link.stream);
            return Ok(self.refuse(worker, CompleteReply::unwritten(stored)));
        }
        if fetch.asks_again(worker) {
            return Ok(self.refuse(worker, CompleteReply::ask_again()));
        }
        fetch.prepare(worker, headers)?;
        if let Some(slice) = &fetch.slice {
            slice::ask(&*worker.host, slice)?;
        }
        if fetch.policy.policy.origin.is_bucket() && fetch.fallback().is_some() {
            worker.host.set_header(Map::Request, FALLBACK_HEADER, "1")?;
        }
        fetch.begin(worker);
        self.fetch = Some(fetch);
        Ok(Action::Continue)
    }

    fn refuse(&self, worker: &mut Worker, answer: CompleteReply) -> Action {
        worker
            .coalescing
            .wakeups
            .answer(self.context, DueReply::Complete(answer));
        Action::Pause
    }

    /// Handles the headers of the response.
    fn respond(&mut self, worker: &mut Worker, end_of_stream: bool) -> Action {
        if self.must_abort(worker, false) {
            return abort(&*worker.host, &worker.metrics);
        }
        let responded = match (&mut self.adopted, &mut self.fetch) {
            (Some(adopted), _) => adopted.respond(&*worker.host, &worker.metrics, end_of_stream),
            (None, Some(fetch)) => respond(worker, fetch, end_of_stream),
            (None, None) => Ok(()),
        };
        if let Err(error) = responded {
            worker
                .metrics
                .fault("a response was kept out of the store", error);
            let host = &*worker.host;
            let _ = host.set_header(Map::Response, "cache-control", "no-store");
            // EDGE takes an unmarked response with an age for one from the store.
            let _ = host.remove_header(Map::Response, "age");
        }
        Action::Continue
    }

    /// Handles a part of `size` bytes of the response's body.
    fn pass(&mut self, worker: &mut Worker, size: usize, end_of_stream: bool) -> Action {
        if self.must_abort(worker, end_of_stream) {
            return abort(&*worker.host, &worker.metrics);
        }
        let passed = match (&mut self.adopted, &mut self.fetch) {
            (Some(adopted), _) => adopted.pass(&*worker.host, size).map(drop),
            (None, Some(fetch)) => {
                // If the response is not stored, no follower waits beyond its headers.
                if fetch.response.stores {
                    fills::progress(
                        &*worker.host,
                        &mut worker.coalescing.coalescer,
                        &mut worker.fills,
                        fetch.link.stream,
                        size,
                    );
                }
                fetch.pass(&*worker.host, size)
            }
            (None, None) => Ok(()),
        };
        if let Err(error) = passed {
            worker.metrics.fault("a response was cut", error);
            return abort(&*worker.host, &worker.metrics);
        }
        if end_of_stream {
            self.end_fetch(worker);
        }
        Action::Continue
    }

    /// Handles the end of the response, with or without trailers.
    fn end(&mut self, worker: &mut Worker) -> Action {
        if self.must_abort(worker, true) {
            return abort(&*worker.host, &worker.metrics);
        }
        self.end_fetch(worker);
        Action::Continue
    }

    /// Whether the response must be aborted. `ends` says that this part is its last.
    fn must_abort(&self, worker: &Worker, ends: bool) -> bool {
        let fetch = self.fetch.as_ref();
        fetch.is_some_and(|fetch| {
            fetch.must_abort(worker)
                || (ends && fetch.is_overtaken(&worker.keys, &worker.coalescing.requests))
        })
    }

    fn end_fetch(&mut self, worker: &mut Worker) {
        if let Some(fetch) = &mut self.fetch {
            fetch.end(worker);
        }
    }

    /// Ends a response that cannot be reported to the worker, because the store must not get it.
    fn cut_off(&self, host: &dyn Host) -> Action {
        if self.fetch.is_none() && self.adopted.is_none() {
            return Action::Continue;
        }
        reset(host)
    }
}

/// Aborts a response.
fn abort(host: &dyn Host, metrics: &Metrics) -> Action {
    metrics.count(Metric::FillsAborted, 1);
    reset(host)
}

fn reset(host: &dyn Host) -> Action {
    // If Envoy refuses, pausing still keeps the response from the store.
    let _ = host.reset(Half::Response);
    Action::Pause
}

impl StreamContext for OriginStream {
    fn on_request_headers(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        _: bool,
    ) -> Action {
        let received = worker.and_then(|worker| {
            let received = self.receive(worker);
            let fault = |error| {
                worker
                    .metrics
                    .fault("a request to the origin was stopped", error)
            };
            received.map_err(fault).ok()
        });
        received.unwrap_or_else(|| {
            // Without the proof the native guard stops the request.
            (self.fetch, self.adopted) = (None, None);
            let _ = host.remove_header(Map::Request, PROOF_HEADER);
            Action::Continue
        })
    }

    fn on_response_headers(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        ends: bool,
    ) -> Action {
        match worker {
            Some(worker) => self.respond(worker, ends),
            None => self.cut_off(host),
        }
    }

    fn on_response_body(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        size: usize,
        ends: bool,
    ) -> Action {
        match worker {
            Some(worker) => self.pass(worker, size, ends),
            None => self.cut_off(host),
        }
    }

    fn on_response_trailers(&mut self, host: &dyn Host, worker: Option<&mut Worker>) -> Action {
        match worker {
            Some(worker) => self.end(worker),
            None => self.cut_off(host),
        }
    }

    fn on_done(&mut self, worker: Option<&mut Worker>) {
        let Some(worker) = worker else { return };
        match &self.fetch {
            Some(fetch) => {
                let bytes = fetch.response.bytes;
                worker
                    .metrics
                    .add_of(&fetch.policy, Metric::OriginBytes, bytes);
                fills::end(
                    worker,
                    fetch.link.stream,
                    self.context,
                    fetch.response.ended,
                );
            }
            None => worker.coalescing.wakeups.forget(self.context),
        }
    }
}
