// SPDX-License-Identifier: Apache-2.0
//! The protobuf encoding of `google.protobuf.Struct`, read as JSON. A library would be a fiftieth of the module, which
//! each worker holds compiled.

use serde_json::{Map, Number, Value};

/// Most levels of objects and lists in a message, as in libraries for protobuf.
const MAX_LEVELS: usize = 100;

/// Value of a field on the wire, by wire type.
enum WireValue<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    /// Four bytes, which no field of a `Struct` has.
    Fixed32,
}

/// Reads an encoded `google.protobuf.Struct`; `None` if it is not one. Unknown fields are skipped.
pub(super) fn read(message: &[u8]) -> Option<Value> {
    object(message, MAX_LEVELS)
}

/// Reads a `Struct`: its field 1 has an entry for each field of the object.
fn object(mut message: &[u8], levels: usize) -> Option<Value> {
    let levels = levels.checked_sub(1)?;
    let mut fields = Map::new();
    while !message.is_empty() {
        if let (1, WireValue::Bytes(entry)) = field(&mut message)? {
            let (name, value) = named_value(entry, levels)?;
            fields.insert(name, value);
        }
    }
    Some(Value::Object(fields))
}

/// Reads an entry of a `Struct`: the name in field 1, the value in field 2.
fn named_value(mut entry: &[u8], levels: usize) -> Option<(String, Value)> {
    let (mut name, mut named) = (String::new(), Value::Null);
    while !entry.is_empty() {
        match field(&mut entry)? {
            (1, WireValue::Bytes(text)) => name = str::from_utf8(text).ok()?.to_owned(),
            (2, WireValue::Bytes(message)) => named = value(message, levels)?,
            _ => {}
        }
    }
    Some((name, named))
}

/// Reads a `google.protobuf.Value`, whose last field counts.
fn value(mut message: &[u8], levels: usize) -> Option<Value> {
    let mut read = Value::Null;
    while !message.is_empty() {
        match field(&mut message)? {
            (1, WireValue::Varint(_)) => read = Value::Null,
            (2, WireValue::Fixed64(bits)) => read = number(f64::from_bits(bits)),
            (3, WireValue::Bytes(text)) => read = str::from_utf8(text).ok()?.into(),
            (4, WireValue::Varint(flag)) => read = (flag != 0).into(),
            (5, WireValue::Bytes(message)) => read = object(message, levels)?,
            (6, WireValue::Bytes(message)) => read = list(message, levels)?,
            _ => {}
        }
    }
    Some(read)
}

/// Reads a `google.protobuf.ListValue`: its field 1 has the values.
fn list(mut message: &[u8], levels: usize) -> Option<Value> {
    let levels = levels.checked_sub(1)?;
    let mut values = Vec::new();
    while !message.is_empty() {
        if let (1, WireValue::Bytes(item)) = field(&mut message)? {
            values.push(value(item, levels)?);
        }
    }
    Some(Value::Array(values))
}

/// Returns a whole number as an integer, as in JSON text. A `Struct` has only floating-point numbers.
fn number(value: f64) -> Value {
    let whole = value as i64;
    if whole as f64 == value {
        return whole.into();
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// Takes a field off the input: its number and its value.
fn field<'a>(input: &mut &'a [u8]) -> Option<(u64, WireValue<'a>)> {
    let tag = varint(input)?;
    let value = match tag & 7 {
        0 => WireValue::Varint(varint(input)?),
        1 => WireValue::Fixed64(u64::from_le_bytes(take(input, 8)?.try_into().ok()?)),
        2 => {
            let length = usize::try_from(varint(input)?).ok()?;
            WireValue::Bytes(take(input, length)?)
        }
        5 => take(input, 4).map(|_| WireValue::Fixed32)?,
        _ => return None,
    };
    Some((tag >> 3, value))
}

fn take<'a>(input: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(taken)
}

/// Takes a number in the base 128 off the input, the lowest digit first.
fn varint(input: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = input.split_first()?;
        *input = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;
    use prost::Message as _;
    use prost_types::value::Kind;
    use prost_types::{ListValue, Struct};

    /// The JSON of a message that the library has read.
    fn json(kind: Option<Kind>) -> Value {
        match kind {
            None | Some(Kind::NullValue(_)) => Value::Null,
            Some(Kind::BoolValue(value)) => value.into(),
            Some(Kind::NumberValue(value)) => number(value),
            Some(Kind::StringValue(value)) => value.into(),
            Some(Kind::ListValue(ListValue { values })) => {
                values.into_iter().map(|value| json(value.kind)).collect()
            }
            Some(Kind::StructValue(message)) => json_of(message),
        }
    }

    fn json_of(message: Struct) -> Value {
        let fields = message.fields.into_iter();
        Value::Object(
            fields
                .map(|(name, value)| (name, json(value.kind)))
                .collect(),
        )
    }

    fn kind() -> impl Strategy<Value = Kind> {
        let leaf = prop_oneof![
            Just(Kind::NullValue(0)),
            any::<bool>().prop_map(Kind::BoolValue),
            any::<f64>().prop_map(Kind::NumberValue),
            any::<i32>().prop_map(|number| Kind::NumberValue(number.into())),
            ".{0,8}".prop_map(Kind::StringValue),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let value = inner.prop_map(|kind| prost_types::Value { kind: Some(kind) });
            let list = prop::collection::vec(value.clone(), 0..4);
            let fields = prop::collection::btree_map(".{0,4}", value, 0..4);
            prop_oneof![
                list.prop_map(|values| Kind::ListValue(ListValue { values })),
                fields.prop_map(|fields| Kind::StructValue(Struct { fields })),
            ]
        })
    }

    proptest! {
        #[test]
        fn messages_are_read_as_the_library_reads_them(kind in kind()) {
            let value = prost_types::Value { kind: Some(kind) };
            let message = Struct { fields: [("a".to_owned(), value)].into() };
            prop_assert_eq!(read(&message.encode_to_vec()), Some(json_of(message)));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = read(&bytes);
        }

        #[test]
        fn a_cut_message_is_refused(kind in kind(), cut in any::<prop::sample::Index>()) {
            let value = prost_types::Value { kind: Some(kind) };
            let bytes = Struct { fields: [("a".to_owned(), value)].into() }.encode_to_vec();
            let cut = 1 + cut.index(bytes.len() - 1);
            prop_assert_eq!(read(&bytes[..cut]), None);
        }
    }

    #[test]
    fn levels_are_bounded() {
        let nest = |kind, _| {
            let values = vec![prost_types::Value { kind: Some(kind) }];
            Kind::ListValue(ListValue { values })
        };
        let kind = (0..MAX_LEVELS).fold(Kind::NullValue(0), nest);
        let value = prost_types::Value { kind: Some(kind) };
        let message = Struct {
            fields: [("a".to_owned(), value)].into(),
        };
        assert_eq!(read(&message.encode_to_vec()), None);
    }
}
