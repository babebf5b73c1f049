// SPDX-License-Identifier: Apache-2.0
//! The origin's response: whether the store gets it, in what form, and what its followers are told.

use std::rc::Rc;

use sluice_core::coalescing::FillVerdict;
use sluice_core::coalescing::hints::Hint;
use sluice_core::freshness::{ResponseFacts, UncacheableReason, Verdict, judge};
use sluice_core::http::cache_control::with_spaces;
use sluice_core::key::vary::variant_of;
use sluice_core::metrics::Metric;
use sluice_core::policy::SetCookie;
use sluice_core::purge::{MAX_TAGS, groups_of, tags_of, url_of};
use sluice_core::site::error_page;
use sluice_core::store::entry::FillId;
use sluice_core::store::revalidation::Revalidation;
use sluice_core::store::store_edits::OriginResponse;
use sluice_core::workers::BodyId;

use super::clean::{note_bucket_error, note_failure, remove_hidden, undo_connection};
use super::fetch::{Fetch, millis};
use super::variance::{Variance, asked_key, blur_head, primary_key};
use crate::host::headers::Headers;
use crate::host::{self, Host, Map};
use crate::request::body::Body;
use crate::worker::Worker;
use crate::worker::keys::Audience;
use crate::worker::{ahead, fills, variants};

/// Handles the headers of the response to `fetch`.
pub fn respond(worker: &mut Worker, fetch: &mut Fetch, end_of_stream: bool) -> host::Result<()> {
    fills::origin_answers(worker, fetch.link.stream);
    let overruled = worker.fills.answer(fetch.link.stream);
    if overruled {
        fetch.response.ended = true;
        return Ok(());
    }
    let mut headers = worker.host.headers(Map::Response)?;
    if fetch.head
        && blur_head(
            &*worker.host,
            &fetch.policy.policy,
            &fetch.cache_key,
            &headers,
        )?
    {
        headers = worker.host.headers(Map::Response)?;
    }
    let unreachable = note_failure(worker, &headers)?;
    undo_connection(&*worker.host, &headers)?;
    remove_hidden(&*worker.host, &fetch.policy.policy, &headers)?;
    let mut status = headers
        .text(":status")
        .and_then(|status| status.parse().ok())
        .unwrap_or(502);
    let stream = worker.stream(fetch.link.stream);
    let account = stream.as_deref().map(|stream| &*stream.progress.account);
    let policy = &fetch.policy.policy;
    if let Some(trouble) = note_bucket_error(worker, policy, account, &headers, status)? {
        status = trouble.client_status(status);
        fetch.response.refused = trouble.is_never_stored();
    }
    if let Some(revalidation) = fetch
        .servable()
        .filter(|_| keeps_stored(worker, fetch, status))
    {
        let names = headers.iter().map(|(name, _)| name);
        worker
            .host
            .edit_headers(Map::Response, revalidation.keep(names))?;
        fetch.keep(worker, status, &revalidation);
        return Ok(());
    }
    if unreachable && status >= 500 && fetch.revalidation.is_some() {
        // What is stored must not be served, and nobody can be asked (RFC 9111, 5.2.2.2).
        status = 504;
        worker.host.set_header(Map::Response, ":status", "504")?;
    }
    fetch.response.body = fetch.clean(&*worker.host, &headers, status, end_of_stream)?;
    if fetch.link.purpose.avoids_the_store() {
        fetch.response.ended = end_of_stream;
        return Ok(());
    }
    respond_to_store(worker, fetch, &headers, status, end_of_stream)
}

/// Whether a response with that status does not take the place of what may be served stale.
fn keeps_stored(worker: &Worker, fetch: &Fetch, status: u16) -> bool {
    let missing = fetch.policy.policy.cache.stale_if_missing && matches!(status, 404 | 410);
    let purged = || {
        let key = worker.keys.key_hash(&fetch.cache_key);
        worker.keys.must_revalidate(&fetch.cache_key, key)
    };
    status >= 500 || (missing && !purged())
}

/// Makes of the response what the store takes, or lets it pass by the store, and tells the followers.
fn respond_to_store(
    worker: &mut Worker,
    fetch: &mut Fetch,
    headers: &Headers,
    status: u16,
    end_of_stream: bool,
) -> host::Result<()> {
    let asked = |asked: &Rc<Revalidation>| status == 304 && asked.conditional;
    let freshens = fetch.revalidation.clone().filter(asked);
    let freshens = freshens.as_deref();
    let key = asked_key(fetch, freshens).into_owned();
    let variance = Variance::of(&fetch.policy.policy, &key, headers);
    // What a 304 freshens was selected by what it was stored with, and nothing else.
    let primary = match freshens {
        Some(_) => None,
        None => primary_key(fetch, headers, &variance),
    };
    let judge = |unkeyed| {
        if fetch.authenticated && variance.names_credentials() {
            return Verdict::ForCredentials;
        }
        verdict_of(&*worker.host, fetch, headers, unkeyed, status, freshens)
    };
    let stored = primary.is_some().then(|| judge(None));
    let stored = stored.filter(|verdict| matches!(verdict, Verdict::Store(_)));
    let primary = primary.filter(|_| stored.is_some());
    // Who waits under the plain key may want another variant, so that what is not stored is not for them.
    let verdict = stored.unwrap_or_else(|| judge(variance.unkeyed()));
    let stored_as = Described {
        key: primary.as_deref().unwrap_or(&key),
        variance: &variance,
    };
    let shared = matches!(
        verdict,
        Verdict::Store(_) | Verdict::NoRoom(_) | Verdict::ShareOnce
    );
    if shared && !index(worker, fetch, headers) {
        let response = origin_response(worker, fetch, headers, stored_as, status, freshens);
        worker
            .host
            .edit_headers(Map::Response, response.unstored())?;
        fetch.response.ended = end_of_stream;
        fetch.share_nothing(worker);
        return Ok(());
    }
    if matches!(verdict, Verdict::Store(_)) {
        fetch.response.stores = true;
        fetch.response.unannounced =
            unannounced(worker, fetch, headers, status, freshens.is_some());
    }
    let response = origin_response(worker, fetch, headers, stored_as, status, freshens);
    let edits = match &verdict {
        Verdict::Store(storage) => response.stored(storage),
        Verdict::NoRoom(storage) => {
            worker.metrics.count(Metric::FillsWithoutRoom, 1);
            response.without_room(storage)
        }
        Verdict::ShareOnce => response.shared_once(),
        Verdict::ForCredentials => response.untraced(),
        Verdict::Share(_)
        | Verdict::RequestError
        | Verdict::Uncacheable(_)
        | Verdict::Passing(_) => response.unstored(),
    };
    worker.host.edit_headers(Map::Response, edits)?;
    drop(response);
    fetch.response.ended = end_of_stream;
    note_audience(worker, fetch, &verdict);
    if fetch.response.stores {
        teach(worker, fetch, primary.as_deref(), &variance);
    }
    match fill_verdict(&*worker.host, fetch, &verdict, &variance) {
        Some(verdict) => tell_headers(worker, fetch, verdict, end_of_stream),
        None if matches!(verdict, Verdict::Passing(_)) => fetch.share_nothing(worker),
        None => {}
    }
    let whole = fetch.response.stores && brings_object(fetch, status) && freshens.is_none();
    if whole && primary.is_none() {
        let_ranges_go_ahead(worker, fetch, headers);
    }
    Ok(())
}

/// Lets the worker know how the URL of a response that is stored varies.
fn teach(worker: &mut Worker, fetch: &Fetch, primary: Option<&str>, variance: &Variance<'_>) {
    let stream = worker.stream(fetch.link.stream);
    let Some(stream) = stream.filter(|_| variance.vary().is_some()) else {
        return;
    };
    worker.keys.renew_lesson(&stream.target);
    if let Some(key) = primary {
        let plain_key = stream.target.plain_key();
        variants::learn_primary(worker, plain_key, key, stream.key.key, fetch.context);
    }
}

/// How a response is known in the store.
#[derive(Clone, Copy)]
struct Described<'a> {
    key: &'a str,
    variance: &'a Variance<'a>,
}

/// Remembers who gets the response to a request with `Authorization`.
fn note_audience(worker: &mut Worker, fetch: &Fetch, verdict: &Verdict) {
    let audience = match verdict {
        Verdict::Store(storage) | Verdict::NoRoom(storage) => {
            storage.allows_authenticated.then_some(Audience::All)
        }
        // An error says nothing of the next response.
        Verdict::Share(_) | Verdict::RequestError => return,
        Verdict::ForCredentials => {
            let pause = millis(fetch.policy.policy.cache.hit_for_miss);
            let until = worker.host.monotonic_millis().saturating_add(pause);
            Some(Audience::Client { until })
        }
        Verdict::ShareOnce | Verdict::Uncacheable(_) | Verdict::Passing(_) => None,
    };
    let key = worker.keys.key_hash(&fetch.cache_key);
    worker.keys.note_audience(key, audience);
}

/// Tells the worker what the fill brings, so that ranges need not wait for it that begin far ahead.
fn let_ranges_go_ahead(worker: &mut Worker, fetch: &Fetch, headers: &Headers) {
    let key = &fetch.cache_key;
    if let Some(representation) = ahead::representation(&fetch.policy.policy, key, headers) {
        let now = worker.host.monotonic_millis();
        worker.fills.brings(fetch.link.stream, representation, now);
        ahead::release(worker, worker.keys.key_hash(key), None);
    }
}

/// The response, as far as its edits for the store depend on it.
fn origin_response<'a>(
    worker: &Worker,
    fetch: &'a Fetch,
    headers: &'a Headers,
    stored_as: Described<'a>,
    status: u16,
    freshens: Option<&'a Revalidation>,
) -> OriginResponse<'a> {
    // What has told of the body that a page replaces says nothing of the page.
    let is_page = fetch.policy.policy.origin.is_bucket() && error_page::replaces(status);
    OriginResponse {
        fill: fill_id(worker, fetch),
        key: stored_as.key,
        variant: variant_of(&fetch.stored_key, stored_as.key).filter(|variant| !variant.is_empty()),
        status,
        purge: fetch.began,
        received: worker.host.unix_seconds(),
        freshens,
        cache_control: headers
            .joined("cache-control")
            .map(|joined| with_spaces(&joined).into()),
        date: headers.text("date"),
        etag: headers.text("etag").filter(|_| !is_page),
        last_modified: headers.get("last-modified").filter(|_| !is_page),
        strips_set_cookie: fetch.policy.policy.cache.set_cookie != SetCookie::Store
            && headers.has("set-cookie"),
        has_vary: headers.has("vary"),
        vary: stored_as.variance.vary(),
    }
}

/// Indexes the response's surrogate keys and cache groups. False if it may be older than a purge of one of them.
fn index(worker: &mut Worker, fetch: &Fetch, headers: &Headers) -> bool {
    const NAMES: [&str; 4] = [
        "surrogate-key",
        "cache-tag",
        "xkey",
        "x-amz-meta-surrogate-key",
    ];
    let values: Vec<&str> = headers
        .iter()
        .filter(|(name, _)| NAMES.contains(name))
        .filter_map(|(_, value)| std::str::from_utf8(value).ok())
        .collect();
    let policy = &fetch.policy.policy;
    let url = url_of(policy, &fetch.cache_key);
    let groups = headers.joined("cache-groups");
    let groups = groups.filter(|_| !policy.origin.is_bucket());
    let groups = groups.map_or_else(Vec::new, |field| groups_of(url, &field));
    if values.is_empty() && groups.is_empty() {
        return true;
    }
    let tags = tags_of(&values)
        .map(|tags| [tags, groups].concat())
        .filter(|tags| tags.len() <= MAX_TAGS);
    worker.keys.note_tags(url, tags.as_deref(), fetch.began)
}

fn fill_id(worker: &Worker, fetch: &Fetch) -> FillId {
    worker.identity.fill_id(fetch.link.stream)
}

/// Whether a response of that status brings an object as it is stored.
const fn brings_object(fetch: &Fetch, status: u16) -> bool {
    status == 200 && !fetch.head && matches!(fetch.response.body, Body::Kept)
}

/// The response's body, if only its end tells how long it is.
fn unannounced(
    worker: &Worker,
    fetch: &Fetch,
    headers: &Headers,
    status: u16,
    freshened: bool,
) -> Option<BodyId> {
    let comes = brings_object(fetch, status) && !freshened;
    (comes && !headers.has("content-length")).then(|| fill_id(worker, fetch).body())
}

fn verdict_of(
    host: &dyn Host,
    fetch: &Fetch,
    headers: &Headers,
    unkeyed: Option<&str>,
    status: u16,
    freshens: Option<&Revalidation>,
) -> Verdict {
    if fetch.response.refused {
        return Verdict::Share(status);
    }
    let policy = &fetch.policy.policy;
    let rule = policy.rule(fetch.path());
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
        status: if freshens.is_some() { 200 } else { status },
        freshens: freshens.and_then(|stored| Some(stored.validator()?.lifetime)),
        cache_control: cache_control.as_deref(),
        targeted: &targeted,
        expires: headers.text("expires"),
        date: headers.text("date"),
        last_modified: headers.text("last-modified"),
        age: headers.text("age"),
        vary: unkeyed,
        has_set_cookie: headers.has("set-cookie"),
        answers_cookie: fetch.has_cookie,
        // The store keeps the validator of what a 304 freshens.
        has_validator: freshens.is_some() || headers.has("etag") || headers.has("last-modified"),
        // The headers of a large object take no more room than those of any other.
        content_length: headers.content_length().filter(|_| !fetch.for_headers),
        authenticated: fetch.authenticated,
    };
    let verdict = match judge(policy, rule, &facts, host.unix_seconds()) {
        // Headers alone are fetched anew, and never validated.
        Verdict::Store(storage) if fetch.for_headers && storage.lifetime.must_be_validated() => {
            Verdict::Uncacheable(UncacheableReason::NoCache)
        }
        Verdict::Store(storage) if fetch.for_headers => Verdict::Store(storage.for_headers()),
        verdict => verdict,
    };
    if fetch.room {
        verdict
    } else {
        verdict.without_room(status)
    }
}

/// What the verdict on a response means for its followers. `None`: EDGE sees whether they get a copy.
fn fill_verdict(
    host: &dyn Host,
    fetch: &Fetch,
    verdict: &Verdict,
    variance: &Variance<'_>,
) -> Option<FillVerdict> {
    Some(match (verdict, variance.lesson()) {
        (Verdict::Store(_), _) => FillVerdict::Store,
        // A copy would be used without validation by those who come later.
        (Verdict::NoRoom(storage), _) if storage.lifetime.must_be_validated() => {
            FillVerdict::NoRoom
        }
        (Verdict::NoRoom(_) | Verdict::ShareOnce, _) => return None,
        (Verdict::Share(status), _) => FillVerdict::Failed { status: *status },
        (Verdict::RequestError | Verdict::ForCredentials, _) => FillVerdict::RequestError,
        (
            Verdict::Uncacheable(UncacheableReason::Vary)
            | Verdict::Passing(UncacheableReason::Vary),
            Some(names),
        ) => FillVerdict::Varies {
            names: names.clone(),
        },
        (Verdict::Passing(_), _) => return None,
        (Verdict::Uncacheable(_), _) => {
            let hit_for_miss = millis(fetch.policy.policy.cache.hit_for_miss);
            FillVerdict::HitForMiss {
                until: host.monotonic_millis().saturating_add(hit_for_miss),
            }
        }
    })
}

fn tell_headers(worker: &mut Worker, fetch: &Fetch, verdict: FillVerdict, end_of_stream: bool) {
    let stream = fetch.link.stream;
    let key = worker.keys.key_hash(&fetch.cache_key);
    let ended = end_of_stream && verdict == FillVerdict::Store;
    match &verdict {
        FillVerdict::Varies { names } => {
            worker.metrics.count(Metric::VaryingLearnt, 1);
            if let Some(stream) = worker.stream(stream) {
                worker.keys.learn(&stream.target, names.clone());
            }
        }
        FillVerdict::HitForMiss { .. } => worker.metrics.count(Metric::HitForMissMarked, 1),
        FillVerdict::Store
        | FillVerdict::Failed { .. }
        | FillVerdict::RequestError
        | FillVerdict::NoRoom => {}
    }
    worker.turn(fetch.context, |coalescer, turn| {
        match verdict {
            FillVerdict::HitForMiss { until } => {
                coalescer.hints().set(key, Hint::HitForMiss, until);
            }
            FillVerdict::Varies { .. } => coalescer.hints().forget(key),
            FillVerdict::Store
            | FillVerdict::Failed { .. }
            | FillVerdict::RequestError
            | FillVerdict::NoRoom => {}
        }
        coalescer.fill_headers(stream, verdict, turn);
        if ended {
            coalescer.fill_ended(stream, turn);
        }
    });
}
