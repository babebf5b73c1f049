// SPDX-License-Identifier: Apache-2.0
//! The hot tier in EDGE: EDGE answers with hot copies, and copies the responses that pass.

use crate::worker::coalescing::Coalescing;
use crate::worker::keys::Keys;
use std::rc::Rc;

use sluice_core::coalescing::NotStored;
use sluice_core::freshness::UncacheableReason;
use sluice_core::hot::{Capture, HotCopy, HotLookup, StoreCheck};
use sluice_core::http::caching::cache_status::CacheStatus;
use sluice_core::http::conditional::demand::Demand;
use sluice_core::metrics::Metric;
use sluice_core::website::cors::CORS_PREFIX;
use sluice_core::workers::Millis;
use sluice_core::workers::message::FlightOutcome;

use crate::reply::{CACHE_STATUS, DueReply, hot_copy};
use crate::request::EdgeRequest;
use crate::request::account::tell_hit;
use crate::request::body::Sharing;
use crate::request::policy::NumberedPolicy;
use sluice_host::headers::{Headers, serialize};
use sluice_host::{self as host, Host, Map};

/// Headers that are made again for each response.
const MADE_ANEW: [&str; 6] = [
    "age",
    CACHE_STATUS,
    "connection",
    "content-length",
    "keep-alive",
    "transfer-encoding",
];

/// The properties of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    /// Whether the response has a media type. Envoy adds one to an answer that has none.
    pub typed: bool,
}

/// Answers the effective context's request at `now`, a Unix time in milliseconds, if there is a hot copy for it.
pub fn answer(
    keys: &Keys,
    wanted: &HotLookup<'_>,
    demand: Option<&Demand>,
    head: bool,
    numbered: &NumberedPolicy,
    now: Millis,
) -> host::Result<Option<Answered>> {
    let Some((copy, still)) = keys.hot_copy(numbered.site, wanted, now) else {
        return Ok(None);
    };
    let policy = &numbered.policy.response;
    keys.metrics.count_of(numbered, Metric::RequestsHit);
    keys.metrics.count_of(numbered, Metric::HotHits);
    if policy.account {
        tell_hit(&*keys.host, wanted.known_as)?;
    }
    let mut status = CacheStatus::hit().ttl(still.fresh_for).detail("hot");
    if policy.cache_status_key {
        status = status.key(wanted.key);
    }
    let status = status.member_of(&keys.identity.name);
    hot_copy::answer(&*keys.host, &copy, still.age, &status, demand, head)?;
    Ok(Some(Answered { typed: copy.typed }))
}

/// Starts to copy the effective context's response, whose headers are already those for its client, if the copy is
/// useful.
pub fn begin(
    host: &dyn Host,
    keys: &mut Keys,
    stream: &EdgeRequest,
    announced: Option<u64>,
    sighting: StoreCheck,
) -> host::Result<()> {
    if !stream.policy.policy.edge.hot.is_on() || stream.body.missing.get() {
        return Ok(());
    }
    let length = announced.or_else(|| counted(keys, stream));
    let Some(length) = length.and_then(|length| usize::try_from(length).ok()) else {
        return Ok(());
    };
    if !keys.wants_copy(stream.policy.site, stream.target.cache_key(), length) {
        return Ok(());
    }
    let copy = copy_of(host, stream, sighting)?;
    begin_capture(keys, stream, Capture::new(copy, length));
    Ok(())
}

/// Starts to copy the effective context's response, which is not stored, for its followers. Returns false if it
/// cannot be copied.
pub fn begin_to_share(
    host: &dyn Host,
    keys: &mut Keys,
    stream: &EdgeRequest,
    announced: Option<u64>,
    sighting: StoreCheck,
    sharing: Sharing,
) -> host::Result<bool> {
    let hot = stream.policy.policy.edge.hot;
    let most = hot.max_object_bytes;
    let small = announced.is_none_or(|length| length <= most as u64);
    if !hot.is_on() || !small || stream.body.missing.get() {
        return Ok(false);
    }
    let copy = copy_of(host, stream, sighting)?;
    let capture = match announced {
        Some(length) => Capture::new(copy, usize::try_from(length).unwrap_or(most)),
        None => Capture::at_most(copy, most),
    };
    let begun = begin_capture(keys, stream, capture);
    stream.body.sharing.set(begun.then_some(sharing));
    Ok(begun)
}

/// A copy of the effective context's response, without the body yet.
fn copy_of(host: &dyn Host, stream: &EdgeRequest, sighting: StoreCheck) -> host::Result<HotCopy> {
    let headers = host.headers(Map::Response)?;
    Ok(HotCopy {
        key: stream.target.cache_key().to_owned(),
        known_as: stream.key.key,
        policy: stream.policy.number,
        sighting,
        status: headers.status().unwrap_or(200),
        aged: headers.has("age"),
        typed: headers.has("content-type"),
        headers: common(&headers, stream.policy.policy.website.cors.is_some()),
        body: [].into(),
    })
}

/// Makes the body of the response be copied. Returns false if the worker has too many copies in progress.
fn begin_capture(keys: &mut Keys, stream: &EdgeRequest, capture: Capture) -> bool {
    let begins = keys.hot.begin(capture.length());
    if begins {
        stream.body.capture.replace(Some(capture));
    }
    begins
}

/// The fields that are equal for all clients. The CORS fields are made for each client.
fn common(headers: &Headers, cors: bool) -> Vec<u8> {
    let fields = headers.iter().filter(|(name, _)| {
        let of_client = cors && name.starts_with(CORS_PREFIX);
        !name.starts_with(':') && !MADE_ANEW.contains(name) && !of_client
    });
    serialize(fields)
}

/// Copies a part of `size` bytes of the response's body for other requests. Notes the length of the body at its end.
pub fn observe_body(
    keys: &mut Keys,
    coalescing: &mut Coalescing,
    stream: &EdgeRequest,
    size: usize,
    ends: bool,
) {
    take_body(keys, coalescing, stream, size, ends);
    if ends && let Some(body) = stream.body.unannounced.get() {
        keys.note_body_length(stream.target.stored_key(), body, stream.body.bytes.get());
    }
}

/// Copies a part of `size` bytes of the body that passes. A failure of the copy does not affect the client.
fn take_body(
    keys: &mut Keys,
    coalescing: &mut Coalescing,
    stream: &EdgeRequest,
    size: usize,
    end: bool,
) {
    let Some(mut capture) = stream.body.capture.take() else {
        return;
    };
    let taken = match size {
        0 => Ok(()),
        _ => coalescing
            .host
            .response_body(0..size)
            .map(|bytes| capture.take(bytes)),
    };
    if taken.is_ok() && !end && !capture.is_broken() {
        stream.body.capture.replace(Some(capture));
        return;
    }
    match taken {
        Ok(()) => end_capture(keys, coalescing, stream, capture),
        Err(error) => {
            keys.hot.end(capture.length());
            share_copy(coalescing, stream, None);
            coalescing.metrics.fault("a response was not copied", error);
        }
    }
}

/// The length of a stored body without `Content-Length`, if a request has seen its end.
pub fn counted(keys: &mut Keys, stream: &EdgeRequest) -> Option<u64> {
    let body = stream.body.unannounced.get()?;
    keys.body_length(stream.target.stored_key(), body)
}

/// Inserts the copy of the response of `stream`, if it is complete.
fn end_capture(
    keys: &mut Keys,
    coalescing: &mut Coalescing,
    stream: &EdgeRequest,
    capture: Capture,
) {
    keys.hot.end(capture.length());
    let copy = capture.finish().map(Rc::new);
    let sharing = share_copy(coalescing, stream, copy.as_ref());
    let keeps = sharing.is_none_or(|sharing| !sharing.once);
    if let Some(copy) = copy.filter(|_| keeps) {
        keys.keep_copy(stream.policy.site, Rc::unwrap_or_clone(copy));
    }
}

/// Sends the copy of the response of `stream`, which the store does not have, to its followers. Without a copy they
/// are sent to the origin. Returns how the copy was to be shared, if it was.
fn share_copy(
    coalescing: &mut Coalescing,
    stream: &EdgeRequest,
    copy: Option<&Rc<HotCopy>>,
) -> Option<Sharing> {
    let sharing = stream.body.sharing.take()?;
    let Some(copy) = copy else {
        share_nothing(coalescing, stream, sharing.once);
        return Some(sharing);
    };
    coalescing.answer_alike(stream, |follower| {
        let whole = follower.stand_in.is_none() && !follower.authenticated;
        if whole && sharing.once {
            let account = &follower.progress.account;
            account.is_not_stored(UncacheableReason::NoLifetime);
        }
        whole.then(|| DueReply::Copied(Rc::clone(copy), Rc::clone(follower), sharing.way))
    });
    // On each other worker one of the followers is sent to the origin.
    coalescing.end_flight(stream.id, FlightOutcome::NothingShared);
    Some(sharing)
}

/// Lets the followers of `stream` be sent to the origin, because its response is not stored: the store has no room
/// for it, or the response has no lifetime (`once`). Without a lifetime, later requests have nothing to wait for
/// either.
pub fn share_nothing(coalescing: &mut Coalescing, stream: &EdgeRequest, once: bool) {
    if !once {
        return coalescing.end_flight(stream.id, FlightOutcome::NoRoom);
    }
    let response = NotStored {
        key: stream.key.key,
        own_headers: stream.own_headers,
        reason: UncacheableReason::NoLifetime,
        most: stream.policy.flights.hit_for_miss,
    };
    coalescing.turn(|coalescer, turn| {
        coalescer.response_is_not_stored(stream.id, response, turn);
    });
}
