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
mod listing;
mod maintenance;
mod not_modified;
mod orphaned;
mod outcome;
mod request;
mod response;
mod second;
mod slice;
mod surrogate_keys;
mod variants;

use crate::worker::coalescing::Coalescing;
use crate::worker::coalescing::requests::OpenRequests;
use crate::worker::identity::Identity;
use crate::worker::keys::Keys;
use crate::worker::metrics::Metrics;
use crate::worker::roots::Roots;

use fetch::Fetch;
use orphaned::OrphanedRequest;
use request::{keeps_unasked, not_served, prepare_request, written};
use response::respond;
use sluice_core::coalescing::StoreRequest;
use sluice_core::internal_headers::{FALLBACK_HEADER, PROOF_HEADER, SERVER_HEADER};
use sluice_core::key::qualifiers::{is_for_listing, is_for_slice};
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
            return Ok(self.stop(&mut worker.coalescing));
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
            return Ok(self.stop(&mut worker.coalescing));
        };
        let server = &policy.policy.site.server;
        if !server.is_empty() {
            worker
                .host
                .set_header(Map::Request, SERVER_HEADER, server)?;
        }
        let request = match vouched {
            Vouched::Here(link) => link.request,
            Vouched::Elsewhere(request) => request,
        };
        let (identity, coalescing) = (&worker.identity, &mut worker.coalescing);
        match (request, vouched) {
            // The hop can only send it back to EDGE.
            (StoreRequest::Empty, _) => Ok(Action::Continue),
            // Such a request is for the slicer.
            (StoreRequest::Slice, Vouched::Here(_)) => Ok(self.stop(coalescing)),
            (StoreRequest::Lookup | StoreRequest::StoreOnly, _) => {
                let reply = not_served(&*worker.host, &worker.room, request, &headers);
                Ok(self.refuse(coalescing, reply))
            }
            (_, Vouched::Here(link)) => self.receive_linked(worker, link, policy, &headers),
            (_, Vouched::Elsewhere(_)) => {
                self.adopt(identity, coalescing, request, policy, &headers)
            }
        }
    }

    /// Answers a request that EDGE has not vouched for.
    fn stop(&self, coalescing: &mut Coalescing) -> Action {
        coalescing.metrics.count(Metric::OriginUnlinked, 1);
        coalescing
            .metrics
            .warn(|| "sluice: a request without the edge role's link was stopped".into());
        self.refuse(coalescing, CompleteReply::unlinked())
    }

    /// Forwards the request of a client whose EDGE is in another VM.
    fn adopt(
        &mut self,
        identity: &Identity,
        coalescing: &mut Coalescing,
        request: StoreRequest,
        policy: NumberedPolicy,
        headers: &Headers,
    ) -> host::Result<Action> {
        let path = written(headers, ":path");
        if request.is_background() || is_for_slice(path) || is_for_listing(path) {
            return Ok(self.stop(coalescing));
        }
        let host = &*coalescing.host;
        prepare_request(host, identity, &policy.policy, request, headers, path)?;
        let cacheable = !request.avoids_the_store();
        self.adopted = Some(OrphanedRequest::new(
            &coalescing.metrics,
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
        let Worker {
            host,
            identity,
            keys,
            room,
            coalescing,
            calls,
            roots,
            fills,
            ..
        } = worker;
        let host = &**host;
        let mut fetch = Fetch::of(keys, room, coalescing, calls, link, policy, headers);
        // Only the slicer may request what the store has under the key of a slice.
        if is_for_slice(&fetch.cache_key) != fetch.slice.is_some() {
            return Ok(self.stop(coalescing));
        }
        // The policy may have changed since EDGE made the key.
        if is_for_listing(&fetch.cache_key) != fetch.listing.is_some() {
            return Ok(self.stop(coalescing));
        }
        if let Some(kept) = fetch.revalidation.as_ref().filter(|stored| {
            stored.left() > 0
                && keeps_unasked(
                    host,
                    keys,
                    &mut coalescing.coalescer,
                    link,
                    &fetch.cache_key,
                )
        }) {
            fills::keep_unwritten(coalescing, link.stream, kept);
            return Ok(self.refuse(coalescing, CompleteReply::keeping(kept)));
        }
        // Headers alone may be asked for because they are outdated, however fresh they are.
        let revalidation = fetch.revalidation.as_ref().filter(|_| !fetch.for_headers);
        if let Some(stored) = revalidation.filter(|stored| stored.is_late_for(link.request)) {
            coalescing.requests.note_late(link.stream);
            return Ok(self.refuse(coalescing, CompleteReply::unwritten(stored)));
        }
        if fetch.asks_again(calls, coalescing) {
            return Ok(self.refuse(coalescing, CompleteReply::ask_again()));
        }
        fetch.prepare(host, identity, headers)?;
        if let Some(slice) = &fetch.slice {
            slice::ask(host, slice)?;
        }
        if let Some(listing) = &fetch.listing {
            listing.ask(host)?;
        }
        if fetch.policy.policy.origin.is_bucket() && fetch.fallback().is_some() {
            host.set_header(Map::Request, FALLBACK_HEADER, "1")?;
        }
        fetch.begin(self.context, roots, fills, coalescing);
        self.fetch = Some(fetch);
        Ok(Action::Continue)
    }

    fn refuse(&self, coalescing: &mut Coalescing, answer: CompleteReply) -> Action {
        coalescing
            .wakeups
            .answer(self.context, DueReply::Complete(answer));
        Action::Pause
    }

    /// Handles the headers of the response.
    fn respond(&mut self, worker: &mut Worker, end_of_stream: bool) -> Action {
        if self.must_abort(&worker.keys, &worker.coalescing.requests, false) {
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
        if self.must_abort(&worker.keys, &worker.coalescing.requests, end_of_stream) {
            return abort(&*worker.host, &worker.metrics);
        }
        let passed = match (&mut self.adopted, &mut self.fetch) {
            (Some(adopted), _) => adopted.pass(&*worker.host, size),
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
                fetch.pass(&*worker.host, &worker.metrics, size, end_of_stream)
            }
            (None, None) => Ok(()),
        };
        if let Err(error) = passed {
            worker.metrics.fault("a response was cut", error);
            return abort(&*worker.host, &worker.metrics);
        }
        if end_of_stream {
            self.end_fetch(&mut worker.keys, &mut worker.roots, &mut worker.coalescing);
        }
        Action::Continue
    }

    /// Handles the end of the response, with or without trailers.
    fn end(
        &mut self,
        host: &dyn Host,
        metrics: &Metrics,
        keys: &mut Keys,
        roots: &mut Roots,
        coalescing: &mut Coalescing,
    ) -> Action {
        // A body that ends with trailers takes no further bytes.
        let lacks_page = self.fetch.as_ref().is_some_and(Fetch::lacks_page);
        if lacks_page || self.must_abort(keys, &coalescing.requests, true) {
            return abort(host, metrics);
        }
        self.end_fetch(keys, roots, coalescing);
        Action::Continue
    }

    /// Whether the response must be aborted. `ends` says that this part is its last.
    fn must_abort(&self, keys: &Keys, requests: &OpenRequests, ends: bool) -> bool {
        let fetch = self.fetch.as_ref();
        fetch.is_some_and(|fetch| {
            fetch.must_abort(requests) || (ends && fetch.is_overtaken(keys, requests))
        })
    }

    fn end_fetch(&mut self, keys: &mut Keys, roots: &mut Roots, coalescing: &mut Coalescing) {
        if let Some(fetch) = &mut self.fetch {
            fetch.end(keys, roots, coalescing);
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
            let metrics = &worker.metrics;
            metrics.note_fault("a request to the origin was stopped", received)
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
            Some(worker) => self.end(
                &*worker.host,
                &worker.metrics,
                &mut worker.keys,
                &mut worker.roots,
                &mut worker.coalescing,
            ),
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
                    &mut worker.fills,
                    &mut worker.coalescing,
                    fetch.link.stream,
                    self.context,
                    fetch.response.ended,
                );
            }
            None => worker.coalescing.wakeups.forget(self.context),
        }
    }
}
