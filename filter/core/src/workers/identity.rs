// SPDX-License-Identifier: Apache-2.0
//! The numbers that identify workers, requests, flights and keys.

use std::time::Duration;

/// Keyed hash of a canonical cache key. If two keys have the same hash, their requests wait for each other; there is
/// no other effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub u64);

/// Keyed hash of the headers that a request sends to the origin beside those of its key. The origin's response may
/// depend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnHeaders(pub u64);

impl OwnHeaders {
    /// No such headers: the origin gets only those of the key.
    pub const NONE: Self = Self(0);
    /// Possibly some headers, which were not hashed.
    pub const UNKNOWN: Self = Self(1);

    /// Headers with that hash.
    pub const fn of(hash: KeyHash) -> Self {
        Self(hash.0 | 2)
    }

    /// Whether the request has no such headers.
    pub const fn is_none(self) -> bool {
        self.0 == Self::NONE.0
    }
}

/// Number of a worker's VM. It is not used again after the VM has died.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u16);

/// Number of a request within its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

/// Milliseconds of a monotonic clock that all workers of the process share.
pub type Millis = u64;

/// The whole milliseconds of a duration.
pub fn millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX)
}

/// A period in which a worker has the leader of a key. It includes all leaders of that worker in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlightId {
    /// The worker of the leader.
    pub worker: WorkerId,
    /// Sequence number among this worker's flights.
    pub sequence: u32,
}

/// Identifies one of the bodies that are stored under one key in the course of time. A revalidation keeps the body,
/// and so its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyId(pub u64);
