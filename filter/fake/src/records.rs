// SPDX-License-Identifier: Apache-2.0
//! Requests and fetches, as tests see them.

use std::fmt;

use sluice_core::coalescing::NextStep;
use sluice_core::coalescing::shared::board::FlightKey;
use sluice_core::workers::{FlightId, Millis};
use sluice_store::StoreRequest;

use crate::{HeaderMap, HeaderTexts as _};

/// For how long a key counts as uncacheable after a response that was, by default.
pub const HIT_FOR_MISS: Millis = 120_000;

/// A flight on the board: its key, its number, the end of its lease.
pub type Lease = (FlightKey, FlightId, Millis);

/// A request, by position in [`FakeEnvoy::clients`](crate::FakeEnvoy::clients).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Client(pub usize);

/// A request at the origin, by position in [`FakeEnvoy::fetches`](crate::FakeEnvoy::fetches).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FetchId(pub usize);

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// EDGE has paused it.
    Parked,
    /// On its way through EDGE and the cache, between two events.
    Going,
    /// At the origin, without response headers.
    Fetching(FetchId),
    /// EDGE has paused its response.
    Held,
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
    /// With an error.
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
    /// A GET for the first bytes of the object.
    Range,
    /// A GET whose client has the object: its whole answer is 304.
    Conditional,
    /// Another request of a client's, with headers of its own.
    Other,
    /// A purge.
    Purge,
    /// A request of the filter's own: a lookup, or a look.
    Lookup,
    /// A request of the filter's own, which leads for others.
    Background,
    /// A request of the filter's own, for the size of an object.
    Size,
    /// A request of the filter's own that refreshes a stale response.
    Refresh,
    /// A request of the filter's own for a document in the place of a missing object.
    Substitute,
}

impl Kind {
    /// The kind of a request of the filter's own.
    pub(crate) const fn of_call(request: StoreRequest) -> Self {
        match request {
            StoreRequest::Fill => Self::Background,
            StoreRequest::Size => Self::Size,
            StoreRequest::Refresh => Self::Refresh,
            StoreRequest::Substitute => Self::Substitute,
            _ => Self::Lookup,
        }
    }

    /// Whether it is a request of the filter's own.
    pub const fn is_own(self) -> bool {
        matches!(
            self,
            Self::Lookup | Self::Background | Self::Size | Self::Refresh | Self::Substitute
        )
    }
}

/// A response as its client gets it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Response {
    /// Its headers, `:status` among them.
    pub headers: HeaderMap,
    /// As much of its body as has come.
    pub body: Vec<u8>,
}

impl fmt::Debug for Response {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (status, size) = (self.headers.status(), self.body.len());
        write!(formatter, "{status} with {size} bytes")
    }
}

/// A request and what became of it.
#[derive(Clone, Debug)]
pub struct ClientRecord {
    /// Position of its worker.
    pub seat: usize,
    /// The number that its path is.
    pub key: u64,
    /// What it is.
    pub kind: Kind,
    /// Its `Accept`.
    pub accept: Option<String>,
    /// As which request to the store EDGE let it go on at once; `None` if it waited.
    pub admission: Option<StoreRequest>,
    /// How it left the waiting list.
    pub release: Option<NextStep>,
    /// As which request to the store EDGE let it go on in the end.
    pub request: Option<StoreRequest>,
    /// Where it is.
    pub stage: Stage,
    /// What its client has got.
    pub response: Option<Response>,
}

impl ClientRecord {
    /// The status of its response; 0 if there is none.
    pub fn status(&self) -> u16 {
        let response = self.response.as_ref();
        response.map_or(0, |response| response.headers.status())
    }

    /// The body of its response, as far as it has come.
    pub fn body(&self) -> &[u8] {
        self.response
            .as_ref()
            .map_or(&[], |response| &response.body)
    }

    /// The fetch that has brought the object of which its response has all or the beginning.
    pub fn brought_by(&self) -> Option<FetchId> {
        let number = std::str::from_utf8(self.body().get(..8)?).ok()?;
        Some(FetchId(number.trim_start().parse().ok()?))
    }

    /// A header of its response, whatever bytes it has.
    pub fn header_bytes(&self, name: &str) -> Option<&[u8]> {
        self.response.as_ref()?.headers.bytes(name)
    }

    /// A header of its response.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.as_ref()?.headers.get(name)
    }
}

/// How far a request at the origin has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchPhase {
    /// No answer yet.
    Sent,
    /// The body is coming.
    Body,
    /// Over, in whatever way.
    Over,
}

/// A request at the origin.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// Who caused it.
    pub client: Client,
    /// The number that its path is.
    pub key: u64,
    /// The path under which the cache knows it, with its host.
    pub cache_key: String,
    /// What for.
    pub request: StoreRequest,
    /// Its headers, as the origin sees them.
    pub headers: HeaderMap,
    /// Whether its response goes into the cache.
    pub fills: bool,
    /// Whether its response varies with `Accept`.
    pub varies: bool,
    /// How far it has come.
    pub phase: FetchPhase,
}

/// What the origin answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A response that can be stored.
    Storable,
    /// That nothing has changed; a response that can be stored if that was not asked.
    Unchanged,
    /// One that cannot be stored.
    Uncacheable,
    /// One that says nothing of caching.
    Silent,
    /// An error.
    Failed(u16),
    /// One that varies with `Accept`.
    Varying,
}
