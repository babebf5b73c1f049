// SPDX-License-Identifier: Apache-2.0
//! S3 event notifications, as MinIO's webhook sends them: which objects have changed.

use serde_json::Value;

use super::caller::Caller;
use super::order_error::OrderError;
use super::url::url_of_object;
use crate::http::escaping::{escape_key, unescaped};
use crate::policy::{Origin, Policy};

/// The URLs (see [`super::url_of`]) of the objects that a notification is about, as far as they are of
/// a bucket of the caller's sites and below its prefix. One without records, such as the test event, is about none.
///
/// # Errors
/// It is no notification.
pub fn changed_objects(caller: &Caller<'_>, body: &[u8]) -> Result<Vec<String>, OrderError> {
    let expected = "expected an S3 event";
    let document: Value = serde_json::from_slice(body)
        .map_err(|error| OrderError::new("the body", &format!("{error}: {expected}")))?;
    let fields = document.as_object();
    let fields = fields.ok_or_else(|| OrderError::new("the body", expected))?;
    let records = match fields.get("Records") {
        Some(Value::Array(records)) => records.as_slice(),
        Some(Value::Null) | None => &[],
        Some(_) => return Err(OrderError::new("Records", "expected a list")),
    };
    let mut urls = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let text = |pointer: &str| {
            let text = record.pointer(pointer).and_then(Value::as_str);
            text.ok_or_else(|| {
                let path = pointer.replace('/', ".");
                OrderError::new(&format!("Records[{index}]{path}"), "expected a text")
            })
        };
        let bucket = text("/s3/bucket/name")?;
        let key = decode_key(text("/s3/object/key")?);
        urls.extend(
            caller
                .policies()
                .flat_map(|policy| urls_of(policy, bucket, &key)),
        );
    }
    Ok(urls)
}

/// Undoes the form encoding of object keys in events: `+` is a space.
fn decode_key(encoded: &str) -> String {
    let bytes: Vec<u8> = unescaped(encoded.replace('+', " ").as_bytes()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
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
