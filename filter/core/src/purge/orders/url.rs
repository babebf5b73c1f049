// SPDX-License-Identifier: Apache-2.0
//! What a purge calls a URL: the part of a cache key that all copies of one resource share.

use crate::key::secret::StoreSecret;
use crate::key::{
    NAME_END, Rejection, Target, canonicalize, canonicalize_prefix, site_of, split_absolute,
};
use crate::policy::purge::{Scope, UrlHash};
use crate::policy::{BucketOrigin, Origin, Policy};

/// The URL of a cache key, qualified or not. An object of a bucket is the same whatever host and query
/// it was asked with; of an HTTP origin, host and query tell resources apart as they do in the key.
pub fn url_of<'a>(policy: &Policy, cache_key: &'a str) -> &'a str {
    let url = cache_key.split('#').next().unwrap_or_default();
    let Origin::Bucket(_) = policy.origin else {
        return url;
    };
    let resource = url.split('?').next().unwrap_or_default();
    if !policy.site.name.is_empty() {
        // The bucket's own host.
        return resource;
    }
    let path = resource.find('/').and_then(|start| resource.get(start..));
    path.unwrap_or_default()
}

impl UrlHash {
    /// The hash of a URL, as [`url_of`] gives it.
    pub fn of(url: &str, secret: &StoreSecret) -> Self {
        Self(secret.hash(url.as_bytes()))
    }
}

impl Scope {
    /// The scope of a URL, as [`url_of`] gives it.
    pub fn of_url(url: &str, secret: &StoreSecret) -> Self {
        Self::Url {
            site: site_of(url).to_owned(),
            hash: UrlHash::of(url, secret),
        }
    }
}

/// The URL of an object of the site's bucket, whose path is canonical and has the bucket's prefix.
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

/// Why a text names no URL of this edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlError {
    /// It is not of the form that is expected.
    Form,
    /// The edge would not serve it.
    Rejected(Rejection),
}

/// The URL that `text` stands for: `http://HOST/PATH`, `https://HOST/PATH`, or `/PATH` where the host is
/// no part of the key.
///
/// # Errors
/// It is not of that form, or no URL that the edge serves.
pub fn parse_url(policy: &Policy, text: &str) -> Result<String, UrlError> {
    let target = target(policy, text)?;
    let canonical = canonicalize(policy, &target).map_err(UrlError::Rejected)?;
    Ok(url_of(policy, canonical.cache_key()).to_owned())
}

/// What all URLs begin with that begin as `text` does, of the same form.
///
/// # Errors
/// As [`parse_url`], and a prefix has no query.
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
        // Any will do.
        authority: b"localhost",
        path: text.as_bytes(),
    })
}

/// Whether a path alone names no resource.
fn is_told_apart_by_host(policy: &Policy) -> bool {
    policy.key.host && !policy.origin.is_bucket()
}

/// What is accepted where the host tells resources or sites apart.
pub const WITH_HOST: &str = "a URL as clients ask for it, http://HOST/PATH or https://HOST/PATH";

/// What [`parse_url`] accepts.
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
