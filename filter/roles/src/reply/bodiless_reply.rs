// SPDX-License-Identifier: Apache-2.0
//! Complete replies without a body: of ORIGIN to the store, to a request of the filter, and to a client that needs no
//! body.

use sluice_store::{LOOKUP_EXPIRED, LOOKUP_NO_ROOM, Revalidation};

use super::CACHE_STATUS;
use crate::request::headers::Header;
use sluice_host::headers::serialize;
use sluice_host::{self as host, Host};

/// A complete reply without a body.
#[derive(Clone, Debug)]
pub struct BodilessReply {
    status: u16,
    details: &'static str,
    fields: Vec<Header>,
}

impl BodilessReply {
    /// Creates a reply with these header fields.
    pub const fn new(status: u16, details: &'static str, fields: Vec<Header>) -> Self {
        Self {
            status,
            details,
            fields,
        }
    }

    /// ORIGIN's reply to a request for which EDGE has not vouched.
    pub fn unlinked() -> Self {
        Self::refusal(403, "sluice_unlinked")
    }

    /// ORIGIN's reply to a request for the store only, if the store does not have the response.
    pub fn not_stored() -> Self {
        Self::refusal(504, "sluice_not_stored")
    }

    /// ORIGIN's reply to a lookup that found neither the response nor room in the store.
    pub fn no_room() -> Self {
        Self::refusal(LOOKUP_NO_ROOM, "sluice_no_room")
    }

    /// ORIGIN's reply to a lookup that found a response that must be revalidated.
    pub fn expired() -> Self {
        Self::refusal(LOOKUP_EXPIRED, "sluice_expired")
    }

    /// ORIGIN's reply if the store has just lost the object. EDGE asks the store again by a call before the client
    /// gets an answer.
    pub fn ask_again() -> Self {
        Self::refusal(503, "sluice_ask_again")
    }

    /// ORIGIN's reply if the origin fails and the store serves its stale response.
    pub fn keeping(stored: &Revalidation) -> Self {
        let fields = stored.keeping_headers();
        let fields = fields.map(|(name, value)| (name.to_owned(), value));
        Self::new(304, "sluice_kept", fields.into())
    }

    /// ORIGIN's reply if the store serves its response unchanged, and does not write it again.
    pub fn unwritten(stored: &Revalidation) -> Self {
        let etag = ("etag".to_owned(), stored.unwritten());
        Self::new(304, "sluice_unwritten", vec![etag])
    }

    /// EDGE's reply to a request of the filter, with the status 204, or 502 for a failure.
    pub const fn outcome(status: u16) -> Self {
        Self::new(status, "sluice_outcome", Vec::new())
    }

    fn refusal(status: u16, details: &'static str) -> Self {
        let no_store = ("cache-control".to_owned(), b"no-store".to_vec());
        Self::new(status, details, vec![no_store])
    }

    /// Replaces the `Cache-Status` of the response by `status`.
    pub fn described(mut self, status: &str) -> Self {
        let mut fields = self.fields.iter_mut().rev();
        if let Some((_, value)) = fields.find(|(name, _)| name == CACHE_STATUS) {
            *value = status.as_bytes().to_vec();
        }
        self
    }

    /// Answers the effective context's request.
    pub fn send(&self, host: &dyn Host) -> host::Result<()> {
        let fields = self.fields.iter();
        let fields = fields.map(|(name, value)| (name.as_str(), value.as_slice()));
        host.respond_with(self.status, self.details, &serialize(fields), b"")
    }
}
