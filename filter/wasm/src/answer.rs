// SPDX-License-Identifier: Apache-2.0
//! What the filter answers by itself to a request that is paused.

use std::rc::Rc;

use sluice_core::hot::HotCopy;
use sluice_core::http::cache_status::CacheStatus;

use crate::delivery::Bodiless;
use crate::edge;
use crate::host::{self, Half};
use crate::hot;
use crate::revalidation::Revalidation;
use crate::stream::Stream;

/// The status by which a look at the store learns that it has something to be revalidated.
pub const EXPIRED: u16 = 412;
/// The status by which it learns that the store has nothing, and room for nothing.
pub const NO_ROOM: u16 = 507;

/// What a paused request is answered with.
#[derive(Clone, Debug)]
pub enum Answer {
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
    Bodiless(Bodiless),
    /// EDGE: a copy of the response that a client has waited for, which has not gone into the store.
    Copied(Rc<HotCopy>, Rc<Stream>, CacheStatus<'static>),
    /// EDGE: the error that the leader got.
    Failed {
        /// The leader's status.
        status: u16,
    },
}

impl Answer {
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
            Self::Copied(copy, follower, way) => hot::answer_follower(copy, follower, way),
            Self::Failed { status } => edge::answer_failure(*status, true),
        }
    }
}
