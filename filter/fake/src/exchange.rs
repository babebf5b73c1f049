// SPDX-License-Identifier: Apache-2.0
//! A request on its path through the chain: EDGE, the cache filter, ORIGIN.

use std::fmt;

use sluice_core::slices::asked::AskedSlice;
use sluice_core::workers::Millis;
use sluice_roles::callbacks::StreamContext;

use crate::HeaderMap;
use crate::cache::Stored;
use crate::records::{Client, FetchId};
use crate::slicing::Slicing;

/// Host of all requests.
pub(crate) const HOST: &str = "edge.test";

/// Side of a request that a context is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Edge,
    Origin,
}

/// Context of one of the roles. `stream` is empty while its callback runs.
pub(crate) struct Context {
    pub number: u32,
    pub stream: Option<Box<dyn StreamContext>>,
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "context {}", self.number)
    }
}

/// Request of the cache filter to the origin.
#[derive(Debug)]
pub(crate) struct Upstream {
    /// Context of ORIGIN; `None` when it is over.
    pub context: Option<Context>,
    pub fetch: Option<FetchId>,
    /// Whether the response passes around the cache.
    pub around: bool,
    /// Whether the method is GET. The cache stores responses to GET only.
    pub get: bool,
    /// Key of the cache.
    pub key: String,
    /// Stored response that the cache revalidates.
    pub validates: Option<Stored>,
    /// Body of the origin's response, and the number of bytes sent so far.
    pub body: Vec<u8>,
    pub sent: usize,
    /// Whether the origin sends headers only.
    pub head: bool,
    /// Response that the cache stores, as received so far.
    pub filling: Option<Stored>,
}

/// Response that EDGE holds at its headers.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Whether the response has ended with its headers.
    pub ended: bool,
    /// Whether the last part of the body has arrived; `None` if no part has arrived.
    pub body: Option<bool>,
}

/// Path of a request.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// Context of EDGE; `None` when it is over.
    pub edge: Option<Context>,
    pub upstream: Option<Upstream>,
    pub head: bool,
    /// Call that the request belongs to: its number, the context that waits for it, and the time when Envoy ends it.
    pub call: Option<(u32, u32, Millis)>,
    /// Request that EDGE has sent back to itself as this request.
    pub outer: Option<Client>,
    /// Response that the slicer puts together for the request.
    pub slicing: Option<Slicing>,
    /// Request of the slicer that the request belongs to, and the slice that it asks for.
    pub slice: Option<(Client, AskedSlice)>,
    /// Response that EDGE holds.
    pub held: Option<Held>,
    /// Whether the headers were sent to the client.
    pub responded: bool,
}

/// Returns a request's headers as a client sends them: the usual ones, and `more`, which may replace some of these.
pub(crate) fn request(method: &str, key: u64, more: &[(&str, &str)]) -> HeaderMap {
    let path = format!("/{key}");
    let lines = [
        (":method", method),
        (":scheme", "http"),
        (":authority", HOST),
        (":path", path.as_str()),
    ];
    let is_more = |name| more.iter().any(|(known, _)| *known == name);
    let lines = lines.into_iter().filter(|(name, _)| !is_more(*name));
    let lines: Vec<_> = lines.chain(more.iter().copied()).collect();
    HeaderMap::of(&lines)
}
