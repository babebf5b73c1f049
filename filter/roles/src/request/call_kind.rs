// SPDX-License-Identifier: Apache-2.0
//! The reasons for background calls: requests that the filter makes itself.

use std::time::Duration;

use sluice_core::coalescing::StoreRequest;
use sluice_core::workers::{KeyHash, StreamId};

const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);
/// Limit for a fill that never ends. The fill itself gives up an origin that is silent.
const FILL_TIMEOUT: Duration = Duration::from_secs(3_600);
/// A request that waits for a size continues without it after this time.
const SIZE_TIMEOUT: Duration = Duration::from_secs(5);
/// Limit for the origin's answer to a question of the edge's operator.
pub const INSPECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Limit for a reading of the purge feed.
pub const FEED_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a response is held at most for its substitute.
const SUBSTITUTE_TIMEOUT: Duration = Duration::from_secs(10);

/// Reason for a background call. Most calls are about one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// Checks whether the store has the response of a fill that has ended.
    Confirmation(KeyHash),
    /// Checks whether the store has a response, for requests that wait.
    Look(KeyHash),
    /// Makes the store revalidate a response that is served stale meanwhile.
    Refresh(KeyHash),
    /// Fills the store for requests that wait.
    Fill(KeyHash),
    /// Asks the origin for the size of an object, for requests that wait.
    Size(KeyHash),
    /// Asks the store or the origin for the headers of an object that may be served in slices, for requests that wait
    /// or because its index is stale.
    Index(KeyHash),
    /// Asks the origin for the headers of an object, for the operator's question with that number.
    Inspection(u32),
    /// Fetches a document that replaces a missing object.
    Substitute(KeyHash),
    /// Fetches an object around the store, because the file of another key hides it.
    Around(KeyHash),
    /// Fetches an object that the store has just lost, for a request that found it missing.
    Again(StreamId),
    /// Fetches the variant that a request wants, because the store has given it another one.
    Variant(StreamId),
    /// Reads the purge feed.
    Feed,
    /// Fetches an object because a bucket says that it was written.
    Created,
}

impl CallKind {
    /// The request to the store, the method and the time limit of the call.
    pub const fn form(self) -> (StoreRequest, &'static str, Duration) {
        match self {
            Self::Confirmation(_) | Self::Look(_) => (StoreRequest::Lookup, "HEAD", LOOKUP_TIMEOUT),
            Self::Refresh(_) => (StoreRequest::Refresh, "GET", FILL_TIMEOUT),
            Self::Fill(_) | Self::Again(_) | Self::Created => {
                (StoreRequest::Call, "GET", FILL_TIMEOUT)
            }
            Self::Size(_) => (StoreRequest::Head, "HEAD", SIZE_TIMEOUT),
            Self::Index(_) => (StoreRequest::Call, "HEAD", SIZE_TIMEOUT),
            Self::Inspection(_) => (StoreRequest::Head, "HEAD", INSPECTION_TIMEOUT),
            Self::Substitute(_) | Self::Around(_) | Self::Variant(_) => {
                (StoreRequest::Call, "GET", SUBSTITUTE_TIMEOUT)
            }
            Self::Feed => (StoreRequest::Feed, "GET", FEED_TIMEOUT),
        }
    }
}
