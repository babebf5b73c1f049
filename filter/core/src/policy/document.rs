// SPDX-License-Identifier: Apache-2.0
//! The policy as people write it: every field, what it accepts, and its default.

use std::time::Duration;

#[cfg(test)]
use serde_json::Map;
use serde_json::Value;

use super::error::PolicyError;
use super::field::{
    AtLeast, Field, Seconds, Whole, missing_field, object, read_within, section, words,
};
use super::names::{
    Authority, BucketName, HeaderName, HeaderPattern, KeyPrefix, MediaType, ObjectName,
    ParameterName, ParameterPattern, PathGlob,
};
use super::rules::RuleSection;
use super::site::SiteSection;
use super::site_names::StripPrefix;
use super::ttl::default_ttl;
use super::{Obedience, PassOrStrip, TtlTable};
use crate::http::accept_encoding::Coding;
use crate::http::targeted::SURROGATE_CONTROL;
use crate::policy::purge::{Record, TokenHash};

/// Largest size that survives a JSON number of Envoy's, a double.
const MAX_BYTES: u64 = 1 << 53;

/// A worker's VM can address 4 GiB in all.
const MAX_HOT_BYTES: u64 = 1 << 30;

section! {
    /// The policy of Sluice's filter: what is cached, under which key, for how long, and how requests
    /// for one key share a trip to the origin.
    struct Document {
        /// What stands behind the edge.
        origin: Origin,
        /// The store of responses.
        store: Store = Store::absent()?,
        /// Small objects in each worker's own memory, before the store.
        hot: Hot = Hot::absent()?,
        /// How the cache key and the origin's path are made of a request's URL.
        key: Key = Key::absent()?,
        /// Which parts of a request go on to the origin.
        request: Request = Request::absent()?,
        /// How responses are changed on their way to clients.
        response: Response = Response::absent()?,
        /// A bucket as a web site, and cross-origin resource sharing for any origin.
        site: SiteSection = SiteSection::absent()?,
        /// What is stored, and for how long.
        cache: Cache = Cache::absent()?,
        /// Which responses are compressed on their way into the cache, once for each coding.
        compression: Compression = Compression::absent()?,
        /// How responses of an HTTP origin that vary with request headers are told apart.
        vary: Vary = Vary::absent()?,
        /// How responses for some paths are cached and shown; the first rule that fits counts.
        rules: Vec<RuleSection> = Vec::new(),
        /// How requests for one key share a trip to the origin.
        coalesce: Coalesce = Coalesce::absent()?,
        /// How purges are authorized, and what was purged before.
        purge: PurgeSection = PurgeSection::absent()?,
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
        /// The prefix of every object key; a slash at its end is implied.
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
        /// The largest object that is stored, in bytes. Envoy's cache reads on however slowly a
        /// client takes an object, so each slow client may hold as much in memory.
        max_object_bytes: Whole<1, MAX_BYTES> = Whole(16 << 20),
    }
}

section! {
    /// Small objects that are asked for often, in each worker's own memory, before the store.
    struct Hot {
        /// How much of its memory one worker may use for hot copies, in bytes. 0: there are none.
        max_bytes: Whole<0, MAX_HOT_BYTES> = Whole(0),
        /// The largest object that may become a hot copy, in bytes.
        max_object_bytes: Whole<1, MAX_HOT_BYTES> = Whole(64 << 10),
    }
}

section! {
    /// How the cache key and the origin's path are made of a request's URL.
    struct Key {
        /// Whether the client's Host is part of the key. Default: false for a bucket, true for an
        /// HTTP origin.
        host: Option<bool> = None,
        /// Whether // in a path is one separator. Default: true for a bucket, false for an HTTP
        /// origin.
        merge_slashes: Option<bool> = None,
        /// How the query string is treated, in the key and towards the origin alike.
        query: Query = Query::absent()?,
        /// Longest decoded object key of a bucket (at most 1024), longest path of an HTTP origin.
        /// A longer one is answered with 414.
        max_bytes: Whole<1, 65_536> = Whole(1_024),
        /// Bucket only: the object that a path ending in a slash stands for. Default: none.
        index_document: Option<ObjectName> = None,
        /// A prefix that is removed from every path: with /static, /static/a.js is a.js of the
        /// bucket or /a.js of an HTTP origin. A path that is not below the prefix is answered with
        /// 404. Default: none.
        strip_prefix: Option<StripPrefix> = None,
    }
}

section! {
    /// How the query string is treated, in the key and towards the origin alike.
    struct Query {
        /// drop: only the parameters of allow stay, sorted; keep: all stay, as they came; sort: all
        /// stay, sorted by name. Default: drop for a bucket, which takes no other, keep for an HTTP
        /// origin.
        mode: Option<QueryMode> = None,
        /// With mode drop: the parameters that stay.
        allow: Vec<ParameterName> = Vec::new(),
        /// With modes keep and sort: the parameters that are removed. A trailing * stands for any
        /// rest of the name: utm_*.
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
        /// Further request headers that a bucket may see, or that a cacheable request may take to
        /// an HTTP origin although they can change the response.
        forward_headers: Vec<HeaderName> = Vec::new(),
        /// HTTP origin only: how a request with Cookie is treated. pass: it goes on uncached.
        /// strip: the header is removed. A bucket never sees one.
        cookies: PassOrStrip = PassOrStrip::Pass,
        /// HTTP origin only: how a request with Authorization is treated. pass: it goes on
        /// uncached, whatever the response says of public or s-maxage. strip: the header is
        /// removed. A bucket never sees one.
        authorization: PassOrStrip = PassOrStrip::Pass,
        /// Whether a client's Cache-Control and Pragma count. ignore: they do not, since with
        /// no-cache, no-store or max-age any client could load the origin. obey: they do, for
        /// clients that may.
        cache_control: Obedience = Obedience::Ignore,
    }
}

words!(Obedience { Ignore = "ignore", Obey = "obey" });

words!(PassOrStrip { Pass = "pass", Strip = "strip" });

section! {
    /// How responses are changed on their way to clients.
    struct Response {
        /// Further response headers that never leave. A trailing * makes it the beginning of names.
        /// Always removed: x-amz-*, x-minio-*, x-envoy-*, x-sluice-*, surrogate-control,
        /// surrogate-key, xkey; of a bucket
        /// also what its server says of itself: x-goog-*, x-guploader-*, x-oss-*, x-ratelimit-*,
        /// x-rgw-*, x-wasabi-*, content-security-policy, strict-transport-security,
        /// x-xss-protection.
        remove_headers: Vec<HeaderPattern> = Vec::new(),
        /// Request headers that make no difference although Vary names them. Default for a bucket:
        /// origin, accept-encoding, access-control-request-method, access-control-request-headers;
        /// for an HTTP origin: none.
        ignore_vary: Option<Vec<HeaderName>> = None,
        /// Whether Envoy is told the result, key, role and times of each request, as filter state whose names begin
        /// with wasm.sluice; the edge's entry point fills it in: where neither access log nor traces show them,
        /// telling would be a waste.
        account: bool = true,
    }
}

section! {
    /// What is stored, and for how long.
    struct Cache {
        /// How long a response is fresh, by status (200), class (5xx) or default, where the origin
        /// does not say; for a 5xx also at most how long if it does. Whole seconds; 0s: not stored,
        /// whatever the origin says.
        ttl: TtlTable = default_ttl(),
        /// Whether the origin's targeted fields, Cache-Control and Expires count. Where present,
        /// they win over the policy.
        honor_cache_control: bool = true,
        /// Response headers that win over Cache-Control and Expires; the first that is present and
        /// valid counts. They are targeted fields as in RFC 9213, and surrogate-control, which
        /// clients never see.
        targeted_fields: Vec<HeaderName> = default_targeted_fields(),
        /// The time to live where the origin sends only Last-Modified: this many percent of the
        /// time since then, and at most the value of ttl. 0: ttl alone decides.
        heuristic_percent: Whole<0, 100> = Whole(0),
        /// How long after its time to live a response with a status below 400 is served while one
        /// request in the background refreshes it, where the origin does not say. Whole seconds.
        /// Default: 60s for a bucket, 0s for an HTTP origin.
        stale_while_revalidate: Option<Seconds> = None,
        /// How long after its time to live a response with a status below 500 is served while the
        /// origin fails, where the origin does not say. Whole seconds. Default: 1d for a bucket, 0s
        /// for an HTTP origin.
        stale_if_error: Option<Seconds> = None,
        /// How long the origin may be silent before a stale response is served as if the origin had
        /// failed. Shorter than coalesce.max_wait, or waiting requests would go on by themselves
        /// before.
        stale_if_error_timeout: AtLeast<1> = AtLeast(Duration::from_secs(4)),
        /// The least time between two requests to the origin for a key that is served stale; up to
        /// half of it is added at random.
        retry_interval: AtLeast<1> = AtLeast(Duration::from_secs(2)),
        /// How a response with Set-Cookie is treated. pass: it goes on as it is and is not stored.
        /// strip: Set-Cookie is removed from a response that could be stored without it, and that
        /// is stored.
        set_cookie: PassOrStrip = PassOrStrip::Pass,
        /// How long requests for a key whose response could not be stored go on without waiting for
        /// each other.
        hit_for_miss: AtLeast<1> = AtLeast(Duration::from_secs(120)),
    }
}

section! {
    /// Which responses are compressed on their way into the cache, once for each coding.
    struct Compression {
        /// Whether responses are compressed. Default: true for a bucket, false for an HTTP origin,
        /// which may compress by itself.
        enabled: Option<bool> = None,
        /// The codings that clients can get, the preferred one first. An HTTP origin sees the one
        /// coding that suits the request as its Accept-Encoding.
        codings: Vec<Coding> = vec![Coding::Brotli, Coding::Zstd, Coding::Gzip],
        /// The smallest response that is compressed, in bytes.
        min_bytes: Whole<0, MAX_BYTES> = Whole(1_024),
        /// Media types of the responses that are compressed.
        content_types: Vec<MediaType> = default_content_types(),
        /// Paths on which responses may be compressed, without bucket, prefix and query; * stands for
        /// any characters, slashes included. On these each coding is an entry of its own. Default:
        /// those that end in a slash, have no extension, or one that text has.
        paths: Option<Vec<PathGlob>> = None,
    }
}

words!(Coding { Brotli = "br", Zstd = "zstd", Gzip = "gzip" });

fn default_content_types() -> Vec<MediaType> {
    let types = crate::policy::compression::CONTENT_TYPES.map(str::to_owned);
    types.map(MediaType).into()
}

section! {
    /// How responses of an HTTP origin that vary with request headers are told apart.
    struct Vary {
        /// Request headers that make a response uncacheable: a response whose Vary names one of
        /// them is not stored.
        forbid: Vec<HeaderName> = vec![HeaderName("cookie".into()), HeaderName("user-agent".into())],
        /// The most headers that Vary may name; a response with more is not stored.
        max_headers: Whole<0, 16> = Whole(4),
        /// The longest value of a header that Vary names, in bytes; requests with a longer one go
        /// around the cache.
        max_value_bytes: Whole<1, 4_096> = Whole(256),
    }
}

section! {
    /// How purges are authorized, and what was purged before.
    struct PurgeSection {
        /// SHA-256 of the token that a purge carries, in hexadecimal. Default: purges are off.
        token_sha256: Option<TokenHash> = None,
        /// Which of the store's entries former processes have purged. The entry point keeps this
        /// and fills it in. Default: unknown, so that a start which could bring back a purged entry
        /// begins with an empty store.
        journal: Option<Vec<Record>> = None,
        /// Whether the entry point records purges. It fills this in.
        recorded: bool = false,
        /// Whether the store holds entries of former processes. The entry point fills this in.
        warm: bool = true,
        /// Whether messages of Amazon SNS are accepted. The entry point verifies them, and fills
        /// this in.
        sns: bool = false,
    }
}

section! {
    /// How requests for one key share a trip to the origin.
    struct Coalesce {
        /// Whether requests for one key share a trip to the origin.
        enabled: bool = true,
        /// How long requests wait for a leader that makes no progress before they go on by
        /// themselves.
        max_wait: AtLeast<1> = AtLeast(Duration::from_secs(5)),
        /// How long a worker may fetch a key without a sign of life before another worker takes
        /// over.
        lease: AtLeast<100> = AtLeast(Duration::from_secs(3)),
    }
}

section! {
    /// Bounds on the filter's memory. What goes beyond them is not coalesced, or forgotten.
    struct LimitsSection {
        /// How many requests may wait for one key on one worker.
        waiters_per_key: Whole<1, 1_000_000> = Whole(10_000),
        /// How many keys one worker fetches at one time.
        keys_in_flight: Whole<1, 1_000_000> = Whole(8_192),
        /// How many keys one worker remembers as fresh or as uncacheable.
        hints: Whole<1, 10_000_000> = Whole(65_536),
        /// How many URLs one worker remembers the varying headers of.
        varying_urls: Whole<1, 10_000_000> = Whole(8_192),
    }
}

fn default_targeted_fields() -> Vec<HeaderName> {
    ["cdn-cache-control", SURROGATE_CONTROL]
        .map(|name| HeaderName(name.to_owned()))
        .into()
}
