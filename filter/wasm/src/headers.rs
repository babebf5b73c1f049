// SPDX-License-Identifier: Apache-2.0
//! A header map read in one host call.

use std::borrow::Cow;

/// The ABI's serialisation of a header map, read in place: a count, pairs of sizes, then names and
/// values each with a NUL.
#[derive(Debug)]
pub struct Headers {
    bytes: Vec<u8>,
}

impl Headers {
    /// Takes what the host gave.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// All names and values; values that are not UTF-8 are given as empty names' values never match.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let (count, sizes) = match self.bytes.split_first_chunk::<4>() {
            Some((count, rest)) => (u32::from_le_bytes(*count) as usize, rest),
            None => (0, &[][..]),
        };
        let table = sizes.get(..count * 8).unwrap_or_default();
        let mut data = sizes.get(count * 8..).unwrap_or_default();
        table.chunks_exact(8).map_while(move |entry| {
            let (name_size, value_size) = entry.split_first_chunk::<4>()?;
            let name_size = u32::from_le_bytes(*name_size) as usize;
            let value_size = u32::from_le_bytes(*value_size.first_chunk::<4>()?) as usize;
            let name = data.get(..name_size)?;
            let value = data.get(name_size + 1..name_size + 1 + value_size)?;
            data = data.get(name_size + value_size + 2..)?;
            Some((std::str::from_utf8(name).unwrap_or(""), value))
        })
    }

    /// The first value of that (lower-case) name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter()
            .find(|(candidate, _)| *candidate == name)
            .map(|(_, value)| value)
    }

    /// The first value of that name, if it is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)
            .and_then(|value| std::str::from_utf8(value).ok())
    }

    /// The values of all lines of that name, with commas between them, unless they are not text.
    pub fn joined(&self, name: &str) -> Option<Cow<'_, str>> {
        let mut lines = self
            .iter()
            .filter(|(candidate, _)| *candidate == name)
            .map(|(_, value)| std::str::from_utf8(value));
        let mut joined = Cow::Borrowed(lines.next()?.ok()?);
        for line in lines {
            let joined = joined.to_mut();
            joined.push_str(", ");
            joined.push_str(line.ok()?);
        }
        Some(joined)
    }

    /// Whether there is a header of that name.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
}
