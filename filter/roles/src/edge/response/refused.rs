// SPDX-License-Identifier: Apache-2.0
//! Responses that EDGE does not pass on, and the answers that replace them.

use crate::worker::coalescing::Coalescing;
use crate::worker::identity::Identity;
use crate::worker::keys::AuthorizedSharing;
use crate::worker::keys::Keys;
use crate::worker::own_requests::calls::Calls;
use sluice_core::coalescing::StoreRequest;
use sluice_core::key::CanonicalTarget;
use sluice_core::metrics::Metric;
use sluice_core::workers::message::FlightOutcome;
use sluice_host::Host;
use sluice_store::Served;

use crate::reply::complete_reply::CompleteReply;
use crate::reply::substitute::FailedResponse;
use crate::reply::{DueReply, answer_mismatch, answer_not_stored};
use crate::request::EdgeRequest;
use crate::request::account::{self, result_of};
use crate::worker::own_requests::{
    mismatches, substitutes,
    variants::{fetch_again, fetch_variant},
};
use sluice_host::{self as host, Action};

/// A response of another key, for the log.
pub const UNMARKED: &str = "a response without the mark of a fill";
/// A response whose headers do not belong to its body, for the log.
pub const FOREIGN_HEADERS: &str = "headers of another response";

/// Refuses a response that the request does not accept: its client or its policy demands another one. Otherwise notes
/// the clients that may share it, and returns `None`.
pub fn refuse_served(
    identity: &Identity,
    keys: &mut Keys,
    coalescing: &mut Coalescing,
    calls: &mut Calls,
    stream: &EdgeRequest,
    served: &Served<'_>,
) -> Option<host::Result<Action>> {
    let shared = !stream.authenticated || served.entry.allows_authenticated;
    if stream.progress.request() == StoreRequest::StoreOnly
        && !(served.satisfies(&stream.control) && shared && !served.predates_purge)
    {
        return Some(refuse_not_stored(&*coalescing.host, identity, stream));
    }
    if stream.authenticated && served.entry.stored {
        let all = served.entry.allows_authenticated;
        let authorized_sharing = all.then_some(AuthorizedSharing::All);
        keys.note_authorized_sharing(stream.key.key, authorized_sharing);
    }
    let status = served.failure.unwrap_or(504);
    let is_expired = served.is_expired(&stream.control);
    is_expired.then(|| refuse_expired(identity, keys, coalescing, calls, stream, status))
}

/// Refuses a request for the store only, because the store has no response that its client accepts.
fn refuse_not_stored(
    host: &dyn Host,
    identity: &Identity,
    stream: &EdgeRequest,
) -> host::Result<Action> {
    stream.progress.answered.set(true);
    stream.progress.account.results_in(account::NOT_STORED);
    answer_not_stored(host, &identity.name)?;
    Ok(Action::Pause)
}

/// Refuses the response of another key, which occurs because Envoy's cache names files by a short hash, or a response
/// whose headers do not belong to its body. Its client gets the object through a call, if it can have one.
pub fn refuse_mismatch(
    identity: &Identity,
    keys: &mut Keys,
    coalescing: &mut Coalescing,
    calls: &mut Calls,
    stream: &EdgeRequest,
    what: &str,
) -> host::Result<Action> {
    coalescing.metrics.count(Metric::KeyMismatches, 1);
    coalescing
        .metrics
        .warn(|| format!("sluice: the store gave {what}"));
    mismatches::avoid_the_store(keys, coalescing, stream);
    if stream.progress.request() == StoreRequest::StoreOnly {
        return refuse_not_stored(&*coalescing.host, identity, stream);
    }
    // For a request that already bypasses the store, such a call would get the same response.
    let around = stream.progress.request().avoids_the_store();
    let called = !around && mismatches::fetch_around(calls, stream);
    await_call(
        &*coalescing.host,
        identity,
        stream,
        called.then_some(Metric::RequestsHitForMiss),
    )
}

/// Holds a response whose client waits for a call, which counts as `result`. Answers the client if it has no call.
fn await_call(
    host: &dyn Host,
    identity: &Identity,
    stream: &EdgeRequest,
    result: Option<Metric>,
) -> host::Result<Action> {
    stream.progress.answered.set(true);
    if let Some(result) = result {
        stream.body.hold_unwanted();
        stream.progress.account.results_in(result_of(result));
    } else {
        stream.progress.account.results_in(account::FAILED);
        answer_mismatch(host, &identity.name)?;
    }
    Ok(Action::Pause)
}

/// Refuses another variant than the request wants. The store gave it because the worker did not know that the URL
/// varies, or knew other headers. The client gets its variant through a call.
pub fn refuse_variant(
    identity: &Identity,
    coalescing: &mut Coalescing,
    calls: &mut Calls,
    stream: &EdgeRequest,
    wanted: Option<CanonicalTarget>,
) -> host::Result<Action> {
    let until = coalescing.now();
    let small = false;
    coalescing.end_flight(stream.id, FlightOutcome::Found { until, small });
    if stream.progress.request() == StoreRequest::StoreOnly {
        return refuse_not_stored(&*coalescing.host, identity, stream);
    }
    if stream.for_others {
        stream.progress.answered.set(true);
        coalescing
            .wakeups
            .answer(stream.id.0, DueReply::Complete(CompleteReply::outcome(204)));
        return Ok(Action::Pause);
    }
    let called = fetch_variant(calls, stream, wanted);
    await_call(
        &*coalescing.host,
        identity,
        stream,
        called.then_some(Metric::RequestsMiss),
    )
}

/// Holds ORIGIN's report that the store has just lost the object. The client gets the response to a call.
pub fn ask_again(
    identity: &Identity,
    calls: &mut Calls,
    stream: &EdgeRequest,
) -> host::Result<Action> {
    fetch_again(calls, stream);
    await_call(&*calls.host, identity, stream, Some(Metric::RequestsMiss))
}

/// Refuses a stored response that is too old for the policy, because the origin has failed (RFC 9111, 4.2.4).
fn refuse_expired(
    identity: &Identity,
    keys: &Keys,
    coalescing: &mut Coalescing,
    calls: &mut Calls,
    stream: &EdgeRequest,
    status: u16,
) -> host::Result<Action> {
    coalescing.turn(|coalescer, turn| {
        coalescer.origin_failed(stream.id, status, turn);
    });
    stream.progress.answered.set(true);
    stream.progress.account.results_in(account::FAILED);
    let error = FailedResponse::dropped(status);
    if substitutes::look_for_substitute(keys, calls, stream, error, None) {
        stream.body.hold_unwanted();
        return Ok(Action::Pause);
    }
    CompleteReply::failure(&identity.name, status, false)
        .explained(&stream.policy.policy)
        .send(&*coalescing.host)?;
    Ok(Action::Pause)
}
