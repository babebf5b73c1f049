// SPDX-License-Identifier: Apache-2.0
//! What the filter answers by itself to a request that is paused.

pub mod delivery;
pub mod demand_reply;
pub mod hot_copy;
pub mod receipt;
pub mod substitute;

use std::rc::Rc;

use sluice_core::cache_status::CacheStatus;
use sluice_core::hot::HotCopy;
use sluice_core::key::Rejection;
use sluice_core::revalidation::Revalidation;

use crate::host::{self, Half};
use crate::request::EdgeRequest;
use demand_reply::BodilessReply;

/// Name of the response header of RFC 9211.
pub const CACHE_STATUS: &str = "cache-status";
/// `Cache-Status` of a response that is wanted from the store only, which does not have it.
pub const NOT_STORED: &str = "sluice; detail=only-if-cached";

/// The status by which a look at the store learns that it has something to be revalidated.
pub const EXPIRED: u16 = 412;
/// The status by which it learns that the store has nothing, and room for nothing.
pub const NO_ROOM: u16 = 507;

/// What a paused request is answered with.
#[derive(Clone, Debug)]
pub enum DueReply {
    /// ORIGIN: EDGE has not vouched for it.
    Unlinked,
    /// ORIGIN: it is only for the store, and the store does not have it.
    NotStored,
    /// ORIGIN: it only asks what the store has, which has nothing, and room for nothing.
    NoRoom,
    /// ORIGIN: it only asks what the store has, which has something to be revalidated.
    Expired,
    /// ORIGIN: the origin fails, and the store serves what it has.
    Keep(Rc<Revalidation>),
    /// ORIGIN: the store serves what it has as it is.
    Unwritten(Rc<Revalidation>),
    /// ORIGIN: nothing; the response that has begun is cut off.
    Reset,
    /// EDGE: what came of a request of the filter's own. The response's body may be on its way, and Envoy would
    /// bring it to a context that has gone if this came while the response's headers are handled.
    Outcome {
        /// 204, or 502 for nothing.
        status: u16,
    },
    /// EDGE: what a client who waits needs of a response whose body it does not need.
    Bodiless(BodilessReply),
    /// EDGE: a copy of the response that a client has waited for, which has not gone into the store.
    Copied(Rc<HotCopy>, Rc<EdgeRequest>, CacheStatus<'static>),
    /// EDGE: the error that the leader got.
    Failed {
        /// The leader's status.
        status: u16,
    },
}

impl DueReply {
    /// Answers the effective context's request.
    pub fn send(&self) -> host::Result<()> {
        const NO_STORE: &[(&str, &str)] = &[("cache-control", "no-store")];
        match self {
            Self::Unlinked => host::respond(403, "sluice_unlinked", NO_STORE, ""),
            Self::NotStored => host::respond(504, "sluice_not_stored", NO_STORE, ""),
            Self::NoRoom => host::respond(NO_ROOM, "sluice_no_room", NO_STORE, ""),
            Self::Expired => host::respond(EXPIRED, "sluice_expired", NO_STORE, ""),
            Self::Keep(revalidation) => {
                let headers = revalidation.keeping_headers();
                let headers = headers
                    .each_ref()
                    .map(|(name, value)| (*name, value.as_str()));
                host::respond(304, "sluice_kept", &headers, "")
            }
            Self::Unwritten(stored) => host::respond(
                304,
                "sluice_unwritten",
                &[("etag", &stored.unwritten())],
                "",
            ),
            Self::Reset => host::reset(Half::Response),
            Self::Outcome { status } => host::respond(*status, "sluice_outcome", &[], ""),
            Self::Bodiless(bodiless) => bodiless.send(),
            Self::Copied(copy, follower, way) => hot_copy::answer_follower(copy, follower, way),
            Self::Failed { status } => answer_failure(*status, true),
        }
    }
}

/// Answers the effective context's request, which goes no further.
pub fn answer_rejection(rejection: Rejection) -> host::Result<()> {
    let mut headers = vec![
        ("content-type", "text/plain; charset=utf-8"),
        (CACHE_STATUS, "sluice; detail=rejected"),
    ];
    if let Rejection::MethodNotAllowed { allow } = rejection {
        headers.push(("allow", allow));
    }
    let body = format!("{}\n", rejection.reason());
    host::respond(rejection.status(), rejection.name(), &headers, &body)
}

/// Answers the effective context's request with an error of the origin's or of the edge's own.
pub fn answer_failure(status: u16, collapsed: bool) -> host::Result<()> {
    let cache_status = if collapsed {
        "sluice; fwd=miss; collapsed"
    } else {
        "sluice; detail=unavailable"
    };
    let headers = [
        ("content-type", "text/plain; charset=utf-8"),
        ("cache-control", "no-store"),
        (CACHE_STATUS, cache_status),
    ];
    host::respond(
        status,
        "sluice_origin_failed",
        &headers,
        "The origin could not answer.\n",
    )
}

/// Answers the effective context's request, which is for the store only, and the store does not have what its client
/// would take (RFC 9111, 5.2.1.7).
pub fn answer_not_stored() -> host::Result<()> {
    let headers = [("cache-control", "no-store"), (CACHE_STATUS, NOT_STORED)];
    host::respond(504, "sluice_not_stored", &headers, "")
}
