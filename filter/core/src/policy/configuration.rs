// SPDX-License-Identifier: Apache-2.0
//! A document as Envoy passes it to the filter: JSON text from a `google.protobuf.StringValue`, or the message itself
//! if the configuration is a `google.protobuf.Struct`.

use serde_json::Value;

use crate::policy::forms::error::PolicyError;
use crate::policy::protobuf_struct;

/// Tag of a value in an encoded `Struct` with at least one field. JSON has no such byte, because it escapes control
/// characters.
const TAG_OF_A_VALUE: u8 = 0x12;

/// Reads a document.
///
/// # Errors
/// The document is neither JSON nor a `google.protobuf.Struct`.
pub(crate) fn read(document: &[u8]) -> Result<Value, PolicyError> {
    if document.contains(&TAG_OF_A_VALUE) {
        return protobuf_struct::read(document)
            .ok_or_else(|| PolicyError::new("", "not a valid google.protobuf.Struct".to_owned()));
    }
    serde_json::from_slice(document)
        .map_err(|error| PolicyError::new("", format!("no JSON document: {error}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use prost::Message as _;
    use prost_types::Struct;
    use prost_types::value::Kind;
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
        assert!(
            text.contains("not a valid google.protobuf.Struct"),
            "{text}"
        );
        let text = refused(b"");
        assert!(text.contains("no JSON document"), "{text}");
    }
}
