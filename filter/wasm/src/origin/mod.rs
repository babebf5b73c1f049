// SPDX-License-Identifier: Apache-2.0
//! ORIGIN: the role between Envoy's cache filter and the origin, in the cluster's upstream chain.
//!
//! It sees every miss and every revalidation, and nothing else. It stops requests that EDGE has not vouched for, lets
//! only allowed headers on (`request`), decides whether and for how long the response is stored (`response`), and tells
//! the coalescer how the fill goes (`fetch`).

mod clean;
mod fetch;
mod foreign;
mod request;
mod response;
mod variance;

use std::rc::Rc;

use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;
use sluice_core::key::qualifiers::is_for_headers;
use sluice_core::link::{LINK_HEADER, Link, NO_ROOM_HEADER, PROOF_HEADER, Purpose, Vouched};
use sluice_core::metrics::Metric;
use sluice_core::policy::Origin;

use crate::host::headers::Headers;
use crate::host::{self, Half, Map};
use crate::reply::DueReply;
use crate::request::body::Body;
use crate::worker;
use fetch::Fetch;
use foreign::ForeignRequest;
use request::{cache_key, is_late, keeps_unasked, not_served, prepare_request, revalidation_of};
use response::respond;

/// A request in the ORIGIN role.
#[derive(Debug)]
pub struct OriginStream {
    context: u32,
    fetch: Option<Fetch>,
    adopted: Option<ForeignRequest>,
}

impl OriginStream {
    /// A request of which nothing is known.
    pub fn new(context: u32) -> Self {
        Self {
            context,
            fetch: None,
            adopted: None,
        }
    }

    fn receive(&mut self) -> host::Result<Action> {
        let headers = Headers::new(host::header_pairs(Map::Request)?);
        #[cfg(feature = "trap")]
        crate::trap::on_demand(&headers, "origin");
        let vouched = headers
            .get(LINK_HEADER)
            .and_then(|value| worker::with(|worker| worker.decode_link(value)).flatten());
        match vouched {
            Some(Vouched::Here(link)) => self.receive_linked(link, &headers),
            Some(Vouched::Elsewhere(purpose)) => self.adopt(purpose, &headers),
            None => Ok(self.stop()),
        }
    }

    /// Answers a request that EDGE has not vouched for.
    fn stop(&mut self) -> Action {
        worker::with(|worker| {
            worker.metrics.count(Metric::OriginUnlinked, 1);
            worker.warn(|| "sluice: a request without the edge role's link was stopped".into());
        });
        self.refuse(DueReply::Unlinked)
    }

    /// Sends on the request of a client whose EDGE is in another VM.
    fn adopt(&mut self, purpose: Purpose, headers: &Headers) -> host::Result<Action> {
        if matches!(purpose, Purpose::Probe | Purpose::StoreOnly) {
            return Ok(self.refuse(not_served(purpose, headers)));
        }
        let policy = worker::with(|worker| worker.current_policy()).flatten();
        let Some(policy) = policy.filter(|_| !purpose.is_background()) else {
            return Ok(self.stop());
        };
        let cacheable = !purpose.avoids_the_store();
        prepare_request(&policy.policy, cacheable, headers)?;
        self.adopted = Some(ForeignRequest::new(policy, headers, cacheable));
        Ok(Action::Continue)
    }

    /// Handles a request that EDGE has sent to the store, and the store has sent on.
    fn receive_linked(&mut self, link: Link, headers: &Headers) -> host::Result<Action> {
        let policy = worker::with(|worker| worker.policy(link.policy)).flatten();
        let Some(policy) = policy else {
            return Ok(self.stop());
        };
        if matches!(link.purpose, Purpose::Probe | Purpose::StoreOnly) {
            return Ok(self.refuse(not_served(link.purpose, headers)));
        }
        let cacheable = !link.purpose.avoids_the_store();
        let cache_key = cache_key(headers);
        let for_headers = cacheable && is_for_headers(&cache_key);
        // Asking for the headers costs no more than asking whether they have changed.
        let revalidation = (cacheable && !for_headers)
            .then(|| revalidation_of(headers))
            .flatten();
        if let Some(kept) = revalidation
            .as_ref()
            .filter(|stored| stored.left() > 0 && keeps_unasked(link, headers))
        {
            worker::with(|worker| worker.fill_keeps_unwritten(link.stream, kept, self.context));
            return Ok(self.refuse(DueReply::Keep(Rc::new(kept.clone()))));
        }
        if let Some(stored) = revalidation.as_ref().filter(|stored| is_late(link, stored)) {
            worker::with(|worker| worker.store_is_late(link.stream));
            return Ok(self.refuse(DueReply::Unwritten(Rc::new(stored.clone()))));
        }
        prepare_request(&policy.policy, cacheable, headers)?;
        if let Some(revalidation) = &revalidation {
            // The tags of a bucket are strong; a mark before one is a compressor's.
            let compressed = matches!(policy.policy.origin, Origin::Bucket(_));
            host::edit_headers(Map::Request, revalidation.conditions(compressed))?;
        }
        let fetch = Fetch {
            context: self.context,
            link,
            cache_key,
            revalidation: revalidation.map(Rc::new),
            policy,
            head: for_headers || headers.text(":method") == Some("HEAD"),
            for_headers,
            body: Body::Kept,
            bytes: 0,
            unannounced: None,
            room: !headers.has(NO_ROOM_HEADER),
            stores: false,
            keeps: false,
            ended: false,
            began: worker::with(|worker| worker.newest_purge()).unwrap_or_default(),
        };
        fetch.begin();
        self.fetch = Some(fetch);
        Ok(Action::Continue)
    }

    fn refuse(&mut self, answer: DueReply) -> Action {
        worker::with(|worker| worker.answer_later(self.context, answer));
        Action::Pause
    }

    /// Whether the response must not go on, which `ends` with this part.
    fn must_abort(&self, ends: bool) -> bool {
        let fetch = self.fetch.as_ref();
        fetch.is_some_and(|fetch| fetch.must_abort() || (ends && fetch.is_overtaken()))
    }

    fn end_fetch(&mut self) {
        if let Some(fetch) = &mut self.fetch {
            fetch.end();
        }
    }

    fn abort(&mut self) -> Action {
        worker::with(|worker| worker.metrics.count(Metric::FillsAborted, 1));
        // If Envoy refuses, pausing keeps the response from the store all the same.
        let _ = host::reset(Half::Response);
        Action::Pause
    }
}

impl Context for OriginStream {
    fn on_done(&mut self) -> bool {
        let context = self.context;
        worker::with(|worker| match &self.fetch {
            Some(fetch) => worker.fill_is_over(fetch.link.stream, context, fetch.ended),
            None => worker.forget_answer(context),
        });
        true
    }
}

impl HttpContext for OriginStream {
    fn on_http_request_headers(&mut self, _: usize, _: bool) -> Action {
        self.receive().unwrap_or_else(|error| {
            worker::with(|worker| worker.fault("a request to the origin was stopped", error));
            // Without the proof the native guard stops it.
            (self.fetch, self.adopted) = (None, None);
            let _ = host::remove_header(Map::Request, PROOF_HEADER);
            Action::Continue
        })
    }

    fn on_http_response_headers(&mut self, _: usize, end_of_stream: bool) -> Action {
        if self.must_abort(false) {
            return self.abort();
        }
        let responded = match &mut self.adopted {
            Some(adopted) => adopted.respond(end_of_stream),
            None => self
                .fetch
                .as_mut()
                .map_or(Ok(()), |fetch| respond(fetch, end_of_stream)),
        };
        if let Err(error) = responded {
            worker::with(|worker| worker.fault("a response was kept out of the store", error));
            let _ = host::set_header(Map::Response, "cache-control", "no-store");
        }
        Action::Continue
    }

    fn on_http_response_body(&mut self, size: usize, end_of_stream: bool) -> Action {
        if self.must_abort(end_of_stream) {
            return self.abort();
        }
        if let Some(Err(error)) = self.adopted.as_mut().map(|adopted| adopted.pass(size)) {
            worker::with(|worker| worker.fault("a response was cut", error));
            return self.abort();
        }
        if let Some(fetch) = &mut self.fetch {
            fetch.bytes = fetch.bytes.saturating_add(size as u64);
            let stream = fetch.link.stream;
            worker::with(|worker| worker.fill_progresses(stream));
            if fetch.keeps && size > 0 {
                let _ = host::drop_response_body(size);
            } else if let Err(error) = fetch.body.pass(size) {
                worker::with(|worker| worker.fault("a response was cut", error));
                return self.abort();
            }
        }
        if end_of_stream {
            self.end_fetch();
        }
        Action::Continue
    }

    fn on_http_response_trailers(&mut self, _: usize) -> Action {
        if self.must_abort(true) {
            return self.abort();
        }
        self.end_fetch();
        Action::Continue
    }
}
