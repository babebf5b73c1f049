// SPDX-License-Identifier: Apache-2.0
//! A request on its way through the chain: EDGE, the cache filter, ORIGIN.

use std::fmt;

use sluice_core::workers::Millis;
use sluice_roles::callbacks::StreamContext;

use crate::HeaderMap;
use crate::cache::Stored;
use crate::records::{Client, FetchId};

/// The host of all requests.
pub(crate) const HOST: &str = "edge.test";

/// Which of a request's two contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Edge,
    Origin,
}

/// A context of one of the roles; it is elsewhere while its callback runs.
pub(crate) struct Context {
    pub number: u32,
    pub stream: Option<Box<dyn StreamContext>>,
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "context {}", self.number)
    }
}

/// The cache filter's request to the origin.
#[derive(Debug)]
pub(crate) struct Upstream {
    /// `None` when it is over.
    pub context: Option<Context>,
    pub fetch: Option<FetchId>,
    /// The response passes by the cache.
    pub around: bool,
    /// The cache stores answers to GET alone.
    pub get: bool,
    /// The cache's key.
    pub key: String,
    /// The stored response that the cache asks about.
    pub validates: Option<Stored>,
    /// The origin's body, and how much of it has come.
    pub body: Vec<u8>,
    pub sent: usize,
    /// Whether the origin sends headers alone.
    pub head: bool,
    /// The response that the cache takes, as far as it has come.
    pub filling: Option<Stored>,
}

/// A response that EDGE holds at its headers.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// It has ended with its headers.
    pub ended: bool,
    /// Whether a part of its body has come, and the last.
    pub body: Option<bool>,
}

/// A request's way.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// `None` when it is over.
    pub edge: Option<Context>,
    pub upstream: Option<Upstream>,
    pub head: bool,
    /// The call whose request it is: its number, the context that waits for it, and when Envoy gives it up.
    pub call: Option<(u32, u32, Millis)>,
    /// The request that EDGE has sent back to itself, which this one is.
    pub outer: Option<Client>,
    /// The response that EDGE holds.
    pub held: Option<Held>,
    /// The headers have gone on to the client.
    pub responded: bool,
}

/// A request's headers, as a client sends them: these, and `more`, of which some may take the place of these.
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
