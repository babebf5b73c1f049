// SPDX-License-Identifier: Apache-2.0
//! The objects of buckets that a purge names by their keys, and the URLs under which the sites serve them.

use crate::http::url::escaping::{escape_key, unescaped};
use crate::policy::purge::Scope;
use crate::policy::{BucketOrigin, Origin, Policy};
use crate::purge::orders::caller::Caller;
use crate::purge::orders::url::url_of_object;
use crate::website::listing::listed_urls;

/// Beginning of the name of an object.
const SCHEME: &str = "s3://";
/// Mark in front of the number of the event that has named an object. Keys are escaped, so no key contains it.
const EVENT: char = '#';

/// Object of a bucket, or the beginning of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectUrl {
    /// Name of the bucket.
    pub bucket: String,
    /// Key of the object, without escapes.
    pub key: String,
}

impl ObjectUrl {
    /// Reads `s3://BUCKET/KEY`, with escapes as in a URL, and with or without an event. `None`: the text has another form.
    pub fn parse(text: &str) -> Option<Self> {
        let name = text.strip_prefix(SCHEME)?;
        let (bucket, key) = name.split(EVENT).next()?.split_once('/')?;
        let key: Vec<u8> = unescaped(key.as_bytes()).collect();
        Some(Self {
            bucket: bucket.to_owned(),
            key: String::from_utf8(key).ok()?,
        })
    }

    /// Whether a text names an object of a bucket.
    pub fn is_named_by(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// Whether a text names an object and an event.
    pub fn names_event(text: &str) -> bool {
        Self::is_named_by(text) && text.contains(EVENT)
    }

    /// The name of the object, with the number of the event that has changed it.
    pub fn of_event(&self, sequencer: Option<&str>) -> String {
        let object = format!("{SCHEME}{}/{}", self.bucket, escape_key(&self.key));
        let sequencer = sequencer.filter(|number| is_number(number));
        let event = sequencer.map(|number| format!("{EVENT}{number}"));
        object + &event.unwrap_or_default()
    }

    /// The URLs of the object in the caller's sites, and those of the directories whose listings may show it.
    pub fn urls(&self, caller: &Caller<'_>) -> Vec<String> {
        let policies = caller.policies();
        policies
            .flat_map(|(_, policy)| urls_of(policy, &self.bucket, &self.key))
            .collect()
    }

    /// The scopes of all objects in the caller's sites whose keys begin like this one, and of the directories whose
    /// listings may show them.
    pub fn scopes_below(&self, caller: &Caller<'_>) -> Vec<Scope> {
        let policies = caller.policies();
        policies
            .flat_map(|(_, policy)| scopes_of(caller, policy, &self.bucket, &self.key))
            .collect()
    }
}

/// Whether a text has the form of an event's number.
fn is_number(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns the URLs of the object and of the directories whose listings may show it, with the bucket's name in the path
/// and in the host.
fn urls_of(policy: &Policy, bucket: &str, key: &str) -> Vec<String> {
    let Origin::Bucket(origin) = &policy.origin else {
        return Vec::new();
    };
    paths_in(origin, bucket, key)
        .flat_map(|path| [listed_urls(policy, &path), vec![path]].concat())
        .map(|path| url_of_object(policy, origin, &path))
        .collect()
}

/// Returns the scopes of the objects of a bucket whose keys begin with `start`.
fn scopes_of(caller: &Caller<'_>, policy: &Policy, bucket: &str, start: &str) -> Vec<Scope> {
    let Origin::Bucket(origin) = &policy.origin else {
        return Vec::new();
    };
    let root = root_of(origin);
    let all_paths = paths_of(origin, bucket, start);
    all_paths
        .filter_map(|path| match root.starts_with(&path) {
            true => Some(root.clone()),
            false => path.starts_with(&root).then_some(path),
        })
        .flat_map(|path| {
            let listings = listed_urls(policy, &path).into_iter();
            let urls = listings.map(|path| url_of_object(policy, origin, &path));
            let mut scopes: Vec<_> = urls.map(|url| caller.scope_of(&url)).collect();
            scopes.push(Scope::Prefix(url_of_object(policy, origin, &path)));
            scopes
        })
        .collect()
}

/// The beginning of the paths of all objects, with the bucket's name and the prefix.
pub(super) fn root_of(origin: &BucketOrigin) -> String {
    format!("{}/", origin.path_prefix)
}

/// The paths of an object below the prefix, with the bucket's name in the path and in the host.
pub(super) fn paths_in(
    origin: &BucketOrigin,
    bucket: &str,
    key: &str,
) -> impl Iterator<Item = String> {
    let root = root_of(origin);
    paths_of(origin, bucket, key).filter(move |path| path.starts_with(&root))
}

/// The paths of an object of the bucket, with the bucket's name in the path and in the host.
fn paths_of(origin: &BucketOrigin, bucket: &str, key: &str) -> impl Iterator<Item = String> {
    let key = escape_key(key);
    let in_path = root_of(origin).starts_with(&format!("/{bucket}/"));
    let host = origin.authority.strip_prefix(bucket);
    let in_host = host.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ':']));
    let paths = [
        in_path.then(|| format!("/{bucket}/{key}")),
        in_host.then(|| format!("/{key}")),
    ];
    paths.into_iter().flatten()
}
