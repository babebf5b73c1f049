// SPDX-License-Identifier: Apache-2.0
//! The numbers by which workers, requests, flights and keys are known.

/// Keyed hash of a canonical cache key. Two keys with one hash wait for each other, no more than that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub u64);

/// Keyed hash of the headers that a request takes to the origin beside those of its key, which may be the reason for what
/// the origin answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnHeaders(pub u64);

impl OwnHeaders {
    /// There are no such headers: the origin is asked with nothing but the key.
    pub const NONE: Self = Self(0);
    /// There may be some, at which nobody has looked.
    pub const UNKNOWN: Self = Self(1);

    /// Some, with that hash.
    pub const fn of(hash: KeyHash) -> Self {
        Self(hash.0 | 2)
    }

    /// Whether there are no such headers.
    pub const fn is_none(self) -> bool {
        self.0 == Self::NONE.0
    }
}

/// Number of a worker's VM, never used again after the VM has died.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u16);

/// Number of a request within its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

/// Milliseconds of a monotonic clock that all workers of the process share.
pub type Millis = u64;

/// One time that a worker has the lead of a key, whichever of its requests leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlightId {
    /// The worker that leads.
    pub worker: WorkerId,
    /// Counts this worker's flights.
    pub sequence: u32,
}

/// Tells apart the bodies that are stored under one key. A revalidation keeps the body, and so its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyId(pub u64);
