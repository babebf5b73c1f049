// SPDX-License-Identifier: Apache-2.0
//! The answer of a server that was asked whether a client may read the site.

use sluice_core::http::caching::cache_name::CacheName;
use sluice_core::http::caching::cache_status::detailed;

use crate::reply::CACHE_STATUS;
use crate::request::headers::Header;
use sluice_host::headers::{Headers, serialize};
use sluice_host::{self as host, Host};

/// The most bytes of the body of a refusal.
const MOST_BYTES: usize = 64 << 10;
/// The headers of a refusal that its client gets.
const PASSED_ON: [&str; 4] = ["content-type", "location", "set-cookie", "www-authenticate"];

/// The meaning of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The client may read the site.
    Admitted,
    /// The client gets the answer.
    Refused,
    /// The answer says neither.
    Unknown,
}

impl Verdict {
    /// The meaning of an answer with these headers, and a body of `size` bytes.
    pub fn of(headers: &Headers, size: usize) -> Self {
        match headers.status() {
            Some(200..=299) => Self::Admitted,
            Some(301 | 302 | 303 | 307 | 308) if !headers.has("location") => Self::Unknown,
            Some(301 | 302 | 303 | 307 | 308 | 401 | 403) if size <= MOST_BYTES => Self::Refused,
            _ => Self::Unknown,
        }
    }
}

/// A refusal of the server, for the client.
pub(in crate::edge) struct CheckerAnswer {
    status: u16,
    fields: Vec<Header>,
    body: Vec<u8>,
}

impl CheckerAnswer {
    /// The refusal with these headers and this body.
    pub(super) fn new(headers: &Headers, body: Vec<u8>) -> Self {
        let fields = headers.iter();
        let fields = fields.filter(|(name, value)| PASSED_ON.contains(name) && !value.is_empty());
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_vec()));
        Self {
            status: headers.status().unwrap_or(403),
            fields: fields.collect(),
            body,
        }
    }

    /// Whether the answer has a media type.
    pub fn is_typed(&self) -> bool {
        self.fields.iter().any(|(name, _)| name == "content-type")
    }

    /// Answers the effective context's request. `name` is the name of the cache.
    pub fn send(&self, host: &dyn Host, name: &CacheName) -> host::Result<()> {
        let cache_status = detailed(name, "rejected");
        let own = [
            ("cache-control", &b"no-store"[..]),
            (CACHE_STATUS, cache_status.as_bytes()),
        ];
        let fields = self.fields.iter();
        let fields = fields.map(|(name, value)| (name.as_str(), value.as_slice()));
        let fields = serialize(fields.chain(own));
        host.respond_with(self.status, "sluice_access_refused", &fields, &self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(status: &str, more: &[(&str, &str)], size: usize) -> Verdict {
        let fields = [(":status", status)];
        let fields = fields.iter().chain(more);
        let fields = fields.map(|(name, value)| (*name, value.as_bytes()));
        Verdict::of(&Headers::new(serialize(fields)), size)
    }

    #[test]
    fn only_a_success_admits_and_only_a_refusal_is_passed_on() {
        for status in ["200", "202", "204", "299"] {
            assert_eq!(verdict(status, &[], 0), Verdict::Admitted, "{status}");
        }
        let location = [("location", "/login")];
        for status in ["301", "302", "303", "307", "308"] {
            assert_eq!(verdict(status, &location, 0), Verdict::Refused, "{status}");
            assert_eq!(verdict(status, &[], 0), Verdict::Unknown, "{status}");
        }
        for status in ["401", "403"] {
            assert_eq!(verdict(status, &[], MOST_BYTES), Verdict::Refused);
            assert_eq!(verdict(status, &[], MOST_BYTES + 1), Verdict::Unknown);
        }
        for status in [
            "100", "199", "300", "304", "400", "404", "429", "500", "503", "2000", "", "x",
        ] {
            assert_eq!(verdict(status, &location, 0), Verdict::Unknown, "{status}");
        }
    }
}
