// SPDX-License-Identifier: Apache-2.0
//! The compiled policy: what the rest of the filter asks, with every default filled in.
//!
//! A section of the document is defined once, by `section!`, as the struct that it is read as. `form` has the forms
//! in which values are written, and `document` what sections mean for each other.

pub(crate) mod configuration;
mod document;
pub mod forms;
pub mod purge;
pub mod sections;
mod site_section;
#[cfg(test)]
mod tests;

use std::rc::Rc;
use std::time::Duration;

use forms::form::{AtLeast, Bytes, Whole};
use forms::names::{HeaderName, MediaType};
use forms::section::section;
use purge::PurgePolicy;
use sections::cache::MAX_BYTES;

pub use forms::error::PolicyError;
pub use forms::names::{NamePattern, is_bucket_name, is_key, is_site_name};
pub use forms::website_names::OriginPattern;
pub use sections::cache::{CachePolicy, SetCookie};
pub use sections::compression::{CompressionPolicy, TEXTUAL, is_textual};
pub use sections::key::{KeyPolicy, QueryRule};
pub use sections::origin::{BucketOrigin, HttpOrigin, Origin};
pub use sections::request::{Cookies, Obedience, PassOrStrip, RequestPolicy, forward_header};
pub use sections::response::ResponsePolicy;
pub use sections::rules::{Rule, Rules};
pub use sections::ttl::{Statuses, Ttl, TtlTable};
pub use sections::website::{CorsPolicy, FallbackFor, WebsitePolicy};
pub(crate) use site_section::{SiteSection, SitesSection};

/// A worker's VM can address 4 GiB in all.
const MAX_HOT_BYTES: u64 = 1 << 30;

section! {
    /// Small objects that are asked for often, in each worker's own memory, before the store.
    #[derive(Copy)]
    pub struct HotPolicy {
        /// How much of its memory one worker may use for hot copies, in bytes. 0: there are none.
        max_bytes: usize as Bytes<0, MAX_HOT_BYTES> = 0,
        /// The largest object that may become a hot copy, in bytes.
        max_object_bytes: usize as Bytes<1, MAX_HOT_BYTES> = 64 << 10,
    }
}

impl HotPolicy {
    /// Whether there is such a tier.
    pub const fn is_on(self) -> bool {
        self.max_bytes > 0
    }
}

section! {
    /// How responses of an HTTP origin that vary with request headers are told apart.
    pub struct VaryPolicy {
        /// The media types that an origin chooses by where it varies with Accept, such as image/avif
        /// and image/webp: of a request's Accept those that it names count, and the origin is asked
        /// with these. Empty: all of Accept counts.
        accept: Vec<String> as Vec<MediaType> = Vec::new(),
        /// Request headers that make a response uncacheable: a response whose Vary names one of
        /// them is not stored. Cookie counts with request.cookies: ignore only, as else no shared
        /// request has one.
        forbid: Vec<String> as Vec<HeaderName> = ["cookie", "user-agent"].map(str::to_owned).into(),
        /// The most headers that Vary may name; a response with more is not stored.
        max_headers: usize as Whole<0, 16> = 8,
        /// The longest value of a header that Vary or key.headers names, in bytes; requests with a
        /// longer one go around the cache.
        max_value_bytes: usize as Bytes<1, 4_096> = 256,
    }
}

section! {
    /// How requests for one key share a trip to the origin.
    pub struct CoalescePolicy {
        /// Whether requests for one key share a trip to the origin.
        enabled: bool = true,
        /// How long requests wait for a leader that makes no progress before they go on by
        /// themselves.
        max_wait: Duration as AtLeast<1> = Duration::from_secs(5),
        /// How long a worker may fetch a key without a sign of life before another worker takes
        /// over.
        lease: Duration as AtLeast<100> = Duration::from_secs(3),
        /// How many bytes ahead of the fill of its object a range must begin to go to the origin by
        /// itself instead of waiting, in bytes; never fewer than the fill brings within two seconds
        /// at its rate so far. 0: every range waits.
        range_ahead: u64 as Bytes<0, MAX_BYTES> = 8 << 20,
    }
}

section! {
    /// Bounds on the filter's memory, and on what it asks of the origin for nobody. What goes beyond them is not coalesced,
    /// or forgotten.
    #[derive(Copy)]
    pub struct Limits {
        /// How many requests may wait for one key on one worker.
        waiters_per_key: usize as Whole<1, 1_000_000> = 10_000,
        /// How many keys one worker fetches at one time.
        keys_in_flight: usize as Whole<1, 1_000_000> = 8_192,
        /// How many bytes of headers beside its key a request may take to the origin and still
        /// fetch for others; one with more goes by itself.
        lead_header_bytes: usize as Bytes<1_024, 65_536> = 4_096,
        /// How many fills that no client reads one worker has under way at one time: for conditional requests, for ranges
        /// that are less than half of their object, and for clients that have left. Requests beyond that go to the origin
        /// as they are.
        unread_fills: usize as Whole<0, 1_000_000> = 32,
        /// How many bytes of such fills one worker asks the origin for within a minute; an object whose length is not known
        /// counts as the largest that is stored.
        unread_fill_bytes: u64 as Bytes<0, MAX_BYTES> = 1 << 30,
        /// How many keys one worker remembers as fresh or as uncacheable.
        hints: usize as Whole<1, 10_000_000> = 65_536,
        /// How many URLs one worker remembers the varying headers of.
        varying_urls: usize as Whole<1, 10_000_000> = 8_192,
        /// How many variants of a URL the cache keeps; beyond that the one that was stored first goes. In the mesh the
        /// bounds of the cache are the only ones.
        variants_per_url: usize as Whole<1, 1_000_000> = 200,
    }
}

/// What is one for the whole edge, whatever sites it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgePolicy {
    /// Larger objects pass through.
    pub max_object_bytes: u64,
    /// The hot tier.
    pub hot: HotPolicy,
    /// Purges.
    pub purge: PurgePolicy,
    /// Bounds.
    pub limits: Limits,
    /// How long a worker may fetch a key without a sign of life before another worker takes over.
    pub lease: Duration,
}

/// Which of an edge's requests a policy is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteScope {
    /// The name of the site, with which its keys begin. Empty for the one site of an edge that has no name.
    pub name: String,
    /// The beginning of the paths of its requests, whole segments in their canonical spelling; empty for all paths.
    pub path: String,
    /// The name by which the hop knows its origin's server; empty where there is one.
    pub server: String,
}

/// The policy of a site. Parsed once per configuration, never per request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What it shares with the other sites.
    pub edge: Rc<EdgePolicy>,
    /// The requests that it is for.
    pub site: SiteScope,
    /// What stands behind the edge.
    pub origin: Origin,
    /// Cache key and origin path.
    pub key: KeyPolicy,
    /// Requests.
    pub request: RequestPolicy,
    /// Responses.
    pub response: ResponsePolicy,
    /// A web site.
    pub website: WebsitePolicy,
    /// Storage.
    pub cache: CachePolicy,
    /// Compression.
    pub compression: CompressionPolicy,
    /// Variants.
    pub vary: VaryPolicy,
    /// Rules for paths.
    pub rules: Rules,
    /// Coalescing.
    pub coalesce: CoalescePolicy,
}
