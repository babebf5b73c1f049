// SPDX-License-Identifier: Apache-2.0
//! Responses that EDGE does not pass on, and the answers that replace them.

use crate::worker::identity::Identity;
use sluice_core::coalescing::StoreRequest;
use sluice_core::key::CanonicalTarget;
use sluice_core::metrics::Metric;
use sluice_core::workers::message::FlightOutcome;
use sluice_host::Host;

use crate::reply::complete_reply::CompleteReply;
use crate::reply::{DueReply, answer_mismatch, answer_not_stored};
use crate::request::EdgeRequest;
use crate::request::account::{self, result_of};
use crate::worker::Worker;
use crate::worker::own_requests::{
    mismatches,
    variants::{fetch_again, fetch_variant},
};
use sluice_host::{self as host, Action};

/// Refuses a request for the store only, because the store has no response that its client accepts.
pub fn refuse_not_stored(
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
    worker: &mut Worker,
    stream: &EdgeRequest,
    what: &str,
) -> host::Result<Action> {
    worker.metrics.count(Metric::KeyMismatches, 1);
    worker
        .metrics
        .warn(|| format!("sluice: the store gave {what}"));
    mismatches::avoid_the_store(worker, stream);
    if stream.progress.request() == StoreRequest::StoreOnly {
        return refuse_not_stored(&*worker.host, &worker.identity, stream);
    }
    // For a request that already bypasses the store, such a call would get the same response.
    let around = stream.progress.request().avoids_the_store();
    let called = !around && mismatches::fetch_around(worker, stream);
    await_call(
        &*worker.host,
        &worker.identity,
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
    worker: &mut Worker,
    stream: &EdgeRequest,
    wanted: Option<CanonicalTarget>,
) -> host::Result<Action> {
    let until = worker.host.monotonic_millis();
    let small = false;
    worker
        .coalescing
        .end_flight(stream.id, FlightOutcome::Found { until, small });
    if stream.progress.request() == StoreRequest::StoreOnly {
        return refuse_not_stored(&*worker.host, &worker.identity, stream);
    }
    if stream.for_others {
        stream.progress.answered.set(true);
        worker
            .coalescing
            .wakeups
            .answer(stream.id.0, DueReply::Complete(CompleteReply::outcome(204)));
        return Ok(Action::Pause);
    }
    let called = fetch_variant(worker, stream, wanted);
    await_call(
        &*worker.host,
        &worker.identity,
        stream,
        called.then_some(Metric::RequestsMiss),
    )
}

/// Holds ORIGIN's report that the store has just lost the object. The client gets the response to a call.
pub fn ask_again(worker: &mut Worker, stream: &EdgeRequest) -> host::Result<Action> {
    fetch_again(&*worker.host, &mut worker.calls, stream);
    await_call(
        &*worker.host,
        &worker.identity,
        stream,
        Some(Metric::RequestsMiss),
    )
}

/// Refuses a stored response that is too old for the policy, because the origin has failed (RFC 9111, 4.2.4).
pub fn refuse_expired(
    worker: &mut Worker,
    stream: &EdgeRequest,
    status: u16,
) -> host::Result<Action> {
    worker.coalescing.turn(|coalescer, turn| {
        coalescer.origin_failed(stream.id, status, turn);
    });
    stream.progress.answered.set(true);
    stream.progress.account.results_in(account::FAILED);
    CompleteReply::failure(&worker.identity.name, status, false).send(&*worker.host)?;
    Ok(Action::Pause)
}
