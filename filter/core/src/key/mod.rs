// SPDX-License-Identifier: Apache-2.0
//! Canonical targets: one pure function from a client's request target to the cache key and the origin's URL.
//!
//! The canonical target *is* the cache key, and the origin gets exactly this URL. Two parsers may understand one
//! spelling differently, but such a spelling cannot store one object under the name of another: either both parsers
//! see the one canonical spelling, or the edge refuses the request.

pub mod client_url;
mod declared_soft;
mod object;
pub mod qualifiers;
mod query;
pub mod secret;
pub mod vary;

use crate::http::url::authority::append_authority;
use crate::http::url::escaping::{Escaping, append_path, decoded_len, push_strict};
pub use crate::http::url::rejection::Rejection;
use crate::policy::purge::FEED_NAME;
use crate::policy::{KeyPolicy, Origin, Policy, is_for_edges};
pub use object::{target_of_object, target_of_url};
use query::append_query;
pub(crate) use query::decoded_name;

/// End of the site's name, in front of the authority in a key. No authority contains it.
pub const NAME_END: &str = "!";

/// Longest query towards a bucket, in bytes, apart from the bound on its object keys. The query has the parameters of
/// `key.query.allow` only.
const MAX_QUERY_BYTES: usize = 8_000;

/// Name of the site of a key; empty if the edge has one site without a name.
pub fn site_of(key: &str) -> &str {
    let authority = key.split('/').next().unwrap_or_default();
    authority.split_once(NAME_END).map_or("", |(name, _)| name)
}

/// The parts of a client's request that name an object. The method is not one of them, because `GET` and `HEAD` share
/// a key.
#[derive(Clone, Copy, Debug, Default)]
pub struct Target<'a> {
    /// `:scheme`. It decides which port is the default, and is never in the key.
    pub scheme: Option<&'a str>,
    /// `:authority`.
    pub authority: &'a [u8],
    /// `:path` with its query, or an absolute-form target.
    pub path: &'a [u8],
}

/// Target of a lookup, of a stored response and of a request to the origin: a URL, and qualifiers that distinguish
/// several responses of this URL. The origin never sees a qualifier.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CanonicalTarget {
    /// The site's name and `!` (if the site has a name), authority, path and qualifiers in one string. An authority
    /// contains no `/`. A path starts with `/` and contains no `#`, with which the qualifiers start.
    key: String,
    authority_len: usize,
    url_len: usize,
    /// Length of the plain key. Behind it are the values of the request headers that the URL is known to vary with.
    plain_len: usize,
    has_plain_key: bool,
}

impl CanonicalTarget {
    /// `:authority` towards the store, with the name of the site. See [`origin_authority`] for the origin's.
    pub fn authority(&self) -> &str {
        self.key.get(..self.authority_len).unwrap_or_default()
    }

    /// `:path` with its query: with the bucket, its prefix and the qualifiers. The store's `:path` has a keyed hash
    /// as well, which the store crate adds.
    pub fn path(&self) -> &str {
        self.key.get(self.authority_len..).unwrap_or_default()
    }

    /// `:path` with its query towards the origin, without the qualifiers.
    pub fn origin_path(&self) -> &str {
        let range = self.authority_len..self.url_len;
        self.key.get(range).unwrap_or_default()
    }

    /// Cache key, which identifies the stored response: authority, path and qualifiers.
    pub fn cache_key(&self) -> &str {
        &self.key
    }

    /// URL, which all responses of the target share: authority and path.
    pub fn url(&self) -> &str {
        self.key.get(..self.url_len).unwrap_or_default()
    }

    /// The same URL without qualifiers.
    pub fn unqualified(&self) -> Self {
        Self {
            key: self.url().to_owned(),
            plain_len: self.url_len,
            has_plain_key: false,
            ..*self
        }
    }

    /// Key without the values of the request headers that the URL is known to vary with.
    pub fn plain_key(&self) -> &str {
        self.key.get(..self.plain_len).unwrap_or_default()
    }

    /// The target with the plain key.
    #[must_use]
    pub fn plain(&self) -> Self {
        Self {
            key: self.plain_key().to_owned(),
            has_plain_key: false,
            ..*self
        }
    }

    /// The qualifiers that the plain key does not have; empty if the URL is not known to vary.
    pub fn variant(&self) -> &str {
        vary::variant_of(self.plain_key(), self.cache_key()).unwrap_or_default()
    }

    /// Marks the variant as the plain variant, which the store has under the plain key: the first one of its URL.
    pub fn take_plain_key(&mut self) {
        self.has_plain_key = true;
    }

    /// Whether the store has the variant under the plain key.
    pub fn has_plain_key(&self) -> bool {
        self.has_plain_key
    }

    /// Whether lookups use the plain key, under which the store may have any variant.
    pub fn is_stored_plainly(&self) -> bool {
        self.has_plain_key || self.plain_len == self.key.len()
    }

    /// The key under which the store has the response.
    pub fn stored_key(&self) -> &str {
        if self.has_plain_key {
            self.plain_key()
        } else {
            self.cache_key()
        }
    }

    /// Adds a qualifier: `#name=value` to a target without qualifiers, else `;name=value`. Two different lists of
    /// names and values never make one key, whatever bytes they contain. The order counts.
    pub fn qualify(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let is_plain = self.plain_len == self.key.len();
        self.qualify_variant(name, value);
        if is_plain {
            self.plain_len = self.key.len();
        }
    }

    /// Adds a qualifier that the plain key does not have.
    fn qualify_variant(&mut self, name: &str, value: impl AsRef<[u8]>) {
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

    /// Target for the response's headers alone, which a HEAD fetches. A GET's response is stored apart from it.
    #[must_use]
    pub fn for_headers(&self) -> Self {
        let mut target = self.clone();
        target.has_plain_key = false;
        target.qualify(qualifiers::METHOD, qualifiers::HEAD);
        target
    }

    /// Whether the target is for the headers alone.
    pub fn is_for_headers(&self) -> bool {
        qualifiers::is_for_headers(self.path())
    }

    /// The cache key of the whole object, if the target is for its headers alone; else that of the target.
    pub fn whole_key(&self) -> &str {
        qualifiers::without_method(&self.key)
    }

    /// Another object of the same authority, without qualifiers; `path` is canonical.
    pub(crate) fn sibling(&self, path: &str) -> Self {
        let key = [self.authority(), path].concat();
        Self {
            authority_len: self.authority_len,
            url_len: key.len(),
            plain_len: key.len(),
            has_plain_key: false,
            key,
        }
    }
}

/// Target of the purge feed, below the prefix of a site's bucket. No client's request has it.
pub fn feed_target(policy: &Policy) -> CanonicalTarget {
    let authority = fixed_authority(policy).unwrap_or("localhost");
    let mut key = name_in_keys(&policy.site.name).concat() + authority;
    let authority_len = key.len();
    if let Origin::Bucket(bucket) = &policy.origin {
        key.push_str(&bucket.path_prefix);
    }
    key.push_str(&format!("/{FEED_NAME}"));
    CanonicalTarget {
        authority_len,
        url_len: key.len(),
        plain_len: key.len(),
        has_plain_key: false,
        key,
    }
}

/// `:authority` towards the origin, for a request with `store_authority` towards the store.
pub fn origin_authority<'a>(policy: &'a Policy, store_authority: &'a str) -> &'a str {
    let unnamed = store_authority.rsplit(NAME_END).next();
    fixed_authority(policy).unwrap_or_else(|| unnamed.unwrap_or_default())
}

fn fixed_authority(policy: &Policy) -> Option<&str> {
    match &policy.origin {
        Origin::Bucket(bucket) => Some(&bucket.authority),
        Origin::Http(http) => http.authority.as_deref(),
    }
}

/// Returns the one spelling of `target`, or the reason to refuse the request.
///
/// The authority is checked even if the policy replaces it. Nothing is normalized beyond bytes: `é` in one or in two
/// code points are two keys, as in S3. Clients cannot request objects whose keys look like an attack: keys with a dot
/// segment, with a NUL byte or, if slashes are merged, with an empty segment.
pub fn canonicalize(policy: &Policy, target: &Target<'_>) -> Result<CanonicalTarget, Rejection> {
    let mut draft = TargetDraft::of(policy, target)?;
    let root = draft.out.len();
    let halves = draft.halves();
    draft.append_path(halves.path)?;
    // The site was found by another spelling of the path, with merged slashes.
    if !is_below(draft.out.get(root..).unwrap_or_default(), &policy.site.path) {
        return Err(Rejection::NoSite);
    }
    strip_prefix(&mut draft.out, root, &policy.key.strip_prefix)?;
    if let Origin::Bucket(bucket) = &policy.origin {
        append_index_document(&mut draft.out, &policy.key);
        let path = draft.out.get(root..).unwrap_or_default();
        check_object(path, bucket.prefix_bytes, policy.key.max_bytes)?;
    }
    let path_end = draft.out.len();
    if let Some(query) = halves.query {
        append_query(&mut draft.out, query, &policy.key.query, draft.escaping)?;
    }
    let (start, most) = match &policy.origin {
        Origin::Bucket(_) => (path_end, MAX_QUERY_BYTES),
        Origin::Http(_) => (root, policy.key.max_bytes),
    };
    if draft.out.len() - start > most {
        return Err(Rejection::KeyTooLong);
    }
    let authority_len = draft.authority_len;
    let key = draft.into_text()?;
    let url_len = key.len();
    Ok(CanonicalTarget {
        key,
        authority_len,
        url_len,
        plain_len: url_len,
        has_plain_key: false,
    })
}

/// Returns the beginning that the URLs of all [`canonicalize`]d targets share if their paths begin like the path of
/// `target`. A query is not part of it.
pub fn canonicalize_prefix(policy: &Policy, target: &Target<'_>) -> Result<String, Rejection> {
    let mut draft = TargetDraft::of(policy, target)?;
    let root = draft.out.len();
    draft.append_path(draft.resource)?;
    let site = &policy.site.path;
    let path = draft.out.get(root..).unwrap_or_default();
    if site.as_bytes().starts_with(path) {
        draft.out.truncate(root);
        draft.out.extend_from_slice(site.as_bytes());
    } else if !is_below(path, site) {
        return Err(Rejection::NoSite);
    }
    let stripped = policy.key.strip_prefix.as_bytes();
    if stripped.starts_with(draft.out.get(root..).unwrap_or_default()) {
        // Everything that the edge serves is below the stripped prefix.
        draft.out.truncate(root);
        draft.out.push(b'/');
    } else {
        strip_prefix(&mut draft.out, root, &policy.key.strip_prefix)?;
    }
    draft.into_text()
}

/// Whether the target is exactly the path that the policy strips: a directory, and not an object below it.
pub fn is_stripped_path(policy: &Policy, target: &Target<'_>) -> bool {
    let prefix = policy.key.strip_prefix.as_bytes();
    let path = TargetDraft::of(policy, target).and_then(|mut draft| {
        let root = draft.out.len();
        let path = draft.resource.split(|&byte| byte == b'?').next();
        draft.append_path(path.unwrap_or_default())?;
        Ok(draft.out.split_off(root))
    });
    !prefix.is_empty() && path.is_ok_and(|path| path == prefix)
}

/// A canonical target in the making.
struct TargetDraft<'a> {
    /// The authority and the bucket's path, and the parts that have been appended to them.
    out: Vec<u8>,
    authority_len: usize,
    /// The part of the target behind its authority: a path with its query.
    resource: &'a [u8],
    escaping: Escaping,
    merge_slashes: bool,
}

/// The halves of a target behind its authority.
struct Halves<'a> {
    /// The path; `/` in place of an empty one.
    path: &'a [u8],
    /// The query, without its `?`.
    query: Option<&'a [u8]>,
}

impl<'a> TargetDraft<'a> {
    fn of(policy: &Policy, target: &Target<'a>) -> Result<Self, Rejection> {
        let (escaping, prefix) = match &policy.origin {
            Origin::Bucket(bucket) => (Escaping::Strict, bucket.path_prefix.as_str()),
            Origin::Http(_) => (Escaping::Unreserved, ""),
        };
        let fixed_authority = fixed_authority(policy).filter(|_| !policy.key.host);
        // Room for the whole key, unless escapes are added.
        let fixed_len = fixed_authority.map_or(0, str::len);
        let authority_room = target.authority.len().max(fixed_len);
        let index_room = policy.key.index_document.as_ref().map_or(0, String::len);
        let name_room = policy.site.name.len() + NAME_END.len();
        let room = name_room + authority_room + prefix.len() + target.path.len() + index_room + 1;
        let mut out = Vec::with_capacity(room);
        for part in name_in_keys(&policy.site.name) {
            out.extend_from_slice(part.as_bytes());
        }
        let authority_start = out.len();
        let resource = append_target_authority(&mut out, target)?;
        if let Some(fixed) = fixed_authority {
            out.truncate(authority_start);
            out.extend_from_slice(fixed.as_bytes());
        }
        let authority_len = out.len();
        out.extend_from_slice(prefix.as_bytes());
        Ok(Self {
            out,
            authority_len,
            resource,
            escaping,
            merge_slashes: policy.key.merge_slashes,
        })
    }

    fn halves(&self) -> Halves<'a> {
        let mut halves = self.resource.splitn(2, |&byte| byte == b'?');
        let path = halves.next().filter(|path| !path.is_empty());
        Halves {
            path: path.unwrap_or(b"/"),
            query: halves.next(),
        }
    }

    fn append_path(&mut self, path: &[u8]) -> Result<(), Rejection> {
        append_path(&mut self.out, path, self.escaping, self.merge_slashes)
    }

    /// The whole key, which is ASCII.
    fn into_text(self) -> Result<String, Rejection> {
        String::from_utf8(self.out).map_err(|_| Rejection::InvalidUtf8)
    }
}

/// The beginning of the keys of the site of that name, in two parts.
fn name_in_keys(name: &str) -> [&str; 2] {
    let end = if name.is_empty() { "" } else { NAME_END };
    [name, end]
}

/// Whether a canonical path is `start` itself or below it. Every path is below an empty `start`.
pub(crate) fn is_below(path: &[u8], start: &str) -> bool {
    let rest = path.strip_prefix(start.as_bytes());
    rest.is_some_and(|rest| start.is_empty() || matches!(rest.first(), None | Some(b'/')))
}

/// Appends the index document to a path that ends in a slash.
fn append_index_document(out: &mut Vec<u8>, policy: &KeyPolicy) {
    if let Some(name) = &policy.index_document
        && out.ends_with(b"/")
    {
        name.bytes().for_each(|byte| push_strict(out, byte));
    }
}

/// Removes the prefix from the path that starts at `root`.
fn strip_prefix(out: &mut Vec<u8>, root: usize, prefix: &str) -> Result<(), Rejection> {
    let path = out.get(root..).unwrap_or_default();
    let below = path.strip_prefix(prefix.as_bytes());
    // `/static` itself is not below the prefix `/static`, and neither is `/statics`.
    if !below.is_some_and(|rest| rest.starts_with(b"/")) {
        return Err(Rejection::NoObject);
    }
    out.drain(root..root + prefix.len());
    Ok(())
}

/// Checks the object's key. A key in a folder of edges is refused. A key of slashes alone is refused, because it is not the name of a real object and S3
/// might answer with the listing of the bucket.
fn check_object(path: &[u8], prefix_bytes: usize, max_bytes: usize) -> Result<(), Rejection> {
    if path.iter().all(|&byte| byte == b'/') || is_for_edges(path) {
        return Err(Rejection::NoObject);
    }
    // The path's leading slash is not part of the key.
    if decoded_len(path) - 1 + prefix_bytes > max_bytes {
        return Err(Rejection::KeyTooLong);
    }
    Ok(())
}

/// Appends the authority and returns the path with its query.
///
/// An absolute-form target must name the same authority as the request (Envoy has copied it from an HTTP/1 request
/// line). If they differ, two parsers would see two hosts.
fn append_target_authority<'a>(
    out: &mut Vec<u8>,
    target: &Target<'a>,
) -> Result<&'a [u8], Rejection> {
    let start = out.len();
    append_authority(out, target.authority, target.scheme)?;
    if target.path.starts_with(b"/") {
        return Ok(target.path);
    }
    let (scheme, authority, resource) =
        split_absolute(target.path).ok_or(Rejection::RequestTarget)?;
    let mut named = Vec::with_capacity(authority.len());
    append_authority(&mut named, authority, Some(scheme))?;
    if out.get(start..) == Some(named.as_slice()) {
        Ok(resource)
    } else {
        Err(Rejection::Authority)
    }
}

/// Scheme, authority and the rest of an absolute-form target.
pub fn split_absolute(target: &[u8]) -> Option<(&'static str, &[u8], &[u8])> {
    let (scheme, rest) = [("http", "http://"), ("https", "https://")]
        .into_iter()
        .find_map(|(scheme, start)| {
            let (head, rest) = target.split_at_checked(start.len())?;
            head.eq_ignore_ascii_case(start.as_bytes())
                .then_some((scheme, rest))
        })?;
    let is_end = |byte: &u8| matches!(byte, b'/' | b'?' | b'#' | b'\\');
    let end = rest.iter().position(is_end).unwrap_or(rest.len());
    let (authority, resource) = rest.split_at(end);
    Some((scheme, authority, resource))
}
