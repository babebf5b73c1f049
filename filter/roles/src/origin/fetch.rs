// SPDX-License-Identifier: Apache-2.0
//! A request to the origin, and its reports to the worker.

use crate::worker::coalescing::Coalescing;
use crate::worker::coalescing::requests::OpenRequests;
use crate::worker::fills::Fills;
use crate::worker::identity::Identity;
use crate::worker::keys::Keys;
use crate::worker::metrics::Metrics;
use crate::worker::own_requests::calls::Calls;
use crate::worker::roots::Roots;
use sluice_store::Room;
use std::rc::Rc;

use sluice_core::coalescing::StoreRequest;
use sluice_core::coalescing::learnt::hints::Hint;
use sluice_core::freshness::UncacheableReason;
use sluice_core::http::caching::cache_control::CacheControl;
use sluice_core::http::conditional::conditions::NOT_MODIFIED;
use sluice_core::http::conditional::range::Part;
use sluice_core::internal_headers::AUTHORIZATION_HEADER;
use sluice_core::key::qualifiers::is_for_headers;
use sluice_core::key::vary::unkeyed_selectors;
use sluice_core::metrics::Metric;
use sluice_core::policy::{Cookies, Origin};
use sluice_core::second_origin::SecondOrigin;
use sluice_core::workers::message::FlightOutcome;
use sluice_core::workers::{BodyId, Millis, millis};
use sluice_store::Link;
use sluice_store::Revalidation;

use super::clean::{Asked, clean_response};
use super::listing::RequestedListing;
use super::request::{prepare_request, stored_key, written};
use super::variants::selection::{Selection, stored_response};
use crate::request::body::Body;
use crate::request::policy::NumberedPolicy;
use crate::request::sliced::RequestedSlice;
use crate::request::{EdgeRequest, OriginReport};
use crate::worker::{fills, fills::Fallback};
use sluice_host::headers::Headers;
use sluice_host::{self as host, Host, Map};

/// A request to the origin.
#[derive(Debug)]
pub struct Fetch {
    /// The link: EDGE's request to the store.
    pub link: Link,
    /// The time at which the origin was asked.
    pub asked: Millis,
    /// The policy of the request.
    pub policy: NumberedPolicy,
    /// The key under which the store has the response. EDGE has written it into the request.
    pub stored_key: String,
    /// The key of the requested response, as far as it is known: that of a variant, if the URL is known to vary.
    pub cache_key: String,
    /// The request headers that identify the variant, if it is stored under the plain key.
    pub selection: Option<Selection>,
    /// The stored response that the store wants to revalidate.
    pub revalidation: Option<Rc<Revalidation>>,
    /// Whether the request to the origin has a condition, to which the origin may answer 304.
    pub is_conditional: bool,
    /// The slice that is requested from the origin, if the request is for one.
    pub slice: Option<Rc<RequestedSlice>>,
    /// The page of a listing that is requested from the bucket, if the request is for one.
    pub listing: Option<RequestedListing>,
    /// Whether an unsafe request has invalidated that response.
    pub invalidated: bool,
    /// Whether only the headers are requested from the origin.
    pub head: bool,
    /// Whether the method is GET or HEAD.
    pub reads: bool,
    /// Whether only the headers are stored, for which the store sends a GET.
    pub for_headers: bool,
    /// Whether the origin gets the credentials of the client that caused the request.
    pub authenticated: bool,
    /// Whether the origin gets the client's `Cookie`.
    pub has_cookie: bool,
    /// Whether others may get the response, because the origin gets few enough headers beside those of the key.
    pub may_share: bool,
    /// The request headers that select another form of the page and that the key lacks. Others may get the response
    /// only if its `Vary` names them.
    pub selectors: Vec<String>,
    /// Whether the store has room.
    pub room: bool,
    /// The number of the newest purge when the request was sent.
    pub began: u64,
    /// The response so far.
    pub response: Response,
}

/// The origin's response so far.
#[derive(Debug, Default)]
pub struct Response {
    /// The handling of its body.
    pub body: Body,
    /// Bytes of the body so far.
    pub bytes: u64,
    /// The body that is stored, if the headers lack its length.
    pub unannounced: Option<BodyId>,
    /// Whether it is stored.
    pub stores: bool,
    /// Whether the origin has failed and the store serves its stale response.
    pub keeps: bool,
    /// Whether the origin has failed, perhaps only because of the request's own headers.
    pub own_failure: bool,
    /// Whether it says nothing about the object, because it refuses the edge's request itself.
    pub refused: bool,
    /// The second origin, if that has sent it.
    pub second: Option<SecondOrigin>,
    /// The reason for which it is not stored, if the verdict does not contain it.
    pub reason: Option<UncacheableReason>,
    /// Whether it has ended.
    pub ended: bool,
}

impl Fetch {
    /// Creates the record of a request that the store has forwarded by `link`, with these headers.
    pub fn of(
        keys: &mut Keys,
        room: &Room,
        coalescing: &Coalescing,
        calls: &Calls,
        link: Link,
        policy: NumberedPolicy,
        headers: &Headers,
    ) -> Self {
        let cacheable = !link.request.avoids_the_store();
        let stored_key = stored_key(headers);
        let selection = Selection::of(
            keys,
            &coalescing.requests,
            calls,
            link,
            &stored_key,
            headers,
        );
        let cache_key = selection.as_ref().map(Selection::cache_key);
        let cache_key = cache_key.unwrap_or(&stored_key).to_owned();
        let for_headers = cacheable && is_for_headers(&cache_key);
        let authenticated = headers.has(AUTHORIZATION_HEADER);
        // The stored headers may not be for these credentials.
        let alone = authenticated && link.request == StoreRequest::Unshared;
        let asks = cacheable && !alone;
        let stream = link.request.names_a_request();
        let stream = stream
            .then(|| coalescing.requests.get(link.stream))
            .flatten();
        let slice = stream.as_ref().and_then(|stream| stream.slice.clone());
        let listing = RequestedListing::of(&policy, &cache_key);
        let may_share = stream.is_none_or(|stream| stream.may_share);
        let judged = link.request.is_for_store();
        let names = headers.iter().map(|(name, _)| name).filter(|_| judged);
        let selectors = unkeyed_selectors(&policy.policy, &cache_key, names);
        let own = !may_share || !selectors.is_empty();
        let host = &*coalescing.host;
        let stored = || stored_response(host, keys, headers, &stored_key, selection.as_ref(), own);
        // A request for the headers costs no more than a validation. Headers of an object in slices may be served stale.
        let fits = |stored: &Revalidation| !for_headers || stored.has_stale_window();
        let revalidation = asks.then(stored).flatten().filter(fits);
        let is_conditional = match &revalidation {
            Some(stored) => stored.conditional,
            None => !cacheable && NOT_MODIFIED.iter().any(|name| headers.has(name)),
        };
        let ignores_cookies = policy.policy.request.cookies == Cookies::Ignore;
        Self {
            link,
            asked: 0,
            policy,
            invalidated: revalidation.is_some() && keys.is_invalidated(&cache_key),
            stored_key,
            cache_key,
            selection,
            revalidation: revalidation.map(Rc::new),
            slice,
            listing,
            is_conditional,
            head: for_headers || headers.is(":method", "HEAD"),
            reads: headers.is(":method", "HEAD") || headers.is(":method", "GET"),
            for_headers,
            authenticated,
            has_cookie: ignores_cookies && headers.has("cookie"),
            may_share,
            selectors,
            room: !room.is_lacking(),
            began: keys.newest_purge(),
            response: Response::default(),
        }
    }

    /// The stored response, if it may be served after a failure of the origin.
    pub fn servable(&self) -> Option<Rc<Revalidation>> {
        self.revalidation
            .clone()
            .filter(|revalidation| revalidation.left() > 0 && !self.invalidated)
    }

    /// The stored response that a response with this `status` freshens, if any.
    pub fn freshens(&self, status: u16) -> Option<Rc<Revalidation>> {
        let asked = |stored: &Rc<Revalidation>| status == 304 && stored.conditional;
        self.revalidation.clone().filter(asked)
    }

    /// Turns the store's request, which has these headers, into one for the origin.
    pub fn prepare(
        &self,
        host: &dyn Host,
        identity: &Identity,
        headers: &Headers,
    ) -> host::Result<()> {
        let policy = &self.policy.policy;
        let sent = written(headers, ":path");
        let path = self.selection.as_ref().and_then(Selection::plain_path);
        prepare_request(
            host,
            identity,
            policy,
            self.link.request,
            headers,
            path.unwrap_or(sent),
        )?;
        let Some(revalidation) = &self.revalidation else {
            return Ok(());
        };
        // The tags of a bucket are strong. A mark in front of one was added by a compressor.
        let compressed = matches!(policy.origin, Origin::Bucket(_));
        host.edit_headers(Map::Request, revalidation.conditions(compressed))
    }

    /// Records for the client's access log that the response is not stored, for this reason.
    pub fn is_not_stored(&self, requests: &OpenRequests, reason: UncacheableReason) {
        if let Some(stream) = requests.get(self.link.stream) {
            stream.progress.account.is_not_stored(reason);
        }
    }

    /// Ends the flight without a shared response, for this reason. The next request leads.
    pub fn share_nothing(&self, coalescing: &mut Coalescing, reason: UncacheableReason) {
        let stream = self.link.stream;
        let until = coalescing.now();
        coalescing.end_flight(stream, FlightOutcome::HitForMiss { until, reason });
    }

    /// Reports to the worker that the origin has failed with `status` and that the store serves its stale response.
    pub fn keep(&mut self, coalescing: &mut Coalescing, status: u16, revalidation: &Revalidation) {
        self.response.keeps = true;
        // The store does not need the error's body, and ends the request.
        self.response.ended = true;
        let stream = self.link.stream;
        if self.response.own_failure {
            fills::keep_for_itself(coalescing, stream, status);
        } else {
            fills::keep(coalescing, stream, status, revalidation);
        }
    }

    /// The request of EDGE that caused this one, while its client is connected.
    pub fn stream(&self, requests: &OpenRequests) -> Option<Rc<EdgeRequest>> {
        let named = self.link.request.names_a_request();
        named.then(|| requests.get(self.link.stream)).flatten()
    }

    /// Whether a response with that status is a failure of the origin that only the request's own headers may have
    /// caused. `arrived` says that the origin has received the request. If the origin gives the error a lifetime, the
    /// error is for all requests, unless a good response is known that it would replace.
    pub fn is_own_failure(
        &self,
        keys: &Keys,
        coalescing: &mut Coalescing,
        headers: &Headers,
        status: u16,
        arrived: bool,
    ) -> bool {
        let asks = !self.link.request.avoids_the_store() && !self.authenticated;
        if !asks {
            return false;
        }
        if status < 500 {
            fills::origin_is_well(keys, &mut coalescing.coalescer, &self.cache_key);
            return false;
        }
        let stream = self.stream(&coalescing.requests);
        let is_own = |stream: Rc<EdgeRequest>| {
            let (host, coalescer) = (&*coalescing.host, &mut coalescing.coalescer);
            arrived && fills::is_own_failure(host, keys, coalescer, &stream, &self.cache_key)
        };
        let is_own = stream.is_some_and(is_own);
        !self.may_share
            || is_own && !(is_to_be_kept(headers) && self.has_no_better(keys, coalescing))
    }

    /// Whether neither the store nor this worker knows of a successful response.
    fn has_no_better(&self, keys: &Keys, coalescing: &mut Coalescing) -> bool {
        let key = keys.key_hash(&self.cache_key);
        self.revalidation.is_none() && !coalescing.coalescer.hints().remembers(key)
    }

    /// The path that the store requests.
    pub fn path(&self) -> &str {
        let start = self.cache_key.find('/');
        let path = start.and_then(|start| self.cache_key.get(start..));
        path.unwrap_or_default()
    }

    /// Cleans the response's headers. `ends` says that no body follows.
    pub fn clean(
        &self,
        host: &dyn Host,
        headers: &Headers,
        status: u16,
        ends: bool,
    ) -> host::Result<Body> {
        let asked = Asked {
            path: self.path(),
            head: self.head,
        };
        clean_response(host, &self.policy.policy, asked, headers, status, ends)
    }

    /// Reports to the worker that the request is sent to the origin.
    pub fn begin(
        &mut self,
        context: u32,
        roots: &mut Roots,
        fills: &mut Fills,
        coalescing: &mut Coalescing,
    ) {
        coalescing
            .metrics
            .count_of(&self.policy, Metric::OriginFetches);
        self.asked = coalescing.now();
        coalescing
            .requests
            .note_question(self.link.stream, self.asked);
        if !self.link.request.avoids_the_store() {
            fills::begin(
                &*coalescing.host,
                fills,
                roots,
                self.link.stream,
                context,
                self.fallback(),
            );
        }
        let stream = coalescing.requests.get(self.link.stream);
        let Some(stream) = stream.filter(|_| self.is_unexpected()) else {
            return;
        };
        let mut request = stream.request();
        // The store fetches the whole object, whatever part its client wants. It passes a HEAD and its response
        // through.
        request.may_lead = stream.may_lead && (!self.head || self.for_headers);
        coalescing.turn(|coalescer, turn| {
            coalescer.unexpected_miss(&request, turn);
        });
    }

    /// Whether to ask the store again before the origin: it served the object a moment ago, so it may be replacing
    /// the response. The store removes a response before it writes the one that a validation has freshened. A fill in
    /// between would make the store lose the object again.
    pub fn asks_again(&self, calls: &Calls, coalescing: &mut Coalescing) -> bool {
        let stream = coalescing.requests.get(self.link.stream);
        let fits = |stream: &Rc<EdgeRequest>| self.is_unexpected() && stream.may_call;
        let stream = stream.filter(fits).filter(|_| self.revalidation.is_none());
        let Some(stream) = stream.filter(|_| calls.has_room_to_prepare()) else {
            return false;
        };
        let mut request = stream.request();
        request.may_lead = stream.may_lead;
        let again = coalescing.turn(|coalescer, turn| {
            let again = coalescer
                .hints()
                .was_just_readable(stream.key.key, turn.now);
            if again {
                coalescer.await_return(&request, turn);
            }
            again
        });
        if again {
            stream.progress.report.set(OriginReport::Lost);
        }
        again
    }

    /// Whether the store was expected to serve the response without asking the origin.
    const fn is_unexpected(&self) -> bool {
        matches!(
            self.link.request,
            StoreRequest::Fresh | StoreRequest::Collapsed | StoreRequest::Validated
        )
    }

    /// The stale response that the store serves if the origin is slow. A refresh has none, because no client waits
    /// for it.
    pub fn fallback(&self) -> Option<Fallback> {
        if self.link.request.is_background() {
            return None;
        }
        Some(Fallback {
            revalidation: self.servable()?,
            patience: millis(self.policy.policy.cache.stale_if_error_timeout),
        })
    }

    /// Whether Envoy's cache would write to a client that has left, which crashes Envoy.
    pub fn must_abort(&self, requests: &OpenRequests) -> bool {
        !self.link.request.avoids_the_store() && requests.get(self.link.stream).is_none()
    }

    /// Whether a soft purge has overtaken a fill that no client sees. The store would replace a newer response by it.
    pub fn is_overtaken(&self, keys: &Keys, requests: &OpenRequests) -> bool {
        let is_unseen = || {
            let stream = requests.get(self.link.stream);
            stream.is_some_and(|stream| stream.body.passing.get().part == Part::Nothing)
        };
        let is_purged = || {
            let declared = self.policy.policy.declared_soft(&self.cache_key);
            keys.was_purged_since(&self.cache_key, self.began, declared)
        };
        self.response.stores && is_unseen() && is_purged()
    }

    /// Handles a part of `size` bytes of the response's body. `ends` says that it is the last.
    pub fn pass(
        &mut self,
        host: &dyn Host,
        metrics: &Metrics,
        size: usize,
        ends: bool,
    ) -> host::Result<()> {
        self.response.bytes = self.response.bytes.saturating_add(size as u64);
        if self.response.keeps && size > 0 {
            // The rest of the error's body is not needed.
            let _ = host.drop_response_body(size);
            return Ok(());
        }
        match &mut self.listing {
            Some(listing) if listing.awaits_page() => {
                listing.pass(host, metrics, &self.policy, size, ends)
            }
            _ => self.response.body.pass(host, size),
        }
    }

    /// Whether the response's body has not been replaced by its page yet.
    pub fn lacks_page(&self) -> bool {
        self.listing
            .as_ref()
            .is_some_and(RequestedListing::awaits_page)
    }

    /// Handles the end of the response.
    pub fn end(&mut self, keys: &mut Keys, roots: &mut Roots, coalescing: &mut Coalescing) {
        self.response.ended = true;
        if !self.response.stores {
            return;
        }
        let (stream, cache) = (self.link.stream, &self.policy.policy.cache);
        // The length was not announced. The object is stored this time, but not the next time.
        let too_large = self.response.bytes > cache.max_object_bytes;
        let shunned = too_large.then(|| keys.key_hash(&self.cache_key));
        if let Some(body) = self.response.unannounced {
            keys.tell_body_length(roots, &self.stored_key, body, self.response.bytes);
        }
        coalescing.turn(|coalescer, turn| {
            if let Some(key) = shunned {
                let until = turn.now.saturating_add(self.policy.flights.hit_for_miss);
                let hint = Hint::HitForMiss(UncacheableReason::TooLarge);
                coalescer.hints().set(key, hint, until);
            }
            coalescer.fill_ended(stream, turn);
        });
    }
}

/// Whether the origin allows the response to be stored for a time.
fn is_to_be_kept(headers: &Headers) -> bool {
    headers
        .joined("cache-control")
        .map_or(headers.has("expires"), |said| {
            CacheControl::parse(said.value()).allows_to_keep()
        })
}
