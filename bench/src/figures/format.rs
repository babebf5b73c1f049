// SPDX-License-Identifier: Apache-2.0
//! Numbers as tables show them; what is not a number is a dash.

/// Milliseconds, with as many digits as mean something.
pub fn ms(value: f64) -> String {
    match value {
        value if value.is_nan() => "-".to_owned(),
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// Without a fraction.
pub fn whole(value: f64) -> String {
    if value.is_nan() {
        return "-".to_owned();
    }
    format!("{value:.0}")
}

/// How many of what happened, and nothing where there were none.
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
