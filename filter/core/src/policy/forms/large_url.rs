// SPDX-License-Identifier: Apache-2.0
//! The URL of an object that is stored in slices, as a hash, and its text.

use std::fmt;

use serde_json::Value;

use crate::hexadecimal;
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{Form, Kind, read_text};

/// The number of digits of a [`LargeUrl`] as a text.
const DIGITS: usize = 16;

/// Hash of the URL of an object that is stored in slices, as [`LargeUrl::of`] returns it. The URL has no qualifiers, so
/// a purge does not change the hash. The hash is keyed with the store's secret, and is the same in every version and on
/// every machine, because a list of such hashes outlives the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LargeUrl(pub u64);

impl LargeUrl {
    /// Reads 16 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = Some(text.as_bytes()).filter(|digits| digits.len() == DIGITS);
        hexadecimal::number(digits?).map(Self)
    }
}

impl fmt::Display for LargeUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:0width$x}", self.0, width = DIGITS)
    }
}

impl Form<Self> for LargeUrl {
    fn read(value: &Value, _: Kind) -> Result<Self, PolicyError> {
        read_text(value, "16 hexadecimal digits", Self::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_read_as_it_was_written() {
        for url in [LargeUrl(0), LargeUrl(7), LargeUrl(u64::MAX)] {
            assert_eq!(LargeUrl::parse(&url.to_string()), Some(url));
        }
        for text in [
            "",
            "0123456789abcde",
            "0123456789abcdefa",
            "0123456789abcdeg",
        ] {
            assert_eq!(LargeUrl::parse(text), None, "{text}");
        }
    }
}
