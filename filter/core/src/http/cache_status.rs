// SPDX-License-Identifier: Apache-2.0
//! The edge's member of the `Cache-Status` response header (RFC 9211).

use std::fmt;

/// The name by which the edge calls itself in `Cache-Status`.
pub const CACHE_NAME: &str = "sluice";

/// Why a request went on to the origin (RFC 9211, 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// The cache was not to handle the request.
    Bypass,
    /// The method cannot be answered from a cache.
    Method,
    /// Nothing is stored for the URL.
    UriMiss,
    /// Something about the request other than its URL.
    Request,
    /// What is stored is stale.
    Stale,
}

impl Forward {
    const fn token(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::Request => "request",
            Self::Stale => "stale",
        }
    }
}

/// What became of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatus<'a> {
    forward: Option<Forward>,
    forward_status: Option<u16>,
    stored: bool,
    collapsed: bool,
    ttl: Option<i64>,
    detail: Option<&'a str>,
}

impl<'a> CacheStatus<'a> {
    /// It was answered without the origin.
    pub fn hit() -> Self {
        Self::default()
    }

    /// It went on to the origin, or waited for one that did.
    pub fn forwarded(forward: Forward) -> Self {
        Self {
            forward: Some(forward),
            ..Self::default()
        }
    }

    /// The status that the origin gave.
    #[must_use]
    pub fn forward_status(mut self, status: u16) -> Self {
        self.forward_status = Some(status);
        self
    }

    /// The response was stored.
    #[must_use]
    pub fn stored(mut self) -> Self {
        self.stored = true;
        self
    }

    /// It was collapsed with another request.
    #[must_use]
    pub fn collapsed(mut self) -> Self {
        self.collapsed = true;
        self
    }

    /// Seconds for which the response is fresh; negative once it is stale.
    #[must_use]
    pub fn ttl(mut self, seconds: i64) -> Self {
        self.ttl = Some(seconds);
        self
    }

    /// More about it, a token.
    #[must_use]
    pub fn detail(mut self, detail: &'a str) -> Self {
        self.detail = Some(detail);
        self
    }
}

impl fmt::Display for CacheStatus<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(CACHE_NAME)?;
        match self.forward {
            None => formatter.write_str("; hit")?,
            Some(forward) => write!(formatter, "; fwd={}", forward.token())?,
        }
        if let Some(status) = self.forward_status {
            write!(formatter, "; fwd-status={status}")?;
        }
        if self.stored {
            formatter.write_str("; stored")?;
        }
        if self.collapsed {
            formatter.write_str("; collapsed")?;
        }
        if let Some(ttl) = self.ttl {
            write!(formatter, "; ttl={ttl}")?;
        }
        match self.detail {
            Some(detail) => write!(formatter, "; detail={detail}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_read_as_in_the_rfc() {
        let miss = CacheStatus::forwarded(Forward::UriMiss).forward_status(200);
        let rows = [
            (CacheStatus::hit().ttl(376), "sluice; hit; ttl=376"),
            (
                miss.stored().ttl(60),
                "sluice; fwd=uri-miss; fwd-status=200; stored; ttl=60",
            ),
            (
                CacheStatus::forwarded(Forward::UriMiss).collapsed(),
                "sluice; fwd=uri-miss; collapsed",
            ),
            (
                CacheStatus::forwarded(Forward::Stale).ttl(-12),
                "sluice; fwd=stale; ttl=-12",
            ),
            (
                CacheStatus::forwarded(Forward::Bypass).detail("range"),
                "sluice; fwd=bypass; detail=range",
            ),
        ];
        for (status, text) in rows {
            assert_eq!(status.to_string(), text);
        }
    }
}
