// SPDX-License-Identifier: Apache-2.0
//! The last line of the feed that a peer has applied, as far as any worker of this edge has heard.

use crate::host::SharedStore;
use crate::policy::purge::FeedPosition;
use crate::workers::shared_value::{self, SharedError};

const KEY: &str = "sluice/feed-told";

/// That line in shared data. A worker that begins to serve reads it, because the messages about it were sent before.
#[derive(Debug)]
pub struct FeedTold<'a> {
    store: &'a dyn SharedStore,
}

impl<'a> FeedTold<'a> {
    /// Opens the line in `store`.
    pub fn new(store: &'a dyn SharedStore) -> Self {
        Self { store }
    }

    /// Notes a line, unless a later one of the same feed is known.
    ///
    /// # Errors
    /// The host refused a call, or other workers changed the same value too often.
    pub fn note(&self, told: FeedPosition) -> Result<(), SharedError> {
        shared_value::update(self.store, KEY, |bytes| {
            let known = decode(bytes).filter(|known| known.id == told.id);
            let is_news = known.is_none_or(|known| known.number < told.number);
            (is_news.then(|| told.to_string().into_bytes()), ())
        })
    }

    /// Returns the line; `None` if no worker has heard of one.
    ///
    /// # Errors
    /// The host refused the call.
    pub fn read(&self) -> Result<Option<FeedPosition>, SharedError> {
        Ok(decode(&shared_value::read(self.store, KEY)?))
    }
}

fn decode(bytes: &[u8]) -> Option<FeedPosition> {
    FeedPosition::parse(std::str::from_utf8(bytes).ok()?)
}
