// SPDX-License-Identifier: Apache-2.0
//! A reply that the filter itself makes. Envoy calls no hook of the filter for it. Therefore the role's hooks are
//! called here, in the same way as in Envoy's Wasm host.

use std::io::Write as _;

use sluice_host::header_map::HeaderMap;
use sluice_host::headers::Headers;

use crate::abi::Filter;

const STATUS: &str = ":status";
const CONTENT_LENGTH: &str = "content-length";
const CONTENT_TYPE: &str = "content-type";
/// Envoy's media type for a body without one.
const TEXT: &[u8] = b"text/plain";

/// A reply that is sent to the client, or to Envoy's cache filter.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    /// The headers that the role has serialized.
    given: Headers,
    /// All of the headers, after the role has read or changed them.
    seen: Option<HeaderMap>,
    /// The body. It is not sent in a reply to HEAD.
    pub body: Vec<u8>,
    details: &'static str,
}

impl Reply {
    /// A reply; `details` is for the access log, the headers are in the form that the roles serialize.
    pub fn new(status: u16, details: &'static str, headers: &[u8], body: &[u8]) -> Self {
        Self {
            status,
            given: Headers::new(headers.to_vec()),
            seen: None,
            body: body.to_vec(),
            details,
        }
    }

    /// The headers, with `:status` and with the headers that Envoy adds to a local reply.
    pub fn headers(&mut self) -> &mut HeaderMap {
        let (status, given, body) = (self.status, &self.given, &self.body);
        self.seen.get_or_insert_with(|| {
            let mut headers = HeaderMap::decode(given.bytes());
            headers.set(STATUS, status.to_string());
            if body.is_empty() {
                headers.remove(CONTENT_LENGTH);
                headers.remove(CONTENT_TYPE);
            } else {
                headers.set(CONTENT_LENGTH, body.len().to_string());
                if !headers.has(CONTENT_TYPE) {
                    headers.add(CONTENT_TYPE, "text/plain");
                }
            }
            headers
        })
    }

    fn status(&self) -> u16 {
        let seen = self.seen.as_ref();
        seen.map_or(self.status, HeaderMap::status)
    }

    /// Whether it is an object, which is sent to the client without changes by Envoy.
    pub fn is_object(&self) -> bool {
        !self.body.is_empty() && (200..300).contains(&self.status())
    }

    /// Sends the headers. The reply has no body if it `ends` with them.
    pub fn begin(&self, filter: Filter, ends: bool) {
        match &self.seen {
            Some(headers) => {
                let headers = headers.iter();
                let headers = headers.map(|(name, value)| (name.as_bytes(), value));
                filter.send_response_headers(headers, ends);
            }
            None => self.begin_as_given(filter, ends),
        }
    }

    /// Sends the headers of the role unchanged, and the headers that Envoy would add.
    fn begin_as_given(&self, filter: Filter, ends: bool) {
        let (mut status, mut length) = ([0; 8], [0; 20]);
        let typed = self.given.has(CONTENT_TYPE);
        let own = [
            (STATUS.as_bytes(), digits(self.status.into(), &mut status)),
            (
                CONTENT_LENGTH.as_bytes(),
                digits(self.body.len(), &mut length),
            ),
            (CONTENT_TYPE.as_bytes(), TEXT),
        ];
        let own = own.into_iter().take(if typed { 2 } else { 3 });
        let given = self.given.fields();
        let given = given.filter(|(name, _)| *name != CONTENT_LENGTH.as_bytes());
        filter.send_response_headers(own.chain(given), ends);
    }

    /// Sends it as a local reply of Envoy's.
    pub fn send_by_envoy(&self, filter: Filter) {
        let given;
        let headers = match &self.seen {
            Some(headers) => headers,
            None => {
                given = HeaderMap::decode(self.given.bytes());
                &given
            }
        };
        let headers = headers.iter();
        let headers = headers.filter(|(name, _)| *name != STATUS && *name != CONTENT_LENGTH);
        let headers = headers.map(|(name, value)| (name.as_bytes(), value));
        filter.send_response(self.status(), headers, &self.body, self.details);
    }
}

/// A number in decimal digits, written into `room`.
fn digits(number: usize, room: &mut [u8]) -> &[u8] {
    let size = room.len();
    let mut rest = &mut *room;
    // It has room for every number.
    let _ = write!(rest, "{number}");
    let left = rest.len();
    room.get(..size - left).unwrap_or_default()
}
