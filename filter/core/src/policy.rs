// SPDX-License-Identifier: Apache-2.0
//! The compiled policy: what the rest of the filter asks, with every default filled in.

mod compile;
mod document;
mod error;
mod field;
mod names;
#[cfg(test)]
mod schema;

use std::time::Duration;

pub use error::PolicyError;

/// Which of Envoy's cache filters stores the responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreVersion {
    /// `envoy.filters.http.cache`: an entry is readable some time after the response has ended.
    V1,
    /// `envoy.filters.http.cache_v2`: others can join a fill from its response headers on.
    V2,
}

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
}

/// What a `Cookie` header of a request for an HTTP origin means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieRule {
    /// The request goes to the origin, uncached.
    Pass,
    /// The header is removed, the request is cacheable.
    Strip,
}

/// Which parts of a request go on to the origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPolicy {
    /// Lower-case names of further headers that a bucket may see.
    pub forward_headers: Vec<String>,
    /// What `Cookie` means.
    pub cookies: CookieRule,
}

/// What is done to responses on their way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponsePolicy {
    /// Lower-case names, or prefixes, of headers that never leave (the built-in ones included).
    pub remove_headers: Vec<NamePattern>,
    /// Lower-case members of `Vary` that do not matter.
    pub ignore_vary: Vec<String>,
}

/// What is stored, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePolicy {
    /// Time to live by status, where the origin does not say: exact status first, then class, then default.
    pub ttl: TtlTable,
    /// Whether the origin's own `Cache-Control` and `Expires` win where present.
    pub honor_cache_control: bool,
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
}

/// The whole policy. Parsed once per configuration, never per request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Which cache filter stores.
    pub store: StoreVersion,
    /// What stands behind the edge.
    pub origin: Origin,
    /// Cache key and origin path.
    pub key: KeyPolicy,
    /// Requests.
    pub request: RequestPolicy,
    /// Responses.
    pub response: ResponsePolicy,
    /// Storage.
    pub cache: CachePolicy,
    /// Coalescing.
    pub coalesce: CoalescePolicy,
    /// Bounds.
    pub limits: Limits,
}
