// SPDX-License-Identifier: Apache-2.0
//! A filter between the hop and an origin that refuses a response 101 (Switching Protocols) to a request without
//! `Upgrade`, which no origin may send (RFC 9110, 15.2.2).
//!
//! Envoy takes such a response for a final one, and sends the next request on a connection that has another protocol by
//! then. A response that the filter makes ends the connection.

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

    /// Answers 502 in the place of an origin that switches unasked.
    pub fn observe_response(&self, filter: Filter) -> HeadersStatus {
        let status = || filter.header(HeaderMapType::Response, ":status");
        if self.is_asked.get() || status().as_deref() != Some(b"101") {
            return HeadersStatus::Continue;
        }
        filter.send_response(502, std::iter::empty(), b"", "unasked_switch");
        HeadersStatus::StopIteration
    }
}
