// SPDX-License-Identifier: Apache-2.0
//! From what the client sent to what is looked up, stored and asked for: one pure function.
//!
//! The canonical target *is* the cache key, and the origin is asked for nothing else. A spelling
//! that two parsers might understand differently therefore cannot store one object under the name
//! of another: either both see its one canonical spelling, or the request is refused.

pub mod qualifiers;
mod query;
pub mod vary;

use crate::http::authority::append_authority;
use crate::http::escaping::{Escaping, append_path, decoded_len, push_strict};
pub use crate::http::rejection::Rejection;
use crate::policy::{Origin, Policy};
use query::append_query;

/// What the client sent, as far as it names an object. The method is no part of it: `GET` and
/// `HEAD` share a key.
#[derive(Clone, Copy, Debug, Default)]
pub struct Target<'a> {
    /// `:scheme`; tells which port goes without saying, and is never in the key.
    pub scheme: Option<&'a str>,
    /// `:authority`.
    pub authority: &'a [u8],
    /// `:path` with its query, or an absolute-form target.
    pub path: &'a [u8],
}

/// What the edge looks up, stores under and sends on: a URL, and qualifiers that tell apart several
/// responses of that one URL. The origin never sees a qualifier.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CanonicalTarget {
    /// Authority, path and qualifiers in one: an authority contains no `/`, a path starts with one
    /// and contains no `#`, with which the qualifiers start.
    key: String,
    authority_len: usize,
    url_len: usize,
}

impl CanonicalTarget {
    /// `:authority` towards the store. See [`origin_authority`] for what the origin sees.
    pub fn authority(&self) -> &str {
        self.key.get(..self.authority_len).unwrap_or_default()
    }

    /// `:path` with its query towards the store: with the bucket, its prefix and the qualifiers.
    pub fn path(&self) -> &str {
        self.key.get(self.authority_len..).unwrap_or_default()
    }

    /// `:path` with its query towards the origin: without the qualifiers.
    pub fn origin_path(&self) -> &str {
        let range = self.authority_len..self.url_len;
        self.key.get(range).unwrap_or_default()
    }

    /// What identifies the stored response: authority, path and qualifiers.
    pub fn cache_key(&self) -> &str {
        &self.key
    }

    /// What identifies the URL, whichever of its responses is meant: authority and path.
    pub fn url(&self) -> &str {
        self.key.get(..self.url_len).unwrap_or_default()
    }

    /// The same URL without qualifiers.
    pub fn unqualified(&self) -> Self {
        Self {
            key: self.url().to_owned(),
            ..*self
        }
    }

    /// Adds a qualifier: `#name=value` to a target without any, else `;name=value`. Whatever bytes
    /// they contain, two different lists of names and values never make one key; the order counts.
    pub fn qualify(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let separator = if self.key.len() == self.url_len {
            '#'
        } else {
            ';'
        };
        self.key.push(separator);
        qualifiers::push(&mut self.key, name.as_bytes());
        self.key.push('=');
        qualifiers::push(&mut self.key, value.as_ref());
    }

    /// The headers of this response alone: what a HEAD brings, beside what a GET brings.
    #[must_use]
    pub fn for_headers(&self) -> Self {
        let mut target = self.clone();
        target.qualify(qualifiers::METHOD, qualifiers::HEAD);
        target
    }

    /// Whether it is the headers alone.
    pub fn is_for_headers(&self) -> bool {
        qualifiers::is_for_headers(self.path())
    }

    /// Another object of the same authority, without qualifiers; `path` is canonical.
    pub(crate) fn sibling(&self, path: &str) -> Self {
        let key = [self.authority(), path].concat();
        Self {
            authority_len: self.authority_len,
            url_len: key.len(),
            key,
        }
    }

    /// The same, without a copy.
    pub fn into_cache_key(self) -> String {
        self.key
    }
}

/// `:authority` towards the origin, for a request that carries `store_authority` towards the store.
pub fn origin_authority<'a>(policy: &'a Policy, store_authority: &'a str) -> &'a str {
    fixed_authority(policy).unwrap_or(store_authority)
}

fn fixed_authority(policy: &Policy) -> Option<&str> {
    match &policy.origin {
        Origin::Bucket(bucket) => Some(&bucket.authority),
        Origin::Http(http) => http.authority.as_deref(),
    }
}

/// The one spelling of `target`, or why there is none.
///
/// The authority is checked even where the policy replaces it. Nothing is normalised beyond bytes:
/// `é` in one or in two code points are two keys, as in S3. Objects whose keys cannot be told from
/// an attack cannot be asked for: those with a dot segment, a NUL byte or, where slashes are
/// merged, an empty segment.
pub fn canonicalize(policy: &Policy, target: &Target<'_>) -> Result<CanonicalTarget, Rejection> {
    let (escaping, prefix, prefix_bytes, index_document) = match &policy.origin {
        Origin::Bucket(bucket) => {
            let index_document = policy.key.index_document.as_deref().unwrap_or_default();
            (
                Escaping::Strict,
                bucket.path_prefix.as_str(),
                bucket.prefix_bytes,
                index_document,
            )
        }
        Origin::Http(_) => (Escaping::Unreserved, "", 0, ""),
    };
    let fixed_authority = if policy.key.host {
        None
    } else {
        fixed_authority(policy)
    };

    // Room for all of it, unless escapes are added.
    let authority_room = target
        .authority
        .len()
        .max(fixed_authority.map_or(0, str::len));
    let mut out = Vec::with_capacity(
        authority_room + prefix.len() + target.path.len() + index_document.len() + 1,
    );

    let resource = append_target_authority(&mut out, target)?;
    if let Some(fixed) = fixed_authority {
        out.clear();
        out.extend_from_slice(fixed.as_bytes());
    }
    let authority_len = out.len();
    out.extend_from_slice(prefix.as_bytes());

    let mut halves = resource.splitn(2, |&byte| byte == b'?');
    let path = halves
        .next()
        .filter(|path| !path.is_empty())
        .unwrap_or(b"/");
    let root = out.len();
    append_path(&mut out, path, escaping, policy.key.merge_slashes)?;
    strip_prefix(&mut out, root, &policy.key.strip_prefix)?;
    if escaping == Escaping::Strict {
        if out.ends_with(b"/") {
            index_document
                .bytes()
                .for_each(|byte| push_strict(&mut out, byte));
        }
        check_object(
            out.get(root..).unwrap_or_default(),
            prefix_bytes,
            policy.key.max_bytes,
        )?;
    } else if out.len() - root > policy.key.max_bytes {
        return Err(Rejection::KeyTooLong);
    }
    if let Some(query) = halves.next() {
        append_query(&mut out, query, &policy.key.query, escaping)?;
    }
    // All of it is ASCII.
    let key = String::from_utf8(out).map_err(|_| Rejection::InvalidUtf8)?;
    let url_len = key.len();
    Ok(CanonicalTarget {
        key,
        authority_len,
        url_len,
    })
}

/// What the URL of every [`canonicalize`]d target begins with whose path begins as that of `target`
/// does. A query is not part of it.
pub fn canonicalize_prefix(policy: &Policy, target: &Target<'_>) -> Result<String, Rejection> {
    let (escaping, prefix) = match &policy.origin {
        Origin::Bucket(bucket) => (Escaping::Strict, bucket.path_prefix.as_str()),
        Origin::Http(_) => (Escaping::Unreserved, ""),
    };
    let mut out = Vec::new();
    let path = append_target_authority(&mut out, target)?;
    if let (false, Some(fixed)) = (policy.key.host, fixed_authority(policy)) {
        out.clear();
        out.extend_from_slice(fixed.as_bytes());
    }
    out.extend_from_slice(prefix.as_bytes());
    let root = out.len();
    append_path(&mut out, path, escaping, policy.key.merge_slashes)?;
    let stripped = policy.key.strip_prefix.as_bytes();
    if stripped.starts_with(out.get(root..).unwrap_or_default()) {
        // All that is served is below it.
        out.truncate(root);
        out.push(b'/');
    } else {
        strip_prefix(&mut out, root, &policy.key.strip_prefix)?;
    }
    String::from_utf8(out).map_err(|_| Rejection::InvalidUtf8)
}

/// Takes the prefix from the path that starts at `root`.
fn strip_prefix(out: &mut Vec<u8>, root: usize, prefix: &str) -> Result<(), Rejection> {
    let path = out.get(root..).unwrap_or_default();
    let below = path.strip_prefix(prefix.as_bytes());
    // `/static` is not below itself, and `/statics` is not at all.
    if !below.is_some_and(|rest| rest.starts_with(b"/")) {
        return Err(Rejection::NoObject);
    }
    out.drain(root..root + prefix.len());
    Ok(())
}

/// A key of slashes alone names no object that anybody stores, and S3 might answer with the listing
/// of the bucket.
fn check_object(path: &[u8], prefix_bytes: usize, max_bytes: usize) -> Result<(), Rejection> {
    if path.iter().all(|&byte| byte == b'/') {
        return Err(Rejection::NoObject);
    }
    // The path's leading slash is not part of the key.
    if decoded_len(path) - 1 + prefix_bytes > max_bytes {
        return Err(Rejection::KeyTooLong);
    }
    Ok(())
}

/// Appends the authority and gives the path with its query.
///
/// An absolute-form target must name the authority that the request names anyway (Envoy has taken
/// it over from an HTTP/1 request line): where they differ, two parsers would see two hosts.
fn append_target_authority<'a>(
    out: &mut Vec<u8>,
    target: &Target<'a>,
) -> Result<&'a [u8], Rejection> {
    append_authority(out, target.authority, target.scheme)?;
    if target.path.starts_with(b"/") {
        return Ok(target.path);
    }
    let (scheme, rest) = split_scheme(target.path).ok_or(Rejection::RequestTarget)?;
    let end = rest
        .iter()
        .position(|byte| matches!(byte, b'/' | b'?' | b'#' | b'\\'))
        .unwrap_or(rest.len());
    let (authority, resource) = rest.split_at(end);
    let mut named = Vec::with_capacity(authority.len());
    append_authority(&mut named, authority, Some(scheme))?;
    if named == *out {
        Ok(resource)
    } else {
        Err(Rejection::Authority)
    }
}

fn split_scheme(path: &[u8]) -> Option<(&'static str, &[u8])> {
    [("http", "http://"), ("https", "https://")]
        .into_iter()
        .find_map(|(scheme, start)| {
            let (head, rest) = path.split_at_checked(start.len())?;
            head.eq_ignore_ascii_case(start.as_bytes())
                .then_some((scheme, rest))
        })
}
