// SPDX-License-Identifier: Apache-2.0
//! The requests of clients.

use super::adornment::Adornment;
use super::pass::Pass;
use std::ops::Range;

/// The host in the clients' requests.
pub const SITE: &str = "http://edge.test";

/// The requested part of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// `bytes=FIRST-LAST`
    Between(usize, usize),
    /// `bytes=FIRST-`
    From(usize),
    /// `bytes=-LENGTH`
    Last(usize),
}

impl Part {
    /// The value of `Range`.
    #[must_use]
    pub fn field(&self) -> String {
        match self {
            Self::Between(first, last) => format!("bytes={first}-{last}"),
            Self::From(first) => format!("bytes={first}-"),
            Self::Last(length) => format!("bytes=-{length}"),
        }
    }

    /// The range in a body of this size; `None` if it is empty.
    #[must_use]
    pub fn of(&self, size: usize) -> Option<Range<usize>> {
        let range = match *self {
            Self::Between(first, last) => first..size.min(last + 1),
            Self::From(first) => first..size,
            Self::Last(length) => size.saturating_sub(length)..size,
        };
        (!range.is_empty()).then_some(range)
    }
}

/// The name of the request header that an origin may find too large.
pub const PADDING: &str = "x-padding";
/// The sizes of padding with which a request may still lead for other requests, and with which it may not
/// (`limits.lead_header_bytes`).
pub const PADDINGS: [usize; 2] = [2_000, 6_000];

/// One request.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Number of the object.
    pub object: usize,
    /// Value of the header that the object varies by.
    pub variant: &'static str,
    /// Whether it is a HEAD.
    pub head: bool,
    /// The requested part.
    pub part: Option<Part>,
    /// The client's own copy: `If-None-Match`, or `If-Modified-Since` where the object has no tag.
    pub validator: Option<String>,
    /// How many bytes [`PADDING`] has, if it is sent.
    pub padding: Option<usize>,
    /// How it is signed.
    pub pass: Pass,
    /// Headers without meaning for the origin.
    pub adornment: Option<Adornment>,
}
