// SPDX-License-Identifier: Apache-2.0
//! The revalidation of a stored response, which Envoy's cache starts with a conditional request (RFC 9111, 4.3).

use std::borrow::Cow;

use crate::stored::validator::Validator;
use sluice_core::freshness::Freshened;
use sluice_core::http::conditional::entity_tag::EntityTag;
use sluice_core::http::syntax::date;
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_host::Host;
use sluice_host::header_edit::HeaderEdit;
use sluice_host::headers::Headers;

use sluice_core::coalescing::StoreRequest;

/// Prefix of the stored `ETag` in a 304 that the store must not write.
pub const KEPT: &str = "kept";

/// Stored response that the store revalidates.
#[derive(Clone, Debug)]
pub struct Revalidation {
    /// Stored `ETag`, which also has the other data.
    value: Vec<u8>,
    /// Age of the response in seconds.
    age: u64,
    /// Whether the origin is asked only for changes, so that its 304 is about this response.
    pub conditional: bool,
}

impl Revalidation {
    /// Reads the stored response that the store revalidates by a request with these headers; `None` if the request is
    /// not conditional.
    pub fn of_request(host: &dyn Host, headers: &Headers) -> Option<Self> {
        let [etag, date] = ["if-none-match", "if-modified-since"].map(|name| headers.get(name));
        Self::parse(etag, date, host.unix_seconds())
    }

    /// Reads the store's `If-None-Match` and `If-Modified-Since` at `now`, in seconds since 1970; `None` for a request
    /// that is not conditional.
    pub(crate) fn parse(
        if_none_match: Option<FieldValue<'_>>,
        if_modified_since: Option<FieldValue<'_>>,
        now: i64,
    ) -> Option<Self> {
        let value = if_none_match?;
        let validator = Validator::parse(value)?;
        // The response's Last-Modified is kept in the validator, so this is the Date of the stored response.
        let date = if_modified_since.and_then(date::of)?;
        Some(Self {
            value: value.bytes().to_owned(),
            age: u64::try_from(now.saturating_sub(date)).unwrap_or(0),
            conditional: validator.is_conditional(),
        })
    }

    /// Whether the stored response has expired while the `request` was on its way to the store, or was validated
    /// while the request waited. For each such request, the store would ask the origin. While it writes the answer to
    /// one of them, it has no response for the others.
    pub fn is_late_for(&self, request: StoreRequest) -> bool {
        match request {
            StoreRequest::Validated => self.must_be_validated(),
            StoreRequest::Fresh | StoreRequest::Collapsed => self.has_just_expired(),
            _ => false,
        }
    }

    /// Returns the data that is stored instead of the validators.
    pub fn validator(&self) -> Option<Validator<'_>> {
        Validator::parse(FieldValue::new(&self.value))
    }

    /// Returns a revalidation that asks the origin for the whole object.
    #[must_use]
    pub fn unconditional(self) -> Self {
        Self {
            conditional: false,
            ..self
        }
    }

    /// Returns the freshness of the stored response, for a 304.
    pub fn freshened(&self) -> Option<Freshened> {
        let stored = self.validator()?;
        Some(Freshened {
            lifetime: stored.lifetime,
            is_said: stored.is_said,
        })
    }

    /// Whether a 304 with these validators is about the stored response (RFC 9111, 4.3.4). If the 304 has a tag, it
    /// must be the stored one. A bucket's tag identifies the bytes of an object but not its metadata. So the object
    /// has also changed if its `Last-Modified` is later.
    pub fn is_about(
        &self,
        etag: Option<FieldValue<'_>>,
        last_modified: Option<FieldValue<'_>>,
        bucket: bool,
    ) -> bool {
        let Some(stored) = self.validator() else {
            return true;
        };
        let readable = |tag: FieldValue<'_>| tag.text().ok().map(str::to_owned);
        let tags = stored.etag.and_then(readable).zip(etag.and_then(readable));
        let same_tag = tags.is_none_or(|(stored, etag)| is_of_one_object(&stored, &etag));
        let dates = stored.last_modified.zip(last_modified.and_then(date::of));
        let newer = bucket && dates.is_some_and(|(stored, date)| date > stored);
        same_tag && !newer
    }

    /// Returns the stored `ETag`, byte for byte.
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// Returns the edits that replace the store's conditions with conditions that the origin understands.
    /// `compressed` says that the mark in front of the tag was written by a compressor and not by the origin.
    pub fn conditions(&self, compressed: bool) -> Vec<HeaderEdit<'_>> {
        let Some(validator) = self.validator().filter(|_| self.conditional) else {
            return Vec::new();
        };
        let etag = validator.if_none_match(compressed);
        let etag = etag.map(|etag| HeaderEdit::set("if-none-match", etag));
        let date = validator.last_modified();
        let date = date.map(|date| HeaderEdit::set("if-modified-since", date));
        etag.into_iter().chain(date).collect()
    }

    /// Seconds for which the response may still be served if the origin fails.
    pub fn left(&self) -> u64 {
        self.servable().saturating_sub(self.age)
    }

    /// Whether the response may be served stale if the origin fails.
    pub fn has_stale_window(&self) -> bool {
        let lifetime = self.validator().map(|stored| stored.lifetime);
        lifetime.is_some_and(|lifetime| lifetime.servable() > lifetime.ttl)
    }

    /// Whether the response is validated at each use.
    pub fn must_be_validated(&self) -> bool {
        let lifetime = self.validator().map(|stored| stored.lifetime);
        lifetime.is_some_and(|lifetime| lifetime.must_be_validated())
    }

    /// Whether the store served the response without asking the origin until a moment ago. The store counts whole
    /// seconds.
    pub fn has_just_expired(&self) -> bool {
        let lifetime = self.validator().map(|stored| stored.lifetime);
        let lifetime = lifetime.filter(|lifetime| !lifetime.must_be_validated());
        let unasked = lifetime.map(|lifetime| lifetime.unasked());
        unasked.is_some_and(|unasked| self.age <= unasked.saturating_add(1))
    }

    /// Returns the `ETag` of a 304 after which the store serves its entry unchanged.
    pub fn unwritten(&self) -> Vec<u8> {
        [KEPT.as_bytes(), b" ", &self.value].concat()
    }

    /// Returns the headers of a 304 after which the store continues to serve its entry. All other headers of the
    /// entry are kept, above all its `Date`, from which the age is counted.
    ///
    /// The `ETag` differs from the stored one, so that the store does not write the entry. A request during a write
    /// would miss.
    pub fn keeping_headers(&self) -> [(&'static str, Vec<u8>); 2] {
        let control = format!("max-age={}", self.servable());
        [
            ("etag", self.unwritten()),
            ("cache-control", control.into_bytes()),
        ]
    }

    /// Returns the edits that turn a response with headers of these `names` into such a 304.
    pub fn keep<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<HeaderEdit<'a>> {
        let removed = names.filter(|name| !name.starts_with(':'));
        let mut edits: Vec<_> = removed.map(HeaderEdit::Remove).collect();
        edits.push(HeaderEdit::set(":status", "304"));
        let kept = self.keeping_headers().into_iter();
        edits.extend(kept.map(|(name, value)| HeaderEdit::Set(name, Cow::Owned(value))));
        edits
    }

    fn servable(&self) -> u64 {
        self.validator()
            .map_or(0, |stored| stored.lifetime.servable())
    }
}

/// Whether both tags identify the same object. A compressor on the way makes a tag weak, or appends a coding
/// (`"x-gzip"`), and some remove the coding again in a 304.
fn is_of_one_object(stored: &str, etag: &str) -> bool {
    match (EntityTag::parse(stored), EntityTag::parse(etag)) {
        (Some(stored), Some(etag)) => stored.without_coding().is_weakly(etag.without_coding()),
        // A value that is not a tag validates nothing.
        (_, etag) => etag.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const SECONDS: i64 = 784_111_777;
    /// Fresh for 10 seconds, served stale for 5 more, and for 100 more if the origin fails.
    const STORED: &str = "sluice 10 5 100 a - 784111777 W/\"x\"";

    fn revalidation(value: &str, age: i64) -> Option<Revalidation> {
        Revalidation::parse(Some(value.into()), Some(DATE.into()), SECONDS + age)
    }

    fn stored(age: i64) -> Revalidation {
        revalidation(STORED, age).unwrap()
    }

    #[test]
    fn only_the_stores_own_conditions_are_a_revalidation() {
        assert!(revalidation("\"x\"", 0).is_none());
        assert!(Revalidation::parse(None, Some(DATE.into()), SECONDS).is_none());
        assert!(Revalidation::parse(Some(STORED.into()), None, SECONDS).is_none());
        assert!(Revalidation::parse(Some(STORED.into()), Some("soon".into()), SECONDS).is_none());
    }

    #[test]
    fn the_origin_is_asked_by_its_own_validators() {
        let asked = [
            HeaderEdit::set("if-none-match", "W/\"x\""),
            HeaderEdit::set("if-modified-since", DATE),
        ];
        assert_eq!(stored(0).conditions(false), asked);
        let strong = HeaderEdit::set("if-none-match", "\"x\"");
        assert_eq!(stored(0).conditions(true).first(), Some(&strong));
    }

    #[test]
    fn a_304_is_about_what_is_stored_if_its_validators_are() {
        let later = "Sun, 06 Nov 1994 08:49:38 GMT";
        for (etag, last_modified, of_http, of_bucket) in [
            (None, None, true, true),
            (Some("W/\"x\""), Some(DATE), true, true),
            (Some("\"x\""), None, true, true),
            (Some("\"x-gzip\""), None, true, true),
            (Some("\"y\""), Some(DATE), false, false),
            (Some("W/\"y\""), None, false, false),
            (Some("\"x\""), Some(later), true, false),
            (None, Some(later), true, false),
            (
                Some("\"x\""),
                Some("Sun, 06 Nov 1994 08:49:36 GMT"),
                true,
                true,
            ),
            (Some("\"x\""), Some("soon"), true, true),
        ] {
            let about = |bucket| {
                stored(0).is_about(etag.map(Into::into), last_modified.map(Into::into), bucket)
            };
            assert_eq!(
                (about(false), about(true)),
                (of_http, of_bucket),
                "{etag:?} {last_modified:?}"
            );
        }
        let untagged = revalidation("sluice 10 5 100 a - 784111777 -", 0).unwrap();
        assert!(untagged.is_about(Some("\"x\"".into()), Some(DATE.into()), true));
    }

    #[test]
    fn what_has_no_validator_is_asked_for_whole() {
        let plain = revalidation("sluice 10 5 100 a - - -", 0).unwrap();
        assert!(!plain.conditional && plain.conditions(false).is_empty());
        let unasked = revalidation("sluice-unasked 10 5 100 a - 784111777 \"x\"", 0).unwrap();
        assert!(!unasked.conditional && unasked.conditions(false).is_empty());
        assert!(stored(0).conditional);
        assert!(stored(0).unconditional().conditions(false).is_empty());
    }

    #[test]
    fn a_response_is_left_for_as_long_as_its_window_for_errors_lasts() {
        assert_eq!(stored(10).left(), 100);
        assert_eq!(stored(110).left(), 0);
        assert_eq!(stored(111).left(), 0);
    }

    #[test]
    fn a_clock_that_was_set_back_makes_nothing_older() {
        assert_eq!(stored(-5).left(), 110);
    }

    #[test]
    fn a_response_has_just_expired_for_one_second() {
        assert!(stored(16).has_just_expired());
        assert!(!stored(17).has_just_expired());
    }

    #[test]
    fn what_must_be_validated_was_never_served_unasked() {
        let strict = revalidation("sluice 0 0 0 a - 784111777 W/\"x\"", 0).unwrap();
        assert!(strict.must_be_validated() && !strict.has_just_expired());
        assert_eq!(strict.left(), 0);
        assert!(!stored(0).must_be_validated());
    }

    #[test]
    fn a_304_of_the_edges_own_replaces_all_headers_of_an_error() {
        let edits = stored(0).keep([":status", "content-type", "etag"].into_iter());
        let expected = [
            HeaderEdit::Remove("content-type"),
            HeaderEdit::Remove("etag"),
            HeaderEdit::set(":status", "304"),
            HeaderEdit::set("etag", format!("kept {STORED}")),
            HeaderEdit::set("cache-control", "max-age=110"),
        ];
        assert_eq!(edits, expected);
    }
}
