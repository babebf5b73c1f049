// SPDX-License-Identifier: Apache-2.0
//! Durations as operators write them in a policy: whole numbers with units.

use std::time::Duration;

use crate::http::caching::cache_control::MAX_DELTA_SECONDS;

/// The texts that [`parse`] accepts, for error messages.
pub const EXPECTED: &str = "a duration such as 250ms, 5s, 1h30m or 30d";

/// Pattern of the texts that [`parse`] accepts, without their bounds, for JSON Schemas. `\b` refuses the empty text.
pub const PATTERN: &str = r"^\b([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$";

/// [`PATTERN`] for durations of whole seconds.
pub const PATTERN_OF_SECONDS: &str =
    r"^\b([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]*000ms|0+ms)?$";

/// Longest duration. It fits into the 31 bits that RFC 9111 section 1.2.2 requires of a cache.
pub const MAX: Duration = Duration::from_secs(MAX_DELTA_SECONDS);

const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// Reads `250ms`, `5s` or `1h30m`: whole numbers, each with a unit, from the largest unit to the smallest.
pub fn parse(text: &str) -> Option<Duration> {
    let (mut rest, mut millis, mut units) = (text, 0_u64, UNITS.as_slice());
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, more) = rest.split_at_checked(digits)?;
        let letters = more.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, more) = more.split_at_checked(letters)?;
        let place = units.iter().position(|(name, _)| *name == unit)?;
        let (smaller, (_, factor)) = (units.get(..place)?, units.get(place)?);
        millis = millis.checked_add(number.parse::<u64>().ok()?.checked_mul(*factor)?)?;
        if more.is_empty() {
            break;
        }
        (rest, units) = (more, smaller);
    }
    let duration = Duration::from_millis(millis);
    (duration <= MAX).then_some(duration)
}

/// Writes a duration in the largest unit that loses nothing; less than a millisecond is cut off.
pub fn format(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 {
        return "0s".to_owned();
    }
    UNITS
        .iter()
        .rev()
        .find(|(_, unit)| millis.is_multiple_of(*unit))
        .map(|(name, unit)| format!("{}{name}", millis / unit))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::policy::forms::duration::*;
    use proptest::prelude::*;

    #[test]
    fn units_are_read() {
        for (text, millis) in [
            ("0s", 0),
            ("0d", 0),
            ("250ms", 250),
            ("5s", 5_000),
            ("005s", 5_000),
            ("1m", 60_000),
            ("1h", 3_600_000),
            ("30d", 2_592_000_000),
            ("1h30m", 5_400_000),
            ("1d0h250ms", 86_400_250),
            ("2147483647s", 2_147_483_647_000),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "s",
            "5",
            "5 s",
            " 5s",
            "5s ",
            "+5s",
            "-5s",
            "1.5s",
            "5S",
            "5sec",
            "30m1h",
            "1h1h",
            "1h30",
            "1h 30m",
            "1h-5m",
            "2147483647s1ms",
            "1w",
            "1 fortnight",
            "٥s",
            "2147483648s",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_largest_exact_unit_is_written() {
        for (millis, text) in [
            (0, "0s"),
            (250, "250ms"),
            (1_000, "1s"),
            (90_000, "90s"),
            (120_000, "2m"),
            (86_400_000, "1d"),
        ] {
            assert_eq!(format(Duration::from_millis(millis)), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(millis in 0..=2_147_483_647_000_u64) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse(&format(duration)), Some(duration));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = parse(&text);
        }
    }
}
