// SPDX-License-Identifier: Apache-2.0
//! The shapes of notifications. Each is a JSON object, or a list of such objects that is not empty:
//!
//! | shape | known by | the object |
//! |---|---|---|
//! | Amazon S3, MinIO, Ceph, VersityGW | `Records` | `s3.bucket.name` and `s3.object.key` of each |
//! | one such record alone | `s3` | the same |
//! | Amazon EventBridge | `detail-type` | `detail.bucket.name`, `detail.object.key` |
//! | Cloudflare R2 | `action` and `bucket` | `bucket`, `object.key` |
//! | CloudEvents | `specversion` | what is in `data`, in any of these shapes |
//! | a message of Amazon SNS | `Type` is `Notification` | what is in `Message`, in any of these shapes |
//!
//! An object of an unknown shape is an unknown event, not an error, because senders may add shapes. MinIO and SNS
//! hold back or drop the messages that follow a refused one.

use serde_json::{Map, Value};

use crate::http::url::escaping::form_decoded;
use crate::purge::orders::notification::event::{
    Effect, ObjectEvent, WrittenObject, is_of_written,
};
use crate::purge::orders::order_error::OrderError;

/// Greatest depth of nested shapes: a list in EventBridge in SNS, and one more.
const DEPTH: usize = 4;
const EXPECTED: &str = "expected an event of a bucket";

/// The places of an object's parts in an event.
struct Places {
    bucket: &'static str,
    key: &'static str,
    size: &'static str,
    sequencer: &'static str,
    /// Whether senders encode the key as in a form.
    is_encoded: bool,
}

const OF_RECORD: Places = Places {
    bucket: "/s3/bucket/name",
    key: "/s3/object/key",
    size: "/s3/object/size",
    sequencer: "/s3/object/sequencer",
    is_encoded: true,
};

const OF_EVENT_BRIDGE: Places = Places {
    bucket: "/detail/bucket/name",
    key: "/detail/object/key",
    size: "/detail/object/size",
    sequencer: "/detail/object/sequencer",
    is_encoded: false,
};

const OF_R2: Places = Places {
    bucket: "/bucket",
    key: "/object/key",
    size: "/object/size",
    sequencer: "/object/sequencer",
    is_encoded: false,
};

type Object = Map<String, Value>;
type Events = Result<Vec<ObjectEvent>, OrderError>;

/// Returns the events in a body.
///
/// # Errors
/// The body is not JSON, is not an object, or lacks a field of its shape.
pub fn read(body: &[u8]) -> Events {
    let field = "the body";
    let document: Value = serde_json::from_slice(body)
        .map_err(|error| OrderError::new(field, &format!("{error}: {EXPECTED}")))?;
    read_value(field, &document, DEPTH)
}

/// Reads a text inside an event. If the text is not JSON, the event has no object.
fn read_within(field: &str, text: &str, name: &str, depth: usize) -> Events {
    match serde_json::from_str(text) {
        Ok(document) => read_value(field, &document, depth),
        Err(_) => Ok(vec![without_object(name)]),
    }
}

fn read_value(field: &str, value: &Value, depth: usize) -> Events {
    let refuse = || Err(OrderError::new(field, EXPECTED));
    let Some(depth) = depth.checked_sub(1) else {
        return refuse();
    };
    match value {
        Value::Object(object) => read_object(field, object, depth),
        Value::Array(items) if !items.is_empty() => {
            let items = items.iter().enumerate();
            read_each(
                items.map(|(index, item)| read_value(&format!("{field}[{index}]"), item, depth)),
            )
        }
        _ => refuse(),
    }
}

fn read_each(parts: impl Iterator<Item = Events>) -> Events {
    let parts: Result<Vec<_>, OrderError> = parts.collect();
    Ok(parts?.concat())
}

fn read_object(field: &str, object: &Object, depth: usize) -> Events {
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    if let Some(records) = object.get("Records") {
        return read_records(records);
    }
    if object.contains_key("s3") {
        let record = Value::Object(object.clone());
        return read_record(field, &record, None).map(|event| vec![event]);
    }
    if let (Some("Notification"), Some(message)) = (text("Type"), text("Message")) {
        return read_within("Message", message, "Notification", depth);
    }
    if let Some(name) = text("detail-type") {
        return read_event(field, object, name, &OF_EVENT_BRIDGE).map(|event| vec![event]);
    }
    if object.contains_key("specversion") {
        return read_cloud_event(object, depth);
    }
    if let (Some(action), Some(_)) = (text("action"), text("bucket")) {
        return read_event(field, object, action, &OF_R2).map(|event| vec![event]);
    }
    // S3 tests a new destination with `"Event": "s3:TestEvent"`.
    let names = ["Event", "Type", "type", "eventName"];
    let name = names.iter().find_map(|name| text(name));
    Ok(vec![without_object(name.unwrap_or("of an unknown shape"))])
}

fn read_records(records: &Value) -> Events {
    let records = match records {
        Value::Array(records) => records.as_slice(),
        Value::Null => &[],
        _ => return Err(OrderError::new("Records", "expected a list")),
    };
    let records = records.iter().enumerate();
    let read = |(index, record)| read_record(&format!("Records[{index}]"), record, None);
    records.map(read).collect()
}

/// Reads a record of S3. `name` is the name of the event if the record does not have one.
fn read_record(field: &str, record: &Value, name: Option<&str>) -> Result<ObjectEvent, OrderError> {
    let Some(object) = record.as_object() else {
        return Err(OrderError::new(field, "expected an object"));
    };
    let own = object.get("eventName").and_then(Value::as_str);
    // Without a name, the object may have changed.
    let name = own.or(name).unwrap_or("ObjectCreated:unnamed");
    read_event(field, object, name, &OF_RECORD)
}

/// Reads the event with this `name`.
fn read_event(
    field: &str,
    object: &Object,
    name: &str,
    places: &Places,
) -> Result<ObjectEvent, OrderError> {
    let effect = Effect::of(name);
    if effect != Effect::Changed {
        return Ok(without_object(name));
    }
    let text = |pointer: &str| {
        let value = value_at(object, pointer);
        value.and_then(Value::as_str).ok_or_else(|| {
            let whole = match field {
                "the body" => pointer.trim_start_matches('/').replace('/', "."),
                field => format!("{field}{}", pointer.replace('/', ".")),
            };
            OrderError::new(&whole, "expected a text")
        })
    };
    let (bucket, key) = (text(places.bucket)?, text(places.key)?);
    let decoded = || match places.is_encoded {
        true => form_decoded(key),
        false => Some(key.to_owned()),
    };
    let written = is_of_written(name).then(decoded).flatten();
    Ok(ObjectEvent {
        name: name.to_owned(),
        effect,
        object: Some((bucket.to_owned(), key.to_owned())),
        sequencer: value_at(object, places.sequencer)
            .and_then(Value::as_str)
            .map(str::to_owned),
        written: written.map(|key| WrittenObject {
            key,
            bytes: value_at(object, places.size).and_then(Value::as_u64),
        }),
    })
}

/// The value at a path of names.
fn value_at<'a>(object: &'a Object, pointer: &str) -> Option<&'a Value> {
    let mut steps = pointer.split('/').skip(1);
    let first = steps.next().and_then(|step| object.get(step));
    steps.fold(first, |value, step| value?.get(step))
}

fn read_cloud_event(object: &Object, depth: usize) -> Events {
    let kind = object.get("type").and_then(Value::as_str);
    let Some(kind) = kind else {
        return Err(OrderError::new("type", "expected a text"));
    };
    match object.get("data") {
        Some(record) if record.get("s3").is_some() => {
            read_record("data", record, Some(kind)).map(|event| vec![event])
        }
        Some(data @ (Value::Object(_) | Value::Array(_))) => read_value("data", data, depth),
        Some(Value::String(text)) => read_within("data", text, kind, depth),
        _ => Ok(vec![without_object(kind)]),
    }
}

/// Returns an event with this name and without an object.
fn without_object(name: &str) -> ObjectEvent {
    let effect = match Effect::of(name) {
        // An object has changed, but the event does not name it.
        Effect::Changed => Effect::Unknown,
        effect => effect,
    };
    ObjectEvent {
        name: name.to_owned(),
        effect,
        object: None,
        sequencer: None,
        written: None,
    }
}
