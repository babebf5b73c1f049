// SPDX-License-Identifier: Apache-2.0
//! From the document to the policy: defaults that depend on the origin's kind, and what fields mean
//! for each other.

use serde_json::Value;

use super::document::{
    Addressing, BucketSection, Cache, Document, Key, Origin as OriginSection, Query, QueryMode,
};
use super::error::PolicyError;
use super::field::Field;
use super::names::{self, HeaderName, HeaderPattern};
use super::{
    BucketOrigin, CachePolicy, CoalescePolicy, HttpOrigin, KeyPolicy, Limits, NamePattern, Origin,
    Policy, QueryRule, RequestPolicy, ResponsePolicy,
};
use crate::escaping::escape_key;
use crate::request::forward_header;

/// Response headers that never leave the edge.
const HIDDEN_HEADERS: [&str; 4] = ["x-amz-*", "x-minio-*", "x-envoy-*", "x-sluice-*"];

/// What a bucket's `Vary` names, but its objects do not depend on.
const BUCKET_IGNORES: [&str; 4] = [
    "origin",
    "accept-encoding",
    "access-control-request-method",
    "access-control-request-headers",
];

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
    let origin = match document.origin {
        OriginSection::Bucket(section) => Origin::Bucket(compile_bucket(section, key.max_bytes)?),
        OriginSection::Http(section) => {
            let authority = section.authority.map(|authority| authority.0);
            if !key.host && authority.is_none() {
                let message = "false: expected true, since without origin.authority the origin \
                               sees the client's Host";
                return Err(PolicyError::new("key.host", message));
            }
            Origin::Http(HttpOrigin { authority })
        }
    };
    let ignore_vary = match document.response.ignore_vary {
        Some(listed) => lower_case(listed),
        None if bucket => BUCKET_IGNORES.map(str::to_owned).into(),
        None => Vec::new(),
    };
    let policy = Policy {
        store: document.store.version,
        origin,
        key,
        request: RequestPolicy {
            forward_headers: lower_case(document.request.forward_headers),
            cookies: document.request.cookies,
        },
        response: ResponsePolicy {
            remove_headers: hidden_headers(document.response.remove_headers),
            ignore_vary,
        },
        cache: compile_cache(document.cache, document.store.max_object_bytes.0),
        coalesce: CoalescePolicy {
            enabled: document.coalesce.enabled,
            max_wait: document.coalesce.max_wait.0,
            lease: document.coalesce.lease.0,
        },
        limits: Limits {
            waiters_per_key: document.limits.waiters_per_key.size(),
            keys_in_flight: document.limits.keys_in_flight.size(),
            hints: document.limits.hints.size(),
        },
    };
    check_forward_headers(&policy)?;
    Ok(policy)
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
    Ok(KeyPolicy {
        host: section.host.unwrap_or(!bucket),
        merge_slashes: section.merge_slashes.unwrap_or(bucket),
        query: compile_query(section.query, bucket)
            .map_err(|error| error.within("query").within("key"))?,
        max_bytes,
        index_document,
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

fn compile_cache(section: Cache, max_object_bytes: u64) -> CachePolicy {
    CachePolicy {
        ttl: section.ttl,
        honor_cache_control: section.honor_cache_control,
        hit_for_miss: section.hit_for_miss.0,
        max_object_bytes,
    }
}

fn lower_case(names: Vec<HeaderName>) -> Vec<String> {
    names.into_iter().map(|name| name.0).collect()
}

fn hidden_headers(listed: Vec<HeaderPattern>) -> Vec<NamePattern> {
    let built_in = HIDDEN_HEADERS.into_iter().map(names::pattern);
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
