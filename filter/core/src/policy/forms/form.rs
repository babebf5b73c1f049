// SPDX-License-Identifier: Apache-2.0
//! The forms in which a policy's values are written in JSON: the values that each accepts, and the types that it is
//! read as.
//!
//! The forms are not `serde::Deserialize`: its errors have line numbers, but a policy's author needs the path of the
//! field. Its code for so many types is also large. The tests describe the same forms in a JSON Schema.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::policy::forms::duration;
use crate::policy::forms::error::PolicyError;
use crate::size;

/// Defines the words for the variants of an enum.
macro_rules! words {
    ($choice:ident { $($variant:ident = $word:literal),* $(,)? }) => {
        impl $crate::policy::forms::form::Form<Self> for $choice {
            fn read(
                value: &serde_json::Value,
                _: $crate::policy::forms::form::Kind,
            ) -> Result<Self, $crate::policy::forms::error::PolicyError> {
                let expected = $crate::policy::forms::form::one_of(&[$($word),*]);
                $crate::policy::forms::form::read_text(value, &expected, |text| match text {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                })
            }
        }

        #[cfg(test)]
        impl $crate::policy::tests::Described<Self> for $choice {
            fn schema() -> serde_json::Value {
                serde_json::json!({ "type": "string", "enum": [$($word),*] })
            }
        }
    };
}
pub(in crate::policy) use words;

/// Kind of the origin. Some defaults depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy) enum Kind {
    Bucket,
    Http,
}

words!(Kind { Bucket = "bucket", Http = "http" });

/// A form in which values of type `T` are written.
pub(in crate::policy) trait Form<T> {
    /// Reads a value of a policy for an origin of that kind; the error's path is relative to the value.
    fn read(value: &Value, kind: Kind) -> Result<T, PolicyError>;

    /// The value of a missing field that has no default; `None` if the field is required.
    fn absent(_: Kind) -> Result<Option<T>, PolicyError> {
        Ok(None)
    }
}

impl Form<Self> for bool {
    fn read(value: &Value, _: Kind) -> Result<Self, PolicyError> {
        value
            .as_bool()
            .ok_or_else(|| PolicyError::unexpected(value, "true or false"))
    }
}

impl<T, F: Form<T>> Form<Option<T>> for Option<F> {
    fn read(value: &Value, kind: Kind) -> Result<Option<T>, PolicyError> {
        F::read(value, kind).map(Some)
    }

    fn absent(_: Kind) -> Result<Option<Option<T>>, PolicyError> {
        Ok(Some(None))
    }
}

impl<T, F: Form<T>> Form<Vec<T>> for Vec<F> {
    fn read(value: &Value, kind: Kind) -> Result<Vec<T>, PolicyError> {
        let items = value
            .as_array()
            .ok_or_else(|| PolicyError::unexpected(value, "a list"))?;
        let item = |(index, item)| read_within::<T, F>(&format!("[{index}]"), item, kind);
        items.iter().enumerate().map(item).collect()
    }
}

/// Reads a text that `accept` accepts; `expected` describes these texts.
pub(in crate::policy) fn read_text<T>(
    value: &Value,
    expected: &str,
    accept: fn(&str) -> Option<T>,
) -> Result<T, PolicyError> {
    value
        .as_str()
        .and_then(accept)
        .ok_or_else(|| PolicyError::unexpected(value, expected))
}

/// A whole number within bounds.
pub(in crate::policy) struct Whole<const MIN: u64, const MAX: u64>;

impl<N: TryFrom<u64>, const MIN: u64, const MAX: u64> Form<N> for Whole<MIN, MAX> {
    fn read(value: &Value, _: Kind) -> Result<N, PolicyError> {
        let number = whole(value).filter(|number| (MIN..=MAX).contains(number));
        number
            .and_then(|number| N::try_from(number).ok())
            .ok_or_else(|| not_within(value, MIN, MAX))
    }
}

/// Largest size that is exact as a number in Envoy's JSON, a double.
pub(in crate::policy) const MAX_BYTES: u64 = 1 << 53;

/// A number of bytes within bounds, plain or as [`size::parse`] reads it.
pub(in crate::policy) struct Bytes<const MIN: u64, const MAX: u64>;

impl<N: TryFrom<u64>, const MIN: u64, const MAX: u64> Form<N> for Bytes<MIN, MAX> {
    fn read(value: &Value, kind: Kind) -> Result<N, PolicyError> {
        let bytes = value.as_str().and_then(size::parse).map(Value::from);
        Whole::<MIN, MAX>::read(bytes.as_ref().unwrap_or(value), kind).map_err(|_| {
            let expected = format!("a number of bytes from {MIN} to {MAX}, such as 4096 or 16Mi");
            PolicyError::unexpected(value, &expected)
        })
    }
}

fn not_within(value: &Value, min: u64, max: u64) -> PolicyError {
    PolicyError::unexpected(value, &format!("a whole number from {min} to {max}"))
}

/// Reads a whole number. Envoy's `google.protobuf.Struct` has no integers, so `5.0` and `5e0` are five.
fn whole(value: &Value) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = |number: f64| {
        // In this range each whole f64 is a u64, so nothing is lost.
        ((0.0..=EXACT).contains(&number) && number % 1.0 == 0.0).then_some(number as u64)
    };
    value.as_u64().or_else(|| value.as_f64().and_then(whole))
}

/// A duration of at least `MILLIS` milliseconds.
pub(in crate::policy) struct AtLeast<const MILLIS: u64>;

impl<const MILLIS: u64> Form<Duration> for AtLeast<MILLIS> {
    fn read(value: &Value, _: Kind) -> Result<Duration, PolicyError> {
        let duration = read_duration(value)?;
        let least = Duration::from_millis(MILLIS);
        if duration < least {
            let expected = format!("at least {}", duration::format(least));
            return Err(PolicyError::unexpected(value, &expected));
        }
        Ok(duration)
    }
}

/// A duration of whole seconds, because freshness is counted in seconds (RFC 9111, 1.2.2).
pub(in crate::policy) struct Seconds;

impl Form<Duration> for Seconds {
    fn read(value: &Value, _: Kind) -> Result<Duration, PolicyError> {
        let duration = read_duration(value)?;
        if duration.subsec_nanos() != 0 {
            let expected = "whole seconds, such as 1s, or 0s for none";
            return Err(PolicyError::unexpected(value, expected));
        }
        Ok(duration)
    }
}

fn read_duration(value: &Value) -> Result<Duration, PolicyError> {
    read_text(value, duration::EXPECTED, duration::parse)
}

pub(in crate::policy) fn object(value: &Value) -> Result<&Map<String, Value>, PolicyError> {
    value
        .as_object()
        .ok_or_else(|| PolicyError::unexpected(value, "an object"))
}

/// Reads the value of the field `name`.
pub(in crate::policy) fn read_within<T, F: Form<T>>(
    name: &str,
    value: &Value,
    kind: Kind,
) -> Result<T, PolicyError> {
    F::read(value, kind).map_err(|error| error.within(name))
}

/// Joins names in the form `a, b or c`.
pub(in crate::policy) fn one_of(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
