// SPDX-License-Identifier: Apache-2.0
//! The data that ORIGIN stores instead of a response's `ETag` and `Last-Modified`.
//!
//! Envoy's cache filters revalidate with two conditions: `If-None-Match`, the stored `ETag` byte for byte, and
//! `If-Modified-Since`, the stored `Last-Modified` or else the stored `Date`. So the store sends the value of `ETag`
//! back to ORIGIN, together with the age of the stored response. The value has the validators for the origin, and the
//! time for which the response may be served if the origin does not answer.

use std::io::Write;

use crate::stored::words::Words;
use sluice_core::freshness::Lifetime;
use sluice_core::http::syntax::date;
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::workers::BodyId;

/// Beginning of the value. Entity tags of origins do not begin with it.
const MARK: &str = "sluice";
/// Beginning of the value of a response without caching headers of the origin.
const UNSAID_MARK: &str = "sluice-unsaid";
/// Beginning of the value of a response that is not revalidated with the origin.
const UNASKED_MARK: &str = "sluice-unasked";
const NONE: &str = "-";
/// Number of spaces in front of the origin's entity tag, which is the last field.
const SPACES: usize = 7;

/// Validators of a stored response, and its lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validator<'a> {
    /// How long the response may be served.
    pub lifetime: Lifetime,
    /// Body of the response.
    pub body: BodyId,
    /// Whether Sluice may revalidate with these validators. False for a stored error, because a 304 would make it fresh
    /// again, and for a response without validators. Clients see the validators in either case.
    pub may_ask: bool,
    /// Whether the origin sent caching headers with the response. False if `may_ask` is false.
    pub is_said: bool,
    /// Qualifiers of the response's own key that identify the variant, if the key under which it is stored does not
    /// have them.
    pub variant: Option<&'a str>,
    /// `Last-Modified`, in seconds since 1970.
    pub last_modified: Option<i64>,
    /// `ETag`, with any bytes.
    pub etag: Option<FieldValue<'a>>,
}

impl<'a> Validator<'a> {
    /// Returns the value of the stored `ETag`.
    pub fn encode(&self) -> Vec<u8> {
        let Lifetime {
            ttl,
            stale_while_revalidate,
            stale_if_error,
        } = self.lifetime;
        let body = self.body.0;
        let mark = match (self.may_ask, self.is_said) {
            (true, true) => MARK,
            (true, false) => UNSAID_MARK,
            (false, _) => UNASKED_MARK,
        };
        let variant = self.variant.unwrap_or(NONE);
        let mut value =
            format!("{mark} {ttl} {stale_while_revalidate} {stale_if_error} {body:x} {variant}")
                .into_bytes();
        // Writing into a vector cannot fail.
        let _ = match self.last_modified {
            Some(seconds) => write!(value, " {seconds}"),
            None => write!(value, " {NONE}"),
        };
        value.push(b' ');
        value.extend(self.etag.map_or(NONE.as_bytes(), FieldValue::bytes));
        value
    }

    /// Reads the value of a stored `ETag`; `None` for any other value.
    pub fn parse(value: FieldValue<'a>) -> Option<Self> {
        let bytes = value.bytes();
        let mut spaces = (0..).zip(bytes).filter(|(_, byte)| **byte == b' ');
        let (end, _) = spaces.nth(SPACES - 1)?;
        let etag = FieldValue::new(bytes.get(end + 1..)?);
        let mut fields = Words::of(FieldValue::new(bytes.get(..end)?).text().ok()?);
        let (may_ask, is_said) = match fields.next()? {
            MARK => (true, true),
            UNSAID_MARK => (true, false),
            UNASKED_MARK => (false, false),
            _ => return None,
        };
        let lifetime = Lifetime {
            ttl: fields.next()?.parse().ok()?,
            stale_while_revalidate: fields.next()?.parse().ok()?,
            stale_if_error: fields.next()?.parse().ok()?,
        };
        let body = BodyId(u64::from_str_radix(fields.next()?, 16).ok()?);
        let variant = Some(fields.next()?).filter(|variant| *variant != NONE);
        let last_modified = match fields.next()? {
            NONE => None,
            seconds => Some(seconds.parse().ok()?),
        };
        Some(Self {
            lifetime,
            body,
            may_ask,
            is_said,
            variant,
            last_modified,
            etag: Some(etag).filter(|etag| *etag != NONE),
        })
    }

    /// Whether the origin can be asked for changes.
    pub fn is_conditional(&self) -> bool {
        self.may_ask && (self.readable_etag().is_some() || self.last_modified.is_some())
    }

    /// Returns the `ETag` if it is a validator. A tag that is not text is not one, because two such tags cannot be
    /// compared.
    fn readable_etag(&self) -> Option<&'a str> {
        self.etag.and_then(|etag| etag.text().ok())
    }

    /// Returns the `If-None-Match` towards the origin. A compressor on the way may have put a mark in front of the
    /// origin's tag. The mark is removed for origins that compare bytes. The meaning does not change, because the
    /// comparison is weak (RFC 9110, 13.1.2).
    pub fn if_none_match(&self, compressed: bool) -> Option<&'a str> {
        let etag = self.readable_etag()?;
        Some(match etag.strip_prefix("W/") {
            Some(strong) if compressed => strong,
            _ => etag,
        })
    }

    /// Returns the `If-Modified-Since` towards the origin, which is also the `Last-Modified` towards the client.
    pub fn last_modified(&self) -> Option<String> {
        self.last_modified.map(date::format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Lifetime = Lifetime {
        ttl: 10,
        stale_while_revalidate: 5,
        stale_if_error: 100,
    };

    const BARE: Validator<'_> = Validator {
        lifetime: LIFETIME,
        body: BodyId(0),
        may_ask: true,
        is_said: true,
        variant: None,
        last_modified: None,
        etag: None,
    };

    #[test]
    fn an_entity_tag_that_is_no_text_is_kept_and_validates_nothing() {
        let validator = Validator {
            etag: Some(FieldValue::new(b"\"\xff \"")),
            ..BARE
        };
        let encoded = validator.encode();
        let read = Validator::parse(FieldValue::new(&encoded));
        assert_eq!(read, Some(validator));
        assert!(!validator.is_conditional());
        assert_eq!(validator.if_none_match(false), None);
    }

    #[test]
    fn validator_round_trips() {
        let tags = ["\"a b\"", "W/\"x\"", "unquoted"].map(|tag| Some(FieldValue::from(tag)));
        for etag in tags.into_iter().chain([None]) {
            for last_modified in [None, Some(0), Some(1_445_412_480)] {
                for (may_ask, is_said) in [(false, false), (true, false), (true, true)] {
                    let variant = may_ask.then_some("ae=br;vary-accept=a/b,c/d%3Bq%3D0");
                    let validator = Validator {
                        lifetime: LIFETIME,
                        body: BodyId(u64::MAX),
                        may_ask,
                        is_said,
                        variant,
                        last_modified,
                        etag,
                    };
                    let encoded = validator.encode();
                    let read = Validator::parse(FieldValue::new(&encoded));
                    assert_eq!(read, Some(validator));
                    let has_one = etag.is_some() || last_modified.is_some();
                    assert_eq!(validator.is_conditional(), may_ask && has_one);
                }
            }
        }
    }

    #[test]
    fn an_entity_tag_is_no_validator() {
        for value in [
            "",
            "\"sluice 1 2 3 4 - - -\"",
            "sluice",
            "sluice 1 2 3 4 - -",
            "sluice 1 -2 3 4 - - -",
            "sluice 1 2 3 x - - -",
            "sluice 1 2 3 4 - x -",
        ] {
            assert_eq!(Validator::parse(value.into()), None, "{value}");
        }
    }

    #[test]
    fn a_compressors_mark_is_left_out_of_the_question() {
        let validator = |etag: &'static str| Validator {
            etag: Some(etag.into()),
            ..BARE
        };
        assert_eq!(validator("W/\"x\"").if_none_match(true), Some("\"x\""));
        assert_eq!(validator("W/\"x\"").if_none_match(false), Some("W/\"x\""));
        assert_eq!(validator("\"x\"").if_none_match(true), Some("\"x\""));
    }

    #[test]
    fn a_response_is_served_as_long_as_its_windows_say() {
        assert_eq!((LIFETIME.unasked(), LIFETIME.servable()), (15, 110));
        assert_eq!(LIFETIME.fresh_for(4), 6);
        assert_eq!(LIFETIME.fresh_for(12), -2);
    }

    #[test]
    fn what_must_be_revalidated_is_servable_while_it_is_fresh() {
        let strict = Lifetime {
            ttl: 10,
            ..Lifetime::default()
        };
        assert_eq!((strict.unasked(), strict.servable()), (10, 10));
    }
}
