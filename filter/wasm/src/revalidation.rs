// SPDX-License-Identifier: Apache-2.0
//! ORIGIN's part in the revalidation of a stored response, which a store's conditional request asks for.

use sluice_core::http::date;
use sluice_core::policy::{Origin, Policy};
use sluice_core::store::validator::Validator;

use crate::headers::Headers;
use crate::host::{self, Map};

/// Precedes the stored `ETag` in a 304 that the store is not to write.
pub const KEPT: &str = "kept";

/// The stored response that the store asks about.
#[derive(Clone, Debug)]
pub struct Revalidation {
    /// The stored `ETag`, which says the rest.
    value: String,
    /// How old the response is, in seconds.
    age: u64,
    /// Whether the origin is asked for changes only, so that its 304 is about this response.
    pub conditional: bool,
}

impl Revalidation {
    /// What the store's request is about, if it is conditional.
    pub fn of(headers: &Headers) -> Option<Self> {
        let value = headers.text("if-none-match")?;
        let validator = Validator::parse(value)?;
        // Its Last-Modified is kept elsewhere, so this is the Date of the stored response.
        let date = headers.text("if-modified-since").and_then(date::parse)?;
        Some(Self {
            value: value.to_owned(),
            age: u64::try_from(host::unix_seconds().saturating_sub(date)).unwrap_or(0),
            conditional: validator.is_conditional(),
        })
    }

    /// What is stored in the place of the validators.
    pub fn validator(&self) -> Option<Validator<'_>> {
        Validator::parse(&self.value)
    }

    /// The stored `ETag`, byte for byte.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Gives the request the conditions that the origin understands, in place of the store's.
    pub fn ask(&self, policy: &Policy) -> host::Result<()> {
        let Some(validator) = self.validator() else {
            return Ok(());
        };
        // The tags of a bucket are strong; a mark before one is a compressor's.
        let compressed = matches!(policy.origin, Origin::Bucket(_));
        if let Some(etag) = validator.if_none_match(compressed) {
            host::set_header(Map::Request, "if-none-match", etag)?;
        }
        if let Some(date) = validator.last_modified() {
            host::set_header(Map::Request, "if-modified-since", &date)?;
        }
        Ok(())
    }

    /// For how many seconds more the response may be served where the origin fails.
    pub fn left(&self) -> u64 {
        let servable = self.validator().map(|stored| stored.lifetime.servable());
        servable.unwrap_or(0).saturating_sub(self.age)
    }

    /// Whether the store served it unasked until just now: it counts in whole seconds.
    pub fn has_just_expired(&self) -> bool {
        let unasked = self.validator().map(|stored| stored.lifetime.unasked());
        unasked.is_some_and(|unasked| self.age <= unasked.saturating_add(1))
    }

    /// The `ETag` of a 304 with which the store serves what it has, and leaves that as it is.
    pub fn unwritten(&self) -> String {
        format!("{KEPT} {}", self.value)
    }

    /// Headers of the 304 with which the store goes on serving what it has. All else of the response is
    /// kept, its `Date` above all, from which age counts.
    ///
    /// The store is not to write anything, since a request that came meanwhile would miss; another `ETag` keeps it
    /// from that.
    pub fn keeping_headers(&self) -> [(&'static str, String); 2] {
        let servable = self.validator().map(|stored| stored.lifetime.servable());
        let control = format!("max-age={}", servable.unwrap_or(0));
        [("etag", self.unwritten()), ("cache-control", control)]
    }

    /// Makes such a 304 of a response that has come.
    pub fn keep(&self, headers: &Headers) -> host::Result<()> {
        for (name, _) in headers.iter() {
            if !name.starts_with(':') {
                host::remove_header(Map::Response, name)?;
            }
        }
        host::set_header(Map::Response, ":status", "304")?;
        for (name, value) in self.keeping_headers() {
            host::set_header(Map::Response, name, &value)?;
        }
        Ok(())
    }
}
