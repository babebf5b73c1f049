// SPDX-License-Identifier: Apache-2.0
//! How the policy's fields are read from JSON, and how the JSON Schema describes them.
//!
//! One definition serves both. It is no `serde::Deserialize`, whose errors know lines where a
//! policy's author needs the field's path, and whose code for so many types is large.

use std::time::Duration;

use serde_json::{Map, Value};

use super::error::PolicyError;
use crate::policy::duration;

/// A type that a field of the document can have.
pub(super) trait Field: Sized {
    /// Reads the field's value; the error's path is relative to it.
    fn read(value: &Value) -> Result<Self, PolicyError>;

    /// What an object stands for that says nothing.
    fn absent() -> Result<Self, PolicyError> {
        Self::read(&Value::Object(Map::new()))
    }

    /// The JSON Schema of what [`Self::read`] accepts.
    #[cfg(test)]
    fn schema() -> Result<Value, PolicyError>;

    /// The value that reads as this one; null if there is none to show.
    #[cfg(test)]
    fn to_json(&self) -> Value;
}

/// A type that is written as a text.
pub(super) trait Text: Sized {
    /// What is accepted, for error messages.
    fn expected() -> String;

    /// Reads the text.
    fn accept(text: &str) -> Option<Self>;

    /// What the JSON Schema says beside `type: string`.
    #[cfg(test)]
    fn constraint() -> (&'static str, Value);

    /// The text that reads as this one.
    #[cfg(test)]
    fn to_text(&self) -> String;
}

impl<T: Text> Field for T {
    fn read(value: &Value) -> Result<Self, PolicyError> {
        value
            .as_str()
            .and_then(T::accept)
            .ok_or_else(|| PolicyError::unexpected(value, &T::expected()))
    }

    #[cfg(test)]
    fn schema() -> Result<Value, PolicyError> {
        let (keyword, constraint) = T::constraint();
        Ok(serde_json::json!({ "type": "string", keyword: constraint }))
    }

    #[cfg(test)]
    fn to_json(&self) -> Value {
        self.to_text().into()
    }
}

impl Field for bool {
    fn read(value: &Value) -> Result<Self, PolicyError> {
        value
            .as_bool()
            .ok_or_else(|| PolicyError::unexpected(value, "true or false"))
    }

    #[cfg(test)]
    fn schema() -> Result<Value, PolicyError> {
        Ok(serde_json::json!({ "type": "boolean" }))
    }

    #[cfg(test)]
    fn to_json(&self) -> Value {
        (*self).into()
    }
}

/// A field whose default depends on others.
impl<T: Field> Field for Option<T> {
    fn read(value: &Value) -> Result<Self, PolicyError> {
        T::read(value).map(Some)
    }

    #[cfg(test)]
    fn schema() -> Result<Value, PolicyError> {
        T::schema()
    }

    #[cfg(test)]
    fn to_json(&self) -> Value {
        self.as_ref().map_or(Value::Null, Field::to_json)
    }
}

impl<T: Field> Field for Vec<T> {
    fn read(value: &Value) -> Result<Self, PolicyError> {
        let items = value
            .as_array()
            .ok_or_else(|| PolicyError::unexpected(value, "a list"))?;
        let item =
            |(index, item)| T::read(item).map_err(|error| error.within(&format!("[{index}]")));
        items.iter().enumerate().map(item).collect()
    }

    #[cfg(test)]
    fn schema() -> Result<Value, PolicyError> {
        Ok(serde_json::json!({ "type": "array", "items": T::schema()? }))
    }

    #[cfg(test)]
    fn to_json(&self) -> Value {
        self.iter().map(Field::to_json).collect()
    }
}

/// A whole number within bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole<const MIN: u64, const MAX: u64>(pub(super) u64);

impl<const MIN: u64, const MAX: u64> Whole<MIN, MAX> {
    /// The number as a size in memory.
    pub(super) fn size(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl<const MIN: u64, const MAX: u64> Field for Whole<MIN, MAX> {
    fn read(value: &Value) -> Result<Self, PolicyError> {
        read_whole(value, MIN, MAX).map(Self)
    }

    #[cfg(test)]
    fn schema() -> Result<Value, PolicyError> {
        Ok(serde_json::json!({ "type": "integer", "minimum": MIN, "maximum": MAX }))
    }

    #[cfg(test)]
    fn to_json(&self) -> Value {
        self.0.into()
    }
}

/// Envoy's `google.protobuf.Struct` has no integers, so `5.0` and `5e0` are five.
fn read_whole(value: &Value, min: u64, max: u64) -> Result<u64, PolicyError> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = |number: f64| {
        // In this range each whole f64 is a u64, so nothing is lost.
        ((0.0..=EXACT).contains(&number) && number % 1.0 == 0.0).then_some(number as u64)
    };
    value
        .as_u64()
        .or_else(|| value.as_f64().and_then(whole))
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| {
            PolicyError::unexpected(value, &format!("a whole number from {min} to {max}"))
        })
}

/// A duration of at least so many milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtLeast<const MILLIS: u64>(pub(super) Duration);

impl<const MILLIS: u64> Field for AtLeast<MILLIS> {
    fn read(value: &Value) -> Result<Self, PolicyError> {
        let duration = read_duration(value)?;
        let least = Duration::from_millis(MILLIS);
        if duration < least {
            let expected = format!("at least {}", duration::format(least));
            return Err(PolicyError::unexpected(value, &expected));
        }
        Ok(Self(duration))
    }

    #[cfg(test)]
    fn schema() -> Result<Value, PolicyError> {
        Ok(duration_schema())
    }

    #[cfg(test)]
    fn to_json(&self) -> Value {
        duration::format(self.0).into()
    }
}

/// A duration of whole seconds, as those are what freshness counts in (RFC 9111, 1.2.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct Seconds(pub(super) Duration);

impl Field for Seconds {
    fn read(value: &Value) -> Result<Self, PolicyError> {
        let duration = read_duration(value)?;
        if duration.subsec_nanos() == 0 {
            Ok(Self(duration))
        } else {
            let expected = "whole seconds, such as 1s, or 0s for none";
            Err(PolicyError::unexpected(value, expected))
        }
    }

    #[cfg(test)]
    fn schema() -> Result<Value, PolicyError> {
        let pattern = "^([0-9]+(s|m|h|d)|[0-9]*000ms|0+ms)$";
        Ok(serde_json::json!({ "type": "string", "pattern": pattern }))
    }

    #[cfg(test)]
    fn to_json(&self) -> Value {
        duration::format(self.0).into()
    }
}

pub(super) fn read_duration(value: &Value) -> Result<Duration, PolicyError> {
    value
        .as_str()
        .and_then(duration::parse)
        .ok_or_else(|| PolicyError::unexpected(value, duration::EXPECTED))
}

#[cfg(test)]
pub(super) fn duration_schema() -> Value {
    serde_json::json!({ "type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$" })
}

pub(super) fn object(value: &Value) -> Result<&Map<String, Value>, PolicyError> {
    value
        .as_object()
        .ok_or_else(|| PolicyError::unexpected(value, "an object"))
}

pub(super) fn read_within<T: Field>(name: &str, value: &Value) -> Result<T, PolicyError> {
    T::read(value).map_err(|error| error.within(name))
}

pub(super) fn unknown_field(name: &str, known: &[&str]) -> PolicyError {
    PolicyError::new(name, format!("unknown field, expected {}", one_of(known)))
}

pub(super) fn missing_field(name: &str) -> PolicyError {
    PolicyError::new(name, "required, but missing")
}

/// How the document spells a field whose name in Rust may be `r#match`.
pub(super) fn spelled(field: &'static str) -> &'static str {
    field.strip_prefix("r#").unwrap_or(field)
}

/// `a, b or c`.
pub(super) fn one_of(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Defines a section of the document: a struct, how it is read, and its schema. A field without a
/// default is required; a field's comment is its description in the schema.
macro_rules! section {
    (
        $(#[doc = $about:literal])*
        struct $section:ident {
            $($(#[doc = $doc:literal])* $field:ident: $type:ty $(= $default:expr)?,)*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Debug)]
        pub(super) struct $section {
            $($(#[doc = $doc])* pub(super) $field: $type,)*
        }

        impl $section {
            /// Reads the section out of an object that may have one more field, read by another.
            fn read_beside(other: Option<&str>, value: &Value) -> Result<Self, PolicyError> {
                use $crate::policy::field::{object, read_within, spelled, unknown_field};
                $(let mut $field: Option<$type> = None;)*
                for (name, value) in object(value)? {
                    $(if name == spelled(stringify!($field)) {
                        $field = Some(read_within(name, value)?);
                        continue;
                    })*
                    if Some(name.as_str()) != other {
                        return Err(unknown_field(name, &[$(spelled(stringify!($field))),*]));
                    }
                }
                Ok(Self {
                    $($field: match $field {
                        Some(present) => present,
                        None => section!(@default $field $($default)?),
                    },)*
                })
            }
        }

        impl $crate::policy::field::Field for $section {
            fn read(value: &Value) -> Result<Self, PolicyError> {
                Self::read_beside(None, value)
            }

            #[cfg(test)]
            fn schema() -> Result<Value, PolicyError> {
                let mut properties = Map::new();
                let mut required: Vec<Value> = Vec::new();
                $(
                    let mut property = <$type>::schema()?;
                    let default: Option<$type> = section!(@shown $field $($default)?);
                    match default.map(|default| default.to_json()) {
                        None => required.push($crate::policy::field::spelled(stringify!($field)).into()),
                        Some(Value::Null) => {}
                        Some(default) => property["default"] = default,
                    }
                    property["description"] = concat!($($doc),*).trim().into();
                    let name = $crate::policy::field::spelled(stringify!($field));
                    properties.insert(name.to_owned(), property);
                )*
                let mut schema = serde_json::json!({
                    "type": "object",
                    "description": concat!($($about),*).trim(),
                    "properties": properties,
                    "additionalProperties": false,
                });
                if !required.is_empty() {
                    schema["required"] = required.into();
                }
                Ok(schema)
            }

            #[cfg(test)]
            fn to_json(&self) -> Value {
                // The defaults of a section are those of its fields.
                Value::Null
            }
        }
    };
    (@default $field:ident) => {
        return Err($crate::policy::field::missing_field(
            $crate::policy::field::spelled(stringify!($field)),
        ))
    };
    (@default $field:ident $default:expr) => { $default };
    (@shown $field:ident) => { None };
    (@shown $field:ident $default:expr) => { Some($default) };
}
pub(super) use section;

/// Says by which words an enum's variants are written.
macro_rules! words {
    ($choice:ident { $($variant:ident = $word:literal),* $(,)? }) => {
        impl $crate::policy::field::Text for $choice {
            fn expected() -> String {
                $crate::policy::field::one_of(&[$($word),*])
            }

            fn accept(text: &str) -> Option<Self> {
                match text {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }

            #[cfg(test)]
            fn constraint() -> (&'static str, Value) {
                ("enum", serde_json::json!([$($word),*]))
            }

            #[cfg(test)]
            fn to_text(&self) -> String {
                match self {
                    $(Self::$variant => $word.to_owned(),)*
                }
            }
        }
    };
}
pub(super) use words;
