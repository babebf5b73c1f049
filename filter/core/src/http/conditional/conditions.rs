// SPDX-License-Identifier: Apache-2.0
//! Preconditions of GET and HEAD (RFC 9110, 13), evaluated against the response without them.

use crate::http::conditional::entity_tag::{EntityTag, is_any, tags};
use crate::http::syntax::date;
use crate::http::syntax::field_value::FieldValue;

/// Conditions that a response with status 304 can answer (RFC 9110, 13.1.2 and 13.1.3).
pub const NOT_MODIFIED: [&str; 2] = ["if-none-match", "if-modified-since"];
/// Names of the fields, in lower case (RFC 9110, 13.1).
pub const CONDITIONS: [&str; 5] = [
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
];

/// Conditions of one request. Several fields with the same name are one list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    if_match: Option<Vec<u8>>,
    if_modified_since: Option<Vec<u8>>,
    if_none_match: Option<Vec<u8>>,
    if_range: Option<Vec<u8>>,
    if_unmodified_since: Option<Vec<u8>>,
}

/// Validators that conditions are compared with, from the response that the client would get.
#[derive(Clone, Copy, Debug, Default)]
pub struct Validators<'a> {
    /// `ETag`
    pub etag: Option<&'a str>,
    /// `Last-Modified`
    pub last_modified: Option<&'a str>,
    /// `Date`
    pub date: Option<&'a str>,
}

impl<'a> Validators<'a> {
    /// Returns the validators in these fields. A field that is not text counts as absent.
    pub fn of(
        etag: Option<FieldValue<'a>>,
        last_modified: Option<FieldValue<'a>>,
        date: Option<FieldValue<'a>>,
    ) -> Self {
        let read = |value: Option<FieldValue<'a>>| value.and_then(|value| value.text().ok());
        Self {
            etag: read(etag),
            last_modified: read(last_modified),
            date: read(date),
        }
    }
}

/// Result of the conditions of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The response unchanged.
    Send,
    /// A response with status 304.
    NotModified,
    /// A response with status 412.
    PreconditionFailed,
}

impl Conditions {
    /// Adds a field; `false` if the field is not a condition. `name` is in lower case.
    pub fn observe(&mut self, name: &str, value: &[u8]) -> bool {
        let field = match name {
            "if-match" => &mut self.if_match,
            "if-modified-since" => &mut self.if_modified_since,
            "if-none-match" => &mut self.if_none_match,
            // An empty value names no version: it is neither an entity tag nor a date (RFC 9110, 13.1.5).
            "if-range" if value.trim_ascii().is_empty() => return true,
            "if-range" => &mut self.if_range,
            "if-unmodified-since" => &mut self.if_unmodified_since,
            _ => return false,
        };
        append_line(field, value);
        true
    }

    /// Whether the client has a copy, which may be current.
    pub fn may_be_unchanged(&self) -> bool {
        self.if_none_match.is_some() || self.if_modified_since.is_some()
    }

    /// Whether the response may be a 304 or a 412, without the object.
    pub fn may_be_bodiless(&self) -> bool {
        self.may_be_unchanged() || self.if_match.is_some() || self.if_unmodified_since.is_some()
    }

    /// Returns the fields, for a request that is sent with them.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        let values = [
            &self.if_match,
            &self.if_modified_since,
            &self.if_none_match,
            &self.if_range,
            &self.if_unmodified_since,
        ];
        CONDITIONS
            .into_iter()
            .zip(values)
            .filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }

    /// Evaluates the conditions in the order of RFC 9110, 13.2.2. The caller passes only responses of class 2xx,
    /// because conditions are ignored with other responses (13.2.1).
    pub fn evaluate(&self, current: &Validators<'_>) -> Outcome {
        if !self.holds_match(current) {
            Outcome::PreconditionFailed
        } else if self.is_unmodified(current) {
            Outcome::NotModified
        } else {
            Outcome::Send
        }
    }

    /// Evaluates steps 1 and 2: `If-Match`, or else `If-Unmodified-Since`.
    fn holds_match(&self, current: &Validators<'_>) -> bool {
        if let Some(list) = &self.if_match {
            return lists(list, current.etag, EntityTag::is_strongly);
        }
        let since = date_in(self.if_unmodified_since.as_deref());
        let modified = current.last_modified.and_then(date::parse);
        !matches!((modified, since), (Some(modified), Some(since)) if modified > since)
    }

    /// Evaluates steps 3 and 4: `If-None-Match`, or else `If-Modified-Since`. If the response has no `Last-Modified`,
    /// its `Date` is used (RFC 9111, 4.3.2).
    fn is_unmodified(&self, current: &Validators<'_>) -> bool {
        if let Some(list) = &self.if_none_match {
            return lists(list, current.etag, EntityTag::is_weakly);
        }
        let since = date_in(self.if_modified_since.as_deref());
        let modified = current.last_modified.or(current.date);
        matches!(
            (modified.and_then(date::parse), since),
            (Some(modified), Some(since)) if modified <= since
        )
    }

    /// Whether the request has an `If-Range`.
    pub const fn has_if_range(&self) -> bool {
        self.if_range.is_some()
    }

    /// Evaluates step 5: whether `If-Range` (RFC 9110, 13.1.5) allows a part to be sent. A date must be equal to the
    /// response's `Last-Modified`, which must be a strong validator (8.8.2.2).
    pub fn allow_range(&self, current: &Validators<'_>) -> bool {
        let Some(wanted) = self.if_range.as_deref() else {
            return true;
        };
        let Ok(wanted) = FieldValue::new(wanted).text() else {
            return false;
        };
        let Some(wanted) = date::parse(wanted) else {
            let tags = EntityTag::parse(wanted).zip(current.etag.and_then(EntityTag::parse));
            return tags.is_some_and(|(wanted, current)| wanted.is_strongly(current));
        };
        let modified = current.last_modified.and_then(date::parse);
        let date = current.date.and_then(date::parse);
        matches!(
            (modified, date),
            (Some(modified), Some(date)) if modified == wanted && modified < date
        )
    }
}

/// Appends a line to a field, because several lines with the same name are one list.
pub(super) fn append_line(field: &mut Option<Vec<u8>>, line: &[u8]) {
    match field {
        Some(lines) => {
            lines.extend(b", ");
            lines.extend(line);
        }
        None => *field = Some(line.to_vec()),
    }
}

/// Returns the date in a condition. A value that is not a date makes the condition void (RFC 9110, 13.1.3).
fn date_in(field: Option<&[u8]>) -> Option<i64> {
    date::of(FieldValue::new(field?))
}

/// Whether a list names the current response. A list that is not text names no response.
fn lists<'a>(
    list: &'a [u8],
    current: Option<&'a str>,
    same: fn(EntityTag<'a>, EntityTag<'a>) -> bool,
) -> bool {
    let Ok(list) = FieldValue::new(list).text() else {
        return false;
    };
    let Some(current) = current.and_then(EntityTag::parse) else {
        return is_any(list);
    };
    is_any(list) || tags(list).any(|tag| same(tag, current))
}

#[cfg(test)]
mod tests {
    use crate::http::conditional::conditions::*;
    use Outcome::{NotModified, PreconditionFailed, Send};

    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const AFTER: &str = "Sunday, 06-Nov-94 08:49:38 GMT";

    /// Returns the validators of an object, which are strong.
    const STRONG: Validators<'_> = Validators {
        etag: Some(r#""v1""#),
        last_modified: Some(MODIFIED),
        date: Some("Sun, 06 Nov 1994 09:00:00 GMT"),
    };
    /// Returns the validators of an object that was compressed on the way: the tag is weak.
    const WEAK: Validators<'_> = Validators {
        etag: Some(r#"W/"v1""#),
        ..STRONG
    };
    const UNTAGGED: Validators<'_> = Validators {
        etag: None,
        ..STRONG
    };
    const UNDATED: Validators<'_> = Validators {
        last_modified: None,
        ..STRONG
    };
    const BARE: Validators<'_> = Validators {
        etag: None,
        last_modified: None,
        date: None,
    };

    fn conditions(fields: &[(&str, &str)]) -> Conditions {
        let mut conditions = Conditions::default();
        for (name, value) in fields {
            assert!(conditions.observe(name, value.as_bytes()), "{name}");
        }
        conditions
    }

    #[test]
    fn an_if_range_that_names_nothing_is_none() {
        for value in ["", " ", "\t"] {
            let none = conditions(&[("if-range", value)]);
            assert_eq!(none, Conditions::default(), "{value:?}");
            let other = conditions(&[("if-range", value), ("if-range", r#""v1""#)]);
            let kept = [("if-range", &br#""v1""#[..])];
            assert!(other.fields().eq(kept), "{value:?}");
        }
    }

    #[test]
    fn one_condition_decides() {
        for (name, value, current, outcome) in [
            ("if-none-match", r#""v1""#, STRONG, NotModified),
            ("if-none-match", r#"W/"v1""#, STRONG, NotModified),
            ("if-none-match", r#""v1""#, WEAK, NotModified),
            ("if-none-match", r#""v0", "v1""#, STRONG, NotModified),
            ("if-none-match", r#""v0", W/"v2""#, STRONG, Send),
            ("if-none-match", "*", STRONG, NotModified),
            ("if-none-match", "*", BARE, NotModified),
            ("if-none-match", r#""v1""#, UNTAGGED, Send),
            ("if-none-match", "", STRONG, Send),
            ("if-none-match", "\"v1", STRONG, Send),
            ("if-modified-since", MODIFIED, STRONG, NotModified),
            ("if-modified-since", AFTER, STRONG, NotModified),
            ("if-modified-since", BEFORE, STRONG, Send),
            ("if-modified-since", "yesterday", STRONG, Send),
            // Without Last-Modified, the Date is used.
            ("if-modified-since", AFTER, UNDATED, Send),
            (
                "if-modified-since",
                "Sun, 06 Nov 1994 09:00:00 GMT",
                UNDATED,
                NotModified,
            ),
            ("if-modified-since", AFTER, BARE, Send),
            ("if-match", r#""v1""#, STRONG, Send),
            ("if-match", r#""v0", "v1""#, STRONG, Send),
            ("if-match", r#""v0""#, STRONG, PreconditionFailed),
            ("if-match", r#"W/"v1""#, STRONG, PreconditionFailed),
            ("if-match", r#""v1""#, WEAK, PreconditionFailed),
            ("if-match", r#""v1""#, BARE, PreconditionFailed),
            ("if-match", "*", BARE, Send),
            ("if-match", "", STRONG, PreconditionFailed),
            ("if-unmodified-since", MODIFIED, STRONG, Send),
            ("if-unmodified-since", AFTER, STRONG, Send),
            ("if-unmodified-since", BEFORE, STRONG, PreconditionFailed),
            ("if-unmodified-since", BEFORE, UNDATED, Send),
            ("if-unmodified-since", "tomorrow", STRONG, Send),
            ("if-range", r#""v0""#, STRONG, Send),
        ] {
            let found = conditions(&[(name, value)]).evaluate(&current);
            assert_eq!(found, outcome, "{name}: {value} of {current:?}");
        }
    }

    #[test]
    fn conditions_take_precedence_in_the_order_of_the_rfc() {
        for (fields, outcome) in [
            // If-None-Match makes If-Modified-Since void.
            (
                &[("if-none-match", r#""v0""#), ("if-modified-since", AFTER)][..],
                Send,
            ),
            (
                &[("if-none-match", r#""v1""#), ("if-modified-since", BEFORE)],
                NotModified,
            ),
            // If-Match makes If-Unmodified-Since void.
            (
                &[("if-match", r#""v1""#), ("if-unmodified-since", BEFORE)],
                Send,
            ),
            (
                &[("if-match", r#""v0""#), ("if-unmodified-since", AFTER)],
                PreconditionFailed,
            ),
            // 412 wins over 304.
            (
                &[("if-match", r#""v0""#), ("if-none-match", r#""v1""#)],
                PreconditionFailed,
            ),
            (
                &[("if-unmodified-since", BEFORE), ("if-none-match", "*")],
                PreconditionFailed,
            ),
            (
                &[("if-match", r#""v1""#), ("if-none-match", r#""v1""#)],
                NotModified,
            ),
            // A list may be split over several fields.
            (
                &[("if-none-match", r#""v0""#), ("if-none-match", r#""v1""#)],
                NotModified,
            ),
        ] {
            assert_eq!(conditions(fields).evaluate(&STRONG), outcome, "{fields:?}");
        }
    }

    #[test]
    fn if_range_wants_a_strong_validator() {
        let fresh = Validators {
            date: Some(MODIFIED),
            ..STRONG
        };
        for (value, current, allowed) in [
            (r#""v1""#, STRONG, true),
            (r#""v0""#, STRONG, false),
            (r#"W/"v1""#, STRONG, false),
            (r#"W/"v1""#, WEAK, false),
            (r#""v1""#, WEAK, false),
            (r#""v1""#, BARE, false),
            (r#""v1", "v2""#, STRONG, false),
            ("*", STRONG, false),
            (MODIFIED, STRONG, true),
            (MODIFIED, WEAK, true),
            (MODIFIED, UNTAGGED, true),
            (AFTER, STRONG, false),
            (BEFORE, STRONG, false),
            (MODIFIED, UNDATED, false),
            // Modified in the second in which the response was sent, so the object may have changed again in that
            // second.
            (MODIFIED, fresh, false),
        ] {
            let found = conditions(&[("if-range", value)]).allow_range(&current);
            assert_eq!(found, allowed, "{value} of {current:?}");
        }
        assert!(Conditions::default().allow_range(&BARE));
    }

    #[test]
    fn fields_come_back_as_they_were() {
        let fields = [("if-match", "a"), ("if-none-match", "b"), ("if-range", "c")];
        let bytes = fields.map(|(name, value)| (name, value.as_bytes()));
        assert!(conditions(&fields).fields().eq(bytes));
        assert!(!Conditions::default().observe("range", b"bytes=0-1"));
    }

    #[test]
    fn a_condition_that_is_no_text_holds_for_nothing() {
        const VALUE: &[u8] = b"\"\xff\", \"v1\"";
        let evaluated = |name: &str| {
            let mut conditions = Conditions::default();
            assert!(conditions.observe(name, VALUE));
            assert!(conditions.fields().eq([(name, VALUE)].map(|(_, value)| {
                let known = CONDITIONS.into_iter().find(|known| *known == name);
                (known.unwrap(), value)
            })));
            (
                conditions.evaluate(&STRONG),
                conditions.allow_range(&STRONG),
            )
        };
        assert_eq!(evaluated("if-match"), (PreconditionFailed, true));
        assert_eq!(evaluated("if-none-match"), (Send, true));
        assert_eq!(evaluated("if-modified-since"), (Send, true));
        assert_eq!(evaluated("if-unmodified-since"), (Send, true));
        assert_eq!(evaluated("if-range"), (Send, false));
        let unreadable = Some(FieldValue::new(b"\"\xff\""));
        assert_eq!(Validators::of(unreadable, None, None).etag, None);
    }
}
