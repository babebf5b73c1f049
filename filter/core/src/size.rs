// SPDX-License-Identifier: Apache-2.0
//! Sizes: numbers of bytes as operators write them: `1073741824`, `64KiB`, `10Gi`.

use std::fmt;

/// The texts that [`parse`] accepts, for error messages.
pub const ACCEPTED: &str = "a number of bytes from 1 to 256TiB, plain or with KiB, MiB, GiB or TiB";

/// Pattern of the texts that [`parse`] accepts, without their bounds, for JSON Schemas.
pub const PATTERN: &str = "^[0-9]+ *([KMGT]iB?)?$";

/// The bytes of a mebibyte.
pub const MIB: u64 = 1 << 20;

/// The largest size. The filter gets sizes in JSON, as doubles, which are exact up to this size.
const LARGEST: u64 = 1 << 48;

const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];

/// Reads a size. Its unit may lack the `B`, as in Kubernetes' quantities; `None` if the text is not a size.
pub fn parse(text: &str) -> Option<u64> {
    let number = |suffix: &str| {
        let short = suffix.strip_suffix('B').unwrap_or(suffix);
        text.strip_suffix(suffix)
            .or_else(|| text.strip_suffix(short))
    };
    let unit = UNITS
        .iter()
        .find_map(|(suffix, shift)| Some((number(suffix)?, *shift)));
    let (digits, shift) = unit.unwrap_or((text, 0));
    let digits = digits.trim_end();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let bytes = digits.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    (1..=LARGEST).contains(&bytes).then_some(bytes)
}

/// A size that is shown in the largest unit that divides it.
pub struct Size(
    /// Bytes.
    pub u64,
);

impl fmt::Display for Size {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS
            .iter()
            .find(|(_, shift)| self.0 != 0 && self.0.trailing_zeros() >= *shift);
        match unit {
            Some((suffix, shift)) => write!(out, "{}{suffix}", self.0 >> shift),
            None => write!(out, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_bytes_and_binary_suffixes_are_sizes() {
        for (text, bytes) in [
            ("1", 1),
            ("1024", 1024),
            ("64KiB", 64 << 10),
            ("512 MiB", 512 << 20),
            ("1GiB", 1 << 30),
            ("10Gi", 10 << 30),
            ("5 Ki", 5 << 10),
            ("256TiB", LARGEST),
        ] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
    }

    #[test]
    fn anything_else_is_not_a_size() {
        for text in [
            "",
            "0",
            "0KiB",
            "-1",
            "+1",
            "1.5GiB",
            "1GB",
            "1gib",
            "1G",
            "1i",
            "1iB",
            "KiB",
            "257TiB",
            "99999999999999999999",
            "1 2",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_are_shown_in_the_largest_exact_unit() {
        assert_eq!(Size(1 << 30).to_string(), "1GiB");
        assert_eq!(Size(1536).to_string(), "1536 bytes");
        assert_eq!(Size(3 << 20).to_string(), "3MiB");
    }
}
