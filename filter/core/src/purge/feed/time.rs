// SPDX-License-Identifier: Apache-2.0
//! Times of a feed's lines: `2026-11-25T07:31:02Z` (RFC 3339), in seconds since 1970.

const DAY: i64 = 86_400;
/// Days from 1 March of the year 0 to 1 January 1970, in the calendar of Gregory.
const EPOCH: i64 = 719_468;
/// Days of 400 years.
const ERA: i64 = 146_097;
/// Last second of the year 9999.
const LAST: i64 = 253_402_300_799;

/// Writes a time. One before 1970 or after 9999 is replaced by the nearest one in this range.
pub(super) fn format(seconds: i64) -> String {
    let seconds = seconds.clamp(0, LAST);
    let (days, second) = (seconds / DAY + EPOCH, seconds % DAY);
    let (era, day) = (days / ERA, days % ERA);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Years begin with March here, so that the leap day is the last one.
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Reads a time that [`format`] writes.
pub(super) fn parse(text: &str) -> Option<i64> {
    let digits = |from: usize, to: usize| text.get(from..to)?.parse::<u32>().ok().map(i64::from);
    let year = digits(0, 4)?;
    let (month, date) = (digits(5, 7)?, digits(8, 10)?);
    let (hour, minute, second) = (digits(11, 13)?, digits(14, 16)?, digits(17, 19)?);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day = of_era * 365 + of_era / 4 - of_era / 100 + (153 * shifted + 2) / 5 + date - 1;
    let days = era * ERA + day - EPOCH;
    let seconds = days * DAY + hour * 3_600 + minute * 60 + second;
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
            ("9999-12-31T23:59:59Z", LAST),
        ] {
            assert_eq!(format(seconds), text);
            assert_eq!(parse(text), Some(seconds));
        }
        for day in (0..LAST / DAY).step_by(97) {
            assert_eq!(parse(&format(day * DAY + 1)), Some(day * DAY + 1));
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
