// SPDX-License-Identifier: Apache-2.0
//! The compiled policy, with every default filled in. The rest of the filter reads only the compiled policy.
//!
//! The macro `section!` defines each section of the document once, as the struct that the section is read as. `forms`
//! has the forms in which values are written, and `document` the rules that concern several sections.

mod access;
pub(crate) mod configuration;
mod document;
pub mod forms;
mod protobuf_struct;
pub mod purge;
pub mod sections;
mod site_section;
#[cfg(test)]
mod tests;

use std::rc::Rc;
use std::time::Duration;

use forms::form::{AtLeast, Bytes, MAX_BYTES, Whole};
use forms::names::{HeaderName, MediaType};
use forms::section::section;
use purge::{DeclaredPurges, PurgePolicy, TokenHash};

pub use access::{
    AccessPolicy, AccessScheme, BasicPolicy, CheckerUrl, ForwardPolicy, JwtPolicy, KeyEntry,
    KeySetSource, KeySource, Network, SignedPolicy, UserSource, is_key_name,
};
pub use forms::error::PolicyError;
pub use forms::large_url::LargeUrl;
pub use forms::names::is_for_edges;
pub(crate) use forms::names::is_token;
pub use forms::names::{MAX_PAGE_BYTES, NamePattern, is_bucket_name, is_key, is_site_name};
pub use forms::website_names::OriginPattern;
pub use sections::cache::{CachePolicy, SetCookie};
pub use sections::compression::{CompressionPolicy, TEXTUAL, is_textual};
pub use sections::key::{KeyPolicy, QueryRule};
pub use sections::listing::ListingPolicy;
pub use sections::origin::{BucketOrigin, HttpOrigin, Origin};
pub use sections::redirects::{PathPattern, Redirect, RedirectSource, RedirectTarget};
pub use sections::request::{Cookies, Obedience, PassOrStrip, RequestPolicy, forward_header};
pub use sections::response::ResponsePolicy;
pub use sections::rules::{Rule, Rules};
pub use sections::set_headers::{HeaderSource, SetHeader};
pub use sections::slices::{MOST_AHEAD, SlicedLengths, SlicesPolicy};
pub use sections::ttl::{Statuses, Ttl, TtlTable};
pub use sections::ttl_bounds::TtlBounds;
pub use sections::website::{CorsPolicy, ErrorDocument, FallbackFor, WebsitePolicy};
pub(crate) use site_section::{HttpsSection, SiteSection, SitesSection};

/// Upper bound of a hot tier, in bytes. A worker's VM can address 4 GiB in all.
const MAX_HOT_BYTES: u64 = 1 << 30;

section! {
    /// Hot tier: small objects that are often requested, in each worker's own memory, in front of the store.
    #[derive(Copy)]
    pub struct HotPolicy {
        /// Memory that one worker may use for hot copies, in bytes. 0: no hot copies.
        max_bytes: usize as Bytes<0, MAX_HOT_BYTES> = 0,
        /// The largest object that may become a hot copy, in bytes.
        max_object_bytes: usize as Bytes<1, MAX_HOT_BYTES> = 64 << 10,
    }
}

impl HotPolicy {
    /// Whether the policy has a hot tier.
    pub const fn is_on(self) -> bool {
        self.max_bytes > 0
    }
}

section! {
    /// How the key distinguishes responses of an HTTP origin that vary with request headers.
    pub struct VaryPolicy {
        /// The media types among which an origin chooses by Accept, such as image/avif and image/webp. Of a request's
        /// Accept only these count: the key has the ones that it names, and the origin gets the same value. Empty:
        /// all of Accept counts.
        accept: Vec<String> as Vec<MediaType> = Vec::new(),
        /// Request headers that make a response uncacheable: a response whose Vary names one of them is not stored.
        /// Cookie matters only with request.cookies: ignore, because otherwise no shared request has a Cookie.
        forbid: Vec<String> as Vec<HeaderName> = ["cookie", "user-agent"].map(str::to_owned).into(),
        /// The most headers that Vary may name. A response with more is not stored.
        max_headers: usize as Whole<0, 16> = 8,
        /// The longest value of a header that Vary or key.headers names, in bytes. A request with a longer value
        /// bypasses the cache.
        max_value_bytes: usize as Bytes<1, 4_096> = 256,
    }
}

section! {
    /// How requests for one key share a trip to the origin.
    pub struct CoalescePolicy {
        /// Whether requests for one key share a trip to the origin.
        enabled: bool = true,
        /// How long requests wait for a leader that makes no progress. After that each of them is sent to the origin
        /// separately.
        max_wait: Duration as AtLeast<1> = Duration::from_secs(5),
        /// How long a worker may fetch a key without a sign of life before another worker takes
        /// over.
        lease: Duration as AtLeast<100> = Duration::from_secs(3),
    }
}

section! {
    /// Limits of the filter's memory, and of fills that no client reads. Requests beyond a limit are not coalesced.
    /// Hints and variants beyond a limit are forgotten.
    #[derive(Copy)]
    pub struct Limits {
        /// How many requests may wait for one key on one worker.
        waiters_per_key: usize as Whole<1, 1_000_000> = 10_000,
        /// How many keys one worker fetches at one time.
        keys_in_flight: usize as Whole<1, 1_000_000> = 8_192,
        /// How many bytes of headers beside its key a request may send to the origin as a leader. A request with more
        /// is sent separately.
        lead_header_bytes: usize as Bytes<1_024, 65_536> = 4_096,
        /// How many fills that no client reads one worker may run at one time: for conditional requests, for ranges
        /// that are less than half of their object, and for clients that have left. Requests beyond that are sent to
        /// the origin unchanged.
        unread_fills: usize as Whole<0, 1_000_000> = 32,
        /// How many bytes one worker may request from the origin within a minute for fills that no client reads. An
        /// object of unknown length counts as the largest object that is stored.
        unread_fill_bytes: u64 as Bytes<0, MAX_BYTES> = 1 << 30,
        /// How many keys one worker remembers as fresh or as uncacheable.
        hints: usize as Whole<1, 10_000_000> = 65_536,
        /// How many URLs one worker remembers the varying headers for.
        varying_urls: usize as Whole<1, 10_000_000> = 8_192,
        /// How many variants of a URL the cache keeps. If there are more, the variant that was stored first is
        /// removed. In the mesh only the bounds of the cache apply.
        variants_per_url: usize as Whole<1, 1_000_000> = 200,
        /// How many of its last requests one worker keeps for sluice log. 0: requests are recorded only while sluice
        /// log runs.
        decisions: usize as Whole<0, 65_536> = 0,
    }
}

section! {
    /// The edges that are one cache together with this one.
    #[derive(Copy)]
    pub struct PeersPolicy {
        /// SHA-256 of the secret that each request of another edge carries, in hexadecimal. Default: the edge has no
        /// peers. The entry point fills this in.
        secret as "secret_sha256": Option<TokenHash>,
        /// Whether all requests of clients come from FRONT in other proxies, as in a fleet of the mesh. The edge then
        /// answers no request from its cache whose FRONT has applied purges that it lacks.
        behind_front: bool = false,
    }
}

/// Settings of the whole edge, which all its sites share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgePolicy {
    /// Size of the largest object that is stored as a whole, in bytes. Larger objects are sliced or pass through.
    pub max_object_bytes: u64,
    /// Slices of larger objects.
    pub slices: SlicesPolicy,
    /// The hot tier.
    pub hot: HotPolicy,
    /// Settings of purges.
    pub purge: PurgePolicy,
    /// Limits.
    pub limits: Limits,
    /// The other edges of one cache.
    pub peers: PeersPolicy,
    /// How long a worker may fetch a key without a sign of life before another worker takes over.
    pub lease: Duration,
}

/// The requests of an edge to which a policy applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteScope {
    /// The name of the site, with which its keys begin; empty for the one site of an edge that has no name.
    pub name: String,
    /// The beginning of the paths of its requests, whole segments in their canonical spelling; empty for all paths.
    pub path: String,
    /// The name by which the hop knows the server of the site's origin; empty if the edge has only one.
    pub server: String,
    /// Whether its metrics have its name as a label.
    pub is_labelled: bool,
}

/// The policy of a site. Parsed once per configuration, never per request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Settings that the site shares with the other sites.
    pub edge: Rc<EdgePolicy>,
    /// The requests to which the policy applies.
    pub site: SiteScope,
    /// The origin behind the edge.
    pub origin: Origin,
    /// Cache key and origin path.
    pub key: KeyPolicy,
    /// Treatment of requests.
    pub request: RequestPolicy,
    /// Treatment of responses.
    pub response: ResponsePolicy,
    /// Settings of a web site.
    pub website: WebsitePolicy,
    /// Storage.
    pub cache: CachePolicy,
    /// Compression.
    pub compression: CompressionPolicy,
    /// Variants.
    pub vary: VaryPolicy,
    /// Rules for paths.
    pub rules: Rules,
    /// Redirects of URLs that have moved.
    pub redirects: Vec<Redirect>,
    /// Coalescing.
    pub coalesce: CoalescePolicy,
    /// Declared numbers of purges.
    pub declared: DeclaredPurges,
    /// The clients that the site answers; `None`: all clients.
    pub access: Option<AccessPolicy>,
}
