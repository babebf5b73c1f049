// SPDX-License-Identifier: Apache-2.0
//! What EDGE makes of a response to a request of the filter's own, which no client gets.

use crate::worker::identity::Identity;
use crate::worker::keys::Keys;
use std::rc::Rc;

use sluice_core::coalescing::learnt::hints::Hint;
use sluice_core::http::caching::cache_status::CacheStatus;
use sluice_core::http::conditional::demand::Demand;
use sluice_store::Served;
use sluice_store::StoredFields;

use super::{respond_cached, served_to};
use crate::reply::DueReply;
use crate::reply::delivery::bodiless;
use crate::request::EdgeRequest;
use crate::request::body::Passing;
use crate::worker::Worker;
use sluice_host::{self as host, Action, Host, Map};

/// Handles the response to a background fill: its followers hear of it, and nobody gets its body.
pub fn respond_filled(worker: &mut Worker, stream: &Rc<EdgeRequest>) -> host::Result<Action> {
    let shared = shared(&*worker.host, &worker.identity, &worker.keys, stream)?;
    let action = respond_cached(worker, stream)?;
    if stream.progress.answered.get() {
        return Ok(action);
    }
    if let Some((status, way)) = shared {
        answer_followers(worker, stream, status, &way)?;
    }
    if stream.progress.fragile.get() {
        return drain(&*worker.host, stream);
    }
    Ok(end_own(worker, stream, 204))
}

/// The status of the origin's response to a fill that the store takes, and the `Cache-Status` of its followers.
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
    // Who waits for one of several responses of a URL may want another.
    let taken = |served: &Served<'_>| {
        let all = served.entry.key == stream.target.cache_key();
        all && served.own && served.entry.stored && served.failure.is_none()
    };
    let served = served.filter(taken);
    Ok(served.map(|served| (served.entry.status, served.collapsed_cache_status())))
}

/// Answers the followers of a fill at its headers that need no body of it.
fn answer_followers(
    worker: &mut Worker,
    stream: &EdgeRequest,
    status: u16,
    way: &CacheStatus<'_>,
) -> host::Result<()> {
    let headers = worker.host.headers(Map::Response)?;
    let way = way.member_of(&worker.identity.name);
    let answer = |demand: &Demand| Some(bodiless(demand, status, &headers)?.described(&way));
    worker.answer_followers(stream, answer);
    Ok(())
}

/// Handles the response to a refresh. Nobody wants its body, but a fill must come to its end.
pub fn respond_refreshed(worker: &mut Worker, stream: &Rc<EdgeRequest>) -> host::Result<Action> {
    let headers = worker.host.headers(Map::Response)?;
    let fields = StoredFields::of(headers.fields());
    let served = fields.entry().map(|entry| {
        served_to(
            &*worker.host,
            &worker.identity,
            &worker.keys,
            stream,
            entry,
            &fields,
        )
    });
    // That the store has no room is no failure of the origin.
    let lacks_room = served
        .as_ref()
        .is_some_and(|served| served.entry.lacks_room());
    let stored = served.filter(|served| served.own && served.entry.stored);
    if let Some(stored) = &stored {
        worker
            .keys
            .drop_hot_copy(stream.policy.site, stream.target.cache_key());
        worker.turn(stream.id.0, |coalescer, turn| {
            let until = turn.now.saturating_add(stored.served_for);
            coalescer.hints().set(stream.key.key, Hint::Fresh, until);
        });
    }
    if stored
        .as_ref()
        .is_some_and(|served| !served.entry.revalidated)
    {
        return drain(&*worker.host, stream);
    }
    // The origin has not failed, and is asked for the whole object the next time.
    let again = stream.progress.take_loss();
    let status = if stored.is_some() || lacks_room || again {
        204
    } else {
        502
    };
    Ok(end_own(worker, stream, status))
}

/// Ends a request of the filter's own at the root context's next turn.
fn end_own(worker: &mut Worker, stream: &EdgeRequest, status: u16) -> Action {
    stream.progress.answered.set(true);
    worker.answer_later(stream.id.0, DueReply::Outcome { status });
    Action::Pause
}

/// Lets a fill go on to its end, and gives nobody its body.
fn drain(host: &dyn Host, stream: &EdgeRequest) -> host::Result<Action> {
    host.set_header(Map::Response, ":status", "200")?;
    host.remove_header(Map::Response, "content-length")?;
    stream.body.passing.set(Passing::Nothing);
    Ok(Action::Continue)
}
