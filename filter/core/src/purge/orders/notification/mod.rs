// SPDX-License-Identifier: Apache-2.0
//! The notifications of buckets about changed objects.

mod event;
mod keys;
mod shapes;

pub use event::Effect;
use event::{ObjectEvent, WrittenObject};

use crate::http::url::escaping::escape_key;
use crate::key::{CanonicalTarget, target_of_object};
use crate::policy::{BucketOrigin, Origin, Policy, is_for_edges};
use crate::purge::orders::caller::Caller;
use crate::purge::orders::order_error::OrderError;
use crate::purge::orders::url::url_of_object;
use crate::sites::SiteIndex;
use crate::website::listing::listed_urls;

/// Content of a notification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notification {
    /// URLs (see [`crate::purge::url_of`]) of the changed objects in a bucket of the caller's sites, below the
    /// bucket's prefix, and of the directories whose listings may show them.
    pub urls: Vec<String>,
    /// The objects that were written, as clients of the sites request them.
    pub created: Vec<CreatedObject>,
    /// Events that purge nothing.
    pub ignored: Vec<IgnoredEvent>,
}

/// Object that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedObject {
    /// The site whose bucket has the object.
    pub site: SiteIndex,
    /// The target of clients' requests.
    pub target: CanonicalTarget,
    /// Size in bytes, if the event has it.
    pub bytes: Option<u64>,
}

/// Event that purges nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredEvent {
    /// Name of the event, or another text that identifies its kind, at most [`MAX_NAME`] characters long.
    pub name: String,
    /// Reason why the event purges nothing. [`Effect::Changed`]: its object is not in a bucket of the caller's sites.
    pub effect: Effect,
}

/// Longest name of an ignored event, in characters.
pub const MAX_NAME: usize = 64;

impl Notification {
    /// Reads a body in one of the shapes that [`shapes`] lists.
    ///
    /// # Errors
    /// The body is not a notification: it is not JSON, or it lacks a field of its shape.
    pub fn parse(caller: &Caller<'_>, body: &[u8]) -> Result<Self, OrderError> {
        let mut notification = Self::default();
        for event in shapes::read(body)? {
            let ObjectEvent {
                name,
                effect,
                object,
                ..
            } = &event;
            if is_of_feed(object.as_ref()) {
                // An edge or a caller has written the feed.
                continue;
            }
            let urls = urls_of_event(caller, &event);
            if urls.is_empty() {
                let name = name.chars().take(MAX_NAME).collect();
                let effect = *effect;
                notification.ignored.push(IgnoredEvent { name, effect });
            }
            notification.urls.extend(urls);
            notification.created.extend(created_by(caller, &event));
        }
        Ok(notification)
    }
}

/// Whether an event is about an object that only edges read.
fn is_of_feed(object: Option<&(String, String)>) -> bool {
    let readings = object.map(|(_, key)| keys::readings(key));
    let mut readings = readings.into_iter().flatten();
    readings.any(|key| is_for_edges(key.as_bytes()))
}

fn urls_of_event(caller: &Caller<'_>, event: &ObjectEvent) -> Vec<String> {
    let Some((bucket, key)) = &event.object else {
        return Vec::new();
    };
    let mut urls: Vec<String> = keys::readings(key)
        .iter()
        .flat_map(|key| {
            let policies = caller.policies();
            policies.flat_map(move |(_, policy)| urls_of(policy, bucket, key))
        })
        .collect();
    urls.sort_unstable();
    urls.dedup();
    urls
}

/// Returns the object that an event says to be written, for each site that has it.
fn created_by(caller: &Caller<'_>, event: &ObjectEvent) -> Vec<CreatedObject> {
    let (Some((bucket, _)), Some(WrittenObject { key, bytes })) = (&event.object, &event.written)
    else {
        return Vec::new();
    };
    let object = |(site, policy): (SiteIndex, &Policy)| {
        let Origin::Bucket(origin) = &policy.origin else {
            return None;
        };
        // If both paths can be meant, the bucket's name is more likely the host's than the prefix's.
        let path = paths_in(origin, bucket, key).last()?;
        let object = path.strip_prefix(&root_of(origin))?;
        Some(CreatedObject {
            site,
            target: target_of_object(policy, object)?,
            bytes: *bytes,
        })
    };
    caller.policies().filter_map(object).collect()
}

/// Returns the URLs of the object and of the directories whose listings may show it, with the bucket's name in the path
/// and in the host.
fn urls_of(policy: &Policy, bucket: &str, key: &str) -> Vec<String> {
    let Origin::Bucket(origin) = &policy.origin else {
        return Vec::new();
    };
    let paths = paths_in(origin, bucket, key);
    paths
        .flat_map(|path| [listed_urls(policy, &path), vec![path]].concat())
        .map(|path| url_of_object(policy, origin, &path))
        .collect()
}

/// The beginning of the paths of all objects, with the bucket's name and the prefix.
fn root_of(origin: &BucketOrigin) -> String {
    format!("{}/", origin.path_prefix)
}

/// The paths of an object below the prefix, with the bucket's name in the path and in the host.
fn paths_in(origin: &BucketOrigin, bucket: &str, key: &str) -> impl Iterator<Item = String> {
    let key = escape_key(key);
    let root = root_of(origin);
    let in_path = root.starts_with(&format!("/{bucket}/"));
    let host = origin.authority.strip_prefix(bucket);
    let in_host = host.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ':']));
    let paths = [
        in_path.then(|| format!("/{bucket}/{key}")),
        in_host.then(|| format!("/{key}")),
    ];
    let paths = paths.into_iter().flatten();
    paths.filter(move |path| path.starts_with(&root))
}
