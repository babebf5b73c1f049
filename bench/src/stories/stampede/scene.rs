// SPDX-License-Identifier: Apache-2.0
//! The situations, and their clients.

use super::{ORIGIN, SIZE, UPDATING};
use crate::contenders::Kind;
use sluice_tests::origin::Reply;
use std::fmt;
use std::time::Duration;

/// A situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// This many clients at once, with an empty cache.
    Cold(usize),
    /// An object that is fresh for a second, under load.
    Expiring,
    /// The origin sends `private`, so waiting does not help a client.
    Uncacheable,
    /// The body arrives in pieces over half a second.
    SlowLeader,
    /// The origin answers with status 500 throughout.
    Failing,
    /// This many followers wait for a leader; times are from the origin's response.
    Followers(usize),
    /// The first client leaves before its response.
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
            Self::Followers(followers) => write!(f, "{followers} followers"),
            Self::LeaderLeaves => f.write_str("leader leaves"),
        }
    }
}

impl Scene {
    /// All scenes; the last one is a scene that not every contender survives.
    pub fn all(quick: bool) -> Vec<Self> {
        let crowds: &[usize] = if quick { &[100] } else { &[1, 10, 100, 1_000] };
        let cold = crowds.iter().copied().map(Self::Cold);
        let others = [
            Self::Expiring,
            Self::Uncacheable,
            Self::SlowLeader,
            Self::Failing,
            Self::Followers(200),
            Self::LeaderLeaves,
        ];
        cold.chain(others).collect()
    }

    /// Whether the scene applies to this contender: to serve stale, an object must have expired.
    pub fn concerns(self, kind: Kind) -> bool {
        self == Self::Expiring || ![UPDATING, Kind::SluiceStale].contains(&kind)
    }

    pub fn reply(self) -> Reply {
        let object = Reply::ok(SIZE).max_age(3_600).delay(ORIGIN);
        match self {
            Self::Cold(_) => object,
            Self::Followers(_) => Reply::ok(SIZE).max_age(3_600),
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

    /// The expected status.
    pub const fn status(self) -> u16 {
        match self {
            Self::Failing => 500,
            _ => 200,
        }
    }
}
