// SPDX-License-Identifier: Apache-2.0
//! Responses that take the place of an object that a site does not have.

use sluice_core::policy::Policy;
use sluice_core::website::cors::CORS_PREFIX;
use sluice_core::website::{Substitute, Visit};
use sluice_core::workers::{Millis, StreamId};

use super::CACHE_STATUS;
use super::delivery::{answer_with, deliver};
use crate::host::headers::{Headers, serialize};
use crate::host::{self, Host, Map};
use crate::request::EdgeRequest;
use crate::request::body::Body;
use crate::request::stand_in::StandIn;

/// Larger documents take no object's place.
pub const MOST_BYTES: u64 = 1 << 20;
/// Tells a call that the variant which it asks for is larger.
pub const TOO_LARGE: u16 = 507;
/// What describes the body of an error, and its way through caches.
const OF_THE_ERROR: [&str; 10] = [
    "accept-ranges",
    "age",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "etag",
    "expires",
    "last-modified",
];

/// What a document's response says of its own way to the filter.
const OF_THE_CALL: [&str; 8] = [
    "cache-status",
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "server",
    "transfer-encoding",
    "vary",
];

/// A response that is held.
#[derive(Clone, Copy, Debug)]
pub struct HeldResponse {
    /// Whose.
    pub stream: StreamId,
    /// What is looked for.
    pub substitute: Substitute,
    /// The bucket's status.
    pub status: u16,
    /// For how long that is known.
    pub known_for: Millis,
}

/// Makes of the document's response that of the missing object.
pub fn finish(host: &dyn Host, stand_in: StandIn, policy: &Policy) -> host::Result<()> {
    note(host, stand_in.substitute)?;
    if policy.website.varies_by_accept() {
        host.add_header(Map::Response, "vary", "Accept")?;
    }
    if stand_in.substitute == Substitute::Error {
        let kept = |name: &str| {
            matches!(
                name,
                "content-type" | "content-language" | "content-encoding"
            )
        };
        for name in OF_THE_ERROR.into_iter().filter(|name| !kept(name)) {
            host.remove_header(Map::Response, name)?;
        }
        let missing = stand_in.substitute.status(stand_in.missing);
        host.set_header(Map::Response, ":status", missing.to_string())?;
    }
    Ok(())
}

/// A document that the filter has asked for.
#[derive(Debug)]
pub struct Document {
    status: u16,
    headers: Headers,
    body: Vec<u8>,
}

impl Document {
    /// The answer of a call, with a body of that size; `None` if there is no such document.
    pub fn answered(host: &dyn Host, size: usize) -> Option<Self> {
        Self::received(host, size).filter(|document| matches!(document.status, 200 | 204))
    }

    /// The answer of a call, whatever its status; `None` if it is not whole, or too large.
    pub fn received(host: &dyn Host, size: usize) -> Option<Self> {
        let headers = host.headers(Map::CallResponse).ok()?;
        let status = headers.status()?;
        let bytes = u64::try_from(size).ok()?;
        let whole = headers
            .content_length()
            .is_none_or(|length| length == bytes);
        let fits = bytes <= MOST_BYTES;
        if !whole || !fits || status == TOO_LARGE {
            return None;
        }
        let body = host.call_body(size).ok()?;
        Some(Self {
            status,
            headers,
            body,
        })
    }

    /// Whether it can be that substitute.
    pub fn serves_as(&self, substitute: Substitute) -> bool {
        substitute == Substitute::Directory || self.status == 200
    }

    /// Whether it can be the answer to a client.
    pub fn is_whole_answer(&self) -> bool {
        // Envoy would give an answer without a media type one of its own.
        self.status == 200 && self.headers.has("content-type")
    }

    /// Answers the effective context's request with it, in the place of a response that is held. Who may read it is
    /// what the held response says.
    pub fn answer(&self, host: &dyn Host, stream: &EdgeRequest) -> host::Result<()> {
        let held = host.headers(Map::Response)?;
        let of_the_way = ["cache-status", "vary"];
        let fetched = self.headers.iter();
        let fetched =
            fetched.filter(|(name, _)| !is_of_the_call(name) || of_the_way.contains(name));
        let shared = stream.policy.policy.website.cors.is_some();
        let marks = held.iter();
        let marks = marks.filter(|(name, _)| shared && name.starts_with(CORS_PREFIX));
        let vary = shared.then_some(("vary", b"Origin".as_slice()));
        let headers = Headers::new(serialize(fetched.chain(marks).chain(vary)));
        if self.status != 200 {
            return host.respond_with(self.status, "sluice_variant", headers.bytes(), &self.body);
        }
        let demand = stream.demand.as_ref();
        answer_with(host, demand, stream.head, 200, &headers, &self.body)
    }

    /// Whether it says its media type.
    pub fn is_typed(&self) -> bool {
        self.headers.has("content-type")
    }

    /// Turns the effective context's held response into the substitute.
    pub fn take_place(
        &self,
        host: &dyn Host,
        stream: &EdgeRequest,
        held: HeldResponse,
    ) -> host::Result<()> {
        note(host, held.substitute)?;
        for name in OF_THE_ERROR {
            host.remove_header(Map::Response, name)?;
        }
        let status = held.substitute.status(held.status);
        host.set_header(Map::Response, ":status", status.to_string())?;
        match held.substitute {
            Substitute::Directory => {
                let location = stream.visit.as_ref().and_then(Visit::location);
                host.set_header(Map::Response, "location", location.unwrap_or("/"))?;
                self.replace_body(host, stream, Vec::new())
            }
            Substitute::Fallback => {
                self.copy_headers(host, |name| !is_of_the_call(name))?;
                self.replace_body(host, stream, self.body.clone())?;
                deliver(host, stream, status, false, None).map(|_| ())
            }
            Substitute::Error => {
                self.copy_headers(host, |name| {
                    matches!(name, "content-type" | "content-language")
                })?;
                self.replace_body(host, stream, self.body.clone())
            }
        }
    }

    fn copy_headers(&self, host: &dyn Host, goes: impl Fn(&str) -> bool) -> host::Result<()> {
        for (name, value) in self.headers.iter().filter(|(name, _)| goes(name)) {
            host.set_header(Map::Response, name, value)?;
        }
        Ok(())
    }

    fn replace_body(
        &self,
        host: &dyn Host,
        stream: &EdgeRequest,
        body: Vec<u8>,
    ) -> host::Result<()> {
        host.set_header(Map::Response, "content-length", body.len().to_string())?;
        stream.body.replacement.replace(Body::Replaced(body));
        Ok(())
    }
}

fn is_of_the_call(name: &str) -> bool {
    let internal = [":", "x-envoy-", "x-sluice-", CORS_PREFIX];
    OF_THE_CALL.contains(&name) || internal.iter().any(|start| name.starts_with(start))
}

/// Says in `Cache-Status` what has taken the place.
fn note(host: &dyn Host, substitute: Substitute) -> host::Result<()> {
    let told = host
        .header(Map::Response, CACHE_STATUS)?
        .unwrap_or_default();
    let detail = format!("; detail={}", substitute.name());
    host.set_header(
        Map::Response,
        CACHE_STATUS,
        [told, detail.into_bytes()].concat(),
    )
}
