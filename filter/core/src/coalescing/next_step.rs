// SPDX-License-Identifier: Apache-2.0
//! The way in which a request continues, at once or after it has waited.

use crate::freshness::UncacheableReason;

/// The way in which a request continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// With this request to the store or around it.
    Send(StoreRequest),
    /// Around the store: the key is known to be uncacheable, for this reason.
    HitForMiss(UncacheableReason),
    /// Around the store: it waited too long.
    WaitTimeout,
    /// Around the store, which has no room for the response.
    NoRoom,
    /// Around the store: it is a range, and no other request would share the fill.
    UnsharedRange,
    /// Around the store: it needs only a part of the object, and the budget allows no further fill that no client
    /// reads.
    Unfilled,
    /// Like a new request: under the key of its variant, or because it was too late to share a validation.
    Varies,
    /// Nowhere: it was to be the leader for other requests, which no longer need one.
    Unneeded,
}

impl NextStep {
    /// The request to the store; `None` for a step that sends none.
    pub const fn request(self) -> Option<StoreRequest> {
        match self {
            Self::Send(request) => Some(request),
            Self::HitForMiss(_)
            | Self::WaitTimeout
            | Self::NoRoom
            | Self::UnsharedRange
            | Self::Unfilled => Some(StoreRequest::Bypass),
            Self::Varies | Self::Unneeded => None,
        }
    }
}

/// A request to the store or around it. Each has a letter for the link between the roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum StoreRequest {
    /// Request for a response that the store probably has.
    Fresh = b'f',
    /// Request of a leader.
    Lead = b'l',
    /// Request that has waited. The store probably has the response that the leader fetched.
    Collapsed = b'c',
    /// Request that has waited while the stored response was validated. The store is to serve that response once
    /// more.
    Validated = b'v',
    /// Request that is sent through the store without coalescing.
    Alone = b'a',
    /// Request that is sent around the store.
    Bypass = b'b',
    /// Request that is sent through the store without coalescing. The store revalidates a response that does not
    /// satisfy the request.
    Unshared = b'k',
    /// Request for the stored response, which is never sent to the origin.
    StoreOnly = b's',
    /// Lookup, which only asks whether the store has the response, and is never sent to the origin.
    Lookup = b'p',
    /// Request of the filter that makes the store revalidate a response that it serves stale. It has no client.
    Refresh = b'r',
    /// Request of the filter that EDGE handles like a client's. Its call says what it is for.
    Call = b'i',
    /// Request around the store for the headers of an object, in the form of a request that fills the store: for the
    /// size of the object, or for a question of the edge's operator.
    Head = b'z',
    /// Request around the store for an object that the slicer puts together, and the slicer's requests for its slices.
    /// EDGE handles a slice like a client's request.
    Slice = b'n',
    /// Request without a body whose headers announced one. It is sent to EDGE again, and handled like a client's.
    Empty = b'e',
    /// Request of the filter, around the store, for the purge feed.
    Feed = b'd',
}

impl StoreRequest {
    /// All requests.
    pub const ALL: [Self; 15] = [
        Self::Fresh,
        Self::Lead,
        Self::Collapsed,
        Self::Validated,
        Self::Alone,
        Self::Bypass,
        Self::Unshared,
        Self::StoreOnly,
        Self::Lookup,
        Self::Refresh,
        Self::Call,
        Self::Head,
        Self::Slice,
        Self::Empty,
        Self::Feed,
    ];

    /// Whether the request is sent around the store.
    pub const fn avoids_the_store(self) -> bool {
        matches!(self, Self::Bypass | Self::Head | Self::Slice | Self::Feed)
    }

    /// Whether the request has the form of one that fills the store.
    pub const fn is_for_store(self) -> bool {
        !self.avoids_the_store() || matches!(self, Self::Head)
    }

    /// Whether other requests use the response or its size, or the response is a part of another request's response.
    pub const fn is_shared(self) -> bool {
        !matches!(self, Self::Bypass | Self::Feed)
    }

    /// Whether the filter sends the request, through the background listener.
    pub const fn is_background(self) -> bool {
        matches!(
            self,
            Self::Lookup
                | Self::Refresh
                | Self::Call
                | Self::Head
                | Self::Slice
                | Self::Empty
                | Self::Feed
        )
    }

    /// Whether the `stream` of a link of this kind is a request within EDGE. In other links it is the filter's call.
    pub const fn names_a_request(self) -> bool {
        !self.is_background() || self.is_relinked()
    }

    /// Whether a request of the filter is sent on with a new link, instead of the link of its sender.
    pub const fn is_relinked(self) -> bool {
        matches!(self, Self::Refresh | Self::Call | Self::Slice)
    }

    /// Reads the letter of a request; `None` for any other letter.
    pub fn of_letter(letter: u8) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|request| *request as u8 == letter)
    }
}
