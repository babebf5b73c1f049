// SPDX-License-Identifier: Apache-2.0
//! The notifications of buckets about changed objects.

mod event;
mod keys;
mod shapes;

pub use event::Effect;
use event::{ObjectEvent, WrittenObject};

use crate::key::{CanonicalTarget, target_of_object};
use crate::policy::{Origin, Policy, is_for_edges};
use crate::purge::orders::caller::Caller;
use crate::purge::orders::object::{ObjectUrl, paths_in, root_of};
use crate::purge::orders::order_error::OrderError;
use crate::sites::SiteIndex;

/// Content of a notification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notification {
    /// URLs (see [`crate::purge::url_of`]) of the changed objects in a bucket of the caller's sites, below the
    /// bucket's prefix, and of the directories whose listings may show them.
    pub urls: Vec<String>,
    /// The changed objects, as the purge feed names them: `s3://BUCKET/KEY`, and the event behind `#` if it has a number.
    pub objects: Vec<String>,
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
            let (objects, urls) = changed_by(caller, &event);
            if urls.is_empty() {
                let name = name.chars().take(MAX_NAME).collect();
                let effect = *effect;
                notification.ignored.push(IgnoredEvent { name, effect });
            }
            notification.urls.extend(urls);
            notification.objects.extend(objects);
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

/// The objects that an event may mean, as the feed names them, and their URLs.
fn changed_by(caller: &Caller<'_>, event: &ObjectEvent) -> (Vec<String>, Vec<String>) {
    let Some((bucket, key)) = &event.object else {
        return Default::default();
    };
    let (mut objects, mut urls) = (Vec::new(), Vec::new());
    for key in keys::readings(key) {
        let object = ObjectUrl {
            bucket: bucket.clone(),
            key,
        };
        let found = object.urls(caller);
        if !found.is_empty() {
            objects.push(object.of_event(event.sequencer.as_deref()));
            urls.extend(found);
        }
    }
    urls.sort_unstable();
    urls.dedup();
    (objects, urls)
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
