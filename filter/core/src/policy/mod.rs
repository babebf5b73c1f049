// SPDX-License-Identifier: Apache-2.0
//! The compiled policy: what the rest of the filter asks, with every default filled in.

mod compile;
mod compression;
mod document;
pub mod duration;
mod error;
mod field;
mod forwarding;
pub mod glob;
pub mod glob_set;
mod names;
pub mod purge;
mod rules;
#[cfg(test)]
mod schema;
mod site;
mod site_names;
mod ttl;

use std::time::Duration;

use purge::{Record, TokenHash};

pub use compression::{CompressionPolicy, TEXTUAL, is_textual};
pub use error::PolicyError;
pub use forwarding::forward_header;
pub use rules::{Rule, Rules};
pub use site::{CorsPolicy, FallbackFor, SitePolicy};
pub use site_names::OriginPattern;

/// What stands behind the edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An S3-compatible bucket.
    Bucket(BucketOrigin),
    /// Any HTTP server.
    Http(HttpOrigin),
}

/// How a bucket is addressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketOrigin {
    /// Value of `Host` towards the bucket.
    pub authority: String,
    /// What precedes the client's canonical path towards the origin: already percent-encoded,
    /// starts with `/` unless empty, never ends with one (`/BUCKET/PREFIX`, or `/PREFIX` with virtual hosts).
    pub path_prefix: String,
    /// How many bytes of the decoded object key the key prefix takes, its trailing slash included
    /// (`PREFIX/`; 0 without a prefix; the bucket's name does not count).
    pub prefix_bytes: usize,
}

/// How an HTTP origin is addressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpOrigin {
    /// Replaces the client's `Host` towards the origin.
    pub authority: Option<String>,
}

/// What happens to the query string, in the key and towards the origin alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryRule {
    /// Only the listed parameters stay, sorted by name.
    Drop {
        /// Names that stay.
        allow: Vec<String>,
    },
    /// All stay in the order in which they came, but for the removed ones.
    Keep {
        /// Names, or prefixes, that go.
        remove: Vec<NamePattern>,
    },
    /// All stay, sorted by name, but for the removed ones.
    Sort {
        /// Names, or prefixes, that go.
        remove: Vec<NamePattern>,
    },
}

/// A name, or with a trailing `*` the prefix of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamePattern {
    /// The whole name.
    Exact(String),
    /// The beginning of the name.
    Prefix(String),
}

impl NamePattern {
    /// Whether `name` fits.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Exact(exact) => name == exact,
            Self::Prefix(prefix) => name.starts_with(prefix.as_str()),
        }
    }
}

/// How the cache key and the origin's path are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPolicy {
    /// Whether the client's `Host` is part of the key.
    pub host: bool,
    /// Whether `//` is one separator.
    pub merge_slashes: bool,
    /// What happens to the query string.
    pub query: QueryRule,
    /// Longest decoded object key in bytes; longer paths are 414.
    pub max_bytes: usize,
    /// Bucket only: appended, decoded as it stands here, to a path that ends in `/`.
    pub index_document: Option<String>,
    /// Taken from the start of every canonical path; what is not below it is not there. Canonical, starts
    /// with `/` unless empty, never ends with one.
    pub strip_prefix: String,
}

/// What becomes of a header by which a response is one client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassOrStrip {
    /// It goes on, and the response is not stored.
    Pass,
    /// It is removed, and does not keep the response from the store.
    Strip,
}

/// What the directives by which a request asks caches for more than its response mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obedience {
    /// Nothing.
    Ignore,
    /// What RFC 9111, 5.2.1 says.
    Obey,
}

/// Which parts of a request go on to the origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPolicy {
    /// Lower-case names of further headers that a bucket may see.
    pub forward_headers: Vec<String>,
    /// What `Cookie` means.
    pub cookies: PassOrStrip,
    /// What `Authorization` means, on the way to an HTTP origin.
    pub authorization: PassOrStrip,
    /// What `Cache-Control` and `Pragma` mean.
    pub cache_control: Obedience,
}

/// What is done to responses on their way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponsePolicy {
    /// Lower-case names, or prefixes, of headers that never leave (the built-in ones included).
    pub remove_headers: Vec<NamePattern>,
    /// Lower-case members of `Vary` that do not matter.
    pub ignore_vary: Vec<String>,
    /// Whether Envoy is told what has become of each request, for its access log and traces.
    pub account: bool,
}

/// How responses of an HTTP origin that vary with request headers are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaryPolicy {
    /// Lower-case names of headers by which they are not.
    pub forbid: Vec<String>,
    /// A response that varies with more headers is not stored.
    pub max_headers: usize,
    /// Requests in which one of the headers is longer, in bytes, go around the cache.
    pub max_value_bytes: usize,
}

/// What is stored, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePolicy {
    /// How responses are cached and shown for whose path there is no rule.
    pub default: Rule,
    /// Lower-case names of the fields that come before `Cache-Control` and `Expires`, the first first.
    pub targeted_fields: Vec<String>,
    /// How much of the time since its `Last-Modified` a response is fresh, at most as long as `ttl`
    /// says, where the origin says nothing else; 0: `ttl` alone decides.
    pub heuristic_percent: u64,
    /// How long the origin may be silent before what may be served where it fails is served.
    pub stale_if_error_timeout: Duration,
    /// How long the origin is left alone with a key that is served stale, without the random part.
    pub retry_interval: Duration,
    /// What `Set-Cookie` means. It is removed only from what is stored.
    pub set_cookie: PassOrStrip,
    /// For how long a key whose response could not be stored is not coalesced.
    pub hit_for_miss: Duration,
    /// Larger objects pass through.
    pub max_object_bytes: u64,
}

/// Time to live by status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TtlTable {
    /// By exact status, sorted by status.
    pub exact: Vec<(u16, Duration)>,
    /// By class: index 0 is 1xx, 4 is 5xx.
    pub class: [Option<Duration>; 5],
    /// For all others.
    pub default: Duration,
}

/// Small objects in a worker's own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotPolicy {
    /// Bytes of memory that one worker may use for them; 0: none are kept.
    pub max_bytes: usize,
    /// Larger objects are not among them.
    pub max_object_bytes: usize,
}

impl HotPolicy {
    /// Whether there is such a tier.
    pub const fn is_on(self) -> bool {
        self.max_bytes > 0
    }
}

/// How requests for one key share a trip to the origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoalescePolicy {
    /// Whether they do at all.
    pub enabled: bool,
    /// How long followers wait for a leader that makes no progress.
    pub max_wait: Duration,
    /// For how long leadership lasts without renewal by the leader's worker.
    pub lease: Duration,
}

/// Bounds on the filter's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Followers of one key on one worker.
    pub waiters_per_key: usize,
    /// Keys being fetched at one time, on one worker.
    pub keys_in_flight: usize,
    /// Remembered keys (fresh or hit-for-miss) on one worker.
    pub hints: usize,
    /// URLs of which is remembered with which headers they vary, on one worker.
    pub varying_urls: usize,
}

/// How purges are ordered, and what was purged before this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgePolicy {
    /// What a purge call has to know; `None`: nobody can purge by a call.
    pub token: Option<TokenHash>,
    /// The purges of former processes; `None`: unknown.
    pub journal: Option<Vec<Record>>,
    /// Whether the entry point writes down what is purged.
    pub recorded: bool,
    /// Whether the store may hold entries of former processes.
    pub warm: bool,
    /// Whether messages of Amazon SNS are taken, which the entry point verifies.
    pub sns: bool,
}

/// The whole policy. Parsed once per configuration, never per request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The hot tier.
    pub hot: HotPolicy,
    /// What stands behind the edge.
    pub origin: Origin,
    /// Cache key and origin path.
    pub key: KeyPolicy,
    /// Requests.
    pub request: RequestPolicy,
    /// Responses.
    pub response: ResponsePolicy,
    /// A web site.
    pub site: SitePolicy,
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
    /// Purges.
    pub purge: PurgePolicy,
    /// Bounds.
    pub limits: Limits,
}
