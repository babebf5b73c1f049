// SPDX-License-Identifier: Apache-2.0
//! The response to a range that was sent to the origin ahead of the fill of its object, and its copy for equal
//! ranges.

use crate::worker::identity::Identity;
use std::rc::Rc;

use sluice_core::http::caching::cache_status::{CacheStatus, Forward};
use sluice_core::http::syntax::field_value::FieldValue;

use crate::edge::hot::common;
use crate::reply::complete_reply::CompleteReply;
use crate::reply::delivery::deliver;
use crate::reply::{CACHE_STATUS, DueReply};
use crate::request::EdgeRequest;
use crate::request::account;
use crate::request::body::PartCopy;
use crate::worker::Worker;
use crate::worker::own_requests::ahead::{MOST_SHARED_BYTES, share_nothing};
use sluice_host::headers::{Headers, extend};
use sluice_host::{self as host, Action, Map};

/// The detail of such a response in `Cache-Status`.
pub const DETAIL: &str = "range-ahead";

/// Turns the response into the one that its client demands, because the origin sends a 200 if the object has changed.
/// Not every origin obeys `If-Range`. A client that has a part of one version must not get a part of another.
pub fn respond(worker: &mut Worker, stream: &Rc<EdgeRequest>, status: u16) -> host::Result<Action> {
    let headers = worker.host.headers(Map::Response)?;
    let ahead_of = stream.progress.ahead_of.borrow().clone();
    let etag = ahead_of
        .as_ref()
        .map(|representation| representation.etag());
    let wanted = status == 206 && headers.get("etag") == etag.map(FieldValue::from);
    if status == 206 && !wanted && stream.is_for_one_version() {
        stream.progress.answered.set(true);
        stream.progress.account.results_in(account::FAILED);
        CompleteReply::failure(&worker.identity.name, 502, false).send(&*worker.host)?;
        return Ok(Action::Pause);
    }
    if wanted && stream.progress.shares.get() && may_share(&headers) {
        let copy = copy_of(&worker.identity, stream, &headers);
        stream.body.part.replace(Some(copy));
    } else {
        share_nothing(worker, stream);
    }
    deliver(&*worker.host, stream, status, true, None)
}

/// Whether other clients may get the response. The fill determines how long the object is fresh.
fn may_share(headers: &Headers) -> bool {
    const FORBIDDING: [&str; 3] = ["private", "no-store", "no-cache"];
    let control = headers.joined("cache-control");
    let control = control.as_ref().map(|joined| joined.value().text());
    let Ok(control) = control.unwrap_or(Ok("")) else {
        return false;
    };
    let control = control.to_ascii_lowercase();
    let length = headers.content_length();
    let small = length.is_some_and(|length| length <= MOST_SHARED_BYTES);
    small && !headers.has("set-cookie") && !FORBIDDING.iter().any(|word| control.contains(word))
}

/// A copy of the response, without the body yet.
fn copy_of(identity: &Identity, stream: &EdgeRequest, headers: &Headers) -> PartCopy {
    let status = CacheStatus::forwarded(Forward::UriMiss).forward_status(206);
    let status = status.collapsed().detail(DETAIL);
    let status = status.member_of(&identity.name);
    let age = headers.get("age").map(|age| ("age", age.bytes()));
    let own = age.into_iter().chain([(CACHE_STATUS, status.as_bytes())]);
    PartCopy {
        headers: extend(
            &common(headers, stream.policy.policy.website.cors.is_some()),
            own,
        ),
        typed: headers.has("content-type"),
        body: Vec::new(),
    }
}

/// Copies a part of `size` bytes of the body that passes. At its end, sends the copy to the requests that wait with
/// an equal range.
pub fn take_body(worker: &mut Worker, stream: &EdgeRequest, size: usize, ends: bool) {
    let Some(mut copy) = stream.body.part.take() else {
        return;
    };
    if size > 0 {
        match worker.host.response_body(0..size) {
            Ok(bytes) => copy.body.extend(bytes),
            Err(error) => {
                worker.metrics.fault("a response was not copied", error);
                share_nothing(worker, stream);
                return;
            }
        }
    }
    if !ends {
        stream.body.part.replace(Some(copy));
        return;
    }
    stream.progress.shares.set(false);
    let copy = Rc::new(copy);
    worker.coalescing.answer_alike(stream, |follower| {
        let equal = follower.is_for_plain_part() && follower.demand == stream.demand;
        equal.then(|| {
            follower.progress.answered_untyped.set(!copy.typed);
            DueReply::Part(Rc::clone(&copy))
        })
    });
}
