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
}

/// Beginnings of the names of S3's events in notifications and in MinIO's, and of the types of CloudEvents.
const NAMESPACES: [&str; 3] = ["com.amazonaws.s3.", "com.amazonaws.", "s3:"];

/// Names of events of S3, EventBridge, MinIO, Ceph and R2. A name that ends with a colon matches all names that begin
/// with it. Other names match as a whole. Case is ignored.
const NAMES: [(Effect, &[&str]); 3] = [
    (
        Effect::Changed,
        &[
            // Amazon S3 and MinIO.
            "ObjectCreated:",
            "ObjectRemoved:",
            "ObjectRestore:Completed",
            "ObjectRestore:Delete",
            "ObjectAcl:",
            "LifecycleExpiration:",
            "LifecycleDelMarkerExpiration:",
            // Ceph.
            "ObjectLifecycle:Expiration:",
            "ObjectSynced:",
            // Amazon EventBridge.
            "Object Created",
            "Object Deleted",
            "Object Restore Completed",
            "Object Restore Expired",
            "Object ACL Updated",
            // Cloudflare R2.
            "PutObject",
            "CopyObject",
            "CompleteMultipartUpload",
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
        let stripped = NAMESPACES.iter().find_map(|space| strip(name, space));
        let name = stripped.unwrap_or(name);
        let is_named = |known: &&str| match known.ends_with(':') {
            true => strip(name, known).is_some(),
            false => known.eq_ignore_ascii_case(name),
        };
        let effect = NAMES.iter().find(|(_, names)| names.iter().any(is_named));
        effect.map_or(Self::Unknown, |(effect, _)| *effect)
    }
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
