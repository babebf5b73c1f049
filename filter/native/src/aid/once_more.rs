// SPDX-License-Identifier: Apache-2.0
//! A filter of the hop that sends a request to the origin again if the origin has closed the connection under it, or
//! has answered 304 to a request without a condition. If the origin is a bucket that lacks the object, the filter sends
//! the request to the second origin of a site that asks for this.
//!
//! An origin may close an idle connection at the moment at which the next request is sent on it (RFC 9112, 9.3.1). A
//! GET or HEAD without a body is safe to send again (RFC 9110, 9.2.2). Envoy's own retries do not fit here: they
//! share a budget with other retries, they choose among connections that the origin may close as well, and they do
//! not distinguish such an end from a timeout.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

use sluice_core::http::conditional::conditions::NOT_MODIFIED;
use sluice_core::internal_headers::{
    AGAIN_HEADER, ATTEMPT_HEADER, EMPTY_HEADER, FAILURE_HEADER, INTERNAL_PREFIX, MISSING_HEADER,
};
use sluice_core::origin_failure::has_ended_unanswered;
use sluice_core::second_origin::lacks_object;
use sluice_host::headers::Headers;

use crate::abi::{Filter, HeaderMapType, HeadersStatus};

/// The filter on one stream.
#[derive(Debug, Default)]
pub struct OnceMore {
    /// The headers of the request as it was received, if it may be sent again.
    repeatable: RefCell<Option<Headers>>,
    /// Whether it is sent again to the second origin.
    asks_second: Cell<bool>,
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

    /// Pauses a response that means that the connection has ended, a 304 to a request without a condition, or a
    /// response about an object that the second origin may have. Sends the request again in a later turn, because
    /// Envoy's router is still at work for the first request here.
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
        // NB: behind a pair the hop still decides, and it asks the second origin once.
        let may_ask_second = !request.has(ATTEMPT_HEADER) && !request.has(MISSING_HEADER);
        let is_head = request.is(":method", "HEAD");
        let is_missing = || field(MISSING_HEADER).is_some_and(|mark| lacks_object(&mark, is_head));
        self.asks_second.set(may_ask_second && is_missing());
        if !self.asks_second.get() && !is_useless && !has_ended() {
            return HeadersStatus::Continue;
        }
        filter.scheduler().commit();
        HeadersStatus::StopAllIterationAndWatermark
    }

    /// Sends the request again: to the second origin, or with a unique mark to the same one. The hop opens a separate
    /// connection for each mark, because an idle connection might be closed as well.
    pub fn ask_again(&self, filter: Filter) {
        static MARKS: AtomicU64 = AtomicU64::new(0);
        if let Some(headers) = self.repeatable.take() {
            give_back(filter, &headers);
        }
        let (name, mark) = match self.asks_second.get() {
            true => (MISSING_HEADER, "1".to_owned()),
            false => {
                let mark = MARKS.fetch_add(1, Ordering::Relaxed);
                (AGAIN_HEADER, mark.to_string())
            }
        };
        filter.set_header(HeaderMapType::Request, name, mark.as_bytes());
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
