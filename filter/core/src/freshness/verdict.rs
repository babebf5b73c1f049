// SPDX-License-Identifier: Apache-2.0
//! What becomes of a response.

use super::UncacheableReason;
use super::is_server_error;

/// For how long the headers that a HEAD has brought answer others. Nothing brings them up to date when the
/// object itself is fetched and stored under its own key, so the two differ for no longer than that. In seconds.
const HEADERS_TTL: u64 = 5;

/// What becomes of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes into the store.
    Store(Storage),
    /// It would go into the store, which has no room for anything now.
    NoRoom(Storage),
    /// An error that is not stored: the followers get the same status instead of asking again.
    Share(u16),
    /// It is not stored, as nobody says for how long it is fresh. Those who wait for it already get it too.
    ShareOnce,
    /// An error that the request itself may have caused: it says nothing about the next request for the URL.
    RequestError,
    /// The origin has seen credentials, and does not say that others may have the response (RFC 9111, 3.5): it says nothing
    /// about the next request for the URL.
    ForCredentials,
    /// It is for the one who asked.
    Uncacheable(UncacheableReason),
    /// The same, and its status says nothing about the next response: a URL that redirects one client for the moment
    /// may have a page for others.
    Passing(UncacheableReason),
}

impl Verdict {
    /// The reason for which the response is not stored; `None` for one that is stored, or would be if there was room.
    pub const fn reason(&self) -> Option<UncacheableReason> {
        match self {
            Self::Store(_) | Self::NoRoom(_) => None,
            Self::Share(_) => Some(UncacheableReason::ServerError),
            Self::ShareOnce => Some(UncacheableReason::NoLifetime),
            Self::RequestError => Some(UncacheableReason::RequestError),
            Self::ForCredentials => Some(UncacheableReason::Authorization),
            Self::Uncacheable(reason) | Self::Passing(reason) => Some(*reason),
        }
    }

    /// The verdict on a response of that status where the store has no room. An error is shared as one that is never
    /// stored, so that an origin in trouble is not asked by all who wait.
    #[must_use]
    pub fn without_room(self, status: u16) -> Self {
        match self {
            Self::Store(_) if is_server_error(status) => Self::Share(status),
            Self::Store(storage) => Self::NoRoom(storage),
            verdict => verdict,
        }
    }
}

/// For how long a response may be served, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetime {
    /// Freshness lifetime (RFC 9111, 4.2.1).
    pub ttl: u64,
    /// After that, while it is refreshed (RFC 5861, 3).
    pub stale_while_revalidate: u64,
    /// After that, while the origin fails (RFC 5861, 4).
    pub stale_if_error: u64,
}

impl Lifetime {
    /// The greatest age at which it is served without asking the origin first.
    pub fn unasked(&self) -> u64 {
        self.ttl.saturating_add(self.stale_while_revalidate)
    }

    /// The greatest age at which it is served at all.
    pub fn servable(&self) -> u64 {
        self.ttl
            .saturating_add(self.stale_while_revalidate.max(self.stale_if_error))
    }

    /// Whether the response is validated at each use (RFC 9111, 5.2.2.4): it is stored, and never fresh.
    pub const fn must_be_validated(&self) -> bool {
        self.ttl == 0
    }

    /// Seconds of freshness left at that age; not positive once it is stale.
    pub fn fresh_for(&self, age: u64) -> i64 {
        let signed = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
        signed(self.ttl).saturating_sub(signed(age))
    }
}

/// The stored response that a 304 freshens, as far as its freshness goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshened {
    /// For how long it may be served.
    pub lifetime: Lifetime,
    /// Whether the origin has said something of caching with it. Else its lifetime is the policy's, or a guess.
    pub is_said: bool,
}

/// How a response is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storage {
    /// For how long it may be served; it is fresh for longer than `age`, unless it is validated at each use.
    pub lifetime: Lifetime,
    /// How old the response was when it came, in seconds.
    pub age: u64,
    /// It must not be served stale for a client's sake either (RFC 9111, 4.2.4).
    pub forbids_stale: bool,
    /// Envoy's cache filters do not store the status.
    pub disguise: bool,
    /// Whether the origin may be asked whether it has changed: of a 200 or 203 with a validator.
    pub may_ask: bool,
    /// Whether the origin has said something of caching with it, which a 304 without a word of its own leaves as it is.
    pub is_said: bool,
    /// Whether it may be reused for requests with `Authorization`, and where it is the response to one (RFC 9111, 3.5).
    pub allows_authenticated: bool,
}

impl Storage {
    /// How the headers alone are stored: for a moment, and never served stale.
    #[must_use]
    pub fn for_headers(self) -> Self {
        Self {
            lifetime: Lifetime {
                ttl: self.lifetime.ttl.min(self.age.saturating_add(HEADERS_TTL)),
                ..Lifetime::default()
            },
            ..self
        }
    }
}
