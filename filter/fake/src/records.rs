// SPDX-License-Identifier: Apache-2.0
//! Requests and fetches, in the form that tests read.

use std::fmt;

use sluice_core::coalescing::shared::board::FlightKey;
use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_core::workers::{FlightId, Millis};

use crate::{HeaderMap, HeaderTexts as _};

/// Default time in milliseconds for which a key counts as uncacheable after an uncacheable response.
pub const HIT_FOR_MISS: Millis = 120_000;

/// Flight on the board: its key, its number, the end of its lease.
pub type Lease = (FlightKey, FlightId, Millis);

/// Request, by position in [`FakeEnvoy::clients`](crate::FakeEnvoy::clients).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Client(pub usize);

/// Request at the origin, by position in [`FakeEnvoy::fetches`](crate::FakeEnvoy::fetches).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FetchId(pub usize);

/// Stage of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Paused by EDGE.
    Parked,
    /// On its way through EDGE and the cache, between two events.
    Going,
    /// At the origin, without response headers.
    Fetching(FetchId),
    /// With a response that EDGE has paused.
    Held,
    /// On its way back, while the fetch still sends the body.
    Reading(FetchId),
    /// On its way back, with the whole body received.
    Draining,
    /// Ended.
    Over(Ending),
}

/// End of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a whole response.
    Served,
    /// With an error.
    Failed(u16),
    /// With a part of a response.
    Truncated,
    /// Without a response, because the client left or the worker died.
    Left,
    /// Without a response, because the request was a background fill that no request needs any more.
    Unneeded,
}

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A GET.
    Get,
    /// A HEAD.
    Head,
    /// A GET for the first bytes of the object.
    Range,
    /// A GET whose client has the object, so that its whole response is a 304.
    Conditional,
    /// Another request of a client, with other headers.
    Other,
    /// A purge.
    Purge,
    /// A request to the control listener.
    Control,
    /// A request of the filter: a lookup, or a look.
    Lookup,
    /// A request of the filter for the purge feed.
    Feed,
    /// A request of the filter that leads for other requests.
    Background,
    /// A request of the filter for the size or the headers of an object.
    Size,
    /// A request of the filter that refreshes a stale response.
    Refresh,
    /// A request of the slicer.
    Slice,
    /// A request of the filter for the headers of an object that may be sliced, or for a document.
    Call,
}

impl Kind {
    /// Returns the kind of a request of the filter. `leads` says whether its call leads for other requests.
    pub(crate) const fn of_call(request: StoreRequest, leads: bool) -> Self {
        match request {
            StoreRequest::Call if leads => Self::Background,
            StoreRequest::Call => Self::Call,
            StoreRequest::Head => Self::Size,
            StoreRequest::Refresh => Self::Refresh,
            StoreRequest::Feed => Self::Feed,
            _ => Self::Lookup,
        }
    }

    /// Whether the filter sends requests of this kind.
    pub const fn is_own(self) -> bool {
        matches!(
            self,
            Self::Lookup
                | Self::Feed
                | Self::Background
                | Self::Size
                | Self::Refresh
                | Self::Slice
                | Self::Call
        )
    }
}

/// Response that the client gets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Response {
    /// Headers, including `:status`.
    pub headers: HeaderMap,
    /// Body as received so far.
    pub body: Vec<u8>,
}

impl fmt::Debug for Response {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (status, size) = (self.headers.status(), self.body.len());
        write!(formatter, "{status} with {size} bytes")
    }
}

/// Request and its result.
#[derive(Clone, Debug)]
pub struct ClientRecord {
    /// Position of the worker.
    pub seat: usize,
    /// Number in the path.
    pub key: u64,
    /// Kind of the request.
    pub kind: Kind,
    /// Value of `Accept`.
    pub accept: Option<String>,
    /// Request to the store as which EDGE has sent it on at once; `None` if it waited.
    pub admission: Option<StoreRequest>,
    /// Step with which it left the waiting list.
    pub release: Option<NextStep>,
    /// Request to the store as which EDGE has sent it on in the end.
    pub request: Option<StoreRequest>,
    /// Stage of the request.
    pub stage: Stage,
    /// Response that the client has received.
    pub response: Option<Response>,
}

impl ClientRecord {
    /// Returns the status of the response; 0 if there is none.
    pub fn status(&self) -> u16 {
        let response = self.response.as_ref();
        response.map_or(0, |response| response.headers.status())
    }

    /// Returns the body of the response as received so far.
    pub fn body(&self) -> &[u8] {
        self.response
            .as_ref()
            .map_or(&[], |response| &response.body)
    }

    /// Returns the fetch of the object that the response has, or begins with.
    pub fn brought_by(&self) -> Option<FetchId> {
        let number = std::str::from_utf8(self.body().get(..8)?).ok()?;
        Some(FetchId(number.trim_start().parse().ok()?))
    }

    /// Returns a header of the response, with any bytes.
    pub fn header_bytes(&self, name: &str) -> Option<&[u8]> {
        self.response.as_ref()?.headers.bytes(name)
    }

    /// Returns a header of the response, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.as_ref()?.headers.get(name)
    }
}

/// Phase of a request at the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchPhase {
    /// Sent, without an answer.
    Sent,
    /// Answered, while the body is sent.
    Body,
    /// Ended for any reason.
    Over,
}

/// Request at the origin.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// Request that caused it.
    pub client: Client,
    /// Number in the path.
    pub key: u64,
    /// Host and path of the cache's key.
    pub cache_key: String,
    /// Purpose of the request.
    pub request: StoreRequest,
    /// Headers that the origin receives.
    pub headers: HeaderMap,
    /// Whether the response is stored in the cache.
    pub fills: bool,
    /// Whether the response varies with `Accept`.
    pub varies: bool,
    /// Phase of the request.
    pub phase: FetchPhase,
}

/// Answer of the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Storable response.
    Storable,
    /// Response with status 304 to a conditional request, and a storable response to another one.
    Unchanged,
    /// Response that cannot be stored.
    Uncacheable,
    /// Response without caching headers.
    Silent,
    /// Error with this status.
    Failed(u16),
    /// Response that varies with `Accept`.
    Varying,
}
