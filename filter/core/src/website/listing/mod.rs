// SPDX-License-Identifier: Apache-2.0
//! Listings of directories: the page that a client selects, the request to the bucket, and the page that is made of the
//! bucket's answer.
//!
//! The pages of a directory are stored under the URL of its index document, so a purge of the directory removes them.

mod bucket_list;
mod entry;
mod page;
mod question;
mod selection;
mod xml;

pub use bucket_list::{BucketList, ListError, ListedObject};
pub use page::{MAX_PAGE_BYTES, Page};
pub use question::{ListedDirectory, escape_value, listed_keys, listed_urls, listing_target};
pub use selection::{PageFormat, Selection};

/// The most bytes of a bucket's answer that are read. An answer with 1,000 usual names has 300 kB.
pub const MAX_LIST_BYTES: usize = 4 << 20;

/// Value of `Content-Security-Policy` with a listing: a page with names of objects loads and runs nothing.
pub const SECURITY_POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'";
