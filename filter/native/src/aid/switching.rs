// SPDX-License-Identifier: Apache-2.0
//! A filter between the hop and an origin that refuses a response 101 (Switching Protocols) to a request without
//! `Upgrade`. An origin must not send such a response (RFC 9110, 15.2.2).
//!
//! Envoy would treat it as a final response, and would send the next request on a connection that uses another
//! protocol by then. A response of this filter ends the connection.

use std::cell::Cell;

use crate::abi::{Filter, HeaderMapType, HeadersStatus};

/// The filter on one stream.
#[derive(Debug, Default)]
pub struct Switching {
    /// Whether the request asks for another protocol.
    is_asked: Cell<bool>,
}

impl Switching {
    /// Notes whether the request asks for another protocol.
    pub fn observe_request(&self, filter: Filter) -> HeadersStatus {
        let upgrade = filter.header(HeaderMapType::Request, "upgrade");
        self.is_asked.set(upgrade.is_some());
        HeadersStatus::Continue
    }

    /// Answers 502 in place of an origin that switches protocols without a request for it.
    pub fn observe_response(&self, filter: Filter) -> HeadersStatus {
        let status = || filter.header(HeaderMapType::Response, ":status");
        if self.is_asked.get() || status().as_deref() != Some(b"101") {
            return HeadersStatus::Continue;
        }
        filter.send_response(502, std::iter::empty(), b"", "unasked_switch");
        HeadersStatus::StopIteration
    }
}
