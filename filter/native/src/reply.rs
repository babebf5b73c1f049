// SPDX-License-Identifier: Apache-2.0
//! A reply that the filter makes itself. Envoy calls no hook of the filter for it, so that the role's are called here,
//! as Envoy's Wasm host does for a module's.

use sluice_roles::host::header_map::HeaderMap;

use crate::stream::Stream;

/// A reply on its way to the client, or to Envoy's cache filter.
#[derive(Clone, Debug)]
pub struct Reply {
    /// With `:status`, and with what Envoy adds to a reply of its own.
    pub headers: HeaderMap,
    /// The body; a HEAD gets none of it.
    pub body: Vec<u8>,
    details: String,
}

impl Reply {
    /// A reply; `details` is for the access log, the headers are as the roles serialise them.
    pub fn new(status: u16, details: &str, headers: &[u8], body: &[u8]) -> Self {
        let mut headers = HeaderMap::decode(headers);
        headers.set(":status", &status.to_string());
        if body.is_empty() {
            headers.remove("content-length");
            headers.remove("content-type");
        } else {
            headers.set("content-length", &body.len().to_string());
            if !headers.has("content-type") {
                headers.add("content-type", "text/plain");
            }
        }
        Self {
            headers,
            body: body.to_vec(),
            details: details.to_owned(),
        }
    }

    /// Whether its client gets nothing but headers.
    pub fn is_bodiless(&self, stream: &Stream) -> bool {
        self.body.is_empty() || stream.head.get()
    }

    /// Sends it to a client that has got nothing yet. An object goes as it is, without what Envoy would make of it.
    pub fn send(&self, stream: &Stream) {
        let is_object = !self.body.is_empty() && (200..300).contains(&self.headers.status());
        if !is_object {
            return self.send_instead(stream);
        }
        stream.replied.set(true);
        let ends = self.is_bodiless(stream);
        stream
            .filter
            .send_response_headers(self.headers.iter(), ends);
        if !ends && !stream.ended.get() {
            stream.filter.end_response(&self.body);
        }
    }

    /// Sends it as Envoy's local reply, also in the place of a response that has begun to pass this filter.
    pub fn send_instead(&self, stream: &Stream) {
        stream.replied.set(true);
        let headers = self.headers.iter();
        let headers = headers.filter(|(name, _)| *name != ":status" && *name != "content-length");
        let status = self.headers.status();
        stream
            .filter
            .send_response(status, headers, &self.body, &self.details);
    }
}
