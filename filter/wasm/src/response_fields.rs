// SPDX-License-Identifier: Apache-2.0
//! What EDGE reads of the headers of a response that may come out of the store.

use sluice_core::store::entry::{ENTRY_HEADER, Entry};
use sluice_core::store::validator::Validator;
use sluice_core::workers::BodyId;

use crate::headers::Headers;
use crate::origin::STORED_CACHE_CONTROL;
use crate::revalidation::KEPT;

/// In which Envoy says how long the origin took.
pub const UPSTREAM_SERVICE_TIME: &str = "x-envoy-upstream-service-time";

/// The values of these headers, found in one pass; of several lines of one name the first.
#[derive(Debug, Default)]
pub struct ResponseFields<'a> {
    entry: Option<&'a [u8]>,
    age: Option<&'a [u8]>,
    date: Option<&'a [u8]>,
    etag: Option<&'a [u8]>,
    content_length: Option<&'a [u8]>,
    cache_control: Option<&'a [u8]>,
    /// What the origin has said in the place of `cache_control`, which is the store's.
    pub own_cache_control: Option<&'a [u8]>,
    upstream_service_time: Option<&'a [u8]>,
}

impl<'a> ResponseFields<'a> {
    /// Those of these headers.
    pub fn of(headers: &'a Headers) -> Self {
        let mut fields = Self::default();
        for (name, value) in headers.fields() {
            let field = match name {
                b"age" => &mut fields.age,
                b"date" => &mut fields.date,
                b"etag" => &mut fields.etag,
                b"content-length" => &mut fields.content_length,
                b"cache-control" => &mut fields.cache_control,
                _ if name == ENTRY_HEADER.as_bytes() => &mut fields.entry,
                _ if name == STORED_CACHE_CONTROL.as_bytes() => &mut fields.own_cache_control,
                _ if name == UPSTREAM_SERVICE_TIME.as_bytes() => &mut fields.upstream_service_time,
                _ => continue,
            };
            field.get_or_insert(value);
        }
        fields
    }

    /// The response's mark, if ORIGIN has made one.
    pub fn entry(&self) -> Option<Entry<'a>> {
        text(self.entry).and_then(Entry::parse)
    }

    /// `Age` in seconds.
    pub fn age(&self) -> Option<u64> {
        text(self.age)?.parse().ok()
    }

    /// `Date`.
    pub fn date(&self) -> Option<&'a str> {
        text(self.date)
    }

    /// `Cache-Control`, which is for the store.
    pub fn cache_control(&self) -> Option<&'a str> {
        text(self.cache_control)
    }

    /// How many bytes the body has, if they say so.
    pub fn content_length(&self) -> Option<u64> {
        text(self.content_length)?.parse().ok()
    }

    /// What stands in the place of the stored response's `ETag`.
    pub fn validator(&self) -> Option<Validator<'a>> {
        let value = text(self.etag)?;
        // A 304 that the store was not to write.
        let value = value.strip_prefix(KEPT).map_or(value, str::trim_start);
        Validator::parse(value)
    }

    /// The response's body where no header tells its length.
    pub fn unannounced_body(&self) -> Option<BodyId> {
        match self.content_length {
            Some(_) => None,
            None => self.validator().map(|stored| stored.body),
        }
    }

    /// Whether there is a `Cache-Control`.
    pub const fn has_cache_control(&self) -> bool {
        self.cache_control.is_some()
    }

    /// Whether Envoy says how long the origin took.
    pub const fn has_upstream_service_time(&self) -> bool {
        self.upstream_service_time.is_some()
    }
}

fn text(value: Option<&[u8]>) -> Option<&str> {
    std::str::from_utf8(value?).ok()
}
