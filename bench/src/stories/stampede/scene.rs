// SPDX-License-Identifier: Apache-2.0
//! The situations, and who asks in them.

use super::{ORIGIN, SIZE, UPDATING};
use crate::contenders::Kind;
use sluice_tests::origin::Reply;
use std::fmt;
use std::time::Duration;

/// A situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// So many clients at once, nothing stored.
    Cold(usize),
    /// An object that is fresh for a second, under load.
    Expiring,
    /// The origin says `private`: nobody has anything of waiting.
    Uncacheable,
    /// The body comes in pieces over half a second.
    SlowLeader,
    /// The origin answers 500 throughout.
    Failing,
    /// The first client leaves before its answer.
    LeaderLeaves,
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cold(clients) => write!(f, "cold, {clients} clients"),
            Self::Expiring => f.write_str("expiring"),
            Self::Uncacheable => f.write_str("uncacheable"),
            Self::SlowLeader => f.write_str("slow leader"),
            Self::Failing => f.write_str("origin fails"),
            Self::LeaderLeaves => f.write_str("leader leaves"),
        }
    }
}

impl Scene {
    /// All; the last is one that not everyone survives.
    pub fn all(quick: bool) -> Vec<Self> {
        let crowds: &[usize] = if quick { &[100] } else { &[1, 10, 100, 1_000] };
        let cold = crowds.iter().copied().map(Self::Cold);
        let others = [
            Self::Expiring,
            Self::Uncacheable,
            Self::SlowLeader,
            Self::Failing,
            Self::LeaderLeaves,
        ];
        cold.chain(others).collect()
    }

    /// Whether it tells anything of this one: what is served stale must have expired.
    pub fn concerns(self, kind: Kind) -> bool {
        self == Self::Expiring || ![UPDATING, Kind::SluiceStale].contains(&kind)
    }

    pub fn reply(self) -> Reply {
        let object = Reply::ok(SIZE).max_age(3_600).delay(ORIGIN);
        match self {
            Self::Cold(_) => object,
            Self::Expiring => Reply::ok(SIZE).max_age(1).etag("v1").delay(ORIGIN),
            Self::Uncacheable => Reply::ok(SIZE)
                .header("cache-control", "private")
                .delay(ORIGIN),
            Self::SlowLeader => {
                let pace = Duration::from_millis(50);
                Reply::ok(SIZE).max_age(3_600).pace(SIZE / 10, pace)
            }
            Self::Failing => Reply::status(500).delay(ORIGIN),
            Self::LeaderLeaves => object.delay(3 * ORIGIN),
        }
    }

    /// The status that is in order.
    pub const fn status(self) -> u16 {
        match self {
            Self::Failing => 500,
            _ => 200,
        }
    }
}
