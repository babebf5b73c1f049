// SPDX-License-Identifier: Apache-2.0
//! Numbers as in tables; a dash for NaN.

/// Milliseconds, with as many digits as are significant.
pub fn ms(value: f64) -> String {
    match value {
        value if value.is_nan() => "-".to_owned(),
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// A number without a fraction.
pub fn whole(value: f64) -> String {
    if value.is_nan() {
        return "-".to_owned();
    }
    format!("{value:.0}")
}

/// A count with its noun; empty if the count is 0.
pub fn remark(count: u64, what: &str) -> String {
    match count {
        0 => String::new(),
        count => format!("{count} {what}"),
    }
}

/// A count as a figure.
#[allow(clippy::cast_precision_loss)]
pub const fn count(count: usize) -> f64 {
    count as f64
}
