// SPDX-License-Identifier: Apache-2.0
//! The headers that EDGE reads from a response of the store.

use crate::stored::entry::{ENTRY_HEADER, Entry};
use crate::stored::hidden_fields::{HIDDEN_FIELDS, decode};
use crate::stored::revalidation::KEPT;
use crate::stored::served_for::served_for;
use crate::stored::validator::Validator;
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::workers::{BodyId, Millis};

/// Name of the response header that keeps the origin's `Cache-Control` in the store.
pub const STORED_CACHE_CONTROL: &str = "x-sluice-cache-control";
/// Name of the response header that keeps the origin's `Date` in the store, if the store has another one.
pub const STORED_DATE: &str = "x-sluice-date";
/// Name of the response header that keeps the origin's `Vary` in the store.
pub const STORED_VARY: &str = "x-sluice-vary";
/// Name of the response header with which Envoy says how long the origin took.
pub const UPSTREAM_SERVICE_TIME: &str = "x-envoy-upstream-service-time";

/// Values of these headers, found in one pass. If a name has several lines, the first one counts.
#[derive(Debug, Default)]
pub struct StoredFields<'a> {
    entry: Option<FieldValue<'a>>,
    age: Option<FieldValue<'a>>,
    date: Option<FieldValue<'a>>,
    etag: Option<FieldValue<'a>>,
    content_length: Option<FieldValue<'a>>,
    /// `Cache-Control` that ORIGIN has set for the store.
    pub cache_control: Option<FieldValue<'a>>,
    /// `Cache-Control` of the origin.
    pub own_cache_control: Option<FieldValue<'a>>,
    /// `Date` of the origin, if it differs from `date`.
    pub own_date: Option<FieldValue<'a>>,
    upstream_service_time: Option<FieldValue<'a>>,
    hidden: Option<FieldValue<'a>>,
}

impl<'a> StoredFields<'a> {
    /// Finds the fields in `headers`, whose names are in lower case.
    pub fn of(headers: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Self {
        let mut fields = Self::default();
        for (name, value) in headers {
            let field = match name {
                b"age" => &mut fields.age,
                b"date" => &mut fields.date,
                b"etag" => &mut fields.etag,
                b"content-length" => &mut fields.content_length,
                b"cache-control" => &mut fields.cache_control,
                _ if name == ENTRY_HEADER.as_bytes() => &mut fields.entry,
                _ if name == STORED_CACHE_CONTROL.as_bytes() => &mut fields.own_cache_control,
                _ if name == STORED_DATE.as_bytes() => &mut fields.own_date,
                _ if name == UPSTREAM_SERVICE_TIME.as_bytes() => &mut fields.upstream_service_time,
                _ if name == HIDDEN_FIELDS.as_bytes() => &mut fields.hidden,
                _ => continue,
            };
            field.get_or_insert(FieldValue::new(value));
        }
        fields
    }

    /// Returns the mark of the response, if ORIGIN has written one.
    pub fn entry(&self) -> Option<Entry<'a>> {
        Entry::parse(self.entry?.text().ok()?)
    }

    /// `Age` in seconds.
    pub fn age(&self) -> Option<u64> {
        self.age?.number()
    }

    /// `Date`.
    pub const fn date(&self) -> Option<FieldValue<'a>> {
        self.date
    }

    /// `Content-Length` in bytes.
    pub fn content_length(&self) -> Option<u64> {
        self.content_length?.number()
    }

    /// Returns the validator that ORIGIN has stored instead of the response's `ETag`.
    pub fn validator(&self) -> Option<Validator<'a>> {
        let value = self.etag?.bytes();
        // A 304 that the store must not write has a prefix.
        let value = value
            .strip_prefix(KEPT.as_bytes())
            .map_or(value, <[u8]>::trim_ascii_start);
        Validator::parse(FieldValue::new(value))
    }

    /// Whether the headers belong to the body that is stored with them. When a 304 arrives, Envoy's cache updates the
    /// headers of the entry that it has at that time, but never its `ETag`.
    pub fn describe_the_body(&self, entry: &Entry<'_>) -> bool {
        let stored = self.validator().filter(|_| entry.stored);
        stored.is_none_or(|stored| stored.body == entry.body)
    }

    /// Returns the body of the response if no header has its length.
    pub fn unannounced_body(&self) -> Option<BodyId> {
        match self.content_length {
            Some(_) => None,
            None => self.validator().map(|stored| stored.body),
        }
    }

    /// Returns the milliseconds for which the store serves the response without asking the origin; 0 if it is not
    /// stored. `now` is in milliseconds since 1970.
    pub fn served_for(&self, entry: &Entry<'_>, now: Millis) -> Millis {
        if !entry.stored {
            return 0;
        }
        let told = self.cache_control.zip(self.date);
        told.map_or(0, |(cache_control, date)| {
            served_for(cache_control, date, now)
        })
    }

    /// Whether the response has an `Age`.
    pub const fn has_age(&self) -> bool {
        self.age.is_some()
    }

    /// Whether the response has a `Cache-Control`.
    pub const fn has_cache_control(&self) -> bool {
        self.cache_control.is_some()
    }

    /// Whether fields are hidden from the store.
    pub const fn hides(&self) -> bool {
        self.hidden.is_some()
    }

    /// Returns the fields that are hidden from the store. A field that a later 304 has brought, as `has` says, is
    /// left out.
    pub fn hidden(&self, has: impl Fn(&str) -> bool) -> Vec<(String, Vec<u8>)> {
        let etag = self.validator().and_then(|stored| stored.etag);
        let has = |name: &str| match name {
            // In the store, ORIGIN has replaced these fields.
            "etag" => etag.is_some(),
            "cache-control" => self.own_cache_control.is_some(),
            _ => has(name),
        };
        let hidden = self.hidden.into_iter().flat_map(decode);
        hidden.filter(|(name, _)| !has(name)).collect()
    }

    /// Whether Envoy says how long the origin took.
    pub const fn has_upstream_service_time(&self) -> bool {
        self.upstream_service_time.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<'a>(headers: &[(&'a str, &'a str)]) -> StoredFields<'a> {
        let headers = headers.iter();
        StoredFields::of(headers.map(|(name, value)| (name.as_bytes(), value.as_bytes())))
    }

    #[test]
    fn the_first_of_several_lines_counts() {
        let fields = fields(&[("age", "7"), ("age", "8"), ("content-length", "12")]);
        assert_eq!((fields.age(), fields.content_length()), (Some(7), Some(12)));
    }

    #[test]
    fn what_is_no_number_or_no_mark_counts_as_absent() {
        let fields = fields(&[("age", "soon"), ("x-sluice-entry", "1"), ("etag", "\"x\"")]);
        assert_eq!(fields.age(), None);
        assert_eq!(fields.entry(), None);
        assert_eq!(fields.validator(), None);
        assert!(!fields.has_cache_control() && !fields.has_upstream_service_time());
    }

    #[test]
    fn the_validator_of_a_304_that_was_not_written_is_read_like_any_other() {
        let stored = fields(&[("etag", "sluice 1 2 3 4 - - \"x\"")]).validator();
        assert!(stored.is_some());
        let unwritten = fields(&[("etag", "kept sluice 1 2 3 4 - - \"x\"")]);
        assert_eq!(unwritten.validator(), stored);
    }

    #[test]
    fn headers_that_a_304_has_written_over_those_of_another_body_do_not_describe_it() {
        let entry = |flags| format!("7 9 1 7 200 5 0 0 0 0 {flags} h/k");
        let (stored, unstored) = (entry(1), entry(0));
        let describes = |entry: &str, etag| {
            let fields = fields(&[(ENTRY_HEADER, entry), ("etag", etag)]);
            fields.describe_the_body(&fields.entry().unwrap())
        };
        assert!(describes(&stored, "sluice 1 2 3 7 - - -"));
        assert!(describes(&stored, "kept sluice 1 2 3 7 - - -"));
        assert!(!describes(&stored, "sluice 1 2 3 8 - - -"));
        assert!(describes(&unstored, "\"x\""), "of the origin's own");
    }

    #[test]
    fn a_body_is_unannounced_only_without_a_content_length() {
        let etag = ("etag", "sluice 1 2 3 4 - - -");
        assert_eq!(fields(&[etag]).unannounced_body(), Some(BodyId(4)));
        let announced = fields(&[etag, ("content-length", "3")]);
        assert_eq!(announced.unannounced_body(), None);
    }
}
