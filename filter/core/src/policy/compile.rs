// SPDX-License-Identifier: Apache-2.0
//! From the document to the policy: defaults that depend on the origin's kind, and what fields mean
//! for each other.

use std::time::Duration;

use serde_json::Value;

use super::document::{
    Addressing, BucketSection, Cache, Compression, Document, Key, LimitsSection,
    Origin as OriginSection, PurgeSection, Query, QueryMode,
};
use super::error::PolicyError;
use super::field::{Field, Seconds};
use super::names::{self, HeaderName, HeaderPattern};
use super::rules::{self, Rule};
use super::site;
use super::site_names::StripPrefix;
use super::{
    BucketOrigin, CachePolicy, CoalescePolicy, CompressionPolicy, HotPolicy, HttpOrigin, KeyPolicy,
    Limits, NamePattern, Origin, Policy, PurgePolicy, QueryRule, RequestPolicy, ResponsePolicy,
    VaryPolicy, forward_header,
};
use crate::http::escaping::{Escaping, append_path, escape_key};
use crate::http::targeted::SURROGATE_CONTROL;

/// Response headers that never leave the edge.
const HIDDEN_HEADERS: [&str; 7] = [
    "surrogate-key",
    "xkey",
    "x-amz-*",
    "x-minio-*",
    "x-envoy-*",
    "x-sluice-*",
    SURROGATE_CONTROL,
];

/// What a bucket's server says of itself and of the host that it is, but not of the site in the bucket:
/// with a storage server's `Strict-Transport-Security` a browser would leave a site that has no TLS.
const BUCKET_HIDES: [&str; 9] = [
    "content-security-policy",
    "strict-transport-security",
    "x-goog-*",
    "x-guploader-*",
    "x-oss-*",
    "x-ratelimit-*",
    "x-rgw-*",
    "x-wasabi-*",
    "x-xss-protection",
];

/// What a bucket's `Vary` names, but its objects do not depend on.
const BUCKET_IGNORES: [&str; 4] = [
    "origin",
    "accept-encoding",
    "access-control-request-method",
    "access-control-request-headers",
];

/// For how long a bucket's objects may be served while they are refreshed.
const BUCKET_STALE_WHILE_REVALIDATE: Duration = Duration::from_secs(60);
/// For how long a bucket's objects may be served while the bucket fails.
const BUCKET_STALE_IF_ERROR: Duration = Duration::from_secs(86_400);

/// S3's own limit.
const MAX_OBJECT_KEY_BYTES: usize = 1_024;

impl Policy {
    /// Reads the policy's document from JSON.
    pub fn parse(document: &[u8]) -> Result<Self, PolicyError> {
        let value: Value = serde_json::from_slice(document)
            .map_err(|error| PolicyError::new("", format!("no JSON document: {error}")))?;
        compile(Document::read(&value)?)
    }
}

fn compile(document: Document) -> Result<Policy, PolicyError> {
    let bucket = matches!(document.origin, OriginSection::Bucket(_));
    let key = compile_key(document.key, bucket)?;
    let origin = compile_origin(document.origin, &key)?;
    let ignore_vary = ignored_vary(
        document.response.ignore_vary,
        bucket,
        document.site.cors.is_some(),
    );
    let cache = compile_cache(document.cache, bucket, document.store.max_object_bytes.0);
    let escaping = if bucket {
        Escaping::Strict
    } else {
        Escaping::Unreserved
    };
    let rules = rules::compile(document.rules, &cache.default, escaping)?;
    let site = site::compile(document.site, bucket, key.index_document.as_deref())
        .map_err(|error| error.within("site"))?;
    let policy = Policy {
        hot: HotPolicy {
            max_bytes: document.hot.max_bytes.size(),
            max_object_bytes: document.hot.max_object_bytes.size(),
        },
        origin,
        key,
        request: RequestPolicy {
            forward_headers: lower_case(document.request.forward_headers),
            cookies: document.request.cookies,
            authorization: document.request.authorization,
            cache_control: document.request.cache_control,
        },
        response: ResponsePolicy {
            remove_headers: hidden_headers(document.response.remove_headers, bucket),
            ignore_vary,
            account: document.response.account,
        },
        compression: compile_compression(document.compression, bucket)
            .map_err(|error| error.within("compression"))?,
        vary: VaryPolicy {
            forbid: lower_case(document.vary.forbid),
            max_headers: document.vary.max_headers.size(),
            max_value_bytes: document.vary.max_value_bytes.size(),
        },
        cache,
        rules,
        site,
        coalesce: CoalescePolicy {
            enabled: document.coalesce.enabled,
            max_wait: document.coalesce.max_wait.0,
            lease: document.coalesce.lease.0,
        },
        purge: compile_purge(document.purge),
        limits: compile_limits(&document.limits),
    };
    check_forward_headers(&policy)?;
    Ok(policy)
}

fn compile_purge(section: PurgeSection) -> PurgePolicy {
    PurgePolicy {
        token: section.token_sha256,
        journal: section.journal,
        recorded: section.recorded,
        warm: section.warm,
        sns: section.sns,
    }
}

fn compile_limits(section: &LimitsSection) -> Limits {
    Limits {
        waiters_per_key: section.waiters_per_key.size(),
        keys_in_flight: section.keys_in_flight.size(),
        hints: section.hints.size(),
        varying_urls: section.varying_urls.size(),
    }
}

fn compile_origin(section: OriginSection, key: &KeyPolicy) -> Result<Origin, PolicyError> {
    let section = match section {
        OriginSection::Bucket(section) => {
            return compile_bucket(section, key.max_bytes).map(Origin::Bucket);
        }
        OriginSection::Http(section) => section,
    };
    let authority = section.authority.map(|authority| authority.0);
    if !key.host && authority.is_none() {
        let message = "false: expected true, since without origin.authority the origin sees the \
                       client's Host";
        return Err(PolicyError::new("key.host", message));
    }
    Ok(Origin::Http(HttpOrigin { authority }))
}

/// Names in `Vary` that tell no responses apart. The edge answers for CORS itself where it is on.
fn ignored_vary(listed: Option<Vec<HeaderName>>, bucket: bool, cors: bool) -> Vec<String> {
    let mut ignored = match listed {
        Some(listed) => lower_case(listed),
        None if bucket => BUCKET_IGNORES.map(str::to_owned).into(),
        None => Vec::new(),
    };
    if cors {
        ignored.extend(site::CORS_REQUEST_HEADERS.map(str::to_owned));
    }
    ignored
}

fn compile_bucket(section: BucketSection, max_bytes: usize) -> Result<BucketOrigin, PolicyError> {
    let prefix = section.prefix.0;
    let prefix_bytes = match prefix.len() {
        0 => 0,
        bytes => bytes + 1,
    };
    if prefix_bytes >= max_bytes {
        let expected = format!("fewer than key.max_bytes, {max_bytes}, with its slash");
        return Err(PolicyError::text("origin.prefix", &prefix, &expected));
    }
    let (bucket, authority) = (section.bucket.0, section.authority.0);
    let mut path_prefix = String::new();
    match section.addressing {
        Addressing::Path => path_prefix = format!("/{bucket}"),
        // NB: on a host that names no bucket, the client's first segment would name one.
        Addressing::VirtualHost if !names_bucket(&authority, &bucket) => {
            let expected = format!("{bucket}.HOST, since addressing is virtual_host");
            return Err(PolicyError::text("origin.authority", &authority, &expected));
        }
        Addressing::VirtualHost => {}
    }
    if !prefix.is_empty() {
        path_prefix.push('/');
        path_prefix.push_str(&escape_key(&prefix));
    }
    Ok(BucketOrigin {
        authority,
        path_prefix,
        prefix_bytes,
    })
}

/// Whether the host is the bucket's, by a name below the endpoint's or by the bucket's own.
fn names_bucket(authority: &str, bucket: &str) -> bool {
    authority
        .split_at_checked(bucket.len())
        .is_some_and(|(host, rest)| {
            host.eq_ignore_ascii_case(bucket)
                && matches!(rest.bytes().next(), None | Some(b'.' | b':'))
        })
}

fn compile_key(section: Key, bucket: bool) -> Result<KeyPolicy, PolicyError> {
    let max_bytes = section.max_bytes.size();
    if bucket && max_bytes > MAX_OBJECT_KEY_BYTES {
        let message = format!("{max_bytes}: expected at most {MAX_OBJECT_KEY_BYTES} for a bucket");
        return Err(PolicyError::new("key.max_bytes", message));
    }
    let index_document = section.index_document.map(|name| name.0);
    if let (false, Some(name)) = (bucket, &index_document) {
        return Err(PolicyError::text(
            "key.index_document",
            name,
            "none for an HTTP origin",
        ));
    }
    let merge_slashes = section.merge_slashes.unwrap_or(bucket);
    Ok(KeyPolicy {
        host: section.host.unwrap_or(!bucket),
        merge_slashes,
        query: compile_query(section.query, bucket)
            .map_err(|error| error.within("query").within("key"))?,
        max_bytes,
        index_document,
        strip_prefix: compile_strip_prefix(section.strip_prefix, bucket, merge_slashes)?,
    })
}

/// The prefix as canonical paths spell it.
fn compile_strip_prefix(
    prefix: Option<StripPrefix>,
    bucket: bool,
    merge_slashes: bool,
) -> Result<String, PolicyError> {
    let Some(StripPrefix(path)) = prefix else {
        return Ok(String::new());
    };
    if bucket {
        return Ok(escape_key(&path));
    }
    let mut canonical = Vec::new();
    let spelled = append_path(
        &mut canonical,
        path.as_bytes(),
        Escaping::Unreserved,
        merge_slashes,
    );
    let canonical = String::from_utf8(canonical).ok();
    canonical.filter(|_| spelled.is_ok()).ok_or_else(|| {
        let expected = "a path that is percent-encoded as in a URL";
        PolicyError::text("key.strip_prefix", &path, expected)
    })
}

fn compile_query(section: Query, bucket: bool) -> Result<QueryRule, PolicyError> {
    let by_kind = if bucket {
        QueryMode::Drop
    } else {
        QueryMode::Keep
    };
    let mode = section.mode.unwrap_or(by_kind);
    if bucket && !matches!(mode, QueryMode::Drop) {
        let message = "expected drop for a bucket, with the parameters that stay in allow: others \
                       reach what is not for clients, such as ?acl";
        return Err(PolicyError::new("mode", message));
    }
    let refuse_list = |name, mode| {
        Err(PolicyError::new(
            name,
            format!("expected no such list with mode {mode}"),
        ))
    };
    match mode {
        QueryMode::Drop if !section.remove.is_empty() => refuse_list("remove", "drop"),
        QueryMode::Keep if !section.allow.is_empty() => refuse_list("allow", "keep"),
        QueryMode::Sort if !section.allow.is_empty() => refuse_list("allow", "sort"),
        QueryMode::Drop => Ok(QueryRule::Drop {
            allow: section.allow.into_iter().map(|name| name.0).collect(),
        }),
        QueryMode::Keep => Ok(QueryRule::Keep {
            remove: section.remove.into_iter().map(|name| name.0).collect(),
        }),
        QueryMode::Sort => Ok(QueryRule::Sort {
            remove: section.remove.into_iter().map(|name| name.0).collect(),
        }),
    }
}

fn compile_cache(section: Cache, bucket: bool, max_object_bytes: u64) -> CachePolicy {
    let by_kind = |listed: Option<Seconds>, of_bucket| match listed {
        Some(Seconds(listed)) => listed,
        None if bucket => of_bucket,
        None => Duration::ZERO,
    };
    CachePolicy {
        default: Rule {
            ttl: section.ttl,
            honor_cache_control: section.honor_cache_control,
            stale_while_revalidate: by_kind(
                section.stale_while_revalidate,
                BUCKET_STALE_WHILE_REVALIDATE,
            ),
            stale_if_error: by_kind(section.stale_if_error, BUCKET_STALE_IF_ERROR),
            client_cache_control: None,
            headers: Vec::new(),
        },
        targeted_fields: lower_case(section.targeted_fields),
        heuristic_percent: section.heuristic_percent.0,
        stale_if_error_timeout: section.stale_if_error_timeout.0,
        retry_interval: section.retry_interval.0,
        set_cookie: section.set_cookie,
        hit_for_miss: section.hit_for_miss.0,
        max_object_bytes,
    }
}

fn compile_compression(
    section: Compression,
    bucket: bool,
) -> Result<CompressionPolicy, PolicyError> {
    for (index, coding) in section.codings.iter().enumerate() {
        if section
            .codings
            .iter()
            .take(index)
            .any(|before| before == coding)
        {
            let path = format!("codings[{index}]");
            return Err(PolicyError::text(&path, coding.token(), "each coding once"));
        }
    }
    Ok(CompressionPolicy {
        enabled: section.enabled.unwrap_or(bucket),
        codings: section.codings,
        min_bytes: section.min_bytes.0,
        content_types: section
            .content_types
            .into_iter()
            .map(|name| name.0)
            .collect(),
        paths: section
            .paths
            .map(|globs| globs.into_iter().map(|glob| glob.0).collect()),
    })
}

fn lower_case(names: Vec<HeaderName>) -> Vec<String> {
    names.into_iter().map(|name| name.0).collect()
}

fn hidden_headers(listed: Vec<HeaderPattern>, bucket: bool) -> Vec<NamePattern> {
    let of_bucket = BUCKET_HIDES.into_iter().filter(|_| bucket);
    let built_in = HIDDEN_HEADERS
        .into_iter()
        .chain(of_bucket)
        .map(names::pattern);
    built_in
        .chain(listed.into_iter().map(|pattern| pattern.0))
        .collect()
}

/// Refuses names that have no effect, and those by which a client would get at what is signed,
/// framed or asked for.
fn check_forward_headers(policy: &Policy) -> Result<(), PolicyError> {
    for (index, name) in policy.request.forward_headers.iter().enumerate() {
        let reserved = matches!(name.as_str(), "authorization" | "content-length" | "host")
            || name.starts_with("x-amz-")
            || !forward_header(policy, true, name);
        if reserved {
            let path = format!("request.forward_headers[{index}]");
            let expected = "a header that is the client's to set: not one of the connection's, \
                            Envoy's, the signature's or the filter's own, no range and no condition";
            return Err(PolicyError::text(&path, name, expected));
        }
    }
    Ok(())
}
