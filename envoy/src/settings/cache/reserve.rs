// SPDX-License-Identifier: Apache-2.0
//! The reserve: the part of the cache's file system that stays free.

use std::fmt;

use sluice_core::size::{self, Size};

/// The texts that [`Reserve::parse`] accepts, for error messages.
pub const ACCEPTED: &str =
    "0, 1% to 50%, or a number of bytes to 256TiB, plain or with KiB, MiB, GiB or TiB";

/// Lower bound on a percentage in bytes, unless the bound is more than half of the file system.
const LEAST: u64 = 64 << 20;

/// The free space below which storing pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserve {
    /// A number of bytes.
    Bytes(u64),
    /// Hundredths of the file system.
    Percent(u64),
}

impl Reserve {
    /// Reads `0`, a size or a percentage; `None`: the text is none of these.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "0" {
            return Some(Self::Bytes(0));
        }
        let Some(digits) = text.strip_suffix('%') else {
            return size::parse(text).map(Self::Bytes);
        };
        let number = digits.bytes().all(|byte| byte.is_ascii_digit());
        let percent = digits.parse().ok().filter(|_| number)?;
        (1..=50)
            .contains(&percent)
            .then_some(Self::Percent(percent))
    }

    /// The reserve in bytes on a file system that holds `total` bytes.
    pub fn of(self, total: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => (total / 100 * percent).max(LEAST).min(total / 2),
        }
    }
}

impl fmt::Display for Reserve {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => Size(*bytes).fmt(out),
            Self::Percent(percent) => write!(out, "{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_percentages_are_reserves() {
        for (text, reserve) in [
            ("0", Reserve::Bytes(0)),
            ("1", Reserve::Bytes(1)),
            ("512MiB", Reserve::Bytes(512 << 20)),
            ("1%", Reserve::Percent(1)),
            ("50%", Reserve::Percent(50)),
        ] {
            assert_eq!(Reserve::parse(text), Some(reserve), "{text}");
        }
    }

    #[test]
    fn anything_else_is_not_a_reserve() {
        for text in [
            "", "%", "0%", "51%", "+5%", "5 %", "5.5%", "-1", "5GB", "257TiB",
        ] {
            assert_eq!(Reserve::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_percentage_is_64_mib_at_least_and_half_of_the_file_system_at_most() {
        let five = |total| Reserve::Percent(5).of(total);
        assert_eq!(five(100 << 30), 5 << 30);
        assert_eq!(five(1 << 30), 64 << 20);
        assert_eq!(five(100 << 20), 50 << 20);
        assert_eq!(Reserve::Bytes(7).of(100 << 30), 7);
    }
}
