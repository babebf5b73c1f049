// SPDX-License-Identifier: Apache-2.0
//! Facts that the worker learns from a response's headers, and the outcome for its followers.

use crate::worker::coalescing::Coalescing;
use crate::worker::keys::Keys;
use crate::worker::roots::Roots;
use sluice_core::coalescing::NotStored;
use sluice_core::freshness::{UncacheableReason, Verdict};
use sluice_core::key::vary::VaryNames;
use sluice_core::metrics::Metric;
use sluice_core::workers::message::FlightOutcome;
use sluice_core::workers::{Millis, OwnHeaders};
use sluice_host::Host;

use super::fetch::Fetch;
use super::judged::Judged;
use crate::worker::keys::AuthorizedSharing;
use crate::worker::own_requests::variants;

/// How long requests with `Authorization` do not look for a shared response after one got a response for its client
/// alone.
const MOMENT_MILLIS: Millis = 1_000;

/// Reports the response to `fetch`, after its headers were passed on.
pub fn tell(
    keys: &mut Keys,
    roots: &mut Roots,
    coalescing: &mut Coalescing,
    fetch: &Fetch,
    judged: &Judged<'_>,
    end_of_stream: bool,
) {
    if matches!(judged.verdict, Verdict::NoRoom(_)) {
        coalescing.metrics.count(Metric::FillsWithoutRoom, 1);
    }
    note_authorized_sharing(&*coalescing.host, keys, fetch, &judged.verdict);
    if let Some(reason) = fetch.response.reason.or(judged.verdict.reason()) {
        fetch.is_not_stored(&coalescing.requests, reason);
    }
    if judged.is_stored() {
        teach(keys, roots, coalescing, fetch, judged);
    }
    tell_followers(keys, coalescing, fetch, judged, end_of_stream);
}

/// Records in the worker how the URL of a stored response varies.
fn teach(
    keys: &mut Keys,
    roots: &mut Roots,
    coalescing: &mut Coalescing,
    fetch: &Fetch,
    judged: &Judged<'_>,
) {
    let stream = coalescing.requests.get(fetch.link.stream);
    let Some(stream) = stream.filter(|_| judged.variance.vary().is_some()) else {
        return;
    };
    keys.renew_lesson(&stream.target);
    if judged.has_plain_key {
        let plain_key = stream.target.plain_key();
        variants::learn_plain_variant(
            keys,
            roots,
            coalescing,
            plain_key,
            &judged.key,
            stream.key.key,
        );
    }
}

/// Remembers the clients that may get the response to a request with `Authorization`.
fn note_authorized_sharing(host: &dyn Host, keys: &mut Keys, fetch: &Fetch, verdict: &Verdict) {
    let authorized_sharing = match verdict {
        Verdict::Store(storage) | Verdict::NoRoom(storage) => storage
            .allows_authenticated
            .then_some(AuthorizedSharing::All),
        // An error says nothing about the next response, and neither does a response that the request's own headers
        // may have caused.
        Verdict::Passing(
            UncacheableReason::ServerError
            | UncacheableReason::RequestError
            | UncacheableReason::RequestHeaders,
        ) => return,
        Verdict::Passing(UncacheableReason::Authorization) => {
            // The next response may be for all clients, whatever headers this client has sent.
            let pause = fetch.policy.flights.hit_for_miss.min(MOMENT_MILLIS);
            let until = host.monotonic_millis().saturating_add(pause);
            Some(AuthorizedSharing::Client { until })
        }
        Verdict::ShareOnce | Verdict::Uncacheable(_) | Verdict::Passing(_) => None,
    };
    let key = keys.key_hash(&fetch.cache_key);
    keys.note_authorized_sharing(key, authorized_sharing);
}

/// Informs the followers of `fetch` about the consequence of the verdict on its response.
fn tell_followers(
    keys: &mut Keys,
    coalescing: &mut Coalescing,
    fetch: &Fetch,
    judged: &Judged<'_>,
    end_of_stream: bool,
) {
    let stream = fetch.link.stream;
    match (&judged.verdict, judged.variance.lesson()) {
        (Verdict::Store(_), _) => begin_fill(keys, coalescing, fetch, end_of_stream),
        // Later requests would use a copy without validation.
        (Verdict::NoRoom(storage), _) if storage.lifetime.must_be_validated() => {
            coalescing.end_flight(stream, FlightOutcome::NoRoom);
        }
        // EDGE decides whether the followers get a copy.
        (Verdict::NoRoom(_) | Verdict::ShareOnce, _) => {}
        (Verdict::Passing(UncacheableReason::ServerError), _) => {
            let status = judged.status;
            coalescing.end_flight(stream, FlightOutcome::Failed { status });
        }
        (Verdict::Passing(UncacheableReason::RequestError), _) if fetch.response.own_failure => {
            coalescing.turn(|coalescer, turn| {
                coalescer.own_failure(stream, turn);
            });
        }
        (
            Verdict::Passing(
                UncacheableReason::RequestError
                | UncacheableReason::Authorization
                | UncacheableReason::RequestHeaders,
            ),
            _,
        ) => coalescing.turn(|coalescer, turn| {
            coalescer.request_failed(stream, turn);
        }),
        (
            Verdict::Uncacheable(UncacheableReason::Vary)
            | Verdict::Passing(UncacheableReason::Vary),
            Some(names),
        ) => end_varying(keys, coalescing, fetch, names),
        // EDGE learns the index of the object, and releases the followers.
        (Verdict::Uncacheable(UncacheableReason::TooLarge), _) if judged.sliceable.is_some() => {}
        (Verdict::Passing(reason), _) => fetch.share_nothing(coalescing, *reason),
        (Verdict::Uncacheable(reason), _) => refuse_to_store(keys, coalescing, fetch, *reason),
    }
}

fn begin_fill(keys: &Keys, coalescing: &mut Coalescing, fetch: &Fetch, end_of_stream: bool) {
    let (stream, key) = (fetch.link.stream, keys.key_hash(&fetch.cache_key));
    coalescing.turn(|coalescer, turn| {
        coalescer.response_is_stored(key);
        coalescer.fill_begins(stream, turn.now);
        if end_of_stream {
            coalescer.fill_ended(stream, turn);
        }
    });
}

/// Makes each follower continue under the key of the variant that it wants.
fn end_varying(keys: &mut Keys, coalescing: &mut Coalescing, fetch: &Fetch, names: &VaryNames) {
    let (stream, key) = (fetch.link.stream, keys.key_hash(&fetch.cache_key));
    coalescing.metrics.count(Metric::VaryingLearnt, 1);
    if let Some(stream) = coalescing.requests.get(stream) {
        keys.learn(&stream.target, names.clone());
    }
    coalescing.turn(|coalescer, turn| {
        coalescer.hints().forget(key);
        let names = names.clone();
        coalescer.end_flight(stream, FlightOutcome::Varies { names }, turn);
    });
}

/// Makes the key hit-for-miss, unless the request's own headers may be the reason for which the response is not
/// stored.
fn refuse_to_store(
    keys: &Keys,
    coalescing: &mut Coalescing,
    fetch: &Fetch,
    reason: UncacheableReason,
) {
    let own_headers = fetch
        .stream(&coalescing.requests)
        .map(|stream| stream.own_headers);
    let response = NotStored {
        key: keys.key_hash(&fetch.cache_key),
        own_headers: own_headers.unwrap_or(OwnHeaders::NONE),
        reason,
        most: fetch.policy.flights.hit_for_miss,
    };
    coalescing.turn(|coalescer, turn| {
        coalescer.response_is_not_stored(fetch.link.stream, response, turn);
    });
}
