// SPDX-License-Identifier: Apache-2.0
//! Fields that are hidden from the store because they are not text. Envoy's file store keeps headers as strings of
//! protobuf, which are UTF-8. If a value is not UTF-8, the store loses all fields of the response behind that value.

use std::collections::BTreeSet;

use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::key::qualifiers;
use sluice_host::headers::Headers;
use sluice_host::{self as host, Host, Map};

/// Name of the response header that keeps the hidden fields in the store.
pub const HIDDEN_FIELDS: &str = "x-sluice-fields";

/// Fields of a response that are hidden from the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenFields<'a> {
    names: BTreeSet<&'a str>,
    encoded: String,
}

impl<'a> HiddenFields<'a> {
    /// Collects the hidden fields of these headers, whose names are in lower case. If one line of a name is not text,
    /// all lines of the name are hidden. `None` if there are none.
    pub fn of(headers: impl Iterator<Item = (&'a str, &'a [u8])> + Clone) -> Option<Self> {
        let is_text = |value| FieldValue::new(value).text().is_ok();
        let unreadable = headers.clone().filter(|(_, value)| !is_text(value));
        let names: BTreeSet<_> = unreadable.map(|(name, _)| name).collect();
        if names.is_empty() {
            return None;
        }
        let mut encoded = String::new();
        for (name, value) in headers.filter(|(name, _)| names.contains(name)) {
            if !encoded.is_empty() {
                encoded.push(';');
            }
            qualifiers::push(&mut encoded, name.as_bytes());
            encoded.push('=');
            qualifiers::push(&mut encoded, value);
        }
        Some(Self { names, encoded })
    }

    /// Returns the names of the fields.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.names.iter().copied()
    }

    /// Returns the value of [`HIDDEN_FIELDS`].
    pub fn encoded(&self) -> &str {
        &self.encoded
    }
}

/// Hides the fields of a response that are not text from the store. Returns the remaining headers; `None` if no field
/// was hidden.
///
/// `response` is the response as received. A field that was removed from it since then is not kept, nor is a field
/// that does not `stay`.
///
/// # Errors
/// The host refused a call.
pub fn hide_fields(
    host: &dyn Host,
    response: &Headers,
    stays: impl Fn(&str) -> bool,
) -> host::Result<Option<Headers>> {
    let is_text = |(_, value)| FieldValue::new(value).text().is_ok();
    if response.fields().all(is_text) {
        return Ok(None);
    }
    let current = host.headers(Map::Response)?;
    let fields = current.iter().filter(|(name, _)| stays(name));
    let Some(hidden) = HiddenFields::of(fields) else {
        return Ok(None);
    };
    for name in hidden.names() {
        host.remove_header(Map::Response, name)?;
    }
    host.add_header(Map::Response, HIDDEN_FIELDS, hidden.encoded())?;
    host.headers(Map::Response).map(Some)
}

/// Returns the fields in a value of [`HIDDEN_FIELDS`], in their order.
pub fn decode(value: FieldValue<'_>) -> impl Iterator<Item = (String, Vec<u8>)> {
    // Only ORIGIN writes this header, as text.
    let pairs = value.text().unwrap_or_default().split(';');
    pairs.filter_map(qualifiers::parse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_lines_of_a_name_are_hidden_together_and_nothing_else() {
        let headers = [
            ("x", &b"1"[..]),
            ("y", b"2"),
            ("x", b"\xfc;="),
            ("z", "\u{fc}".as_bytes()),
        ];
        let hidden = HiddenFields::of(headers.into_iter()).unwrap();
        assert!(hidden.names().eq(["x"]));
        assert_eq!(hidden.encoded(), "x=1;x=%FC%3B%3D");
        let text = headers.into_iter().filter(|(name, _)| *name != "x");
        assert_eq!(HiddenFields::of(text), None);
    }

    proptest! {
        #[test]
        fn fields_come_back_byte_for_byte(
            values in prop::collection::vec(prop::collection::vec(1..=255_u8, 0..8), 1..4),
        ) {
            let lines = values.iter().map(|value| ("x-a", value.as_slice()));
            if let Some(hidden) = HiddenFields::of(lines.clone()) {
                prop_assert!(hidden.encoded().is_ascii());
                let shown: Vec<_> = decode(hidden.encoded().into()).collect();
                let expected = lines.map(|(name, value)| (name.to_owned(), value.to_owned()));
                prop_assert_eq!(shown, expected.collect::<Vec<_>>());
            }
        }
    }
}
