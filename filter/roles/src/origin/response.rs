// SPDX-License-Identifier: Apache-2.0
//! The origin's response: whether and in what form it is stored, and the outcome for its followers.

use std::rc::Rc;

use crate::worker::coalescing::Coalescing;
use crate::worker::identity::Identity;
use crate::worker::keys::Keys;
use sluice_core::freshness::UncacheableReason;
use sluice_core::http::caching::cache_control::with_spaces;
use sluice_core::inspection::recordings::origin_errors::OriginErrors;
use sluice_core::key::vary::variant_of;
use sluice_core::metrics::Metric;
use sluice_core::origin_failure::OriginFailure;
use sluice_core::policy::{Policy, SetCookie};
use sluice_core::purge::url_of;
use sluice_core::website::error_page;
use sluice_core::workers::BodyId;
use sluice_host::Host;
use sluice_store::FillId;
use sluice_store::Revalidation;
use sluice_store::hide_fields;
use sluice_store::{OriginResponse, WRITTEN_FIELDS};

use super::clean::{
    has_kept, note_bucket_error, note_bucket_request_id, remove_hidden, undo_connection,
};
use super::failure::{bound_lines, bound_statuses, note_error, note_failure, say};
use super::fetch::Fetch;
use super::judged::{Judged, inspection};
use super::maintenance;
use super::not_modified::{fetch_anew, is_about_stored, keep_body_fields};
use super::outcome;
use super::second;
use super::slice;
use super::surrogate_keys::SurrogateKeys;
use super::variants::variance::blur_head;
use crate::reply::complete_reply::MAINTENANCE_STATUS;
use crate::request::body::Body;
use crate::request::sliced::Sliceable;
use crate::worker::Worker;
use sluice_host::headers::Headers;
use sluice_host::{self as host, Map};

/// Handles the headers of the response to `fetch`.
pub fn respond(worker: &mut Worker, fetch: &mut Fetch, end_of_stream: bool) -> host::Result<()> {
    let Worker {
        host,
        metrics,
        keys,
        slices,
        roots,
        calls,
        coalescing,
        fills,
        questions,
        origin_errors,
        ..
    } = worker;
    let host = &**host;
    let answered = host.monotonic_millis();
    coalescing.requests.note_answer(fetch.link.stream, answered);
    let is_fill = !fetch.link.request.avoids_the_store();
    if is_fill && fills.answer(fetch.link.stream) {
        fetch.response.ended = true;
        return Ok(());
    }
    let headers = bound_lines(host, host.headers(Map::Response)?)?;
    let headers = bound_statuses(host, headers, fetch.is_conditional)?;
    fetch.response.second = second::receive(host, metrics, fetch, &headers)?;
    let (mut headers, is_gone) = slice::receive(host, fetch, headers)?;
    if is_gone {
        slice::forget_version(keys, slices, roots, calls, fetch);
    }
    if fetch.head && blur_head(host, &fetch.policy.policy, &fetch.cache_key, &headers)? {
        headers = host.headers(Map::Response)?;
    }
    let mut status = headers.status().unwrap_or(502);
    if is_fill {
        let (stream, length) = (fetch.link.stream, headers.content_length());
        fills.note_response(stream, status, length);
    }
    let failure = note_failure(host, metrics, &headers)?;
    if !failure.is_some_and(OriginFailure::is_silence) {
        let millis = answered.saturating_sub(fetch.asked);
        metrics.record_of(&fetch.policy, Metric::OriginFirstByte, millis);
    }
    undo_connection(host, &headers)?;
    remove_hidden(host, &fetch.policy.policy, &headers)?;
    if !fetch.response.refused {
        status = note_trouble(coalescing, origin_errors, fetch, &headers, status)?;
    }
    note_refusal(fetch, failure);
    let arrived = failure != Some(OriginFailure::NotReached);
    fetch.response.own_failure = fetch.is_own_failure(keys, coalescing, &headers, status, arrived);
    if keep_stored(keys, coalescing, fetch, &headers, status)? {
        return Ok(());
    }
    second::tell(fetch, &coalescing.requests);
    if failure.is_some() && status >= 500 && fetch.revalidation.is_some() {
        // The stored response must not be served, and the origin cannot be reached (RFC 9111, 5.2.2.2).
        status = 504;
        host.set_header(Map::Response, ":status", "504")?;
    }
    if let Some(listing) = &mut fetch.listing {
        (headers, status) = listing.receive(host, headers, status, end_of_stream)?;
    }
    if fetch.freshens(status).is_some() {
        if !is_about_stored(fetch, &headers) {
            return fetch_anew(keys, calls, coalescing, fetch, &headers);
        }
        if keep_body_fields(host, &headers)? {
            headers = host.headers(Map::Response)?;
        }
    }
    let policy = Rc::clone(&fetch.policy.policy);
    fetch.response.body = match maintenance::page(&policy, fetch, failure, status) {
        Some(page) => {
            status = MAINTENANCE_STATUS;
            if !is_fill {
                host.set_header(Map::Response, "cache-control", "no-store")?;
            }
            maintenance::replace(host, &headers, page, fetch.head, end_of_stream)?
        }
        None => {
            let body = fetch.clean(host, &headers, status, end_of_stream)?;
            say(host, failure, body, end_of_stream)?
        }
    };
    if !is_fill {
        inspection::tell(host, calls, questions, fetch, &headers, status, failure);
        fetch.response.ended = end_of_stream;
        return sluice_store::mark_around(host);
    }
    respond_to_store(worker, fetch, &headers, status, end_of_stream)
}

/// Records the error that the response reports, and returns its status for the client.
fn note_trouble(
    coalescing: &Coalescing,
    origin_errors: &mut OriginErrors,
    fetch: &mut Fetch,
    headers: &Headers,
    status: u16,
) -> host::Result<u16> {
    let stream = coalescing.requests.get(fetch.link.stream);
    let (host, metrics) = (&*coalescing.host, &coalescing.metrics);
    let account = stream.as_deref().map(|stream| &*stream.progress.account);
    note_bucket_request_id(&fetch.policy, account, headers);
    let (status, refused) =
        note_bucket_error(host, metrics, &fetch.policy, account, headers, status)?;
    fetch.response.refused = refused;
    note_error(host, origin_errors, fetch, headers, status);
    Ok(status)
}

/// Records that the edge refuses the response.
fn note_refusal(fetch: &mut Fetch, failure: Option<OriginFailure>) {
    match failure {
        Some(OriginFailure::ResponseHeaders) => {
            fetch.response.refused = true;
            fetch.response.reason = Some(UncacheableReason::ResponseHeaders);
        }
        Some(OriginFailure::NotModified) => fetch.response.refused = true,
        Some(OriginFailure::NotReached | OriginFailure::NoAnswer) | None => {}
    }
}

/// Makes the store serve its stale response in place of one with these headers, if that does not replace it. Returns
/// whether it does.
fn keep_stored(
    keys: &Keys,
    coalescing: &mut Coalescing,
    fetch: &mut Fetch,
    headers: &Headers,
    status: u16,
) -> host::Result<bool> {
    let stored = fetch.servable();
    let Some(stored) = stored.filter(|_| keeps_stored(keys, fetch, status)) else {
        return Ok(false);
    };
    let edits = stored.keep(headers.iter().map(|(name, _)| name));
    coalescing.host.edit_headers(Map::Response, edits)?;
    fetch.keep(coalescing, status, &stored);
    Ok(true)
}

/// Whether a response with that status does not replace a stored one that may be served stale.
fn keeps_stored(keys: &Keys, fetch: &Fetch, status: u16) -> bool {
    let missing = fetch.policy.policy.cache.stale_if_missing && matches!(status, 404 | 410);
    let second = fetch.response.second;
    // The first origin has failed, and the second one has nothing to serve in its place.
    let lacks_object = second.is_some_and(|second| second.may_lack_object(status));
    let purged = || {
        let key = keys.key_hash(&fetch.cache_key);
        keys.must_revalidate(&fetch.cache_key, key)
    };
    // RFC 5861, 4.
    matches!(status, 500 | 502..=504) || lacks_object || (missing && !purged())
}

/// Turns the response into the one that is stored, or keeps it from the store, and informs the followers.
fn respond_to_store(
    worker: &mut Worker,
    fetch: &mut Fetch,
    headers: &Headers,
    status: u16,
    end_of_stream: bool,
) -> host::Result<()> {
    let Worker {
        host,
        identity,
        keys,
        roots,
        coalescing,
        ..
    } = worker;
    let host = &**host;
    let freshens = fetch.freshens(status);
    let freshens = freshens.as_deref();
    let judged = Judged::of(host, fetch, headers, status, freshens);
    if judged.is_shared() && !index(identity, keys, fetch, &judged.surrogate_keys) {
        let response = origin_response(host, identity, fetch, headers, &judged, status, freshens);
        host.edit_known_headers(Map::Response, headers, response.unstored())?;
        fetch.response.ended = end_of_stream;
        let reason = UncacheableReason::Purged;
        fetch.is_not_stored(&coalescing.requests, reason);
        fetch.share_nothing(coalescing, reason);
        return Ok(());
    }
    if judged.is_stored() {
        fetch.response.stores = true;
        fetch.response.unannounced =
            unannounced(identity, fetch, headers, status, freshens.is_some());
    }
    let shown = match judged.is_stored() || freshens.is_some() {
        true => hide_fields(host, headers, |name| stays(&fetch.policy.policy, name))?,
        false => None,
    };
    if let Some(stream) = fetch.stream(&coalescing.requests) {
        let purge = fetch.began;
        let sliceable = judged.sliceable;
        let sliceable = sliceable.map(|storage| Sliceable { storage, purge });
        stream.progress.sliceable.set(sliceable);
    }
    let headers = shown.as_ref().unwrap_or(headers);
    let response = origin_response(host, identity, fetch, headers, &judged, status, freshens);
    host.edit_known_headers(Map::Response, headers, judged.edits(&response))?;
    drop(response);
    fetch.response.ended = end_of_stream;
    outcome::tell(keys, roots, coalescing, fetch, &judged, end_of_stream);
    Ok(())
}

/// Whether the store may see a field of that name.
fn stays(policy: &Policy, name: &str) -> bool {
    name != "set-cookie" || policy.cache.set_cookie == SetCookie::Store
}

/// The properties of the response on which the edits for the store depend.
fn origin_response<'a>(
    host: &dyn Host,
    identity: &Identity,
    fetch: &'a Fetch,
    headers: &'a Headers,
    judged: &'a Judged<'_>,
    status: u16,
    freshens: Option<&'a Revalidation>,
) -> OriginResponse<'a> {
    // The validators belong to the body that the page replaces, not to the page.
    let is_page = fetch.policy.policy.origin.is_bucket() && error_page::replaces(status);
    OriginResponse {
        fill: fill_id(identity, fetch),
        key: &judged.key,
        variant: variant_of(&fetch.stored_key, &judged.key).filter(|variant| !variant.is_empty()),
        status,
        purge: fetch.began,
        declared: fetch.policy.policy.declared_soft(&fetch.cache_key),
        received: host.unix_seconds(),
        freshens,
        cache_control: headers
            .joined("cache-control")
            .map(|joined| with_spaces(joined.value()).into()),
        date: headers.get("date"),
        accept_ranges: headers.get("accept-ranges"),
        is_intact: has_kept(&fetch.policy.policy, headers, &WRITTEN_FIELDS),
        etag: headers.get("etag").filter(|_| !is_page),
        last_modified: headers.get("last-modified").filter(|_| !is_page),
        strips_set_cookie: fetch.policy.policy.cache.set_cookie != SetCookie::Store
            && headers.has("set-cookie"),
        has_vary: headers.has("vary"),
        vary: judged.variance.vary(),
    }
}

/// Indexes the response's surrogate keys and cache groups. Returns false if it may be older than a purge of one of
/// them.
fn index(
    identity: &Identity,
    keys: &Keys,
    fetch: &Fetch,
    surrogate_keys: &SurrogateKeys<'_>,
) -> bool {
    if surrogate_keys.is_empty() {
        return true;
    }
    let policy = &fetch.policy.policy;
    let url = url_of(policy, &fetch.cache_key);
    let tags = surrogate_keys.hashes(url, &identity.store_secret);
    keys.note_tags(policy, url, tags.as_deref(), fetch.began)
}

fn fill_id(identity: &Identity, fetch: &Fetch) -> FillId {
    identity.vouching.fill_id(fetch.link.stream)
}

/// Whether a response with that status has a whole object, unchanged.
const fn brings_object(fetch: &Fetch, status: u16) -> bool {
    let is_kept = fetch.listing.is_none() && matches!(fetch.response.body, Body::Kept);
    status == 200 && !fetch.head && is_kept
}

/// The response's body, if the headers lack its length.
fn unannounced(
    identity: &Identity,
    fetch: &Fetch,
    headers: &Headers,
    status: u16,
    freshened: bool,
) -> Option<BodyId> {
    let comes = brings_object(fetch, status) && !freshened;
    (comes && !headers.has("content-length")).then(|| fill_id(identity, fetch).body())
}
