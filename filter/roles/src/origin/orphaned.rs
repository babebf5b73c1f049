// SPDX-License-Identifier: Apache-2.0
//! A request whose EDGE is in another VM, because the module was replaced while the request was on its way.
//!
//! ORIGIN cannot know the other VM's record of the request, so the response is for its client alone and is not
//! stored. Envoy's cache survives the loss of a client whose response it does not store.

use crate::worker::metrics::Metrics;
use sluice_core::key::qualifiers::is_for_headers;
use sluice_core::metrics::Metric;

use super::clean::{Asked, clean_response, note_bucket_error, remove_hidden, undo_connection};
use super::failure::{bound_lines, note_failure, say};
use super::request::{stored_key, written};
use crate::request::body::Body;
use crate::request::policy::NumberedPolicy;
use sluice_host::headers::Headers;
use sluice_host::{self as host, Host, Map};

/// A request to the origin, for its client alone.
#[derive(Debug)]
pub struct OrphanedRequest {
    policy: NumberedPolicy,
    path: String,
    head: bool,
    /// Whether the store sees the response.
    cacheable: bool,
    body: Body,
}

impl OrphanedRequest {
    /// Creates the record of a request with these headers, under the newest policy of this VM.
    pub fn new(
        metrics: &Metrics,
        policy: NumberedPolicy,
        headers: &Headers,
        cacheable: bool,
    ) -> Self {
        metrics.count_of(&policy, Metric::OriginFetches);
        metrics.count(Metric::OriginAdopted, 1);
        Self {
            policy,
            path: written(headers, ":path").to_owned(),
            head: is_for_headers(&stored_key(headers)) || headers.is(":method", "HEAD"),
            cacheable,
            body: Body::Kept,
        }
    }

    /// Turns the response's headers into the headers for a client, and keeps the response from the store.
    pub fn respond(
        &mut self,
        host: &dyn Host,
        metrics: &Metrics,
        end_of_stream: bool,
    ) -> host::Result<()> {
        let headers = bound_lines(host, host.headers(Map::Response)?)?;
        let failure = note_failure(host, metrics, &headers)?;
        undo_connection(host, &headers)?;
        let policy = &self.policy.policy;
        remove_hidden(host, policy, &headers)?;
        let status = headers.status().unwrap_or(502);
        let (status, _) = note_bucket_error(host, metrics, &self.policy, None, &headers, status)?;
        let asked = Asked {
            path: &self.path,
            head: self.head,
        };
        let body = clean_response(host, policy, asked, &headers, status, end_of_stream)?;
        self.body = say(host, failure, body, end_of_stream)?;
        if self.cacheable {
            return host.set_header(Map::Response, "cache-control", "no-store");
        }
        sluice_store::mark_around(host)
    }

    /// Handles a part of `size` bytes of the body that passes.
    pub fn pass(&mut self, host: &dyn Host, size: usize) -> host::Result<()> {
        self.body.pass(host, size)
    }
}
