// SPDX-License-Identifier: Apache-2.0
//! Replies without a body to a client's demand: 304, 412, 416.

use sluice_core::http::conditional::range::{Part, unsatisfied_range};

use super::complete_reply::CompleteReply;
use crate::request::EdgeRequest;
use sluice_host::headers::{Headers, serialize};
use sluice_host::{self as host, Action, Host, Map};

/// A reply without a body to a condition or a range, which replaces the whole response: 304, 412 or 416.
pub struct DemandReply {
    status: u16,
    details: &'static str,
    content_range: Option<String>,
}

impl DemandReply {
    const fn of(status: u16, details: &'static str) -> Self {
        Self {
            status,
            details,
            content_range: None,
        }
    }

    /// A reply with status 304 (RFC 9110, 15.4.5).
    pub const fn not_modified() -> Self {
        Self::of(304, "sluice_not_modified")
    }

    /// A reply with status 412.
    pub const fn precondition_failed() -> Self {
        Self::of(412, "sluice_precondition_failed")
    }

    /// A reply with status 416, for an object of `length` bytes.
    pub fn unsatisfiable(length: u64) -> Self {
        Self {
            content_range: Some(unsatisfied_range(length)),
            ..Self::of(416, "sluice_range_unsatisfiable")
        }
    }

    /// Whether the reply has this header of the whole response. A 304 has the headers that RFC 9110, 15.4.5 demands,
    /// and other headers if they do not describe the body. An error must not be stored.
    fn keeps(&self, headers: &Headers, name: &str) -> bool {
        let not_modified = self.status == 304;
        match name {
            "content-location" | "etag" | "cache-control" | "expires" | "age" => not_modified,
            "last-modified" => not_modified && !headers.has("etag"),
            "content-length"
            | "content-type"
            | "content-encoding"
            | "content-language"
            | "content-range"
            | "content-disposition"
            | "content-md5"
            | "transfer-encoding" => false,
            "accept-ranges" => self.status == 416,
            _ => !name.starts_with(':'),
        }
    }

    fn added(&self) -> impl Iterator<Item = (&str, &[u8])> + Clone {
        let range = self.content_range.as_deref();
        let no_store = (self.status != 304).then_some(("cache-control", &b"no-store"[..]));
        range
            .map(|range| ("content-range", range.as_bytes()))
            .into_iter()
            .chain(no_store)
    }

    fn fields<'a>(
        &'a self,
        headers: &'a Headers,
    ) -> impl Iterator<Item = (&'a str, &'a [u8])> + Clone {
        let kept = headers.iter().filter(|(name, _)| self.keeps(headers, name));
        kept.chain(self.added())
    }

    /// The reply as a value, for another client that waits for the response with these `headers`.
    pub fn bodiless(&self, headers: &Headers) -> CompleteReply {
        let fields = self.fields(headers);
        let fields = fields.map(|(name, value)| (name.into(), value.into()));
        CompleteReply::new(self.status, self.details, fields.collect())
    }

    /// Answers at once, so that the body need not be read.
    pub fn send(&self, host: &dyn Host, headers: &Headers) -> host::Result<()> {
        let fields = serialize(self.fields(headers));
        host.respond_with(self.status, self.details, &fields, b"")
    }

    /// Changes the response in place, and drops its body as it passes.
    pub fn disguise(
        &self,
        host: &dyn Host,
        stream: &EdgeRequest,
        headers: &Headers,
    ) -> host::Result<Action> {
        stream.body.pass_only(Part::Nothing);
        for (name, _) in headers.iter() {
            if !name.starts_with(':') && !self.keeps(headers, name) {
                host.remove_header(Map::Response, name)?;
            }
        }
        for (name, value) in self.added() {
            host.set_header(Map::Response, name, value)?;
        }
        if self.status != 304 {
            host.set_header(Map::Response, "content-length", "0")?;
        }
        host.set_header(Map::Response, ":status", self.status.to_string())?;
        Ok(Action::Continue)
    }
}
