// SPDX-License-Identifier: Apache-2.0
//! The socket at which the filter has the purges of its callers written to the feed.

use std::io;
use std::path::Path;

use sluice_core::purge::FeedPurge;
use ureq::http::StatusCode;

use super::gathering::{Gathering, Outcome, WriteError};
use super::way::FeedWay;
use super::writer::{FeedFailure, FeedWriter};
use crate::net::local_socket::{self, Answer, LocalSocket};

/// Writes purges for the filter, by this way, on a new socket in `state`, until the socket is dropped.
///
/// # Errors
/// The socket cannot be bound.
pub fn serve(way: impl FeedWay + Send + 'static, state: &Path) -> io::Result<LocalSocket> {
    let gathering = Gathering::start(move |purges| write(&way, &purges))?;
    local_socket::serve("feed", state, move |call| answer(&call.body, &gathering))
}

/// Writes purges to the feed.
fn write(way: &dyn FeedWay, purges: &[FeedPurge]) -> Outcome {
    let written = FeedWriter(way).append(purges);
    let position = written.map_err(|error| WriteError {
        may_pass: error.downcast_ref().is_none_or(FeedFailure::may_pass),
        reason: format!("{error:#}"),
    })?;
    Ok(position.number)
}

/// 200 with the number of the feed's line up to which the purges are applied; or else the reason for which they are not in
/// the feed: 502 if the bucket refuses, 503 if a retry may succeed.
fn answer(body: &[u8], gathering: &Gathering) -> Answer {
    let Some(purges) = read(body) else {
        let reason = "expected lines of a purge feed, without numbers and times";
        return (StatusCode::BAD_REQUEST, reason.to_owned());
    };
    let Some(outcome) = gathering.add(purges) else {
        let reason = "too many purges wait for the purge feed";
        return (StatusCode::SERVICE_UNAVAILABLE, reason.to_owned());
    };
    match outcome.recv() {
        Ok(Ok(number)) => (StatusCode::OK, number.to_string()),
        Ok(Err(WriteError { may_pass, reason })) => match may_pass {
            true => (StatusCode::SERVICE_UNAVAILABLE, reason),
            false => (StatusCode::BAD_GATEWAY, reason),
        },
        Err(_) => {
            let reason = "the writer of the purge feed has ended";
            (StatusCode::SERVICE_UNAVAILABLE, reason.to_owned())
        }
    }
}

fn read(body: &[u8]) -> Option<Vec<FeedPurge>> {
    let lines = std::str::from_utf8(body).ok()?.lines();
    let purges: Option<Vec<_>> = lines.map(FeedPurge::parse).collect();
    purges.filter(|purges| !purges.is_empty())
}
