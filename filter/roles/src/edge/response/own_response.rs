// SPDX-License-Identifier: Apache-2.0
//! Responses to requests of the filter, which no client gets.

use crate::worker::coalescing::Coalescing;
use crate::worker::identity::Identity;
use crate::worker::keys::Keys;
use std::rc::Rc;

use sluice_core::coalescing::learnt::hints::Hint;
use sluice_core::http::caching::cache_status::CacheStatus;
use sluice_core::http::conditional::demand::Demand;
use sluice_core::http::conditional::range::Part;
use sluice_store::Served;
use sluice_store::StoredFields;

use super::{respond_cached, served_to};
use crate::reply::DueReply;
use crate::reply::complete_reply::CompleteReply;
use crate::reply::delivery::bodiless;
use crate::request::EdgeRequest;
use crate::worker::Worker;
use sluice_host::{self as host, Action, Host, Map};

/// Handles the response to a background fill: its followers are informed, and no client gets its body.
pub fn respond_filled(worker: &mut Worker, stream: &Rc<EdgeRequest>) -> host::Result<Action> {
    let shared = shared(&*worker.host, &worker.identity, &worker.keys, stream)?;
    // The caller of a fetch of a written object counts errors.
    let status = worker.host.header_number(Map::Response, ":status")?;
    let failed = stream.is_for_created && status.is_none_or(|status| status >= 400);
    let action = respond_cached(worker, stream)?;
    if stream.progress.answered.get() {
        return Ok(action);
    }
    if let Some((status, way)) = shared {
        answer_followers(
            &*worker.host,
            &worker.identity,
            &mut worker.coalescing,
            stream,
            status,
            &way,
        )?;
    }
    if stream.progress.fragile.get() && !failed {
        return drain(&*worker.host, stream);
    }
    let status = if failed { 502 } else { 204 };
    Ok(end_own(&mut worker.coalescing, stream, status))
}

/// The status of the origin's response to a fill that is stored, and the `Cache-Status` of its followers.
fn shared(
    host: &dyn Host,
    identity: &Identity,
    keys: &Keys,
    stream: &EdgeRequest,
) -> host::Result<Option<(u16, CacheStatus<'static>)>> {
    let headers = host.headers(Map::Response)?;
    let fields = StoredFields::of(headers.fields());
    let served = fields
        .entry()
        .map(|entry| served_to(host, identity, keys, stream, entry, &fields));
    // A request that waits for one of several responses of a URL may want another one.
    let taken = |served: &Served<'_>| {
        let all = served.entry.key == stream.target.cache_key();
        all && served.own && served.entry.stored && served.failure.is_none()
    };
    let served = served.filter(taken);
    Ok(served.map(|served| (served.entry.status, served.collapsed_cache_status())))
}

/// Answers the followers of a fill that need no body, when its headers arrive.
fn answer_followers(
    host: &dyn Host,
    identity: &Identity,
    coalescing: &mut Coalescing,
    stream: &EdgeRequest,
    status: u16,
    way: &CacheStatus<'_>,
) -> host::Result<()> {
    let headers = host.headers(Map::Response)?;
    let way = way.member_of(&identity.name);
    let answer = |demand: &Demand| Some(bodiless(demand, status, &headers)?.described(&way));
    coalescing.answer_followers(stream, answer);
    Ok(())
}

/// Handles the response to a refresh. No client needs its body, but a fill must reach its end.
pub fn respond_refreshed(
    identity: &Identity,
    keys: &mut Keys,
    coalescing: &mut Coalescing,
    stream: &Rc<EdgeRequest>,
) -> host::Result<Action> {
    let headers = coalescing.host.headers(Map::Response)?;
    let fields = StoredFields::of(headers.fields());
    let served = fields
        .entry()
        .map(|entry| served_to(&*coalescing.host, identity, keys, stream, entry, &fields));
    // A lack of room in the store is not a failure of the origin.
    let lacks_room = served
        .as_ref()
        .is_some_and(|served| served.entry.lacks_room());
    let stored = served.filter(|served| served.own && served.entry.stored);
    if let Some(stored) = &stored {
        keys.drop_hot_copy(stream.policy.site, stream.target.cache_key());
        coalescing.turn(|coalescer, turn| {
            let until = turn.now.saturating_add(stored.served_for);
            coalescer.hints().set(stream.key.key, Hint::Fresh, until);
        });
    }
    if stored
        .as_ref()
        .is_some_and(|served| !served.entry.revalidated)
    {
        return drain(&*coalescing.host, stream);
    }
    // The origin has not failed. The next refresh asks it for the whole object.
    let again = stream.progress.take_loss();
    let status = if stored.is_some() || lacks_room || again {
        204
    } else {
        502
    };
    Ok(end_own(coalescing, stream, status))
}

/// Ends a request of the filter in the root context's next turn.
fn end_own(coalescing: &mut Coalescing, stream: &EdgeRequest, status: u16) -> Action {
    stream.progress.answered.set(true);
    coalescing.wakeups.answer(
        stream.id.0,
        DueReply::Complete(CompleteReply::outcome(status)),
    );
    Action::Pause
}

/// Lets a fill continue to its end, and drops its body.
fn drain(host: &dyn Host, stream: &EdgeRequest) -> host::Result<Action> {
    host.set_header(Map::Response, ":status", "200")?;
    host.remove_header(Map::Response, "content-length")?;
    stream.body.pass_only(Part::Nothing);
    Ok(Action::Continue)
}
