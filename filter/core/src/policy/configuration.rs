// SPDX-License-Identifier: Apache-2.0
//! A document as Envoy passes it to the filter: JSON text from a `google.protobuf.StringValue`, or the message itself
//! if the configuration is a `google.protobuf.Struct`.

use prost::Message as _;
use prost_types::Struct;
use prost_types::value::Kind;
use serde_json::{Map, Number, Value};

use crate::policy::forms::error::PolicyError;

/// Tag of a value in an encoded `Struct` with at least one field. JSON has no such byte, because it escapes control
/// characters.
const TAG_OF_A_VALUE: u8 = 0x12;

/// Reads a document.
///
/// # Errors
/// The document is neither JSON nor a `google.protobuf.Struct`.
pub(crate) fn read(document: &[u8]) -> Result<Value, PolicyError> {
    if document.contains(&TAG_OF_A_VALUE) {
        let message = Struct::decode(document)
            .map_err(|error| PolicyError::new("", format!("no google.protobuf.Struct: {error}")))?;
        return Ok(object(message));
    }
    serde_json::from_slice(document)
        .map_err(|error| PolicyError::new("", format!("no JSON document: {error}")))
}

fn object(message: Struct) -> Value {
    let fields = message.fields.into_iter();
    Value::Object(
        fields
            .map(|(name, value)| (name, plain(value.kind)))
            .collect::<Map<_, _>>(),
    )
}

fn plain(kind: Option<Kind>) -> Value {
    match kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(value)) => value.into(),
        Some(Kind::NumberValue(value)) => number(value),
        Some(Kind::StringValue(value)) => value.into(),
        Some(Kind::StructValue(value)) => object(value),
        Some(Kind::ListValue(list)) => {
            let values = list.values.into_iter();
            values.map(|value| plain(value.kind)).collect()
        }
    }
}

/// Returns a whole number as an integer, as in JSON text. A `Struct` has only floating-point numbers.
fn number(value: f64) -> Value {
    let whole = value as i64;
    if whole as f64 == value {
        return whole.into();
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn message(value: &Value) -> prost_types::Value {
        let kind = match value {
            Value::Null => Kind::NullValue(0),
            Value::Bool(value) => Kind::BoolValue(*value),
            Value::Number(value) => Kind::NumberValue(value.as_f64().unwrap()),
            Value::String(value) => Kind::StringValue(value.clone()),
            Value::Array(values) => Kind::ListValue(prost_types::ListValue {
                values: values.iter().map(message).collect(),
            }),
            Value::Object(_) => Kind::StructValue(structure(value)),
        };
        prost_types::Value { kind: Some(kind) }
    }

    fn structure(value: &Value) -> Struct {
        let fields = value.as_object().unwrap().iter();
        Struct {
            fields: fields
                .map(|(name, value)| (name.clone(), message(value)))
                .collect(),
        }
    }

    #[test]
    fn a_struct_and_its_json_are_the_same_document() {
        let document = json!({
            "origin": {"kind": "bucket"},
            "cache": {"ttl": {"200": "1h", "default": "1s"}},
            "hot": {"max_bytes": 16_777_216},
            "purge": {"journal": [], "warm": true},
            "empty": {}, "none": null, "half": 0.5, "less": -3,
            "rules": [{"match": ["*.css", "\u{12}"], "headers": {"X": "a\tb"}}],
        });
        assert_eq!(read(document.to_string().as_bytes()).unwrap(), document);
        let encoded = structure(&document).encode_to_vec();
        assert_eq!(read(&encoded).unwrap(), document);
    }

    #[test]
    fn what_is_neither_is_refused_with_the_reason() {
        let refused = |document: &[u8]| read(document).unwrap_err().to_string();
        let text = refused(b"{\"origin\": }");
        assert!(text.contains("no JSON document: expected value"), "{text}");
        let cut = structure(&json!({"origin": {"kind": "bucket"}})).encode_to_vec();
        let text = refused(&cut[..cut.len() - 1]);
        assert!(text.contains("no google.protobuf.Struct"), "{text}");
        let text = refused(b"");
        assert!(text.contains("no JSON document"), "{text}");
    }
}
