// SPDX-License-Identifier: Apache-2.0
//! A header map in Envoy's form: lines in order, names in lower case. For hosts that hold a map themselves.

use sluice_core::http::syntax::field_value::FieldValue;

use super::headers::{Headers, serialize};

/// The headers of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderMap {
    lines: Vec<(String, Vec<u8>)>,
}

impl HeaderMap {
    /// A map of these lines.
    pub fn of(lines: &[(&str, &str)]) -> Self {
        let mut map = Self::default();
        for (name, value) in lines {
            map.add(name, value);
        }
        map
    }

    /// A map of these names, in lower case, and values.
    pub const fn of_lines(lines: Vec<(String, Vec<u8>)>) -> Self {
        Self { lines }
    }

    /// Reads the ABI's serialization.
    pub fn decode(bytes: &[u8]) -> Self {
        let headers = Headers::new(bytes.to_vec());
        let line = |(name, value): (&str, &[u8])| (name.to_owned(), value.to_vec());
        Self {
            lines: headers.iter().map(line).collect(),
        }
    }

    /// Writes the ABI's serialization.
    pub fn encode(&self) -> Vec<u8> {
        serialize(self.iter())
    }

    /// All lines.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> + Clone {
        self.lines
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// Whether there is a line of that name.
    pub fn has(&self, name: &str) -> bool {
        self.iter().any(|(known, _)| known == name)
    }

    /// Replaces all lines of that name by one line.
    pub fn set(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let Some((_, line)) = self.lines.iter_mut().find(|(known, _)| known == name) else {
            return self.add(name, value);
        };
        *line = value.as_ref().into();
        let mut first = true;
        self.lines
            .retain(|(known, _)| known != name || std::mem::take(&mut first));
    }

    /// Adds a line.
    pub fn add(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.lines.push((name.to_owned(), value.as_ref().into()));
    }

    /// Removes all lines of that name.
    pub fn remove(&mut self, name: &str) {
        self.lines.retain(|(known, _)| known != name);
    }

    /// `:status`; 0 if there is none.
    pub fn status(&self) -> u16 {
        let mut lines = self.iter();
        let status = lines.find(|(name, _)| *name == ":status");
        let status = status.and_then(|(_, value)| FieldValue::new(value).number());
        status.unwrap_or(0)
    }
}
