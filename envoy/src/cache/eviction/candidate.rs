// SPDX-License-Identifier: Apache-2.0
//! An entry that may be evicted, with the facts that decide when.

use crate::cache::entries::{Entry, SiteId, UrlId};

/// An entry that may be evicted.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The site of the entry.
    pub site: SiteId,
    /// The entry.
    pub entry: Entry,
    /// The object, if the entry is one of its slices and no client has read it again.
    pub unread_slice_of: Option<UrlId>,
}
