// SPDX-License-Identifier: Apache-2.0
//! A filter of the hop that sends a request to the origin again if the origin has closed the connection under it, or
//! has answered 304 to a request without a condition.
//!
//! An origin may close an idle connection at the moment at which the next request is sent on it (RFC 9112, 9.3.1). A
//! GET or HEAD without a body is safe to send again (RFC 9110, 9.2.2). Envoy's own retries do not fit here: they
//! share a budget with other retries, they choose among connections that the origin may close as well, and they do
//! not distinguish such an end from a timeout.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use sluice_core::http::conditional::conditions::NOT_MODIFIED;
use sluice_core::internal_headers::{AGAIN_HEADER, EMPTY_HEADER, FAILURE_HEADER, INTERNAL_PREFIX};
use sluice_core::origin_failure::has_ended_unanswered;
use sluice_host::headers::Headers;

use crate::abi::{Filter, HeaderMapType, HeadersStatus};

/// The filter on one stream.
#[derive(Debug, Default)]
pub struct OnceMore {
    /// The headers of the request as it was received, if it may be sent again.
    repeatable: RefCell<Option<Headers>>,
}

impl OnceMore {
    /// Keeps the headers of a request that may be sent again: it is a GET or HEAD, has no body, and has not been sent
    /// again yet.
    pub fn observe_request(&self, filter: Filter, ends: bool) -> HeadersStatus {
        let headers = || Headers::new(filter.headers(HeaderMapType::Request));
        let is_repeatable = |headers: &Headers| {
            let is_safe = headers.is(":method", "GET") || headers.is(":method", "HEAD");
            // NB: a request that is only on its way back to EDGE is sent again at the hop to the origin.
            is_safe && !headers.has(AGAIN_HEADER) && !headers.has(EMPTY_HEADER)
        };
        let repeatable = ends.then(headers).filter(is_repeatable);
        self.repeatable.replace(repeatable);
        HeadersStatus::Continue
    }

    /// Pauses a response that means that the connection has ended, or a 304 to a request without a condition. Sends
    /// the request again in a later turn, because Envoy's router is still at work for the first request here.
    pub fn observe_response(&self, filter: Filter) -> HeadersStatus {
        let repeatable = self.repeatable.borrow();
        let Some(request) = &*repeatable else {
            return HeadersStatus::Continue;
        };
        let field = |name| filter.header(HeaderMapType::Response, name);
        let has_ended =
            || field(FAILURE_HEADER).is_some_and(|details| has_ended_unanswered(&details));
        let is_conditional = || NOT_MODIFIED.iter().any(|name| request.has(name));
        let is_useless = field(":status").as_deref() == Some(b"304") && !is_conditional();
        if !is_useless && !has_ended() {
            return HeadersStatus::Continue;
        }
        filter.scheduler().commit();
        HeadersStatus::StopAllIterationAndWatermark
    }

    /// Sends the request again, with a unique mark. The hop opens a separate connection for each mark, because an
    /// idle connection might be closed as well.
    pub fn ask_again(&self, filter: Filter) {
        static MARKS: AtomicU64 = AtomicU64::new(0);
        if let Some(headers) = self.repeatable.take() {
            give_back(filter, &headers);
        }
        let mark = MARKS.fetch_add(1, Ordering::Relaxed).to_string();
        filter.set_header(HeaderMapType::Request, AGAIN_HEADER, mark.as_bytes());
        if !filter.recreate() {
            filter.continue_encoding();
        }
    }
}

/// Restores the headers that the chain of the origin's server has removed from the request. The routes and the
/// filters of the hop need them.
fn give_back(filter: Filter, headers: &Headers) {
    // NB: Envoy finds no route for a request without `x-forwarded-proto`.
    let starts = [INTERNAL_PREFIX, "x-forwarded-", "accept-encoding"];
    let is_of_hop = |name: &str| starts.iter().any(|start| name.starts_with(start));
    for (name, value) in headers.iter().filter(|(name, _)| is_of_hop(name)) {
        filter.set_header(HeaderMapType::Request, name, value);
    }
}
