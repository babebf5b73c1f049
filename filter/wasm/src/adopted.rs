// SPDX-License-Identifier: Apache-2.0
//! ORIGIN's part in a request whose EDGE is in another VM: the module was replaced while it was on its way.
//!
//! What that VM knows of the request is not to be had, so its response is for its client alone and goes into no store.
//! Envoy's cache survives the loss of a client whose response it does not store.

use sluice_core::key::qualifiers::is_for_headers;
use sluice_core::metrics::Metric;

use crate::clean::{Asked, Body, clean_response};
use crate::headers::Headers;
use crate::host::{self, Map};
use crate::origin::{cache_key, note_failure, remove_hidden};
use crate::stream::NumberedPolicy;
use crate::worker;

/// A request that goes on to the origin, for its client alone.
#[derive(Debug)]
pub struct Adopted {
    policy: NumberedPolicy,
    path: String,
    head: bool,
    /// Whether the store sees the response.
    cacheable: bool,
    body: Body,
}

impl Adopted {
    /// The request with these headers, under the newest policy of this VM.
    pub fn new(policy: NumberedPolicy, headers: &Headers, cacheable: bool) -> Self {
        worker::with(|worker| {
            worker.metrics.count(Metric::OriginFetches, 1);
            worker.metrics.count(Metric::OriginAdopted, 1);
        });
        Self {
            policy,
            path: headers.text(":path").unwrap_or_default().to_owned(),
            head: is_for_headers(&cache_key(headers)) || headers.text(":method") == Some("HEAD"),
            cacheable,
            body: Body::Kept,
        }
    }

    /// Makes the response's headers what a client may see, and keeps it from the store.
    pub fn respond(&mut self, end_of_stream: bool) -> host::Result<()> {
        let headers = Headers::new(host::header_pairs(Map::Response)?);
        note_failure(&headers)?;
        let policy = &self.policy.policy;
        remove_hidden(policy, &headers)?;
        let status = headers.text(":status");
        let status = status.and_then(|status| status.parse().ok()).unwrap_or(502);
        let asked = Asked {
            path: &self.path,
            head: self.head,
        };
        self.body = clean_response(policy, asked, &headers, status, end_of_stream)?;
        if self.cacheable {
            host::set_header(Map::Response, "cache-control", "no-store")?;
        }
        Ok(())
    }

    /// Handles a part of `size` bytes of the body that passes.
    pub fn pass(&mut self, size: usize) -> host::Result<usize> {
        self.body.pass(size)
    }
}
