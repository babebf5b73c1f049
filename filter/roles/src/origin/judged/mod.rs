// SPDX-License-Identifier: Apache-2.0
//! The verdict on an origin's response, and the variant as which it is stored.

pub mod inspection;

use std::borrow::Cow;

use sluice_core::coalescing::SMALL_BYTES;
use sluice_core::freshness::{
    ResponseFacts, Storage, UncacheableReason, Verdict, is_stream, judge,
};
use sluice_core::http::conditional::range::accepts_bytes;
use sluice_core::http::syntax::date;
use sluice_core::http::syntax::field_value::{FieldValue, JoinedValue};
use sluice_host::header_edit::HeaderEdit;
use sluice_store::OriginResponse;
use sluice_store::Revalidation;

use sluice_core::slices::index::{Described, SliceIndex};

use crate::origin::fetch::Fetch;
use crate::origin::surrogate_keys::SurrogateKeys;
use crate::origin::variants::variance::Variance;
use crate::request::sliced::is_key_sliceable;
use sluice_host::Host;
use sluice_host::headers::Headers;

/// A response with its verdict.
#[derive(Debug)]
pub struct Judged<'a> {
    /// Its status.
    pub status: u16,
    /// The verdict.
    pub verdict: Verdict,
    /// The whole cache key of the response. It may be that of a variant although the request's key is not.
    pub key: String,
    /// Whether the store has it as the plain variant of its URL, which was not known to vary.
    pub has_plain_key: bool,
    /// The request headers that it varies with.
    pub variance: Variance<'a>,
    /// Its surrogate keys, if they can be read.
    pub surrogate_keys: SurrogateKeys<'a>,
    /// How its object could be stored apart from its size, if the object is to be served in slices.
    pub sliceable: Option<Storage>,
}

/// The properties of a response on which the verdict depends.
struct Response<'a> {
    headers: &'a Headers,
    status: u16,
    /// The names in `Vary` that the key lacks.
    unkeyed: Option<FieldValue<'a>>,
    has_unreadable_key: bool,
    /// Whether its object is large enough for slices.
    is_sliceable: bool,
}

impl<'a> Judged<'a> {
    /// Judges the response to `fetch`. `freshens` is the stored response that it freshens, if it is a 304.
    pub fn of(
        host: &dyn Host,
        fetch: &Fetch,
        headers: &'a Headers,
        status: u16,
        freshens: Option<&Revalidation>,
    ) -> Self {
        let key = asked_key(fetch, freshens).into_owned();
        let variance = Variance::of(&fetch.policy.policy, &key, headers);
        // A response that a 304 freshens keeps the selecting headers with which it was stored.
        let plain_variant = match freshens {
            Some(_) => None,
            None => plain_key_of(fetch, headers, &variance),
        };
        let surrogate_keys = SurrogateKeys::of(&fetch.policy.policy, headers);
        let is_sliceable = is_sliceable(fetch, headers, status, &variance);
        let judge = |unkeyed| {
            if !fetch.may_share || !variance.names_all(&fetch.selectors) {
                return Verdict::Passing(UncacheableReason::RequestHeaders);
            }
            if fetch.authenticated && variance.names_credentials() {
                return Verdict::Passing(UncacheableReason::Authorization);
            }
            let response = Response {
                headers,
                status,
                unkeyed,
                has_unreadable_key: surrogate_keys.is_err(),
                is_sliceable,
            };
            let verdict = verdict_of(host, fetch, response, freshens);
            let verdict = match fetch.response.second {
                Some(second) => second.bound(verdict, status),
                None => verdict,
            };
            match &fetch.listing {
                Some(listing) => verdict.fresh_for_at_most(listing.ttl()),
                None => verdict,
            }
        };
        let plain_variant = plain_variant.and_then(|key| match judge(None) {
            verdict @ Verdict::Store(_) => Some((verdict, key)),
            _ => None,
        });
        let has_plain_key = plain_variant.is_some();
        // A request that waits under the plain key may want another variant, so it does not share a response that is
        // not stored.
        let (verdict, key) = plain_variant.unwrap_or_else(|| (judge(variance.unkeyed()), key));
        let (verdict, sliceable) = match verdict {
            Verdict::Store(storage) if is_sliceable && !storage.lifetime.must_be_validated() => {
                (verdict_on_sliceable(fetch, storage), Some(storage))
            }
            Verdict::Store(_) if is_sliceable => {
                (Verdict::Uncacheable(UncacheableReason::TooLarge), None)
            }
            Verdict::Store(storage) => (verdict_on_whole(fetch, storage), None),
            verdict => (verdict, None),
        };
        let verdict = match fetch.room {
            true => verdict,
            false => verdict.without_room(status),
        };
        Self {
            status,
            verdict,
            sliceable,
            key,
            has_plain_key,
            surrogate_keys: surrogate_keys.unwrap_or_default(),
            variance,
        }
    }

    /// Whether it is stored.
    pub const fn is_stored(&self) -> bool {
        matches!(self.verdict, Verdict::Store(_))
    }

    /// Whether clients other than its own may get it.
    pub const fn is_shared(&self) -> bool {
        matches!(
            self.verdict,
            Verdict::Store(_) | Verdict::NoRoom(_) | Verdict::ShareOnce
        )
    }

    /// The changes to its headers for the store.
    pub fn edits<'b>(&self, response: &'b OriginResponse<'_>) -> Vec<HeaderEdit<'b>> {
        match &self.verdict {
            Verdict::Store(storage) => response.stored(storage),
            Verdict::NoRoom(storage) => response.without_room(storage),
            Verdict::ShareOnce => response.shared_once(),
            Verdict::Passing(UncacheableReason::Authorization) => response.untraced(),
            Verdict::Uncacheable(_) | Verdict::Passing(_) => response.unstored(),
        }
    }
}

fn verdict_of(
    host: &dyn Host,
    fetch: &Fetch,
    response: Response<'_>,
    freshens: Option<&Revalidation>,
) -> Verdict {
    let (headers, status) = (response.headers, response.status);
    if fetch.response.own_failure {
        return Verdict::Passing(UncacheableReason::RequestError);
    }
    if fetch.response.refused {
        return Verdict::Passing(UncacheableReason::ServerError);
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
        .map(|(name, joined)| (*name, joined.value()))
        .collect();
    let facts = ResponseFacts {
        // A 304 represents the response that it freshens.
        status: if freshens.is_some() { 200 } else { status },
        freshens: freshens.and_then(Revalidation::freshened),
        cache_control: cache_control.as_ref().map(JoinedValue::value),
        targeted: &targeted,
        expires: headers.get("expires"),
        date: headers.get("date"),
        last_modified: headers.get("last-modified"),
        age: headers.get("age"),
        vary: response.unkeyed,
        has_unreadable_key: response.has_unreadable_key,
        // The edge's compression removes the length of a bucket's objects, which are no streams nevertheless.
        is_stream: !policy.origin.is_bucket()
            && is_stream(
                headers
                    .get("content-type")
                    .and_then(|value| value.text().ok()),
                headers.has("content-length"),
            ),
        has_set_cookie: headers.has("set-cookie"),
        answers_cookie: fetch.has_cookie,
        // The store keeps the validator of a response that a 304 freshens.
        has_validator: freshens.is_some() || has_validator(headers),
        // The headers of a large object need no more room than those of a small one.
        content_length: headers
            .content_length()
            .filter(|_| !fetch.for_headers && fetch.slice.is_none() && !response.is_sliceable),
        authenticated: fetch.authenticated,
    };
    judge(policy, rule, &facts, host.unix_seconds())
}

/// The verdict on a response that could be stored and whose object is not to be served in slices.
fn verdict_on_whole(fetch: &Fetch, storage: Storage) -> Verdict {
    // Headers alone are fetched again, and never validated.
    if fetch.for_headers && storage.lifetime.must_be_validated() {
        Verdict::Uncacheable(UncacheableReason::NoCache)
    } else if fetch.for_headers {
        Verdict::Store(storage.for_headers())
    } else if fetch.slice.is_some() {
        Verdict::Store(storage.for_slice())
    } else {
        Verdict::Store(storage)
    }
}

/// The verdict on a response that could be stored apart from the size of its object, which is to be served in slices.
fn verdict_on_sliceable(fetch: &Fetch, storage: Storage) -> Verdict {
    match fetch.for_headers {
        true => Verdict::Store(storage.for_index()),
        false => Verdict::Uncacheable(UncacheableReason::TooLarge),
    }
}

/// Whether the object of a response, or of the response to a HEAD, is to be served in slices if it may be stored: it
/// is large, its version is known, and the origin sends ranges of it to all clients alike.
fn is_sliceable(fetch: &Fetch, headers: &Headers, status: u16, variance: &Variance<'_>) -> bool {
    let policy = &fetch.policy.policy;
    let slices = &policy.edge.slices;
    let asks = slices.is_on() && fetch.slice.is_none() && !fetch.authenticated;
    let is_plain = || {
        let selection = fetch.selection.as_ref();
        let is_variant = selection.is_some_and(|selection| selection.plain_path().is_some());
        !is_variant && is_key_sliceable(&fetch.cache_key) && variance.unkeyed().is_none()
    };
    let described = Described {
        status,
        etag: headers.get("etag"),
        last_modified: None,
        length: headers.content_length(),
        accepts_ranges: policy.origin.is_bucket()
            || headers.get("accept-ranges").is_some_and(accepts_bytes),
    };
    asks && described.is_sliced(slices.lengths)
        && is_plain()
        && SliceIndex::has_room_for(headers.iter())
}

/// The key of the response that a fetch requests: that of the stored response, if the fetch freshens it.
fn asked_key<'a>(fetch: &'a Fetch, freshens: Option<&Revalidation>) -> Cow<'a, str> {
    let stored = fetch.selection.as_ref().zip(freshens);
    let key = stored.and_then(|(selection, stored)| selection.key_of(stored));
    key.map_or(Cow::Borrowed(&*fetch.cache_key), Cow::Owned)
}

/// Whether the response has a validator that can be read.
fn has_validator(headers: &Headers) -> bool {
    let etag = headers.get("etag");
    let date = headers.get("last-modified").and_then(date::of);
    date.is_some() || etag.is_some_and(|etag| etag.text().is_ok())
}

/// The key of a response that the store may get under the plain key of its URL, although it varies with more headers.
///
/// A worker that does not know the variant yet gives the response to requests for other variants, which then need a
/// call. Therefore it must not be larger than the response to a call. It is for all requests with the same key, so
/// the origin must have been asked with the values in that key.
fn plain_key_of(fetch: &Fetch, headers: &Headers, variance: &Variance<'_>) -> Option<String> {
    let small = headers
        .content_length()
        .is_none_or(|length| length <= SMALL_BYTES);
    let selection = fetch.selection.as_ref().filter(|_| fetch.room && small)?;
    let key = selection.key(variance.lesson()?)?;
    selection.asks_for(&key).then_some(key)
}
