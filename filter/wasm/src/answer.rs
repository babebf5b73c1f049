// SPDX-License-Identifier: Apache-2.0
//! What the filter answers by itself to a request that is paused.

use crate::edge;
use crate::host::{self, Half};

/// What a paused request is answered with.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// ORIGIN: EDGE has not vouched for it.
    Unlinked,
    /// ORIGIN: it only asked whether the store has the object, and the store has not.
    ProbeMissed,
    /// ORIGIN: the origin does not answer.
    Stalled,
    /// ORIGIN: nothing; the response that has begun is cut off.
    Reset,
    /// EDGE: the error that the leader got.
    Failed {
        /// The leader's status.
        status: u16,
    },
}

impl Answer {
    /// Answers the effective context's request.
    pub fn send(self) -> host::Result<()> {
        const NO_STORE: &[(&str, &str)] = &[("cache-control", "no-store")];
        match self {
            Self::Unlinked => host::respond(403, "sluice_unlinked", NO_STORE, ""),
            Self::ProbeMissed => host::respond(504, "sluice_probe_missed", NO_STORE, ""),
            Self::Stalled => host::respond(504, "sluice_origin_stalled", NO_STORE, ""),
            Self::Reset => host::reset(Half::Response),
            Self::Failed { status } => edge::answer_failure(status, true),
        }
    }
}
