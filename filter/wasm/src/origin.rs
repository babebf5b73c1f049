// SPDX-License-Identifier: Apache-2.0
//! ORIGIN: between Envoy's cache filter and the origin, in the cluster's upstream chain.
//!
//! It sees every miss and every revalidation, and nothing else. It stops what EDGE has not vouched
//! for, lets only allowed headers on, decides whether and for how long the response is stored, and
//! tells the coalescer how the fill goes.

use std::rc::Rc;

use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;
use sluice_core::coalescing::FillVerdict;
use sluice_core::coalescing::hints::Hint;
use sluice_core::freshness::{ResponseFacts, Storage, UncacheableReason, Verdict, judge};
use sluice_core::http::date;
use sluice_core::key::origin_authority;
use sluice_core::key::qualifiers::{is_for_headers, unqualified};
use sluice_core::link::{
    BYPASS_SENTINEL, FAILURE_HEADER, LINK_HEADER, Link, NO_ROOM_HEADER, ORIGINAL_PATH_HEADER,
    PROOF_HEADER, Purpose, Vouched,
};
use sluice_core::metrics::Metric;
use sluice_core::policy::Policy;
use sluice_core::policy::forward_header;
use sluice_core::purge::{tags_of, url_of};
use sluice_core::store::entry::{ENTRY_HEADER, Entry, FillId};
use sluice_core::store::validator::Validator;
use sluice_core::workers::BodyId;

use crate::adopted::Adopted;
use crate::answer::Answer;
use crate::clean::{Asked, Body, clean_response};
use crate::delivery::Passing;
use crate::fills::Fallback;
use crate::headers::Headers;
use crate::host::{self, Half, Map};
use crate::revalidation::Revalidation;
use crate::stream::NumberedPolicy;
use crate::variants::{self, Variance};
use crate::worker;

/// Name of the response header that keeps the origin's own `Cache-Control` in the store.
pub const STORED_CACHE_CONTROL: &str = "x-sluice-cache-control";
const FORWARDED_FOR: &str = "x-forwarded-for";
/// Stands in for a status that Envoy's cache filters cannot store. It is an error itself, so that an
/// entry is never taken for content without the filter.
const DISGUISE: &str = "501";

/// A request that goes on to the origin.
#[derive(Debug)]
struct Fetch {
    /// The context of this request, as against the one that EDGE has.
    context: u32,
    link: Link,
    policy: NumberedPolicy,
    cache_key: String,
    /// The stored response that the store asks about.
    revalidation: Option<Rc<Revalidation>>,
    head: bool,
    /// Whether the response goes into the store as the headers alone, for which the store sends a GET.
    for_headers: bool,
    body: Body,
    /// Bytes of the body so far.
    bytes: u64,
    /// The body that goes into the store, if no header tells its length.
    unannounced: Option<BodyId>,
    /// Whether the store has room.
    room: bool,
    /// Whether the response goes into the store.
    stores: bool,
    /// Whether the origin has failed and the store keeps what it has.
    keeps: bool,
    ended: bool,
    /// The newest purge when it was sent.
    began: u64,
}

impl Fetch {
    /// The stored response, if it may be served where the origin fails.
    fn servable(&self) -> Option<Rc<Revalidation>> {
        self.revalidation
            .clone()
            .filter(|revalidation| revalidation.left() > 0)
    }

    /// The response is for nobody else, and the next request leads.
    fn share_nothing(&self) {
        let stream = self.link.stream;
        worker::with(|worker| {
            worker.turn(self.context, |coalescer, turn| {
                let verdict = FillVerdict::HitForMiss { until: turn.now };
                coalescer.fill_headers(stream, verdict, turn);
            });
        });
    }

    /// The origin has failed with `status`, and the store is told to serve what it has.
    fn keep(&mut self, status: u16, revalidation: &Revalidation) {
        self.keeps = true;
        // The store needs nothing of the error's body, and lets go of it.
        self.ended = true;
        let stream = self.link.stream;
        worker::with(|worker| worker.fill_keeps(stream, status, revalidation, self.context));
    }

    fn clean(&self, headers: &Headers, status: u16, ends: bool) -> host::Result<Body> {
        let path = self
            .cache_key
            .find('/')
            .and_then(|at| self.cache_key.get(at..));
        let asked = Asked {
            path: path.unwrap_or_default(),
            head: self.head,
        };
        clean_response(&self.policy.policy, asked, headers, status, ends)
    }
}

/// A request in the ORIGIN role.
#[derive(Debug)]
pub struct OriginStream {
    context: u32,
    fetch: Option<Fetch>,
    adopted: Option<Adopted>,
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

    /// Answers what nobody vouches for.
    fn stop(&mut self) -> Action {
        worker::with(|worker| {
            worker.metrics.count(Metric::OriginUnlinked, 1);
            worker.warn(|| "sluice: a request without the edge role's link was stopped".into());
        });
        self.refuse(Answer::Unlinked)
    }

    /// Sends on what a client's request needs that another module has taken.
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
        self.adopted = Some(Adopted::new(policy, headers, cacheable));
        Ok(Action::Continue)
    }

    /// Takes what EDGE has sent to the store, and the store has sent on.
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
            .then(|| Revalidation::of(headers))
            .flatten();
        if let Some(kept) = revalidation
            .as_ref()
            .filter(|stored| stored.left() > 0 && keeps_unasked(link, headers))
        {
            worker::with(|worker| worker.fill_keeps_unwritten(link.stream, kept, self.context));
            return Ok(self.refuse(Answer::Keep(Rc::new(kept.clone()))));
        }
        if let Some(stored) = revalidation.as_ref().filter(|stored| is_late(link, stored)) {
            worker::with(|worker| worker.store_is_late(link.stream));
            return Ok(self.refuse(Answer::Unwritten(Rc::new(stored.clone()))));
        }
        prepare_request(&policy.policy, cacheable, headers)?;
        if let Some(revalidation) = &revalidation {
            revalidation.ask(&policy.policy)?;
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
        note_fetch(&fetch);
        self.fetch = Some(fetch);
        Ok(Action::Continue)
    }

    fn refuse(&mut self, answer: Answer) -> Action {
        worker::with(|worker| worker.answer_later(self.context, answer));
        Action::Pause
    }

    fn respond(&mut self, end_of_stream: bool) -> host::Result<()> {
        let Some(fetch) = &mut self.fetch else {
            return Ok(());
        };
        let overruled = worker::with(|worker| {
            worker.origin_answers(fetch.link.stream);
            worker.fill_answers(fetch.link.stream)
        });
        if overruled == Some(true) {
            fetch.ended = true;
            return Ok(());
        }
        let mut headers = Headers::new(host::header_pairs(Map::Response)?);
        if fetch.head && variants::blur_head(&fetch.policy.policy, &fetch.cache_key, &headers)? {
            headers = Headers::new(host::header_pairs(Map::Response)?);
        }
        let unreachable = note_failure(&headers)?;
        remove_hidden(&fetch.policy.policy, &headers)?;
        let mut status = headers
            .text(":status")
            .and_then(|status| status.parse().ok())
            .unwrap_or(502);
        if status >= 500
            && let Some(revalidation) = fetch.servable()
        {
            revalidation.keep(&headers)?;
            fetch.keep(status, &revalidation);
            return Ok(());
        }
        if unreachable && status >= 500 && fetch.revalidation.is_some() {
            // What is stored must not be served, and nobody can be asked (RFC 9111, 5.2.2.2).
            status = 504;
            host::set_header(Map::Response, ":status", "504")?;
        }
        fetch.body = fetch.clean(&headers, status, end_of_stream)?;
        if fetch.link.purpose.avoids_the_store() {
            fetch.ended = end_of_stream;
            return Ok(());
        }
        let asked = |asked: &Rc<Revalidation>| asked.conditional;
        let freshened = status == 304 && fetch.revalidation.as_ref().is_some_and(asked);
        let variance = Variance::of(&fetch.policy.policy, &fetch.cache_key, &headers);
        let verdict = verdict_of(fetch, &headers, &variance, status, freshened);
        let shared = matches!(verdict, Verdict::Store(_) | Verdict::NoRoom(_));
        if shared && !index(fetch, &headers) {
            mark_unstored(fetch, &headers, status, freshened)?;
            fetch.ended = end_of_stream;
            fetch.share_nothing();
            return Ok(());
        }
        match &verdict {
            Verdict::Store(storage) => {
                fetch.stores = true;
                fetch.unannounced = unannounced(fetch, &headers, status, freshened);
                mark_stored(fetch, &headers, status, freshened, storage)?;
                variance.store(&headers)?;
            }
            Verdict::NoRoom(storage) => {
                mark_without_room(fetch, &headers, status, freshened, storage)?;
            }
            Verdict::Share(_) | Verdict::Uncacheable(_) => {
                mark_unstored(fetch, &headers, status, freshened)?;
            }
        }
        fetch.ended = end_of_stream;
        if let Some(verdict) = fill_verdict(fetch, &verdict, &variance) {
            tell_headers(fetch, verdict, end_of_stream);
        }
        Ok(())
    }

    /// Whether Envoy's cache would write into a client that has gone, which crashes Envoy.
    fn must_abort(&self) -> bool {
        self.fetch.as_ref().is_some_and(|fetch| {
            !fetch.link.purpose.avoids_the_store()
                && worker::with(|worker| worker.stream(fetch.link.stream).is_none()).unwrap_or(true)
        })
    }

    /// Whether a soft purge has overtaken a fill that no client sees. The store would put it in the place of
    /// what has been fetched since.
    fn is_overtaken(&self) -> bool {
        let Some(fetch) = self.fetch.as_ref() else {
            return false;
        };
        fetch.stores
            && worker::with(|worker| {
                let stream = worker.stream(fetch.link.stream);
                let unseen =
                    stream.is_some_and(|stream| matches!(stream.passing.get(), Passing::Nothing));
                unseen && worker.was_purged_since(&fetch.cache_key, fetch.began)
            })
            .unwrap_or(false)
    }

    fn abort(&mut self) -> Action {
        worker::with(|worker| worker.metrics.count(Metric::FillsAborted, 1));
        // If Envoy refuses, pausing keeps the response from the store all the same.
        let _ = host::reset(Half::Response);
        Action::Pause
    }

    fn end(&mut self) {
        let Some(fetch) = &mut self.fetch else { return };
        fetch.ended = true;
        if !fetch.stores {
            return;
        }
        let (stream, cache) = (fetch.link.stream, &fetch.policy.policy.cache);
        worker::with(|worker| {
            // Its length was not announced; it is stored now, but not again.
            let too_large = fetch.bytes > cache.max_object_bytes;
            let shunned = too_large.then(|| worker.key_hash(&fetch.cache_key));
            if let Some(body) = fetch.unannounced {
                worker.tell_body_length(&fetch.cache_key, body, fetch.bytes);
            }
            worker.turn(fetch.context, |coalescer, turn| {
                coalescer.fill_ended(stream, turn);
                if let Some(key) = shunned {
                    let until = turn.now.saturating_add(millis(cache.hit_for_miss));
                    coalescer.hints().set(key, Hint::HitForMiss, until);
                }
            });
        });
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
        if self.must_abort() {
            return self.abort();
        }
        let responded = match &mut self.adopted {
            Some(adopted) => adopted.respond(end_of_stream),
            None => self.respond(end_of_stream),
        };
        if let Err(error) = responded {
            worker::with(|worker| worker.fault("a response was kept out of the store", error));
            let _ = host::set_header(Map::Response, "cache-control", "no-store");
        }
        Action::Continue
    }

    fn on_http_response_body(&mut self, size: usize, end_of_stream: bool) -> Action {
        if self.must_abort() || (end_of_stream && self.is_overtaken()) {
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
            self.end();
        }
        Action::Continue
    }

    fn on_http_response_trailers(&mut self, _: usize) -> Action {
        if self.must_abort() || self.is_overtaken() {
            return self.abort();
        }
        self.end();
        Action::Continue
    }
}

/// Whether the origin has just failed, and is left to a refresh: the store does not keep what it has by itself, so each
/// request comes here.
fn keeps_unasked(link: Link, headers: &Headers) -> bool {
    let clients = !link.purpose.is_background();
    clients
        && worker::with(|worker| {
            let key = worker.key_hash(&cache_key(headers));
            worker.is_failing(key)
        })
        .unwrap_or(false)
}

/// Whether a response has expired while its client's request was on its way to the store, for which it came in
/// time. The store would have each of those ask, and while it writes what one of them is told, it has nothing for the
/// others.
fn is_late(link: Link, stored: &Revalidation) -> bool {
    let expected = matches!(link.purpose, Purpose::Fresh | Purpose::Collapsed);
    expected && stored.has_just_expired()
}

/// The answer to a request that is only for the store.
fn not_served(purpose: Purpose, headers: &Headers) -> Answer {
    let revalidation = Revalidation::of(headers);
    let worth_it = |found: Revalidation| found.conditional || found.left() > 0;
    match purpose {
        Purpose::Probe if revalidation.is_some_and(worth_it) => Answer::Expired,
        Purpose::Probe if headers.has(NO_ROOM_HEADER) => Answer::NoRoom,
        _ => Answer::NotStored,
    }
}

/// The key as EDGE has written it into the request.
pub fn cache_key(headers: &Headers) -> String {
    let part = |name| headers.text(name).unwrap_or_default();
    [part(":authority"), part(":path")].concat()
}

/// Makes the store's request one for the origin.
fn prepare_request(policy: &Policy, cacheable: bool, headers: &Headers) -> host::Result<()> {
    for (name, value) in headers.iter() {
        let of_store = matches!(
            name,
            "if-none-match" | "if-modified-since" | "cache-control" | "pragma"
        );
        let sentinel = name == "if-range" && value == BYPASS_SENTINEL.as_bytes();
        // EDGE lets nothing of that kind of the client's through to the store.
        let keep = if sentinel || (cacheable && of_store) {
            false
        } else if name == ORIGINAL_PATH_HEADER {
            // The access log reads it from this very request. The hop removes it from what it sends on.
            true
        } else {
            forward_header(policy, cacheable, name)
        };
        if !keep {
            host::remove_header(Map::Request, name)?;
        } else if cacheable && name == FORWARDED_FOR {
            let client = value.rsplitn(2, |byte| *byte == b',').nth(1);
            tell_clients(client)?;
        }
    }
    let authority = headers.text(":authority").unwrap_or_default();
    let wanted = origin_authority(policy, authority);
    if wanted != authority {
        host::set_header(Map::Request, ":authority", wanted)?;
    }
    let path = headers.text(":path").unwrap_or_default();
    if cacheable {
        variants::ask(policy, path, headers)?;
    }
    if cacheable && is_for_headers(path) {
        host::set_header(Map::Request, ":method", "HEAD")?;
    }
    if unqualified(path) != path {
        host::set_header(Map::Request, ":path", unqualified(path))?;
    }
    host::set_header(Map::Request, PROOF_HEADER, "1")
}

/// The cache filter makes requests of its own, and so Envoy has added its own address to those of the clients and
/// proxies before it: a proxy that there is not.
fn tell_clients(addresses: Option<&[u8]>) -> host::Result<()> {
    match addresses.and_then(|addresses| std::str::from_utf8(addresses).ok()) {
        Some(addresses) => host::set_header(Map::Request, FORWARDED_FOR, addresses),
        None => host::remove_header(Map::Request, FORWARDED_FOR),
    }
}

/// Indexes the response's surrogate keys. False if it may be older than a purge of one of them.
fn index(fetch: &Fetch, headers: &Headers) -> bool {
    const NAMES: [&str; 3] = ["surrogate-key", "xkey", "x-amz-meta-surrogate-key"];
    let values: Vec<&str> = headers
        .iter()
        .filter(|(name, _)| NAMES.contains(name))
        .filter_map(|(_, value)| std::str::from_utf8(value).ok())
        .collect();
    if values.is_empty() {
        return true;
    }
    let url = url_of(&fetch.policy.policy, &fetch.cache_key);
    let tags = tags_of(&values);
    worker::with(|worker| worker.note_tags(url, tags.as_deref(), fetch.began)).unwrap_or(false)
}

fn note_fetch(fetch: &Fetch) {
    worker::with(|worker| {
        worker.metrics.count(Metric::OriginFetches, 1);
        worker.origin_is_asked(fetch.link.stream);
        if !fetch.link.purpose.avoids_the_store() {
            worker.fill_begins(fetch.link.stream, fetch.context, fallback(fetch));
        }
        let expected = !matches!(fetch.link.purpose, Purpose::Fresh | Purpose::Collapsed);
        if expected {
            return;
        }
        let Some(stream) = worker.stream(fetch.link.stream) else {
            return;
        };
        let mut request = stream.request();
        // The stores let a HEAD pass, and its response as well.
        request.may_lead &= !fetch.head || fetch.for_headers;
        worker.turn(fetch.context, |coalescer, turn| {
            coalescer.unexpected_miss(&request, turn);
        });
    });
}

/// What the store serves if the origin is slow. Nobody waits for a refresh, which may take its time.
fn fallback(fetch: &Fetch) -> Option<Fallback> {
    if fetch.link.purpose.is_background() {
        return None;
    }
    Some(Fallback {
        revalidation: fetch.servable()?,
        patience: millis(fetch.policy.policy.cache.stale_if_error_timeout),
    })
}

/// Logs what Envoy says of an origin that has not answered. True if it has said something.
pub fn note_failure(headers: &Headers) -> host::Result<bool> {
    let Some(details) = headers.text(FAILURE_HEADER) else {
        return Ok(false);
    };
    worker::with(|worker| worker.warn(|| format!("sluice: no answer from the origin: {details}")));
    host::remove_header(Map::Response, FAILURE_HEADER)?;
    Ok(true)
}

pub fn remove_hidden(policy: &Policy, headers: &Headers) -> host::Result<()> {
    for (name, _) in headers.iter() {
        if policy
            .response
            .remove_headers
            .iter()
            .any(|pattern| pattern.matches(name))
        {
            host::remove_header(Map::Response, name)?;
        }
    }
    Ok(())
}

fn verdict_of(
    fetch: &Fetch,
    headers: &Headers,
    variance: &Variance<'_>,
    status: u16,
    freshened: bool,
) -> Verdict {
    let policy = &fetch.policy.policy;
    let path = fetch.cache_key.find('/');
    let path = path.and_then(|start| fetch.cache_key.get(start..));
    let rule = policy.rule(path.unwrap_or_default());
    let cache_control = headers.joined("cache-control");
    let names = policy.cache.targeted_fields.iter();
    let targeted: Vec<_> = names
        .filter_map(|name| Some((name.as_str(), headers.joined(name)?)))
        .collect();
    let targeted: Vec<_> = targeted
        .iter()
        .map(|(name, value)| (*name, value.as_ref()))
        .collect();
    let facts = ResponseFacts {
        // A 304 stands for the response that it freshens.
        status: if freshened { 200 } else { status },
        cache_control: cache_control.as_deref(),
        targeted: &targeted,
        expires: headers.text("expires"),
        date: headers.text("date"),
        last_modified: headers.text("last-modified"),
        age: headers.text("age"),
        vary: variance.unkeyed(),
        has_set_cookie: headers.has("set-cookie"),
        has_validator: headers.has("etag") || headers.has("last-modified"),
        // Of the headers of a large object are no more than of any other's.
        content_length: headers.content_length().filter(|_| !fetch.for_headers),
    };
    let verdict = match judge(policy, rule, &facts, host::unix_seconds()) {
        Verdict::Store(storage) if fetch.for_headers => Verdict::Store(storage.for_headers()),
        verdict => verdict,
    };
    if fetch.room {
        verdict
    } else {
        verdict.without_room(status)
    }
}

fn fill_id(fetch: &Fetch) -> FillId {
    FillId {
        nonce: worker::with(|worker| worker.nonce).unwrap_or_default(),
        stream: fetch.link.stream.0,
    }
}

/// Whether a response of that status brings an object as it is stored.
const fn brings_object(fetch: &Fetch, status: u16) -> bool {
    status == 200 && !fetch.head && matches!(fetch.body, Body::Kept)
}

/// The response's body, if only its end tells how long it is.
fn unannounced(fetch: &Fetch, headers: &Headers, status: u16, freshened: bool) -> Option<BodyId> {
    let comes = brings_object(fetch, status) && !freshened;
    (comes && !headers.has("content-length")).then(|| fill_id(fetch).body())
}

fn entry(fetch: &Fetch, status: u16, freshened: bool) -> Entry<'_> {
    Entry {
        fill: fill_id(fetch),
        status: if freshened { 200 } else { status },
        ttl: 0,
        age: 0,
        stale_while_revalidate: 0,
        stale_if_error: 0,
        purge: 0,
        stored: false,
        revalidated: freshened,
        disguised: false,
        key: &fetch.cache_key,
    }
}

/// What a response's mark tells where the policy lets it be stored as `storage` says.
fn storable_entry<'a>(
    fetch: &'a Fetch,
    status: u16,
    freshened: bool,
    storage: &Storage,
) -> Entry<'a> {
    Entry {
        ttl: storage.ttl.as_secs(),
        age: storage.age.as_secs(),
        stale_while_revalidate: storage.stale_while_revalidate.as_secs(),
        stale_if_error: storage.stale_if_error.as_secs(),
        purge: fetch.began,
        ..entry(fetch, status, freshened)
    }
}

/// Takes away the `Set-Cookie` of a response that others get too. There is none unless the policy strips it.
fn strip_cookies(headers: &Headers) -> host::Result<()> {
    if headers.has("set-cookie") {
        host::remove_header(Map::Response, "set-cookie")?;
    }
    Ok(())
}

/// Makes the response one that Envoy's cache stores for as long as `storage` says.
fn mark_stored(
    fetch: &Fetch,
    headers: &Headers,
    status: u16,
    freshened: bool,
    storage: &Storage,
) -> host::Result<()> {
    let entry = Entry {
        stored: true,
        disguised: storage.disguise,
        ..storable_entry(fetch, status, freshened, storage)
    };
    host::set_header(Map::Response, ENTRY_HEADER, &entry.encode())?;
    let strict = if storage.forbids_stale {
        ", must-revalidate"
    } else {
        ""
    };
    keep_cache_control(
        headers,
        &format!("max-age={}{strict}", entry.lifetime().unasked()),
    )?;
    // Envoy counts freshness from Date, so it must be of this machine's clock, and the time that the
    // response has spent in caches before this one goes into it.
    let received = host::unix_seconds();
    let date = date::format(received.saturating_sub_unsigned(entry.age));
    host::set_header(Map::Response, "date", &date)?;
    host::remove_header(Map::Response, "age")?;
    strip_cookies(headers)?;
    if entry.status == 200 {
        host::set_header(Map::Response, "accept-ranges", "bytes")?;
    }
    if storage.disguise {
        host::set_header(Map::Response, ":status", DISGUISE)?;
    }
    match (&fetch.revalidation, freshened) {
        (Some(revalidation), true) => freshen_validator(revalidation),
        _ => store_validator(headers, storage, &entry),
    }
}

/// Writes what a later revalidation has to know. Without validators the origin must not be asked for
/// changes: its 304 would freshen an error.
fn store_validator(headers: &Headers, storage: &Storage, entry: &Entry<'_>) -> host::Result<()> {
    let own = |name| headers.text(name).filter(|_| !storage.neutral_validators);
    let validator = Validator {
        lifetime: entry.lifetime(),
        body: entry.fill.body(),
        last_modified: own("last-modified").and_then(date::parse),
        etag: own("etag"),
    };
    host::set_header(Map::Response, "etag", &validator.encode())?;
    if headers.has("last-modified") {
        host::remove_header(Map::Response, "last-modified")?;
    }
    Ok(())
}

/// The store freshens a response only by a 304 with the very `ETag` that it has stored.
fn freshen_validator(revalidation: &Revalidation) -> host::Result<()> {
    host::set_header(Map::Response, "etag", revalidation.value())?;
    host::remove_header(Map::Response, "last-modified")
}

fn mark_unstored(
    fetch: &Fetch,
    headers: &Headers,
    status: u16,
    freshened: bool,
) -> host::Result<()> {
    let entry = entry(fetch, status, freshened);
    host::set_header(Map::Response, ENTRY_HEADER, &entry.encode())?;
    if let Some(revalidation) = fetch.revalidation.as_ref().filter(|_| freshened) {
        freshen_validator(revalidation)?;
    }
    keep_cache_control(headers, "no-store")
}

/// Makes the response one that Envoy's cache passes on, or serves what it has for, and that EDGE may share.
fn mark_without_room(
    fetch: &Fetch,
    headers: &Headers,
    status: u16,
    freshened: bool,
    storage: &Storage,
) -> host::Result<()> {
    worker::with(|worker| worker.metrics.count(Metric::FillsWithoutRoom, 1));
    let entry = storable_entry(fetch, status, freshened, storage);
    host::set_header(Map::Response, ENTRY_HEADER, &entry.encode())?;
    if let Some(stored) = fetch.revalidation.as_ref().filter(|_| freshened) {
        // Envoy's cache writes all of what it freshens anew, and loses it where that fails.
        host::set_header(Map::Response, "etag", &stored.unwritten())?;
        host::remove_header(Map::Response, "last-modified")?;
        host::set_header(Map::Response, "age", &entry.age.to_string())?;
    }
    strip_cookies(headers)?;
    keep_cache_control(headers, "no-store")
}

/// Tells Envoy's cache what the policy wants and keeps what the origin said, for EDGE to restore.
fn keep_cache_control(headers: &Headers, stored: &str) -> host::Result<()> {
    if let Some(own) = headers.joined("cache-control") {
        host::set_header(Map::Response, STORED_CACHE_CONTROL, &own)?;
    }
    host::set_header(Map::Response, "cache-control", stored)
}

/// What the verdict on a response means for those who wait for it. `None`: EDGE sees whether they get a copy.
fn fill_verdict(fetch: &Fetch, verdict: &Verdict, variance: &Variance<'_>) -> Option<FillVerdict> {
    Some(match (verdict, variance.lesson()) {
        (Verdict::Store(_), _) => FillVerdict::Store,
        (Verdict::NoRoom(_), _) => return None,
        (Verdict::Share(status), _) => FillVerdict::Failed { status: *status },
        (Verdict::Uncacheable(UncacheableReason::Vary), Some(names)) => FillVerdict::Varies {
            names: names.clone(),
        },
        (Verdict::Uncacheable(_), _) => {
            let hit_for_miss = millis(fetch.policy.policy.cache.hit_for_miss);
            FillVerdict::HitForMiss {
                until: host::monotonic_millis().saturating_add(hit_for_miss),
            }
        }
    })
}

fn tell_headers(fetch: &Fetch, verdict: FillVerdict, end_of_stream: bool) {
    let stream = fetch.link.stream;
    worker::with(|worker| {
        let key = worker.key_hash(&fetch.cache_key);
        let ended = end_of_stream && verdict == FillVerdict::Store;
        match &verdict {
            FillVerdict::Varies { names } => {
                worker.metrics.count(Metric::VaryingLearnt, 1);
                worker.learn(unqualified(&fetch.cache_key), names.clone());
            }
            FillVerdict::HitForMiss { .. } => worker.metrics.count(Metric::HitForMissMarked, 1),
            FillVerdict::Store | FillVerdict::Failed { .. } | FillVerdict::NoRoom => {}
        }
        worker.turn(fetch.context, |coalescer, turn| {
            match verdict {
                FillVerdict::HitForMiss { until } => {
                    coalescer.hints().set(key, Hint::HitForMiss, until);
                }
                FillVerdict::Varies { .. } => coalescer.hints().forget(key),
                FillVerdict::Store | FillVerdict::Failed { .. } | FillVerdict::NoRoom => {}
            }
            coalescer.fill_headers(stream, verdict, turn);
            if ended {
                coalescer.fill_ended(stream, turn);
            }
        });
    });
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
