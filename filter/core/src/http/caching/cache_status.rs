// SPDX-License-Identifier: Apache-2.0
//! The edge's member of the `Cache-Status` response header (RFC 9211).

use std::fmt::{self, Write};

use crate::http::caching::cache_name::CacheName;

/// Reason why a request was sent to the origin (RFC 9211, 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// The cache was configured not to handle the request.
    Bypass,
    /// The method cannot be answered from a cache.
    Method,
    /// The store has no response for the URL.
    UriMiss,
    /// The store has no response that the request selects, neither for the URL nor among its variants.
    Miss,
    /// A part of the request other than its URL.
    Request,
    /// The stored response is stale.
    Stale,
}

impl Forward {
    const fn token(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::Miss => "miss",
            Self::Request => "request",
            Self::Stale => "stale",
        }
    }
}

/// Result of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatus<'a> {
    forward: Option<Forward>,
    forward_status: Option<u16>,
    stored: bool,
    collapsed: bool,
    ttl: Option<i64>,
    key: Option<&'a str>,
    detail: Option<&'a str>,
}

impl<'a> CacheStatus<'a> {
    /// Returns the status of a request that was answered without the origin.
    pub fn hit() -> Self {
        Self::default()
    }

    /// Returns the status of a request that was sent to the origin, or that waited for such a request.
    pub fn forwarded(forward: Forward) -> Self {
        Self {
            forward: Some(forward),
            ..Self::default()
        }
    }

    /// Sets the status of the origin's response.
    #[must_use]
    pub fn forward_status(mut self, status: u16) -> Self {
        self.forward_status = Some(status);
        self
    }

    /// Records that the response was stored.
    #[must_use]
    pub fn stored(mut self) -> Self {
        self.stored = true;
        self
    }

    /// Records that the request was collapsed with another request.
    #[must_use]
    pub fn collapsed(mut self) -> Self {
        self.collapsed = true;
        self
    }

    /// Sets the seconds for which the response stays fresh; a negative number says how long it has been stale.
    #[must_use]
    pub fn ttl(mut self, seconds: i64) -> Self {
        self.ttl = Some(seconds);
        self
    }

    /// Records that the response is a variant of its URL. The cache may have other variants, so `uri-miss` becomes
    /// `miss`.
    #[must_use]
    pub fn of_variant(mut self) -> Self {
        if self.forward == Some(Forward::UriMiss) {
            self.forward = Some(Forward::Miss);
        }
        self
    }

    /// Sets the key of the response in the cache.
    #[must_use]
    pub fn key(mut self, key: &'a str) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets the detail, a token.
    #[must_use]
    pub fn detail(mut self, detail: &'a str) -> Self {
        self.detail = Some(detail);
        self
    }

    /// Returns the member of the field for the cache `name`.
    pub fn member_of(&self, name: &CacheName) -> String {
        let mut member = name.to_string();
        // Writing to a string cannot fail.
        let _ = self.write(&mut member);
        member
    }

    /// Writes the parameters of the member.
    fn write(&self, formatter: &mut impl Write) -> fmt::Result {
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
        if let Some(key) = self.key {
            formatter.write_str("; key=\"")?;
            // Only these characters may be in a string (RFC 9651, 3.3.3).
            for letter in key.chars().filter(|letter| matches!(letter, ' '..='~')) {
                if matches!(letter, '"' | '\\') {
                    formatter.write_char('\\')?;
                }
                formatter.write_char(letter)?;
            }
            formatter.write_str("\"")?;
        }
        match self.detail {
            Some(detail) => write!(formatter, "; detail={detail}"),
            None => Ok(()),
        }
    }
}

/// Returns the member of `Cache-Status` for the cache `name` with a detail only. The edge sends it with its own
/// responses.
pub fn detailed(name: &CacheName, detail: &str) -> String {
    format!("{name}; detail={detail}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::http::caching::cache_status::*;

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
            (
                miss.of_variant().key("h/a\"\\?b#vary-x=1").detail("d"),
                r#"sluice; fwd=miss; fwd-status=200; key="h/a\"\\?b#vary-x=1"; detail=d"#,
            ),
            (CacheStatus::hit().of_variant(), "sluice; hit"),
        ];
        let name = CacheName::parse("sluice").unwrap();
        for (status, text) in rows {
            assert_eq!(status.member_of(&name), text);
        }
        assert_eq!(detailed(&name, "rejected"), "sluice; detail=rejected");
    }
}
