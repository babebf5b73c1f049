// SPDX-License-Identifier: Apache-2.0
//! Times of a feed's lines: `2026-11-25T07:31:02Z` (RFC 3339), in seconds since 1970.

use std::time::Duration;

use crate::http::syntax::date;
use crate::policy::purge::applied_within;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Time from which every edge that reads the feed `every` so often has applied a purge that was written at the time
/// `now`, in seconds since 1970.
pub fn applied_by(now: i64, every: Duration) -> String {
    let within = applied_within(every).as_secs_f64().ceil();
    let within = Duration::from_secs_f64(within).as_secs();
    // The second of `now` may be almost over.
    let within = i64::try_from(within + 1).unwrap_or(i64::MAX);
    format(now.saturating_add(within))
}

/// Writes a time. One before 1970 or after 9999 is replaced by the nearest one in this range.
pub(super) fn format(seconds: i64) -> String {
    let date = date::format(seconds);
    let mut parts = date.split(' ').skip(1);
    let mut next = || parts.next().unwrap_or_default();
    let (day, name, year, clock) = (next(), next(), next(), next());
    let month = MONTHS.iter().take_while(|month| **month != name).count() + 1;
    format!("{year}-{month:02}-{day}T{clock}Z")
}

/// Reads a time that [`format`] writes.
pub(super) fn parse(text: &str) -> Option<i64> {
    let (day, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let (year, day) = day.split_once('-')?;
    let (month, day) = day.split_once('-')?;
    let month = month.parse::<usize>().ok()?.checked_sub(1)?;
    // The weekday makes no difference.
    let date = format!("Mon, {day} {} {year} {clock} GMT", MONTHS.get(month)?);
    let seconds = date::parse(&date)?;
    // Any other text is not what this time is written as.
    (format(seconds) == text).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_round_trip() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("2026-11-25T07:31:02Z", 1_795_591_862),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
        ] {
            assert_eq!(format(seconds), text);
            assert_eq!(parse(text), Some(seconds));
        }
        for seconds in (1..253_402_300_799).step_by(97 * 86_400) {
            assert_eq!(parse(&format(seconds)), Some(seconds));
        }
    }

    #[test]
    fn other_texts_are_no_times() {
        for text in [
            "",
            "2026-11-25",
            "2026-11-31T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-25T24:00:00Z",
            "2026-11-25 07:31:02Z",
            "2026-11-25T07:31:02+00:00",
            "+026-11-25T07:31:02Z",
            "é026-11-25T07:31:02Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
