// SPDX-License-Identifier: Apache-2.0
//! The policy as people write it: every field, what it accepts, and its default.

use std::time::Duration;

#[cfg(test)]
use serde_json::Map;
use serde_json::Value;

use super::error::PolicyError;
use super::field::{
    AtLeast, Field, Whole, missing_field, object, one_of, read_duration, read_within, section,
    words,
};
use super::names::{
    Authority, BucketName, HeaderName, HeaderPattern, KeyPrefix, ObjectName, ParameterName,
    ParameterPattern,
};
use super::{CookieRule, StoreVersion, TtlTable};

/// Largest size that survives a JSON number of Envoy's, a double.
const MAX_BYTES: u64 = 1 << 53;

section! {
    /// The policy of Sluice's filter: what is cached, under which key, for how long, and how requests
    /// for one key share a trip to the origin.
    struct Document {
        /// What stands behind the edge.
        origin: Origin,
        /// The store of responses.
        store: Store = Store::absent()?,
        /// How the cache key and the origin's path are made of a request's URL.
        key: Key = Key::absent()?,
        /// Which parts of a request go on to the origin.
        request: Request = Request::absent()?,
        /// What is done to responses on their way out.
        response: Response = Response::absent()?,
        /// What is stored, and for how long.
        cache: Cache = Cache::absent()?,
        /// How requests for one key share a trip to the origin.
        coalesce: Coalesce = Coalesce::absent()?,
        /// Bounds on the filter's memory.
        limits: LimitsSection = LimitsSection::absent()?,
    }
}

/// What stands behind the edge; the field `kind` says which.
#[derive(Debug)]
pub(super) enum Origin {
    Bucket(BucketSection),
    Http(HttpSection),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Bucket,
    Http,
}

words!(Kind { Bucket = "bucket", Http = "http" });

impl Field for Origin {
    fn read(value: &Value) -> Result<Self, PolicyError> {
        let kind = object(value)?
            .get("kind")
            .ok_or_else(|| missing_field("kind"))?;
        match read_within("kind", kind)? {
            Kind::Bucket => BucketSection::read_beside(Some("kind"), value).map(Self::Bucket),
            Kind::Http => HttpSection::read_beside(Some("kind"), value).map(Self::Http),
        }
    }

    #[cfg(test)]
    fn schema() -> Result<Value, PolicyError> {
        let mut kinds = [
            (Kind::Bucket, BucketSection::schema()?),
            (Kind::Http, HttpSection::schema()?),
        ];
        for (kind, schema) in &mut kinds {
            schema["properties"]["kind"] = serde_json::json!({ "const": kind.to_json() });
            // The schema is for files, in which the entry point fills in what else is required.
            schema["required"] = serde_json::json!(["kind"]);
        }
        Ok(serde_json::json!({ "oneOf": kinds.map(|(_, schema)| schema) }))
    }

    #[cfg(test)]
    fn to_json(&self) -> Value {
        Value::Null
    }
}

section! {
    /// An S3-compatible bucket.
    struct BucketSection {
        /// The bucket's name. In a file the edge fills it in, and authority too.
        bucket: BucketName,
        /// What every object key begins with; a slash at its end is implied.
        prefix: KeyPrefix = KeyPrefix(String::new()),
        /// Whether the bucket's name stands in the path or in the host.
        addressing: Addressing = Addressing::Path,
        /// Value of Host towards the bucket. With addressing virtual_host it begins with the bucket's
        /// name.
        authority: Authority,
    }
}

/// Where a bucket's name stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Addressing {
    Path,
    VirtualHost,
}

words!(Addressing { Path = "path", VirtualHost = "virtual_host" });

section! {
    /// Any HTTP server.
    struct HttpSection {
        /// Replaces the client's Host towards the origin. Default: Host goes on as it came.
        authority: Option<Authority> = None,
    }
}

section! {
    /// The store of responses.
    struct Store {
        /// Which of Envoy's cache filters stores: envoy.filters.http.cache (v1) or
        /// envoy.filters.http.cache_v2.
        version: StoreVersion = StoreVersion::V2,
        /// Larger objects are not stored.
        max_object_bytes: Whole<1, MAX_BYTES> = Whole(256 << 20),
    }
}

words!(StoreVersion { V1 = "v1", V2 = "v2" });

section! {
    /// How the cache key and the origin's path are made of a request's URL.
    struct Key {
        /// Whether the client's Host is part of the key. Default: false for a bucket, true for an
        /// HTTP origin.
        host: Option<bool> = None,
        /// Whether // in a path is one separator. Default: true for a bucket, false for an HTTP
        /// origin.
        merge_slashes: Option<bool> = None,
        /// What happens to the query string, in the key and towards the origin alike.
        query: Query = Query::absent()?,
        /// Longest decoded object key of a bucket (at most 1024), longest path of an HTTP origin.
        /// A longer one is answered with 414.
        max_bytes: Whole<1, 65_536> = Whole(1_024),
        /// Bucket only: the object that a path ending in a slash stands for. Default: none.
        index_document: Option<ObjectName> = None,
    }
}

section! {
    /// What happens to the query string, in the key and towards the origin alike.
    struct Query {
        /// drop: only the parameters of allow stay, sorted; keep: all stay, as they came; sort: all
        /// stay, sorted by name. Default: drop for a bucket, which takes no other, keep for an HTTP
        /// origin.
        mode: Option<QueryMode> = None,
        /// With mode drop: the parameters that stay.
        allow: Vec<ParameterName> = Vec::new(),
        /// With modes keep and sort: the parameters that go. A trailing * makes it the beginning of
        /// names: utm_*.
        remove: Vec<ParameterPattern> = Vec::new(),
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum QueryMode {
    Drop,
    Keep,
    Sort,
}

words!(QueryMode { Drop = "drop", Keep = "keep", Sort = "sort" });

section! {
    /// Which parts of a request go on to the origin.
    struct Request {
        /// Further request headers that a bucket may see, or that a cacheable request may take to an
        /// HTTP origin although they can change what it asks for.
        forward_headers: Vec<HeaderName> = Vec::new(),
        /// HTTP origin only, what a Cookie header means: pass sends it on and the request goes
        /// uncached; strip removes it. A bucket never sees one.
        cookies: CookieRule = CookieRule::Pass,
    }
}

words!(CookieRule { Pass = "pass", Strip = "strip" });

section! {
    /// What is done to responses on their way out.
    struct Response {
        /// Further response headers that never leave. A trailing * makes it the beginning of names.
        /// Always removed: x-amz-*, x-minio-*, x-envoy-*, x-sluice-*.
        remove_headers: Vec<HeaderPattern> = Vec::new(),
        /// Request headers that make no difference although Vary names them. Default for a bucket:
        /// origin, accept-encoding, access-control-request-method, access-control-request-headers;
        /// for an HTTP origin: none.
        ignore_vary: Option<Vec<HeaderName>> = None,
    }
}

section! {
    /// What is stored, and for how long.
    struct Cache {
        /// How long a response is fresh, by status (200), class (5xx) or default, where the origin
        /// does not say; for a 5xx also at most how long if it does. Whole seconds; 0s: not stored,
        /// whatever the origin says.
        ttl: TtlTable = default_ttl(),
        /// Whether the origin's Cache-Control and Expires count, and win where present.
        honor_cache_control: bool = true,
        /// For how long requests for a key whose response could not be stored go on without waiting
        /// for each other.
        hit_for_miss: AtLeast<1> = AtLeast(Duration::from_secs(120)),
    }
}

section! {
    /// How requests for one key share a trip to the origin.
    struct Coalesce {
        /// Whether they do.
        enabled: bool = true,
        /// After so long without progress of the request that they wait for, others go on by
        /// themselves.
        max_wait: AtLeast<1> = AtLeast(Duration::from_secs(5)),
        /// For how long a worker may fetch a key without a sign of life before another takes over.
        lease: AtLeast<100> = AtLeast(Duration::from_secs(3)),
    }
}

section! {
    /// Bounds on the filter's memory. What goes beyond them is not coalesced.
    struct LimitsSection {
        /// Requests that wait for one key, on one worker.
        waiters_per_key: Whole<1, 1_000_000> = Whole(10_000),
        /// Keys that are fetched at one time, on one worker.
        keys_in_flight: Whole<1, 1_000_000> = Whole(8_192),
        /// Keys that are remembered as fresh or as not cacheable, on one worker.
        hints: Whole<1, 10_000_000> = Whole(65_536),
    }
}

const DEFAULT_TTL: Duration = Duration::from_secs(1);

fn default_ttl() -> TtlTable {
    let hour = Duration::from_secs(3_600);
    TtlTable {
        exact: vec![
            (200, hour),
            (203, hour),
            (301, hour),
            (308, hour),
            (404, Duration::from_secs(1)),
        ],
        class: [None; 5],
        default: DEFAULT_TTL,
    }
}

impl Field for TtlTable {
    fn read(value: &Value) -> Result<Self, PolicyError> {
        let mut table = Self {
            exact: Vec::new(),
            class: [None; 5],
            default: DEFAULT_TTL,
        };
        for (key, value) in object(value)? {
            let ttl = read_ttl(value).map_err(|error| error.within(key))?;
            match TtlKey::parse(key) {
                Some(TtlKey::Default) => table.default = ttl,
                Some(TtlKey::Exact(status)) => {
                    let place = table.exact.partition_point(|(before, _)| *before < status);
                    table.exact.insert(place, (status, ttl));
                }
                Some(TtlKey::Class(class)) => {
                    if let Some(slot) = table.class.get_mut(class) {
                        *slot = Some(ttl);
                    }
                }
                None => {
                    let known = ["a status from 100 to 599", "a class such as 5xx", "default"];
                    let message = format!("not a status, expected {}", one_of(&known));
                    return Err(PolicyError::new(key, message));
                }
            }
        }
        Ok(table)
    }

    #[cfg(test)]
    fn schema() -> Result<Value, PolicyError> {
        Ok(serde_json::json!({
            "type": "object",
            "propertyNames": { "pattern": "^([1-5][0-9][0-9]|[1-5]xx|default)$" },
            "additionalProperties": {
                "type": "string",
                "pattern": "^([0-9]+(s|m|h|d)|[0-9]*000ms|0+ms)$",
            },
        }))
    }

    #[cfg(test)]
    fn to_json(&self) -> Value {
        let written = |ttl: &Duration| Value::from(crate::duration::format(*ttl));
        let exact = self
            .exact
            .iter()
            .map(|(status, ttl)| (status.to_string(), written(ttl)));
        let default = ("default".to_owned(), written(&self.default));
        Value::Object(exact.chain([default]).collect())
    }
}

enum TtlKey {
    Exact(u16),
    /// 0 is 1xx.
    Class(usize),
    Default,
}

impl TtlKey {
    fn parse(key: &str) -> Option<Self> {
        match key.as_bytes() {
            b"default" => Some(Self::Default),
            [class @ b'1'..=b'5', b'x', b'x'] => Some(Self::Class(usize::from(class - b'1'))),
            [b'1'..=b'5', b'0'..=b'9', b'0'..=b'9'] => key.parse().ok().map(Self::Exact),
            _ => None,
        }
    }
}

/// Freshness counts in seconds (RFC 9111, 1.2.2).
fn read_ttl(value: &Value) -> Result<Duration, PolicyError> {
    let ttl = read_duration(value)?;
    if ttl.subsec_nanos() == 0 {
        Ok(ttl)
    } else {
        let expected = "whole seconds such as 1s, or 0s for what is not stored";
        Err(PolicyError::unexpected(value, expected))
    }
}
