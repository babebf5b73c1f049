// SPDX-License-Identifier: Apache-2.0
//! HTTP's dates (RFC 9110, 5.6.7) as seconds since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::http::syntax::field_value::FieldValue;

/// Last second of the year 9999, the last year with four digits.
const LAST: i64 = 253_402_300_799;
/// Seconds from a date in the years 1970 to 1999 to the same date a hundred years later.
const CENTURY: i64 = 36_525 * 86_400;
/// Weekdays in the formats of RFC 5322 and asctime.
const SHORT_WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/// Weekdays in the format of RFC 850.
const LONG_WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// Writes an IMF-fixdate. A time before 1970 or after 9999 is replaced by the nearest one in this range.
pub fn format(unix_seconds: i64) -> String {
    let seconds = u64::try_from(unix_seconds.clamp(0, LAST)).unwrap_or_default();
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Reads any of the three formats that a recipient must accept; `None` for anything else. The case of letters and the
/// name of the weekday are ignored (RFC 9111, 4.2).
///
/// A year with two digits, in the format of RFC 850, is one of 1970 to 2069.
pub fn parse(text: &str) -> Option<i64> {
    let text = text.trim();
    read(text).or_else(|| read_tolerantly(text))
}

/// Returns the date in a field; `None` for any other value. Such a field counts as absent (RFC 9110, 8.8.2, 13.1.3).
pub fn of(value: FieldValue<'_>) -> Option<i64> {
    parse(value.text().ok()?)
}

/// Reads a date as [`parse`] does, at the time `now` in seconds since 1970. A year with two digits is the latest year
/// with these digits that is at most 50 years ahead (RFC 9110, 5.6.7).
pub fn parse_at(text: &str, now: i64) -> Option<i64> {
    let date = parse(text)?;
    let later = date.saturating_add(CENTURY);
    // Only the format of RFC 850 has hyphens.
    let is_later = text.contains('-') && later <= now.saturating_add(CENTURY / 2);
    Some(if is_later { later } else { date })
}

fn read(text: &str) -> Option<i64> {
    let time: SystemTime = httpdate::parse_http_date(text).ok()?;
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()
}

/// Reads a date with letters in any case and with any weekday. A date has one weekday, so at most one of the names
/// makes it valid.
fn read_tolerantly(text: &str) -> Option<i64> {
    let (weekday, rest) = text.split_at_checked(text.find([',', ' '])?)?;
    let names = [SHORT_WEEKDAYS, LONG_WEEKDAYS]
        .into_iter()
        .find(|names| names.iter().any(|name| name.eq_ignore_ascii_case(weekday)))?;
    let rest = capitalized(rest);
    names.iter().find_map(|name| read(&format!("{name}{rest}")))
}

/// Returns the text with months and the zone in their usual case.
fn capitalized(text: &str) -> String {
    let mut capitalized = String::with_capacity(text.len());
    for letter in text.chars() {
        let continues = capitalized.ends_with(|last: char| last.is_ascii_alphabetic());
        capitalized.push(if continues {
            letter.to_ascii_lowercase()
        } else {
            letter.to_ascii_uppercase()
        });
    }
    match capitalized.strip_suffix(" Gmt") {
        Some(rest) => format!("{rest} GMT"),
        None => capitalized,
    }
}

#[cfg(test)]
mod tests {
    use crate::http::syntax::date::*;
    use proptest::prelude::*;

    #[test]
    fn the_three_formats_are_read() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            " Sun, 06 Nov 1994 08:49:37 GMT ",
        ] {
            assert_eq!(parse(text), Some(784_111_777), "{text}");
        }
    }

    #[test]
    fn the_weekday_and_the_case_of_letters_make_no_difference() {
        for text in [
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "SUN, 06 NOV 1994 08:49:37 gmt",
            "sun, 06 nov 1994 08:49:37 gMT",
            "Monday, 06-Nov-94 08:49:37 GMT",
            "SUNDAY, 06-nOV-94 08:49:37 gmt",
            "Mon Nov  6 08:49:37 1994",
            "sun nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse(text), Some(784_111_777), "{text}");
        }
    }

    #[test]
    fn two_digits_of_a_year_are_the_latest_that_is_at_most_50_years_ahead() {
        let read_in_2026 = |text| parse_at(text, 1_790_000_000).map(format);
        for (text, read) in [
            (
                "Sunday, 06-Nov-94 08:49:37 GMT",
                "Sun, 06 Nov 1994 08:49:37 GMT",
            ),
            (
                "Sunday, 06-Nov-26 08:49:37 GMT",
                "Fri, 06 Nov 2026 08:49:37 GMT",
            ),
            (
                "Sunday, 01-Mar-72 08:49:37 GMT",
                "Tue, 01 Mar 2072 08:49:37 GMT",
            ),
            (
                "Sunday, 01-Mar-76 08:49:37 GMT",
                "Sun, 01 Mar 2076 08:49:37 GMT",
            ),
            (
                "Sunday, 01-Dec-76 08:49:37 GMT",
                "Wed, 01 Dec 1976 08:49:37 GMT",
            ),
            (
                "Sun, 06 Nov 1974 08:49:37 GMT",
                "Wed, 06 Nov 1974 08:49:37 GMT",
            ),
            ("Sun Nov  6 08:49:37 1974", "Wed, 06 Nov 1974 08:49:37 GMT"),
        ] {
            assert_eq!(read_in_2026(text).as_deref(), Some(read), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_date() {
        for text in [
            "",
            "0",
            "-1",
            "784111777",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Thu, 18 Aug 2050 02:01:18 AEST",
            "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun 06 Nov 1994 08:49:37 GMT",
            "Sun, 06  Nov  1994 08:49:37 GMT",
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08.49.37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sunday, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06-Nov-94 08:49:37 GMT",
            "Day, 06 Nov 1994 08:49:37 GMT",
            ", 06 Nov 1994 08:49:37 GMT",
            "Sun, 30 Feb 1994 08:49:37 GMT",
            "Sun, 32 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 25:49:37 GMT",
            "1994-11-06T08:49:37Z",
            "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_date_is_written_as_imf_fixdate() {
        for (seconds, text) in [
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (-1, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (i64::MIN, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (LAST, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (i64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            assert_eq!(format(seconds), text, "{seconds}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(seconds in 0..=LAST) {
            prop_assert_eq!(parse(&format(seconds)), Some(seconds));
        }

        #[test]
        fn no_text_panics(text in "\\PC*|[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT") {
            let _ = parse(&text);
        }
    }
}
