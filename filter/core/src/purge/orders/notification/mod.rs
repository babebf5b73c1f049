// SPDX-License-Identifier: Apache-2.0
//! Notifications of buckets: which objects have changed.

mod event;
mod keys;
mod shapes;

pub use event::Effect;
use event::ObjectEvent;

use crate::http::url::escaping::escape_key;
use crate::policy::{Origin, Policy};
use crate::purge::orders::caller::Caller;
use crate::purge::orders::order_error::OrderError;
use crate::purge::orders::url::url_of_object;

/// What a notification says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notification {
    /// The URLs (see [`crate::purge::url_of`]) of changed objects, as far as they are of a bucket of the caller's sites and below
    /// its prefix.
    pub urls: Vec<String>,
    /// The events that purge nothing.
    pub ignored: Vec<IgnoredEvent>,
}

/// An event that purges nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredEvent {
    /// Its name, or what else tells its kind; not longer than [`MAX_NAME`] characters.
    pub name: String,
    /// Why it purges nothing. [`Effect::Changed`]: its object is of no bucket of the caller's sites.
    pub effect: Effect,
}

/// Longest name of an ignored event, in characters.
pub const MAX_NAME: usize = 64;

impl Notification {
    /// Reads a body in one of the shapes that [`shapes`] lists.
    ///
    /// # Errors
    /// The body is no notification: not JSON, or without a field that the shape has.
    pub fn parse(caller: &Caller<'_>, body: &[u8]) -> Result<Self, OrderError> {
        let mut notification = Self::default();
        for event in shapes::read(body)? {
            let ObjectEvent { name, effect, .. } = &event;
            let urls = urls_of_event(caller, &event);
            if urls.is_empty() {
                let name = name.chars().take(MAX_NAME).collect();
                let effect = *effect;
                notification.ignored.push(IgnoredEvent { name, effect });
            }
            notification.urls.extend(urls);
        }
        Ok(notification)
    }
}

fn urls_of_event(caller: &Caller<'_>, event: &ObjectEvent) -> Vec<String> {
    let Some((bucket, key)) = &event.object else {
        return Vec::new();
    };
    let mut urls: Vec<String> = keys::readings(key)
        .iter()
        .flat_map(|key| {
            let policies = caller.policies();
            policies.flat_map(move |policy| urls_of(policy, bucket, key))
        })
        .collect();
    urls.sort_unstable();
    urls.dedup();
    urls
}

/// The object's URL where the bucket's name stands in the path, and where it stands in the host.
fn urls_of(policy: &Policy, bucket: &str, key: &str) -> Vec<String> {
    let Origin::Bucket(origin) = &policy.origin else {
        return Vec::new();
    };
    let key = escape_key(key);
    let root = format!("{}/", origin.path_prefix);
    let in_path = root.starts_with(&format!("/{bucket}/"));
    let host = origin.authority.strip_prefix(bucket);
    let in_host = host.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ':']));
    let paths = [
        in_path.then(|| format!("/{bucket}/{key}")),
        in_host.then(|| format!("/{key}")),
    ];
    let below_prefix = |path: &String| path.starts_with(&root);
    let paths = paths.into_iter().flatten().filter(below_prefix);
    paths
        .map(|path| url_of_object(policy, origin, &path))
        .collect()
}
