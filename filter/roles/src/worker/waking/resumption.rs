// SPDX-License-Identifier: Apache-2.0
//! How a request leaves the waiting list and is sent to the store.

use crate::worker::coalescing::Coalescing;
use crate::worker::identity::Identity;
use crate::worker::keys::Keys;
use crate::worker::metrics::Metrics;
use crate::worker::roots::Roots;
use sluice_host::Host;
use std::rc::Rc;

use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_core::freshness::UncacheableReason;
use sluice_core::http::conditional::demand::Demand;
use sluice_core::key::vary::HeaderTooLong;
use sluice_core::metrics::Metric;
use sluice_core::workers::StreamId;
use sluice_core::workers::message::FlightOutcome;
use sluice_store::LINK_HEADER;

use crate::reply::DueReply;
use crate::reply::complete_reply::CompleteReply;
use crate::request::EdgeRequest;
use crate::request::account;
use crate::request::headers::{avoid_the_store, make_get, put_back};
use crate::worker::Worker;
use crate::worker::coalescing::wakeups::BATCH;
use crate::worker::own_requests::background;
use crate::worker::own_requests::indexes::{self, Approach};
use crate::worker::slices;
use sluice_host::{self as host, Half, Map};

/// Resumes a batch of the requests that have left the waiting list. The root context's next turn resumes the next
/// batch, so that the first responses are sent before the last requests continue.
pub fn resume_some(worker: &mut Worker) {
    for _ in 0..BATCH {
        let Some((stream, next_step)) = worker.coalescing.wakeups.next_resume() else {
            return;
        };
        let resumed = resume(worker, stream, next_step);
        worker.metrics.check(resumed);
        worker.carry_out_effects();
    }
}

fn resume(worker: &mut Worker, id: StreamId, next_step: NextStep) -> host::Result<()> {
    let Some(stream) = worker.coalescing.requests.get(id) else {
        return Ok(());
    };
    let next_step = match next_step {
        NextStep::Varies => {
            let Worker {
                roots,
                coalescing,
                identity,
                keys,
                ..
            } = worker;
            let (stream, next_step, failure) =
                admit_as_variant(identity, keys, roots, coalescing, stream);
            return failure.and(go_on(worker, &stream, next_step));
        }
        NextStep::Unneeded => {
            end_unneeded(&mut worker.coalescing, &stream);
            return Ok(());
        }
        NextStep::Send(StoreRequest::Slice) => {
            approach(worker, &stream).or_admit(&mut worker.coalescing, &stream)
        }
        // Another request may have begun to lead while this one waited for the lookup.
        NextStep::Send(StoreRequest::Alone) if stream.sizes_next() => {
            worker.coalescing.admit(&stream)
        }
        next_step => Some(next_step),
    };
    let leads = next_step == Some(NextStep::Send(StoreRequest::Lead));
    let next_step = match leads && yields(worker, &stream) {
        true => approach(worker, &stream).or_admit(&mut worker.coalescing, &stream),
        false => next_step,
    };
    go_on(worker, &stream, next_step)
}

/// Decides on the way of a request to an object that may be served in slices.
pub fn approach(worker: &mut Worker, stream: &EdgeRequest) -> Approach {
    let Worker {
        roots,
        coalescing,
        calls,
        identity,
        keys,
        slices,
        ..
    } = worker;
    indexes::approach(identity, keys, slices, roots, coalescing, calls, stream)
}

/// Ends the flight of a leader whose object another worker has found to be served in slices. That worker sends the
/// index in front of the release of its lease, so the index is in the queue when the leader gets the lease.
pub fn yields(worker: &mut Worker, stream: &EdgeRequest) -> bool {
    if !stream.may_be_sliced() {
        return false;
    }
    let object = worker.keys.object_hash(stream.target.cache_key());
    if worker.slices.peek(object).is_some() {
        return false;
    }
    worker.read_ahead();
    let is_sliced = worker.slices.is_sliced(object);
    if is_sliced {
        let outcome = FlightOutcome::Sliced;
        worker.coalescing.end_flight(stream.id, outcome);
    }
    is_sliced
}

/// Lets a parked request continue, unless it waits for a call first.
fn go_on(
    worker: &mut Worker,
    stream: &EdgeRequest,
    next_step: Option<NextStep>,
) -> host::Result<()> {
    let Some(next_step) = next_step.and_then(|next_step| {
        background::ready(
            &worker.roots,
            &mut worker.coalescing,
            &mut worker.calls,
            stream,
            next_step,
        )
    }) else {
        return Ok(());
    };
    worker.roots.act_as(stream.id.0)?;
    let sent = send(worker, stream, next_step);
    // Resumes even after an error, because a request must not stay parked.
    let resumed = worker.host.resume(Half::Request);
    sent.and(resumed)
}

/// Admits a request again under the key of its variant, after its URL has proved to vary. Returns its new record, its
/// next step, and the failure to change its headers.
fn admit_as_variant(
    identity: &Identity,
    keys: &mut Keys,
    roots: &Roots,
    coalescing: &mut Coalescing,
    stream: Rc<EdgeRequest>,
) -> (Rc<EdgeRequest>, Option<NextStep>, host::Result<()>) {
    let (stream, next_step, failure) = match retarget(identity, keys, roots, coalescing, &stream) {
        Ok(Ok(stream)) => {
            let next_step = coalescing.admit(&stream);
            (stream, next_step, Ok(()))
        }
        again => {
            let next_step = NextStep::HitForMiss(UncacheableReason::Vary);
            (stream, Some(next_step), again.map(drop))
        }
    };
    let ends = stream.for_others
        && next_step.is_some_and(|next_step| next_step != NextStep::Send(StoreRequest::Lead));
    if ends {
        end_unneeded(coalescing, &stream);
    }
    (stream, next_step.filter(|_| !ends), failure)
}

/// Ends a background fill that no request needs any more.
fn end_unneeded(coalescing: &mut Coalescing, fill: &EdgeRequest) {
    fill.progress.answered.set(true);
    coalescing
        .wakeups
        .answer(fill.id.0, DueReply::Complete(CompleteReply::outcome(204)));
}

/// Makes a new record of the request, under the key of its variant.
fn retarget(
    identity: &Identity,
    keys: &mut Keys,
    roots: &Roots,
    coalescing: &mut Coalescing,
    stream: &EdgeRequest,
) -> host::Result<Result<Rc<EdgeRequest>, HeaderTooLong>> {
    roots.act_as(stream.id.0)?;
    let headers = coalescing.host.headers(Map::Request)?;
    let mut target = stream.target.unqualified();
    keys.qualify_generation(&stream.policy.policy, &mut target);
    if let Err(too_long) = keys.qualify(&stream.policy.policy, &mut target, &headers) {
        return Ok(Err(too_long));
    }
    if stream.authenticated && keys.varies_with_credentials(&target) {
        return Ok(Err(HeaderTooLong));
    }
    if stream.head && stream.has_been_looked_up() {
        target = target.for_headers();
    }
    let path = identity.store_path(&target);
    coalescing.host.set_header(Map::Request, ":path", &path)?;
    let key = keys.flight_key(&target);
    let (policy, cache_key) = (&stream.policy.policy, target.cache_key());
    let own_headers = identity.own_headers(policy, cache_key, &headers);
    let selecting = target.is_stored_plainly().then(|| Rc::new(headers));
    let stream = Rc::new(EdgeRequest {
        own_headers,
        selecting,
        ..stream.retargeted(key, Rc::new(target))
    });
    coalescing.requests.open(&stream);
    Ok(Ok(stream))
}

/// Sets the headers with which the effective context's request continues.
pub fn send(worker: &mut Worker, stream: &EdgeRequest, next_step: NextStep) -> host::Result<()> {
    let Some(request) = next_step.request() else {
        return Ok(());
    };
    stream.progress.next_step.set(Some(next_step));
    if request == StoreRequest::Lead {
        stream.progress.account.leads();
    }
    // `add`, not `set`: the header cannot exist yet, and `set` would make Envoy build its header index to find out.
    let site = &stream.policy.policy.site.name;
    let link = worker.identity.vouching.encode(stream.link(), site);
    worker.host.add_header(Map::Request, LINK_HEADER, &link)?;
    if request == StoreRequest::Slice {
        return indexes::send(&*worker.host, &worker.metrics, stream);
    }
    if slices::must_validate(&worker.keys, &worker.slices, stream) {
        stream.progress.forced.set(true);
        worker
            .host
            .set_header(Map::Request, "cache-control", "no-cache")?;
    } else if matches!(
        request,
        StoreRequest::Lead | StoreRequest::Alone | StoreRequest::Unshared
    ) && worker
        .keys
        .must_revalidate(stream.target.cache_key(), stream.key.key)
    {
        stream.progress.forced.set(true);
        worker.metrics.count(Metric::PurgeRevalidations, 1);
        worker
            .host
            .set_header(Map::Request, "cache-control", "no-cache")?;
    }
    if request != StoreRequest::Bypass {
        worker
            .room
            .look(&*worker.host, worker.host.monotonic_millis())?;
    }
    match request {
        StoreRequest::Bypass => ask_around(&*worker.host, &worker.metrics, stream, next_step),
        // Neither a stored response nor a validation of it is valid for these credentials.
        StoreRequest::Unshared if stream.authenticated => {
            worker
                .host
                .set_header(Map::Request, "cache-control", "no-cache")
        }
        StoreRequest::Refresh => worker
            .host
            .set_header(Map::Request, "cache-control", "no-cache"),
        // The store fills from GET only; Envoy sends no body to a client that sent HEAD.
        _ if stream.target.is_for_headers() => make_get(&*worker.host),
        StoreRequest::Lead if stream.head => make_get(&*worker.host),
        _ => Ok(()),
    }
}

/// Restores the conditions and the range of the effective context's request, and keeps the request from the store.
fn ask_around(
    host: &dyn Host,
    metrics: &Metrics,
    stream: &EdgeRequest,
    next_step: NextStep,
) -> host::Result<()> {
    let account = &stream.progress.account;
    let result = match next_step {
        NextStep::HitForMiss(reason) => {
            let counted = stream.counts.then_some(reason);
            metrics.count_uncacheable(&stream.policy, counted);
            account.is_not_stored(reason);
            Some(Metric::RequestsHitForMiss)
        }
        NextStep::NoRoom => Some(Metric::RequestsMiss),
        _ => None,
    };
    if let Some(result) = result {
        if stream.counts {
            metrics.count_of(&stream.policy, result);
        }
        account.results_in(account::result_of(result));
    }
    let demand = stream.demand.as_ref();
    demand.map_or(Ok(()), |demand| put_back(host, demand))?;
    avoid_the_store(host, demand.is_some_and(Demand::has_if_range))
}
