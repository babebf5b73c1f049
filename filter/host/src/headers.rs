// SPDX-License-Identifier: Apache-2.0
//! A header map that was read in one host call.

use std::ops::Range;

use sluice_core::http::syntax::field_value::{FieldValue, JoinedValue};
use sluice_core::key::Target;

/// The bytes of the count of fields.
const COUNT_BYTES: usize = 4;
/// The bytes of the pair of sizes of a field.
const PAIR_BYTES: usize = 8;

/// The ABI's serialization of a header map, read in place.
#[derive(Clone, Debug)]
pub struct Headers {
    bytes: Vec<u8>,
}

impl Headers {
    /// Wraps bytes of the host.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// The map in the ABI's serialization.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All names and values. A name that is not UTF-8 is replaced by an empty one, which never matches.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> + Clone {
        self.fields()
            .map(|(name, value)| (std::str::from_utf8(name).unwrap_or(""), value))
    }

    /// All names and values, without a check of the names.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        let (_, table, mut data) = parts(&self.bytes);
        table.chunks_exact(PAIR_BYTES).map_while(move |entry| {
            let (name_size, value_size) = entry.split_first_chunk::<4>()?;
            let name_size = u32::from_le_bytes(*name_size) as usize;
            let value_size = u32::from_le_bytes(*value_size.first_chunk::<4>()?) as usize;
            let name = data.get(..name_size)?;
            let value = data.get(name_size + 1..name_size + 1 + value_size)?;
            data = data.get(name_size + value_size + 2..)?;
            Some((name, value))
        })
    }

    /// The map with `value` in the first field of that name; the same map if no field has it.
    #[must_use]
    pub fn with(&self, name: &str, value: &[u8]) -> Self {
        let (_, table, _) = parts(&self.bytes);
        let mut start = COUNT_BYTES + table.len();
        for (number, (found, old)) in self.fields().enumerate() {
            let old_start = start + found.len() + 1;
            let old_end = old_start + old.len();
            if found == name.as_bytes() {
                return self.replace(number, old_start..old_end, value);
            }
            start = old_end + 1;
        }
        self.clone()
    }

    /// The map with `value` in the field of that number, whose value has the place `old`.
    fn replace(&self, number: usize, old: Range<usize>, value: &[u8]) -> Self {
        let before = self.bytes.get(..old.start).unwrap_or_default();
        let behind = self.bytes.get(old.end..).unwrap_or_default();
        let mut bytes = [before, value, behind].concat();
        // The size of the value is the second one of the field's pair.
        let size_at = COUNT_BYTES + PAIR_BYTES * number + PAIR_BYTES / 2;
        let size = bytes.get_mut(size_at..).and_then(<[u8]>::first_chunk_mut);
        if let Some(size) = size {
            *size = size_of(value.len());
        }
        Self { bytes }
    }

    /// The first value of that (lower-case) name.
    pub fn get(&self, name: &str) -> Option<FieldValue<'_>> {
        self.lines(name).next().map(FieldValue::new)
    }

    /// Whether the first value of that name is `value`.
    pub fn is(&self, name: &str, value: &str) -> bool {
        self.get(name).is_some_and(|found| found == value)
    }

    /// The values of all lines of that name, with commas between them.
    pub fn joined(&self, name: &str) -> Option<JoinedValue<'_>> {
        JoinedValue::of(self.lines(name))
    }

    fn lines(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.fields()
            .filter(move |(candidate, _)| *candidate == name.as_bytes())
            .map(|(_, value)| value)
    }

    /// The parts of a request that form its target.
    pub fn target(&self) -> Target<'_> {
        let bytes = |name| self.get(name).map_or(&[][..], FieldValue::bytes);
        Target {
            // A site never has a scheme that is not text.
            scheme: self.get(":scheme").and_then(|scheme| scheme.text().ok()),
            authority: bytes(":authority"),
            path: bytes(":path"),
        }
    }

    /// `:status`, if it is a number.
    pub fn status(&self) -> Option<u16> {
        self.get(":status")?.number()
    }

    /// Length of the body in bytes, if the headers have it.
    pub fn content_length(&self) -> Option<u64> {
        self.get("content-length")?.number()
    }

    /// Whether there is a header of that name.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
}

/// A count or a size as the ABI has it.
fn size_of(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes()
}

/// Serializes fields for the ABI: a count, pairs of sizes, then names and values, each with a NUL.
pub fn serialize<'a>(fields: impl Iterator<Item = (&'a str, &'a [u8])> + Clone) -> Vec<u8> {
    serialize_fields(fields.map(|(name, value)| (name.as_bytes(), value)))
}

/// Serializes fields whose names may not be text.
pub fn serialize_fields<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone) -> Vec<u8> {
    let (count, data) = fields.clone().fold((0, 0), |(count, data), (name, value)| {
        (count + 1, data + name.len() + value.len() + 2)
    });
    let mut bytes = Vec::with_capacity(COUNT_BYTES + PAIR_BYTES * count + data);
    bytes.extend(size_of(count));
    for (name, value) in fields.clone() {
        bytes.extend(size_of(name.len()));
        bytes.extend(size_of(value.len()));
    }
    for (name, value) in fields {
        bytes.extend_from_slice(name);
        bytes.push(0);
        bytes.extend_from_slice(value);
        bytes.push(0);
    }
    bytes
}

/// Adds fields to serialized `fields`, without decoding these.
pub fn extend<'a>(
    fields: &[u8],
    more: impl Iterator<Item = (&'a str, &'a [u8])> + Clone,
) -> Vec<u8> {
    let more = serialize(more);
    let (count, table, data) = parts(fields);
    let (more_count, more_table, more_data) = parts(&more);
    let mut bytes = Vec::with_capacity(fields.len() + more.len());
    bytes.extend((count + more_count).to_le_bytes());
    for part in [table, more_table, data, more_data] {
        bytes.extend_from_slice(part);
    }
    bytes
}

/// The count, the pairs of sizes, and the names and values.
fn parts(fields: &[u8]) -> (u32, &[u8], &[u8]) {
    let (count, rest) = match fields.split_first_chunk::<4>() {
        Some((count, rest)) => (u32::from_le_bytes(*count), rest),
        None => (0, &[][..]),
    };
    let table = (count as usize).saturating_mul(PAIR_BYTES).min(rest.len());
    let (table, data) = rest.split_at(table);
    (count, table, data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_with_another_value_is_the_map_of_the_other_fields() {
        let fields = [
            (":method", "GET"),
            (":path", "/a?x"),
            ("via", ""),
            (":path", "/b"),
        ];
        let map = |fields: [(&'static str, &'static str); 4]| {
            let fields = fields.into_iter();
            serialize(fields.map(|(name, value)| (name, value.as_bytes())))
        };
        let headers = Headers::new(map(fields));
        for (number, name) in [(0, ":method"), (1, ":path"), (2, "via")] {
            for value in ["", "/", "/longer?than=before"] {
                let mut expected = fields;
                expected[number].1 = value;
                let with = headers.with(name, value.as_bytes());
                assert_eq!(with.bytes(), map(expected), "{name}: {value}");
            }
        }
        assert_eq!(headers.with("pat", b"x").bytes(), headers.bytes());
        assert!(Headers::new(Vec::new()).with("a", b"x").bytes().is_empty());
    }
}
