// SPDX-License-Identifier: Apache-2.0
//! The target of an object that no client has named.

use super::{CanonicalTarget, Target, canonicalize, name_in_keys};
use crate::policy::{Origin, Policy};

/// The target of an object of the site's bucket, as clients request it. `object` is its key behind the bucket's prefix,
/// in the spelling of a path. `None` if no URL names exactly this object, or if the key depends on the host.
pub fn target_of_object(policy: &Policy, object: &str) -> Option<CanonicalTarget> {
    let Origin::Bucket(bucket) = &policy.origin else {
        return None;
    };
    let mut url = name_in_keys(&policy.site.name).concat() + &bucket.authority;
    url.push_str(&format!("{}/{object}", bucket.path_prefix));
    // A query would be a part of the URL, and not of the object's key.
    let names_it = !policy.key.host && !object.contains('?');
    names_it.then(|| target_of_url(policy, &url)).flatten()
}

/// The target of a URL in the form of [`CanonicalTarget::url`]. `None` if no client's request has this URL.
pub fn target_of_url(policy: &Policy, url: &str) -> Option<CanonicalTarget> {
    let (authority, path) = url.split_at(url.find('/')?);
    let authority = authority.strip_prefix(&*name_in_keys(&policy.site.name).concat())?;
    let path = match &policy.origin {
        Origin::Bucket(bucket) => path.strip_prefix(&bucket.path_prefix)?,
        Origin::Http(_) => path,
    };
    let path = [&policy.key.strip_prefix, path].concat();
    let target = Target {
        scheme: None,
        authority: authority.as_bytes(),
        path: path.as_bytes(),
    };
    let target = canonicalize(policy, &target).ok()?;
    (target.url() == url).then_some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_of(key: &str, object: &str) -> Option<String> {
        let policy = format!(
            r#"{{"origin": {{"kind": "bucket", "bucket": "assets", "prefix": "site", "addressing": "path",
                "authority": "s3.test"}}, "key": {key}}}"#
        );
        let policy = Policy::parse(policy.as_bytes()).unwrap();
        let target = target_of_object(&policy, object);
        target.map(|target| target.cache_key().to_owned())
    }

    #[test]
    fn an_object_has_the_key_of_a_clients_request() {
        let key = |object: &str| Some(format!("s3.test/assets/site/{object}"));
        for (policy, object, expected) in [
            ("{}", "a%20b.png", key("a%20b.png")),
            (r#"{"strip_prefix": "/static"}"#, "a.png", key("a.png")),
            (
                r#"{"index_document": "index.html"}"#,
                "docs/index.html",
                key("docs/index.html"),
            ),
            (r#"{"index_document": "index.html"}"#, "docs/", None),
            ("{}", "a//b", None),
            ("{}", "../a", None),
            ("{}", ".sluice/purges", None),
            (r#"{"host": true}"#, "a.png", None),
        ] {
            assert_eq!(path_of(policy, object), expected, "{policy} {object}");
        }
    }
}
