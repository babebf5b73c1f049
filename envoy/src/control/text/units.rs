// SPDX-License-Identifier: Apache-2.0
//! Numbers with units, short enough for a table.

use jiff::Timestamp;

const SIZES: [(&str, f64); 4] = [
    ("TiB", 1_099_511_627_776.0),
    ("GiB", 1_073_741_824.0),
    ("MiB", 1_048_576.0),
    ("KiB", 1_024.0),
];

/// A number of bytes in the largest unit that it reaches, with one decimal.
pub fn bytes(bytes: f64) -> String {
    match SIZES.iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) => format!("{:.1} {unit}", bytes / size),
        None => format!("{bytes:.0} B"),
    }
}

/// A time of this many milliseconds, such as `840 ms`, `2.31 s`, `1m12s` or `3h12m`.
pub fn duration(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0 => format!("{millis} ms"),
        ..60 => format!("{seconds}.{:02} s", millis % 1000 / 10),
        ..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        ..86400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86400, seconds / 3600 % 24),
    }
}

/// A time of this many seconds, as [`duration`] writes it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time is neither negative nor that long"
)]
pub fn seconds(seconds: f64) -> String {
    duration((seconds * 1000.0).round() as u64)
}

/// A rate or a count: one decimal below 100.
pub fn number(number: f64) -> String {
    match number {
        ..100.0 if number.fract() != 0.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

/// The percentage that a part is of a whole; `-` without a whole.
pub fn percentage(part: f64, whole: f64) -> String {
    match whole > 0.0 {
        true => format!("{:.1}", 100.0 * part / whole),
        false => "-".to_owned(),
    }
}

/// A time of the day in UTC, from milliseconds since the epoch.
pub fn clock_time(millis: u64) -> String {
    timestamp(millis).strftime("%H:%M:%S%.3f").to_string()
}

/// A day and a time in UTC, from milliseconds since the epoch.
pub fn date_time(millis: u64) -> String {
    timestamp(millis).strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

fn timestamp(millis: u64) -> Timestamp {
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The name of a site for a table; `-` for the site of an edge with one site.
pub fn site_name(name: &str) -> &str {
    match name {
        "" => "-",
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_unit_that_fits() {
        let sizes = [0.0, 1023.0, 1536.0, 1_100_000.0, 4.6e9, 2.5e12].map(bytes);
        assert_eq!(
            sizes,
            ["0 B", "1023 B", "1.5 KiB", "1.0 MiB", "4.3 GiB", "2.3 TiB"]
        );
        let times = [0, 840, 2310, 72_000, 11_520_000, 90_000_000].map(duration);
        assert_eq!(
            times,
            ["0 ms", "840 ms", "2.31 s", "1m12s", "3h12m", "1d01h"]
        );
        assert_eq!([4210.4, 12.0, 61.04].map(number), ["4210", "12", "61.0"]);
        assert_eq!(
            (percentage(1.0, 3.0), percentage(0.0, 0.0)),
            ("33.3".into(), "-".into())
        );
        assert_eq!(clock_time(1_764_252_847_123), "14:14:07.123");
    }
}
