// SPDX-License-Identifier: Apache-2.0
//! The section `purge.on_created`: the objects that the edge fetches when a bucket says that they were written.

use crate::policy::forms::form::{Bytes, MAX_BYTES, Whole};
use crate::policy::forms::section::section;

section! {
    /// The fetch of an object after the purge, when a notification says that the object was written.
    pub struct OnCreatedPolicy {
        /// Whether the edge fetches the object once, as a client without credentials that accepts the usual codings.
        /// Not from a site with access rules, not if hosts are in its keys, and not an object that is too large to be
        /// stored as a whole.
        fetch: bool = true,
        /// How many objects the edge fetches in this way within a minute.
        objects_per_minute: u64 as Whole<1, 1_000_000> = 600,
        /// How many bytes these objects may have within a minute. An object of unknown size counts as the largest
        /// object that is stored as a whole.
        bytes_per_minute: u64 as Bytes<1, MAX_BYTES> = 1 << 30,
    }
}
