// SPDX-License-Identifier: Apache-2.0
//! ORIGIN: between Envoy's cache filter and the origin, in the cluster's upstream chain.
//!
//! It sees every miss and every revalidation, and nothing else. It stops what EDGE has not vouched
//! for, lets only allowed headers on, decides whether and for how long the response is stored, and
//! tells the coalescer how the fill goes.

use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;
use sluice_core::coalescer::FillVerdict;
use sluice_core::entry::{ENTRY_HEADER, Entry, FillId};
use sluice_core::freshness::{ResponseFacts, Storage, Verdict, judge};
use sluice_core::hints::Hint;
use sluice_core::http_date;
use sluice_core::key::origin_authority;
use sluice_core::link::{BYPASS_SENTINEL, LINK_HEADER, Link, PROOF_HEADER, Purpose};
use sluice_core::metrics::Metric;
use sluice_core::policy::{Policy, StoreVersion};
use sluice_core::request::forward_header;

use crate::answer::Answer;
use crate::headers::Headers;
use crate::host::{self, Half, Map};
use crate::stream::NumberedPolicy;
use crate::worker;

/// Name of the response header that keeps the origin's own `Cache-Control` in the store.
pub const STORED_CACHE_CONTROL: &str = "x-sluice-cache-control";
/// Entity tag of a stored response that must not be revalidated: Envoy's cache filters would else ask
/// with `If-Modified-Since` and the time of storing, and a 304 would freshen an error.
pub const NO_VALIDATOR: &str = "\"sluice-none\"";
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
    revalidates: bool,
    /// Bytes of the body so far.
    bytes: u64,
    /// Whether the response goes into the store.
    stores: bool,
    ended: bool,
}

/// A request in the ORIGIN role.
#[derive(Debug)]
pub struct OriginStream {
    context: u32,
    fetch: Option<Fetch>,
}

impl OriginStream {
    /// A request of which nothing is known.
    pub fn new(context: u32) -> Self {
        Self {
            context,
            fetch: None,
        }
    }

    fn receive(&mut self) -> host::Result<Action> {
        let headers = Headers::new(host::header_pairs(Map::Request)?);
        #[cfg(feature = "trap")]
        crate::trap::on_demand(&headers, "origin");
        let linked = headers.get(LINK_HEADER).and_then(|value| {
            worker::with(|worker| {
                let link = worker.decode_link(value)?;
                Some((link, worker.policy(link.policy)?))
            })
            .flatten()
        });
        let Some((link, policy)) = linked else {
            worker::with(|worker| {
                worker.metrics.count(Metric::OriginUnlinked, 1);
                worker.warn(|| "sluice: a request without the edge role's link was stopped".into());
            });
            return Ok(self.refuse(Answer::Unlinked));
        };
        if link.purpose == Purpose::Probe {
            return Ok(self.refuse(Answer::ProbeMissed));
        }
        let fetch = Fetch {
            context: self.context,
            link,
            cache_key: cache_key(&headers),
            revalidates: prepare_request(&policy.policy, link.purpose, &headers)?,
            policy,
            bytes: 0,
            stores: false,
            ended: false,
        };
        note_fetch(&fetch, headers.text(":method") == Some("HEAD"));
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
        worker::with(|worker| worker.fill_answers(fetch.link.stream));
        let headers = Headers::new(host::header_pairs(Map::Response)?);
        remove_hidden(&fetch.policy.policy, &headers)?;
        if fetch.link.purpose == Purpose::Bypass {
            fetch.ended = end_of_stream;
            return Ok(());
        }
        let status = headers
            .text(":status")
            .and_then(|status| status.parse().ok())
            .unwrap_or(502);
        let freshened = fetch.revalidates && status == 304;
        let verdict = verdict_of(&fetch.policy.policy, &headers, status, freshened);
        if let Verdict::Store(storage) = &verdict {
            fetch.stores = true;
            mark_stored(fetch, &headers, status, freshened, storage)?;
        } else {
            mark_unstored(fetch, &headers, status, freshened)?;
        }
        fetch.ended = end_of_stream;
        tell_headers(fetch, &verdict, end_of_stream);
        Ok(())
    }

    /// Whether the v1 store would write into a client that has gone, which crashes Envoy.
    fn must_abort(&self) -> bool {
        self.fetch.as_ref().is_some_and(|fetch| {
            let guarded = fetch.policy.policy.store == StoreVersion::V1
                && fetch.link.purpose != Purpose::Bypass;
            guarded
                && worker::with(|worker| worker.stream(fetch.link.stream).is_none()).unwrap_or(true)
        })
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
            self.fetch = None;
            let _ = host::remove_header(Map::Request, PROOF_HEADER);
            Action::Continue
        })
    }

    fn on_http_response_headers(&mut self, _: usize, end_of_stream: bool) -> Action {
        if self.must_abort() {
            return self.abort();
        }
        if let Err(error) = self.respond(end_of_stream) {
            worker::with(|worker| worker.fault("a response was kept out of the store", error));
            let _ = host::set_header(Map::Response, "cache-control", "no-store");
        }
        Action::Continue
    }

    fn on_http_response_body(&mut self, size: usize, end_of_stream: bool) -> Action {
        if self.must_abort() {
            return self.abort();
        }
        if let Some(fetch) = &mut self.fetch {
            fetch.bytes = fetch.bytes.saturating_add(size as u64);
            let stream = fetch.link.stream;
            worker::with(|worker| worker.fill_progresses(stream));
        }
        if end_of_stream {
            self.end();
        }
        Action::Continue
    }

    fn on_http_response_trailers(&mut self, _: usize) -> Action {
        if self.must_abort() {
            return self.abort();
        }
        self.end();
        Action::Continue
    }
}

/// The key as EDGE has written it into the request.
fn cache_key(headers: &Headers) -> String {
    let part = |name| headers.text(name).unwrap_or_default();
    [part(":authority"), part(":path")].concat()
}

/// Makes the store's request one for the origin; true if it revalidates a stored response.
fn prepare_request(policy: &Policy, purpose: Purpose, headers: &Headers) -> host::Result<bool> {
    let cacheable = purpose != Purpose::Bypass;
    let none_match = headers.get("if-none-match");
    let validated = none_match.is_some_and(|value| value != NO_VALIDATOR.as_bytes());
    let unvalidated = none_match.is_some_and(|value| value == NO_VALIDATOR.as_bytes());
    for (name, value) in headers.iter() {
        let condition = matches!(name, "if-none-match" | "if-modified-since");
        let keep = if name == "if-range" && value == BYPASS_SENTINEL.as_bytes() {
            false
        } else if cacheable && condition {
            // EDGE lets no condition of the client through, so this one is the store's.
            !unvalidated
        } else {
            forward_header(policy, cacheable, name)
        };
        if !keep {
            host::remove_header(Map::Request, name)?;
        }
    }
    let authority = headers.text(":authority").unwrap_or_default();
    let wanted = origin_authority(policy, authority);
    if wanted != authority {
        host::set_header(Map::Request, ":authority", wanted)?;
    }
    host::set_header(Map::Request, PROOF_HEADER, "1")?;
    let dated = headers.has("if-modified-since") && !unvalidated;
    Ok(cacheable && (validated || dated))
}

fn note_fetch(fetch: &Fetch, head: bool) {
    worker::with(|worker| {
        worker.metrics.count(Metric::OriginFetches, 1);
        if fetch.link.purpose != Purpose::Bypass {
            worker.fill_begins(fetch.link.stream, fetch.context);
        }
        if !matches!(fetch.link.purpose, Purpose::Fresh | Purpose::Collapsed) || head {
            return;
        }
        let Some(stream) = worker.stream(fetch.link.stream) else {
            return;
        };
        worker.turn(fetch.context, |coalescer, turn| {
            coalescer.unexpected_miss(&stream.request(), turn);
        });
    });
}

fn remove_hidden(policy: &Policy, headers: &Headers) -> host::Result<()> {
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

fn verdict_of(policy: &Policy, headers: &Headers, status: u16, freshened: bool) -> Verdict {
    let facts = ResponseFacts {
        // A 304 stands for the response that it freshens.
        status: if freshened { 200 } else { status },
        cache_control: headers.text("cache-control"),
        expires: headers.text("expires"),
        date: headers.text("date"),
        age: headers.text("age"),
        vary: headers.text("vary"),
        has_set_cookie: headers.has("set-cookie"),
        has_validator: headers.has("etag") || headers.has("last-modified"),
        content_length: headers
            .text("content-length")
            .and_then(|length| length.parse().ok()),
    };
    judge(policy, &facts, host::unix_seconds())
}

fn entry<'a>(fetch: &'a Fetch, status: u16, freshened: bool, nonce: u64) -> Entry<'a> {
    Entry {
        fill: FillId {
            nonce,
            stream: fetch.link.stream.0,
        },
        status: if freshened { 200 } else { status },
        ttl: 0,
        age: 0,
        stored: false,
        revalidated: freshened,
        disguised: false,
        neutral_validators: false,
        key: &fetch.cache_key,
    }
}

/// Makes the response one that Envoy's cache stores for as long as `storage` says.
fn mark_stored(
    fetch: &Fetch,
    headers: &Headers,
    status: u16,
    freshened: bool,
    storage: &Storage,
) -> host::Result<()> {
    let ttl = storage.ttl.as_secs();
    let nonce = worker::with(|worker| worker.nonce).unwrap_or_default();
    let age = storage.age.as_secs();
    let entry = Entry {
        ttl,
        age,
        stored: true,
        disguised: storage.disguise,
        neutral_validators: storage.neutral_validators,
        ..entry(fetch, status, freshened, nonce)
    };
    host::set_header(Map::Response, ENTRY_HEADER, &entry.encode())?;
    keep_cache_control(headers, &format!("max-age={ttl}"))?;
    // Envoy counts freshness from Date, so it must be of this machine's clock, and the time that the
    // response has spent in caches before this one goes into it.
    let received = host::unix_seconds();
    let date = http_date::format(received.saturating_sub_unsigned(age));
    host::set_header(Map::Response, "date", &date)?;
    host::remove_header(Map::Response, "age")?;
    host::remove_header(Map::Response, "vary")?;
    if storage.disguise {
        host::set_header(Map::Response, ":status", DISGUISE)?;
    }
    if storage.neutral_validators {
        host::set_header(Map::Response, "etag", NO_VALIDATOR)?;
        host::remove_header(Map::Response, "last-modified")?;
    }
    Ok(())
}

fn mark_unstored(
    fetch: &Fetch,
    headers: &Headers,
    status: u16,
    freshened: bool,
) -> host::Result<()> {
    let nonce = worker::with(|worker| worker.nonce).unwrap_or_default();
    let entry = entry(fetch, status, freshened, nonce);
    host::set_header(Map::Response, ENTRY_HEADER, &entry.encode())?;
    keep_cache_control(headers, "no-store")
}

/// Tells Envoy's cache what the policy wants and keeps what the origin said, for EDGE to restore.
fn keep_cache_control(headers: &Headers, stored: &str) -> host::Result<()> {
    if let Some(own) = headers.text("cache-control") {
        host::set_header(Map::Response, STORED_CACHE_CONTROL, own)?;
    }
    host::set_header(Map::Response, "cache-control", stored)
}

fn tell_headers(fetch: &Fetch, verdict: &Verdict, end_of_stream: bool) {
    let stream = fetch.link.stream;
    let hit_for_miss = millis(fetch.policy.policy.cache.hit_for_miss);
    worker::with(|worker| {
        let key = worker.key_hash(&fetch.cache_key);
        worker.turn(fetch.context, |coalescer, turn| {
            let verdict = match verdict {
                Verdict::Store(_) => FillVerdict::Store,
                Verdict::Share(status) => FillVerdict::Failed { status: *status },
                Verdict::Uncacheable(_) => {
                    let until = turn.now.saturating_add(hit_for_miss);
                    coalescer.hints().set(key, Hint::HitForMiss, until);
                    FillVerdict::HitForMiss { until }
                }
            };
            coalescer.fill_headers(stream, verdict, turn);
            if end_of_stream && verdict == FillVerdict::Store {
                coalescer.fill_ended(stream, turn);
            }
        });
        if matches!(verdict, Verdict::Uncacheable(_)) {
            worker.metrics.count(Metric::HitForMissMarked, 1);
        }
    });
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
