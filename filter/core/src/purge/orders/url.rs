// SPDX-License-Identifier: Apache-2.0
//! The URL of a purge: the part of a cache key that all copies of one resource share.

use crate::key::secret::StoreSecret;
use crate::key::{
    NAME_END, Rejection, Target, canonicalize, canonicalize_prefix, site_of, split_absolute,
};
use crate::policy::purge::{Scope, UrlHash};
use crate::policy::{BucketOrigin, Origin, Policy};

/// Returns the URL of a cache key, with or without qualifiers. An object of a bucket is the same for all hosts and
/// queries. For an HTTP origin, the host and the query distinguish resources, as in the key.
pub fn url_of<'a>(policy: &Policy, cache_key: &'a str) -> &'a str {
    let url = cache_key.split('#').next().unwrap_or_default();
    let Origin::Bucket(_) = policy.origin else {
        return url;
    };
    let resource = url.split('?').next().unwrap_or_default();
    if !policy.site.name.is_empty() {
        // The host in the key is that of the bucket.
        return resource;
    }
    let path = resource.find('/').and_then(|start| resource.get(start..));
    path.unwrap_or_default()
}

impl UrlHash {
    /// Returns the hash of a URL in the form of [`url_of`].
    pub fn of(url: &str, secret: &StoreSecret) -> Self {
        Self(secret.hash(url.as_bytes()))
    }
}

impl Scope {
    /// Returns the scope of a URL in the form of [`url_of`].
    pub fn of_url(url: &str, secret: &StoreSecret) -> Self {
        Self::Url {
            site: site_of(url).to_owned(),
            hash: UrlHash::of(url, secret),
        }
    }
}

/// Returns the URL of an object of the site's bucket. The `path` is canonical and has the bucket's prefix.
pub(in crate::purge) fn url_of_object(
    policy: &Policy,
    bucket: &BucketOrigin,
    path: &str,
) -> String {
    match policy.site.name.as_str() {
        "" => path.to_owned(),
        name => format!("{name}{NAME_END}{}{path}", bucket.authority),
    }
}

/// Reason why a text does not name a URL of this edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlError {
    /// The text does not have the expected form.
    Form,
    /// The edge would not serve the URL.
    Rejected(Rejection),
}

/// Returns the URL that `text` names: `http://HOST/PATH`, `https://HOST/PATH`, or `/PATH` if the host is not part of
/// the key.
///
/// # Errors
/// The text does not have this form, or the edge does not serve the URL.
pub fn parse_url(policy: &Policy, text: &str) -> Result<String, UrlError> {
    let target = target(policy, text)?;
    let canonical = canonicalize(policy, &target).map_err(UrlError::Rejected)?;
    Ok(url_of(policy, canonical.cache_key()).to_owned())
}

/// Returns the prefix of all URLs that begin like `text`, which has the same form as for [`parse_url`].
///
/// # Errors
/// As [`parse_url`]. A prefix must not have a query.
pub fn parse_prefix(policy: &Policy, text: &str) -> Result<String, UrlError> {
    if text.contains('?') {
        return Err(UrlError::Form);
    }
    let target = target(policy, text)?;
    let canonical = canonicalize_prefix(policy, &target).map_err(UrlError::Rejected)?;
    Ok(url_of(policy, &canonical).to_owned())
}

fn target<'a>(policy: &Policy, text: &'a str) -> Result<Target<'a>, UrlError> {
    if let Some((scheme, authority, path)) = split_absolute(text.as_bytes()) {
        return Ok(Target {
            scheme: Some(scheme),
            authority,
            path: if path.is_empty() { b"/" } else { path },
        });
    }
    if is_told_apart_by_host(policy) || !text.starts_with('/') {
        return Err(UrlError::Form);
    }
    Ok(Target {
        scheme: None,
        // Any host has the same result.
        authority: b"localhost",
        path: text.as_bytes(),
    })
}

/// Whether a path without a host does not name a resource.
fn is_told_apart_by_host(policy: &Policy) -> bool {
    policy.key.host && !policy.origin.is_bucket()
}

/// Form that is accepted if the host distinguishes resources or sites.
pub const WITH_HOST: &str = "a URL as clients ask for it, http://HOST/PATH or https://HOST/PATH";

/// Description of the texts that [`parse_url`] accepts.
pub fn accepted(policy: &Policy) -> &'static str {
    if is_told_apart_by_host(policy) {
        WITH_HOST
    } else {
        "a URL as clients ask for it, http://HOST/PATH, https://HOST/PATH or /PATH"
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::purge::{Kind, Record};
    use crate::purge::orders::url::*;

    const SECRET: StoreSecret = StoreSecret::new([1, 2]);

    #[test]
    fn hashes_are_those_that_journals_hold() {
        let scope = Scope::of_url("assets!example.com/a", &SECRET);
        let record = Record {
            number: 1,
            kind: Kind::Hard,
            scope,
        };
        assert_eq!(record.to_string(), "1 hard url assets!ae7638ab1a201d64");
    }

    #[test]
    fn hashes_depend_on_url_and_secret_and_parts_are_alike() {
        let urls: Vec<String> = (0..65_536).map(|n| format!("example.com/{n}")).collect();
        let hashes = urls.iter().map(|url| UrlHash::of(url, &SECRET));
        let distinct: std::collections::BTreeSet<_> = hashes.clone().collect();
        assert_eq!(distinct.len(), urls.len());
        let other = StoreSecret::new([1, 3]);
        let of_other = urls.iter().map(|url| UrlHash::of(url, &other));
        assert!(
            of_other
                .zip(hashes.clone())
                .all(|(other, one)| other != one)
        );
        let in_part = |part| hashes.clone().filter(|hash| hash.part() == part).count();
        assert!((0..=u8::MAX).all(|part| (170..350).contains(&in_part(part))));
    }
}
