// SPDX-License-Identifier: Apache-2.0
//! A response as a client has read it, or the reason for its absence.

use crate::PATIENCE;
use crate::http::body::{self, Stamp};
use crate::http::message::Headers;
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

/// Reason why a response is missing.
#[derive(Debug)]
pub enum Failure {
    /// No connection.
    Refused(io::Error),
    /// The server closed before it sent a head.
    NoResponse,
    /// The server closed or reset within a response; with the received part of the response.
    Truncated(Box<Response>, io::Error),
    /// Anything else on the socket.
    Broken(io::Error),
    /// No byte for [`PATIENCE`].
    Stuck,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => write!(f, "no connection: {error}"),
            Self::NoResponse => write!(f, "closed without a response"),
            Self::Truncated(response, error) => {
                write!(
                    f,
                    "{} cut after {} bytes of body: {error}",
                    response.status,
                    response.body.len()
                )
            }
            Self::Broken(error) => write!(f, "broken: {error}"),
            Self::Stuck => write!(f, "no response within {PATIENCE:?}"),
        }
    }
}

impl std::error::Error for Failure {}

/// A response, as far as it was read.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The fields.
    pub headers: Headers,
    /// The body, without its framing.
    pub body: Vec<u8>,
    /// Time from sending the request to the head.
    pub first_byte: Duration,
    /// Time at which the head was received.
    pub at: Instant,
}

impl Response {
    /// The stamp of a whole body for `path`.
    ///
    /// # Panics
    /// When the body is not that of `path`, or not whole.
    #[must_use]
    pub fn stamp(&self, path: &str) -> Stamp {
        body::check(path, &self.body).unwrap_or_else(|wrong| panic!("{wrong}; {self}"))
    }

    /// The field, or an empty string.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_default()
    }

    /// The fields in order, except the fields that differ in each response, or in each response of the origin.
    #[must_use]
    pub fn stored_fields(&self) -> Vec<(String, String)> {
        const OWN: [&str; 4] = ["age", "cache-status", "date", "x-origin-sequence"];
        let all = self.headers.0.iter();
        let stored = all.filter(|(name, _)| !OWN.contains(&name.as_str()));
        let mut fields: Vec<_> = stored.cloned().collect();
        fields.sort();
        fields
    }

    /// The member of `Cache-Status` that Sluice wrote.
    #[must_use]
    pub fn cache_status(&self) -> &str {
        let members = self
            .headers
            .all("cache-status")
            .flat_map(|field| field.split(','))
            .map(str::trim);
        members
            .into_iter()
            .find(|member| member.starts_with("sluice"))
            .unwrap_or_default()
    }

    /// Whether `Cache-Status` says that it was a hit.
    #[must_use]
    pub fn is_hit(&self) -> bool {
        self.cache_status()
            .split(';')
            .any(|part| part.trim() == "hit")
    }

    /// Whether `Cache-Status` says that it was served from a worker's memory.
    #[must_use]
    pub fn is_hot(&self) -> bool {
        self.cache_status().ends_with("; detail=hot")
    }

    /// Whether `Cache-Status` says that Sluice sent no request to the origin for it: a hit, or shared with a fill,
    /// which the v1 store continues to write for a moment after its response has ended.
    #[must_use]
    pub fn is_reused(&self) -> bool {
        self.is_hit()
            || self
                .cache_status()
                .split(';')
                .any(|part| part.trim() == "collapsed")
    }
}

impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {:?} body {:?}",
            self.status,
            self.headers.0,
            body::preview(&self.body)
        )
    }
}
