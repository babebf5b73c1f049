// SPDX-License-Identifier: Apache-2.0
//! The names of buckets' events, and whether each event changes an object.

/// Effect of an event on its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The object, its headers or its readers have changed.
    Changed,
    /// The object was read.
    Read,
    /// Something else has happened. The object has not changed.
    Unchanged,
    /// The name is unknown.
    Unknown,
}

/// Event of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectEvent {
    /// Name of the event, or another text that identifies its kind.
    pub name: String,
    /// Effect on the object.
    pub effect: Effect,
    /// Bucket and key as written in the event, if the object has changed.
    pub object: Option<(String, String)>,
    /// Number of the event, which differs from those of all other changes of the object, if the sender gives it one.
    pub sequencer: Option<String>,
    /// The object, if it was written.
    pub written: Option<WrittenObject>,
}

/// Object that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenObject {
    /// Key, decoded as the sender of the event encodes keys.
    pub key: String,
    /// Size in bytes, if the event has it.
    pub bytes: Option<u64>,
}

/// Beginnings of the names of S3's events in notifications and in MinIO's, and of the types of CloudEvents.
const NAMESPACES: [&str; 3] = ["com.amazonaws.s3.", "com.amazonaws.", "s3:"];

/// Names of events after which the object is there, in a new version. They are like [`NAMES`].
const WRITTEN: &[&str] = &[
    // Amazon S3, MinIO and Ceph.
    "ObjectCreated:",
    "ObjectSynced:",
    // Amazon EventBridge.
    "Object Created",
    // Cloudflare R2.
    "PutObject",
    "CopyObject",
    "CompleteMultipartUpload",
];

/// Names of events of S3, EventBridge, MinIO, Ceph and R2. A name that ends with a colon matches all names that begin
/// with it. Other names match as a whole. Case is ignored.
const NAMES: [(Effect, &[&str]); 4] = [
    (Effect::Changed, WRITTEN),
    (
        Effect::Changed,
        &[
            // Amazon S3 and MinIO.
            "ObjectRemoved:",
            "ObjectRestore:Completed",
            "ObjectRestore:Delete",
            "ObjectAcl:",
            "LifecycleExpiration:",
            "LifecycleDelMarkerExpiration:",
            // Ceph.
            "ObjectLifecycle:Expiration:",
            // Amazon EventBridge.
            "Object Deleted",
            "Object Restore Completed",
            "Object Restore Expired",
            "Object ACL Updated",
            // Cloudflare R2.
            "DeleteObject",
            "LifecycleDeletion",
        ],
    ),
    (Effect::Read, &["ObjectAccessed:"]),
    (
        Effect::Unchanged,
        &[
            "TestEvent",
            "ObjectTagging:",
            "ObjectRestore:Post",
            "ObjectTransition:",
            "ObjectLifecycle:Transition:",
            "LifecycleTransition",
            "LifecycleTransition:",
            "IntelligentTiering",
            "ReducedRedundancyLostObject",
            "Replication:",
            "BucketCreated:",
            "BucketRemoved:",
            "Scanner:",
            "Object Restore Initiated",
            "Object Tags Added",
            "Object Tags Deleted",
            "Object Storage Class Changed",
            "Object Access Tier Changed",
        ],
    ),
];

impl Effect {
    /// Returns the effect of the event with this name.
    pub fn of(name: &str) -> Self {
        let effect = NAMES.iter().find(|(_, names)| is_one_of(name, names));
        effect.map_or(Self::Unknown, |(effect, _)| *effect)
    }
}

/// Whether the event with this name says that its object was written.
pub fn is_of_written(name: &str) -> bool {
    is_one_of(name, WRITTEN)
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    let stripped = NAMESPACES.iter().find_map(|space| strip(name, space));
    let name = stripped.unwrap_or(name);
    names.iter().any(|known| match known.ends_with(':') {
        true => strip(name, known).is_some(),
        false => known.eq_ignore_ascii_case(name),
    })
}

/// Returns the text behind the `beginning`, which is matched in any case.
fn strip<'a>(name: &'a str, beginning: &str) -> Option<&'a str> {
    let (head, rest) = name.split_at_checked(beginning.len())?;
    head.eq_ignore_ascii_case(beginning).then_some(rest)
}

#[cfg(test)]
mod tests {
    use crate::purge::orders::notification::event::*;

    #[test]
    fn an_object_is_there_after_events_that_write_it() {
        for (name, expected) in [
            ("s3:ObjectCreated:CompleteMultipartUpload", true),
            ("Object Created", true),
            ("copyobject", true),
            ("ObjectRemoved:Delete", false),
            ("ObjectAcl:Put", false),
            ("Object Deleted", false),
        ] {
            assert_eq!(is_of_written(name), expected, "{name}");
            assert_eq!(Effect::of(name), Effect::Changed, "{name}");
        }
    }

    #[test]
    fn an_event_is_known_by_its_name_in_each_spelling() {
        for (name, effect) in [
            ("ObjectCreated:Put", Effect::Changed),
            ("s3:ObjectRemoved:DeleteMarkerCreated", Effect::Changed),
            ("com.amazonaws.s3.objectcreated:put", Effect::Changed),
            ("com.amazonaws.ObjectCreated:Put", Effect::Changed),
            ("ObjectLifecycle:Expiration:Current", Effect::Changed),
            ("Object Deleted", Effect::Changed),
            ("CompleteMultipartUpload", Effect::Changed),
            ("s3:ObjectAccessed:Get", Effect::Read),
            ("s3:TestEvent", Effect::Unchanged),
            (
                "s3:Replication:OperationCompletedReplication",
                Effect::Unchanged,
            ),
            ("Object Tags Added", Effect::Unchanged),
            ("ObjectCreated", Effect::Unknown),
            ("Object Created Twice", Effect::Unknown),
            ("s3:", Effect::Unknown),
            ("é", Effect::Unknown),
            ("", Effect::Unknown),
        ] {
            assert_eq!(Effect::of(name), effect, "{name:?}");
        }
    }
}
