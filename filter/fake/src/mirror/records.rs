// SPDX-License-Identifier: Apache-2.0
//! Requests and fetches, as tests see them.

use sluice_core::coalescing::{Admission, Release};
use sluice_core::link::Purpose;
use sluice_core::workers::{FlightId, KeyHash, Millis};

/// For how long a key counts as uncacheable after a response that was.
pub const HIT_FOR_MISS: Millis = 120_000;
/// For how long what is stored is served from an error of the origin's on.
pub const STALE_IF_ERROR: Millis = 600_000;

/// A flight on the board: its key, its number, the end of its lease.
pub type Lease = (KeyHash, FlightId, Millis);

/// A request, by position in [`FakeHost::clients`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Client(pub usize);

/// A request at the origin, by position in [`FakeHost::fetches`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FetchId(pub usize);

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// On the waiting list.
    Parked,
    /// Let go, and about to ask the store.
    Resumed(Release),
    /// At the origin, without response headers.
    Fetching(FetchId),
    /// On its way back, with the body still coming from that fetch.
    Reading(FetchId),
    /// On its way back, with all of the body there.
    Draining,
    /// Over.
    Over(Ending),
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a whole response.
    Served,
    /// With the error that its leader got.
    Failed(u16),
    /// With half a response.
    Truncated,
    /// Its client left, or its worker died.
    Left,
    /// Without one: a fill in the background that nobody needs.
    Unneeded,
}

/// What a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A GET.
    Get,
    /// A HEAD.
    Head,
    /// A GET whose client has the object: its whole answer is 304.
    Conditional {
        /// Whether a fill in the background was to lead for it.
        led_for: bool,
    },
    /// A fill in the background, which no client ends.
    Background,
}

/// A request and what became of it.
#[derive(Clone, Copy, Debug)]
pub struct ClientRecord {
    /// Position of its worker.
    pub seat: usize,
    /// Its key.
    pub key: KeyHash,
    /// What it is.
    pub kind: Kind,
    /// What the coalescer made of it.
    pub admission: Admission,
    /// How it left the waiting list.
    pub release: Option<Release>,
    /// What it asked the store for.
    pub purpose: Purpose,
    /// Where it is.
    pub stage: Stage,
}

/// How far a request at the origin has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchPhase {
    /// No answer yet.
    Sent,
    /// The body is coming; `until` is the end of its freshness if it is for the store.
    Body {
        /// The end of its freshness.
        until: Option<Millis>,
    },
    /// Over, in whatever way.
    Over,
}

/// A request at the origin.
#[derive(Clone, Copy, Debug)]
pub struct Fetch {
    /// Who caused it.
    pub client: Client,
    /// Its key.
    pub key: KeyHash,
    /// What for.
    pub purpose: Purpose,
    /// Whether the store takes its response, if it can be stored.
    pub fills: bool,
    /// How far it has come.
    pub phase: FetchPhase,
}

/// What the origin answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A response that can be stored.
    Storable,
    /// One that cannot.
    Uncacheable,
    /// One that could, but the store has no room.
    NoRoom,
    /// An error.
    Failed(u16),
    /// One that could be stored under the key of its variant, which this key is not.
    Varying,
    /// An error, in whose place what is stored is served, if there is something.
    Kept,
}
