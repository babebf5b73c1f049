// SPDX-License-Identifier: Apache-2.0
//! Responses that replace an error of a site, such as that of a missing object.

use sluice_core::coalescing::SMALL_BYTES;
use sluice_core::http::caching::cache_name::CacheName;
use sluice_core::http::caching::cache_status::{CacheStatus, Forward};
use sluice_core::policy::Policy;
use sluice_core::website::cors::CORS_PREFIX;
use sluice_core::website::{MissingObjectVisit, Substitute};
use sluice_core::workers::{Millis, StreamId};

use super::CACHE_STATUS;
use super::delivery::answer_with;
use crate::request::EdgeRequest;
use crate::request::stand_in::StandIn;
use sluice_host::headers::{Headers, serialize};
use sluice_host::{self as host, Host, Map};

/// Envoy's details of a response with a document.
const DETAILS: &str = "sluice_substitute";
/// The status that reports to a call that the requested variant is too large for it.
pub const TOO_LARGE: u16 = 507;
/// Fields of an error's response that describe its body and its way through caches.
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

/// Fields that an error document keeps.
const OF_AN_ERROR_DOCUMENT: [&str; 3] = ["content-encoding", "content-language", "content-type"];

/// Fields of a document's response that concern its way to the filter.
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

/// An error of the origin.
#[derive(Clone, Copy, Debug)]
pub struct FailedResponse {
    /// The bucket's status.
    pub status: u16,
    /// How long the object is known to be missing.
    pub known_for: Millis,
    /// Whether the client cannot get the origin's response: another request has received it, or the store has replaced
    /// it by a response that must not be served.
    pub is_dropped: bool,
}

impl FailedResponse {
    /// An error that the client cannot get.
    pub const fn dropped(status: u16) -> Self {
        Self {
            status,
            known_for: 0,
            is_dropped: true,
        }
    }
}

/// An error of the origin that is held for its substitute.
#[derive(Clone, Copy, Debug)]
pub struct HeldResponse {
    /// The request that it answers.
    pub stream: StreamId,
    /// The substitute that is being fetched.
    pub substitute: Substitute,
    /// The error.
    pub response: FailedResponse,
}

/// Turns the document's response into that of the missing object.
pub fn finish(host: &dyn Host, stand_in: StandIn, policy: &Policy) -> host::Result<()> {
    let told = said_of(&host.headers(Map::Response)?, stand_in.substitute);
    host.set_header(Map::Response, CACHE_STATUS, &told)?;
    if policy.website.varies_by_accept() {
        host.add_header(Map::Response, "vary", "Accept")?;
    }
    if stand_in.substitute == Substitute::Error {
        let kept = |name: &&str| OF_AN_ERROR_DOCUMENT.contains(name);
        for name in OF_THE_ERROR.into_iter().filter(|name| !kept(name)) {
            host.remove_header(Map::Response, name)?;
        }
        let missing = stand_in.missing;
        let missing = policy
            .website
            .substitute_status(stand_in.substitute, missing);
        host.set_header(Map::Response, ":status", missing.to_string())?;
    }
    Ok(())
}

/// A document that the filter has fetched by a call.
#[derive(Debug)]
pub struct Document {
    pub status: u16,
    pub headers: Headers,
    pub body: Vec<u8>,
}

impl Document {
    /// The answer to a call, with a body of `size` bytes, whatever its status. `None` if it is incomplete or too large.
    pub fn received(host: &dyn Host, size: usize) -> Option<Self> {
        let headers = host.headers(Map::CallResponse).ok()?;
        let status = headers.status()?;
        let bytes = u64::try_from(size).ok()?;
        let whole = headers
            .content_length()
            .is_none_or(|length| length == bytes);
        let fits = bytes <= SMALL_BYTES;
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

    /// Whether the document can be that substitute. An empty listing is that of a directory that does not exist. The
    /// failure of a listing is not hidden behind the missing index document.
    pub fn serves_as(&self, substitute: Substitute) -> bool {
        match substitute {
            Substitute::Directory => matches!(self.status, 200 | 204),
            Substitute::ListedDirectory => self.status == 200 && !self.body.is_empty(),
            Substitute::Listing if self.status == 200 => !self.body.is_empty(),
            Substitute::Listing => self.status >= 500 && self.status != TOO_LARGE,
            Substitute::Fallback | Substitute::Error => self.status == 200,
        }
    }

    /// Whether it can be an answer to a client.
    pub fn is_whole_answer(&self) -> bool {
        // Envoy would add a media type to an answer without one.
        self.status == 200 && self.headers.has("content-type")
    }

    /// Answers the effective context's request with the document, which replaces a held response. The CORS headers
    /// are those of the held response.
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

    /// Answers the effective context's request with the error document, in the place of a response that the client
    /// cannot get. `name` is the name of the cache.
    pub fn take_place_of_failure(
        &self,
        host: &dyn Host,
        name: &CacheName,
        stream: &EdgeRequest,
        status: u16,
    ) -> host::Result<()> {
        let told = CacheStatus::forwarded(Forward::Miss).forward_status(status);
        let told = told.detail(Substitute::Error.name()).member_of(name);
        let own = self.headers.iter();
        let own = own.filter(|(name, _)| is_of_the_document(Substitute::Error, name));
        let headers = serialize(own.chain([(CACHE_STATUS, told.as_bytes()), NO_STORE]));
        let website = &stream.policy.policy.website;
        let status = website.substitute_status(Substitute::Error, status);
        host.respond_with(status, DETAILS, &headers, &self.body)
    }

    /// Whether the document has a media type.
    pub fn is_typed(&self) -> bool {
        self.headers.has("content-type")
    }

    /// Answers the effective context's request with the document, which replaces the held response of a missing
    /// object.
    pub fn take_place(
        &self,
        host: &dyn Host,
        stream: &EdgeRequest,
        held: HeldResponse,
    ) -> host::Result<()> {
        let missing = host.headers(Map::Response)?;
        let told = said_of(&missing, held.substitute);
        let told = (CACHE_STATUS, told.as_slice());
        let location = stream.visit.as_ref().and_then(MissingObjectVisit::location);
        let location = ("location", location.unwrap_or("/").as_bytes());
        let redirects = matches!(
            held.substitute,
            Substitute::Directory | Substitute::ListedDirectory
        );
        let location = redirects.then_some(location);
        let own = self.headers.iter();
        let own = own.filter(|(name, _)| is_of_the_document(held.substitute, name));
        let kept = missing.iter().filter(|(name, _)| {
            let has_own = is_of_the_document(held.substitute, name) && self.headers.has(name);
            is_of_the_missing(name) && !has_own
        });
        let no_store = (held.response.status >= 500).then_some(NO_STORE);
        let fields = kept.chain(own).chain(location).chain([told]);
        let headers = Headers::new(serialize(fields.chain(no_store)));
        let website = &stream.policy.policy.website;
        let status = website.substitute_status(held.substitute, held.response.status);
        match held.substitute {
            Substitute::Directory | Substitute::ListedDirectory => {
                host.respond_with(status, DETAILS, headers.bytes(), b"")
            }
            Substitute::Listing if self.status != 200 => {
                host.respond_with(self.status, DETAILS, headers.bytes(), &self.body)
            }
            Substitute::Listing | Substitute::Fallback => {
                let demand = stream.demand.as_ref();
                answer_with(host, demand, stream.head, status, &headers, &self.body)
            }
            Substitute::Error => host.respond_with(status, DETAILS, headers.bytes(), &self.body),
        }
    }
}

/// Field of a document in the place of a failure, which may end at any moment.
const NO_STORE: (&str, &[u8]) = ("cache-control", b"no-store");

/// Whether the response that replaces a missing object's takes this header from the document.
fn is_of_the_document(substitute: Substitute, name: &str) -> bool {
    match substitute {
        Substitute::Directory | Substitute::ListedDirectory => false,
        Substitute::Listing | Substitute::Fallback => !is_of_the_call(name),
        Substitute::Error => OF_AN_ERROR_DOCUMENT.contains(&name),
    }
}

/// Whether the response that replaces a missing object's keeps this header of it.
fn is_of_the_missing(name: &str) -> bool {
    const MADE_ANEW: [&str; 4] = [
        CACHE_STATUS,
        "connection",
        "content-length",
        "transfer-encoding",
    ];
    !name.starts_with(':') && !OF_THE_ERROR.contains(&name) && !MADE_ANEW.contains(&name)
}

fn is_of_the_call(name: &str) -> bool {
    let internal = [":", "x-envoy-", "x-sluice-", CORS_PREFIX];
    OF_THE_CALL.contains(&name) || internal.iter().any(|start| name.starts_with(start))
}

/// The `Cache-Status` of a response with these headers, with the kind of its substitute.
fn said_of(headers: &Headers, substitute: Substitute) -> Vec<u8> {
    let told = headers.joined(CACHE_STATUS);
    let told = told.as_ref().map_or(&[][..], |told| told.value().bytes());
    [told, b"; detail=", substitute.name().as_bytes()].concat()
}
