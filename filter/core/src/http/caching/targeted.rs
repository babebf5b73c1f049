// SPDX-License-Identifier: Apache-2.0
//! Cache directives in separate fields: targeted fields (RFC 9213) and `Surrogate-Control`.

use crate::http::caching::cache_control::CacheControl;
use crate::http::syntax::field_value::{FieldValue, NotText};

/// Field of the Edge Architecture Specification, which is older than RFC 9213 and has another syntax.
pub const SURROGATE_CONTROL: &str = "surrogate-control";

/// Returns the directives of the first field of `order` that is present and valid, or `None` if none is (RFC 9213,
/// 2.2). `fields` has the names in lower case, each with the value, its lines joined by commas.
///
/// Three fields count as absent: an empty field, a field that is not a dictionary (2.1), and a `Surrogate-Control`
/// without a directive for caches.
///
/// # Errors
/// A field in front of the first valid one is not text. It may forbid what the later fields allow.
pub fn directives(
    order: &[String],
    fields: &[(&str, FieldValue<'_>)],
) -> Result<Option<CacheControl>, NotText> {
    for name in order {
        let Some((_, value)) = fields.iter().find(|(candidate, _)| candidate == name) else {
            continue;
        };
        let text = value.text()?;
        let said = if text.trim().is_empty() {
            None
        } else if name == SURROGATE_CONTROL {
            // `content` asks for processing of the response, and has no directive for caches.
            Some(CacheControl::parse_surrogate(text))
                .filter(|control| *control != CacheControl::default())
        } else {
            CacheControl::parse_targeted(text)
        };
        if said.is_some() {
            return Ok(said);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use crate::http::caching::targeted::*;

    const FIELDS: [&str; 3] = ["my-cache-control", "cdn-cache-control", SURROGATE_CONTROL];

    fn max_age(fields: &[(&str, &str)]) -> Option<u64> {
        let order = FIELDS.map(str::to_owned);
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| (*name, FieldValue::from(*value)))
            .collect();
        let control = directives(&order, &fields).unwrap();
        control.map(|control| control.max_age.unwrap_or(u64::MAX))
    }

    #[test]
    fn the_first_valid_field_counts() {
        let [mine, cdn, surrogate] = FIELDS;
        for (name, fields, expected) in [
            ("none", &[][..], None),
            ("one", &[(cdn, "max-age=5")], Some(5)),
            ("another", &[("x-cache-control", "max-age=5")], None),
            (
                "in the policy's order",
                &[
                    (surrogate, "max-age=1"),
                    (cdn, "max-age=2"),
                    (mine, "max-age=3"),
                ],
                Some(3),
            ),
            ("an empty one", &[(mine, " "), (cdn, "max-age=2")], Some(2)),
            (
                "an invalid one",
                &[(mine, "max-age = 9"), (cdn, "max-age=2")],
                Some(2),
            ),
            ("nothing but invalid ones", &[(mine, "max-age=5;")], None),
            (
                "no lifetime",
                &[(mine, "x"), (cdn, "max-age=2")],
                Some(u64::MAX),
            ),
            (
                "one that says nothing of caching",
                &[(surrogate, "content=\"ESI/1.0\"")],
                None,
            ),
            (
                "a syntax of its own",
                &[(surrogate, "content=\"ESI/1.0\", Max-Age=5+6")],
                Some(5),
            ),
        ] {
            assert_eq!(max_age(fields), expected, "{name}");
        }
    }

    #[test]
    fn a_field_that_is_no_text_is_not_passed_over() {
        let [mine, cdn, _] = FIELDS;
        let order = FIELDS.map(str::to_owned);
        let (text, bytes) = (
            FieldValue::from("max-age=5"),
            FieldValue::new(b"no-store, \xff"),
        );
        for (fields, expected) in [
            ([(mine, bytes), (cdn, text)], Err(NotText)),
            ([(mine, text), (cdn, bytes)], Ok(Some(5))),
        ] {
            let read = directives(&order, &fields);
            let read = read.map(|control| control.and_then(|control| control.max_age));
            assert_eq!(read, expected);
        }
    }
}
