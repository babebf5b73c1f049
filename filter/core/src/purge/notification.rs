// SPDX-License-Identifier: Apache-2.0
//! S3 event notifications, as MinIO's webhook sends them: which objects have changed.

use std::fmt;

use serde_json::Value;

use crate::http::escaping::{escape_key, unescaped};
use crate::policy::{Origin, Policy};

/// Why a body is no notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationError(String);

impl fmt::Display for NotificationError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The URLs (see [`super::url_of`]) of the objects that a notification is about, as far as they are of
/// the edge's bucket and below its prefix. One without records, such as the test event, is about none.
///
/// # Errors
/// It is no notification.
pub fn changed_objects(policy: &Policy, body: &[u8]) -> Result<Vec<String>, NotificationError> {
    let document: Value = serde_json::from_slice(body)
        .map_err(|error| NotificationError(format!("the body: {error}: expected an S3 event")))?;
    let Some(fields) = document.as_object() else {
        return Err(NotificationError(
            "the body: expected an S3 event".to_owned(),
        ));
    };
    let records = match fields.get("Records") {
        Some(Value::Array(records)) => records.as_slice(),
        Some(Value::Null) | None => &[],
        Some(_) => return Err(NotificationError("Records: expected a list".to_owned())),
    };
    let mut urls = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let text = |pointer: &str| {
            let missing = || {
                NotificationError(format!(
                    "Records[{index}]{}: expected a text",
                    pointer.replace('/', ".")
                ))
            };
            record
                .pointer(pointer)
                .and_then(Value::as_str)
                .ok_or_else(missing)
        };
        let bucket = text("/s3/bucket/name")?;
        let key = decode_key(text("/s3/object/key")?);
        urls.extend(urls_of(policy, bucket, &key));
    }
    Ok(urls)
}

/// Undoes the form encoding of object keys in events: `+` is a space.
fn decode_key(encoded: &str) -> String {
    let bytes: Vec<u8> = unescaped(encoded.replace('+', " ").as_bytes()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The object's URL where the bucket's name stands in the path, and where it stands in the host.
fn urls_of(policy: &Policy, bucket: &str, key: &str) -> impl Iterator<Item = String> {
    let paths = match &policy.origin {
        Origin::Http(_) => Vec::new(),
        Origin::Bucket(origin) => {
            let key = escape_key(key);
            let host = origin.authority.strip_prefix(bucket);
            let in_host =
                host.is_some_and(|rest| matches!(rest.bytes().next(), None | Some(b'.' | b':')));
            let root = format!("{}/", origin.path_prefix);
            let in_path = root.starts_with(&format!("/{bucket}/"));
            let paths = [
                in_path.then(|| format!("/{bucket}/{key}")),
                in_host.then(|| format!("/{key}")),
            ];
            paths
                .into_iter()
                .flatten()
                .filter(|path| path.starts_with(&root))
                .collect()
        }
    };
    paths.into_iter()
}
