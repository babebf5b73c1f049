// SPDX-License-Identifier: Apache-2.0
//! Sections of the policy's document. Each is read as a part of the compiled policy.

use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::one_of;

/// Defines a section: a struct, and how it is read from an object.
///
/// A field is `name: Type as Form = default`. Without `as Form` the type itself is the form. A second default after
/// `; bucket:` is for buckets. `as "name"` behind the field's name gives its name in the document. A field's comment
/// is its description in the JSON Schema.
macro_rules! section {
    (
        $(#[doc = $about:literal])*
        $(#[derive($derive:ident)])?
        $vis:vis struct $section:ident {
            $(
                $(#[doc = $doc:literal])*
                $field:ident $(as $name:literal)?: $type:ty $(as $form:ty)?
                    $(= $default:expr $(; bucket: $of_bucket:expr)?)?,
            )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, $($derive,)? Debug, PartialEq, Eq)]
        $vis struct $section {
            $($(#[doc = $doc])* $vis $field: $type,)*
        }

        impl $crate::policy::forms::form::Form<Self> for $section {
            fn read(
                value: &serde_json::Value,
                kind: $crate::policy::forms::form::Kind,
            ) -> Result<Self, $crate::policy::forms::error::PolicyError> {
                use $crate::policy::forms::{form, section};
                $(let mut $field: Option<$type> = None;)*
                for (name, value) in form::object(value)? {
                    $(if name == section!(@name $field $($name)?) {
                        let read = form::read_within::<$type, section!(@form $type $(, $form)?)>;
                        $field = Some(read(name, value, kind)?);
                        continue;
                    })*
                    return Err(section::unknown_field(name, &[$(section!(@name $field $($name)?)),*]));
                }
                Ok(Self {
                    $($field: match $field {
                        Some(present) => present,
                        None => section!(
                            @default kind $type, section!(@form $type $(, $form)?),
                            section!(@name $field $($name)?)
                            $(, $default $(, $of_bucket)?)?
                        ),
                    },)*
                })
            }

            fn absent(
                kind: $crate::policy::forms::form::Kind,
            ) -> Result<Option<Self>, $crate::policy::forms::error::PolicyError> {
                Self::read(&serde_json::json!({}), kind).map(Some)
            }
        }

        #[cfg(test)]
        impl $crate::policy::tests::Described<Self> for $section {
            fn schema() -> serde_json::Value {
                $crate::policy::tests::describe_section(
                    concat!($($about),*),
                    vec![$($crate::policy::tests::describe_field::<$type, section!(@form $type $(, $form)?)>(
                        section!(@name $field $($name)?),
                        concat!($($doc),*),
                        vec![$($default $(, $of_bucket)?)?],
                    )),*],
                )
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
    (@form $type:ty) => { $type };
    (@form $type:ty, $form:ty) => { $form };
    (@default $kind:ident $type:ty, $form:ty, $name:expr) => {
        <$form as form::Form<$type>>::absent($kind)?.ok_or_else(|| section::missing_field($name))?
    };
    (@default $kind:ident $type:ty, $form:ty, $name:expr, $default:expr) => { $default };
    (@default $kind:ident $type:ty, $form:ty, $name:expr, $default:expr, $of_bucket:expr) => {
        match $kind {
            form::Kind::Bucket => $of_bucket,
            form::Kind::Http => $default,
        }
    };
}
pub(in crate::policy) use section;

pub(in crate::policy) fn unknown_field(name: &str, known: &[&str]) -> PolicyError {
    PolicyError::new(name, format!("unknown field, expected {}", one_of(known)))
}

pub(in crate::policy) fn missing_field(name: &str) -> PolicyError {
    PolicyError::new(name, "required, but missing")
}
