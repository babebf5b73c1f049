// SPDX-License-Identifier: Apache-2.0
//! Complete replies, most of them without a body: of ORIGIN to the store, to a request of the filter, and to a client
//! that needs no body or gets an error.

use std::rc::Rc;

use sluice_core::http::caching::cache_name::CacheName;
use sluice_core::http::caching::cache_status::{CacheStatus, Forward, detailed};
use sluice_core::internal_headers::{SLICE_STATE_HEADER, SLICES_HEADER};
use sluice_core::policy::Policy;
use sluice_core::slices::asked::SliceState;
use sluice_core::slices::plan::SlicePlan;
use sluice_core::website::error_page::MEDIA_TYPE;
use sluice_store::{LOOKUP_EXPIRED, LOOKUP_NO_ROOM, Revalidation};

use super::CACHE_STATUS;
use crate::request::headers::Header;
use sluice_host::headers::serialize;
use sluice_host::{self as host, Host};

/// A complete reply.
#[derive(Clone, Debug)]
pub struct CompleteReply {
    status: u16,
    details: &'static str,
    fields: Vec<Header>,
    body: &'static str,
    /// The policy whose maintenance page replaces the body.
    page: Option<Rc<Policy>>,
}

/// Status of a response with a maintenance page.
pub const MAINTENANCE_STATUS: u16 = 503;
/// `Retry-After` of a maintenance page, in seconds.
pub const RETRY_AFTER: &str = "30";

impl CompleteReply {
    /// Creates a reply with these header fields and without a body.
    pub const fn new(status: u16, details: &'static str, fields: Vec<Header>) -> Self {
        Self {
            status,
            details,
            fields,
            body: "",
            page: None,
        }
    }

    /// The answer to a request that its client has not completed (RFC 9110, 15.5.9). `name` is the name of the cache.
    pub fn timeout(name: &CacheName) -> Self {
        let fields = text_fields(detailed(name, "rejected"));
        Self {
            body: "The request was not completed in time.\n",
            ..Self::new(408, "request_timeout", fields)
        }
    }

    /// The answer to a request for which the origin or the edge has failed. `collapsed` says that the failure is that
    /// of another request. `name` is the name of the cache.
    pub fn failure(name: &CacheName, status: u16, collapsed: bool) -> Self {
        let cache_status = if collapsed {
            CacheStatus::forwarded(Forward::Miss)
                .collapsed()
                .member_of(name)
        } else {
            detailed(name, "unavailable")
        };
        let mut fields = text_fields(cache_status);
        fields.insert(1, ("cache-control".to_owned(), b"no-store".to_vec()));
        Self {
            body: "The origin could not answer.\n",
            ..Self::new(status, "sluice_origin_failed", fields)
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

    /// EDGE's reply to the slicer's request for a slice of an object that is no longer the object of the index.
    pub fn outdated_slice(state: SliceState) -> Self {
        let mut reply = Self::refusal(502, "sluice_slice_outdated");
        let state = state.as_str().as_bytes().to_vec();
        reply.fields.push((SLICE_STATE_HEADER.to_owned(), state));
        reply
    }

    /// EDGE's reply to a request that the slicer has repeated: the plan of the object as it is now.
    pub fn plan(plan: &SlicePlan) -> Self {
        let plan = plan.to_string().into_bytes();
        Self::new(200, "sluice_plan", vec![(SLICES_HEADER.to_owned(), plan)])
    }

    /// Adds the site's maintenance page to a failure, if the site has one.
    pub fn explained(mut self, policy: &Rc<Policy>) -> Self {
        if policy.response.maintenance_page.is_none() || self.status < 500 {
            return self;
        }
        for (name, value) in &mut self.fields {
            if name == "content-type" {
                *value = MEDIA_TYPE.into();
            }
        }
        let retry_after = ("retry-after".to_owned(), RETRY_AFTER.into());
        self.fields.insert(1, retry_after);
        Self {
            status: MAINTENANCE_STATUS,
            page: Some(Rc::clone(policy)),
            ..self
        }
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
        let page = self.page.as_deref();
        let page = page.and_then(|policy| policy.response.maintenance_page.as_deref());
        host.respond_with(
            self.status,
            self.details,
            &serialize(fields),
            page.unwrap_or(self.body).as_bytes(),
        )
    }
}

/// The header fields of an answer in plain text with this `Cache-Status`.
fn text_fields(cache_status: String) -> Vec<Header> {
    vec![
        (
            "content-type".to_owned(),
            b"text/plain; charset=utf-8".to_vec(),
        ),
        (CACHE_STATUS.to_owned(), cache_status.into_bytes()),
    ]
}
