// SPDX-License-Identifier: Apache-2.0
//! HTTP's dates (RFC 9110, 5.6.7) as seconds since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last second of the year 9999, the last that has four digits.
const LAST: i64 = 253_402_300_799;

/// Writes an IMF-fixdate; what lies before 1970 or after 9999 becomes the nearest date between.
pub fn format(unix_seconds: i64) -> String {
    let seconds = u64::try_from(unix_seconds.clamp(0, LAST)).unwrap_or_default();
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Reads any of the three formats that a recipient must accept; `None` for anything else.
pub fn parse(text: &str) -> Option<i64> {
    let time: SystemTime = httpdate::parse_http_date(text.trim()).ok()?;
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn anything_else_is_no_date() {
        for text in [
            "",
            "0",
            "-1",
            "784111777",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 CET",
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
