// SPDX-License-Identifier: Apache-2.0
//! The verdict on a response: whether it is stored, shared or only passed on.

use super::UncacheableReason;
use super::is_server_error;

/// Time in seconds for which the headers of a response to HEAD answer other requests. These headers are not updated
/// when the object itself is fetched and stored under its own key, so the two can differ for this time.
const HEADERS_TTL: u64 = 5;

/// Time in seconds for which a slice is stored. Its key names the version of its object, so it never becomes wrong.
const SLICE_TTL: u64 = 30 * 86_400;

/// The verdict on a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Stored.
    Store(Storage),
    /// Storable, but the store has no room for anything now.
    NoRoom(Storage),
    /// Not stored, because no lifetime is known. The requests that wait for it already get it too.
    ShareOnce,
    /// Not storable. The key becomes hit-for-miss.
    Uncacheable(UncacheableReason),
    /// Not storable, but the next response may be, so the key does not become hit-for-miss. An example is a temporary
    /// redirect: a URL that redirects one client may have a page for others. Others are an error of the origin, whose
    /// status the followers get too; an error that the request itself may have caused; and a response to credentials
    /// that the origin does not allow other clients to have (RFC 9111, 3.5).
    Passing(UncacheableReason),
}

impl Verdict {
    /// The reason why the response is not stored; `None` for one that is stored, or would be if there was room.
    pub const fn reason(&self) -> Option<UncacheableReason> {
        match self {
            Self::Store(_) | Self::NoRoom(_) => None,
            Self::ShareOnce => Some(UncacheableReason::NoLifetime),
            Self::Uncacheable(reason) | Self::Passing(reason) => Some(*reason),
        }
    }

    /// Returns the verdict on a response with that status if the store has no room. An error is shared as one that is
    /// never stored. Otherwise all waiting requests would ask an origin in trouble.
    #[must_use]
    pub fn without_room(self, status: u16) -> Self {
        match self {
            Self::Store(_) if is_server_error(status) => {
                Self::Passing(UncacheableReason::ServerError)
            }
            Self::Store(storage) => Self::NoRoom(storage),
            verdict => verdict,
        }
    }

    /// Returns the verdict on a response that may be fresh for `most` seconds from its arrival.
    #[must_use]
    pub fn fresh_for_at_most(self, most: u64) -> Self {
        match self {
            Self::Store(storage) => {
                let ttl = storage.lifetime.ttl.min(storage.age.saturating_add(most));
                let lifetime = Lifetime {
                    ttl,
                    ..storage.lifetime
                };
                Self::Store(Storage {
                    lifetime,
                    ..storage
                })
            }
            verdict => verdict,
        }
    }
}

/// The times for which a response may be served, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetime {
    /// Freshness lifetime (RFC 9111, 4.2.1).
    pub ttl: u64,
    /// Time after `ttl` in which it is served stale while it is refreshed (RFC 5861, 3).
    pub stale_while_revalidate: u64,
    /// Time after `ttl` in which it is served stale while the origin fails (RFC 5861, 4).
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

    /// Seconds of freshness left at `age`; not positive if the response is stale.
    pub fn fresh_for(&self, age: u64) -> i64 {
        let signed = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
        signed(self.ttl).saturating_sub(signed(age))
    }
}

/// The freshness of the stored response that a 304 freshens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshened {
    /// The times for which it may be served.
    pub lifetime: Lifetime,
    /// Whether the origin sent directives about caching with it. Otherwise its lifetime is the policy's, or
    /// heuristic.
    pub is_said: bool,
}

/// The way in which a response is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storage {
    /// The times for which it may be served. It is fresh for longer than `age`, unless it is validated at each use.
    pub lifetime: Lifetime,
    /// Age of the response when it arrived, in seconds.
    pub age: u64,
    /// Whether it must not be served stale even if a client accepts that (RFC 9111, 4.2.4).
    pub forbids_stale: bool,
    /// Whether its status is replaced in the store, because Envoy's cache filters do not store it.
    pub disguise: bool,
    /// Whether it may be revalidated with the origin: it is a 200 or 203 with a validator.
    pub may_ask: bool,
    /// Whether the origin sent directives about caching with it. A 304 without directives does not change this.
    pub is_said: bool,
    /// Whether it may be reused for requests with `Authorization`, and stored if it is the response to one (RFC 9111,
    /// 3.5).
    pub allows_authenticated: bool,
    /// Whether it is the headers alone of an object that is served in slices.
    pub is_index: bool,
}

impl Storage {
    /// The way in which headers alone are stored: for a moment, and never served stale.
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

    /// The way in which the headers of an object that is served in slices are stored: with the times of the object. A
    /// worker that reads them decides by these times whether the object is served stale.
    #[must_use]
    pub fn for_index(self) -> Self {
        Self {
            may_ask: false,
            is_index: true,
            ..self
        }
    }

    /// The greatest age at which the store serves the response without asking the origin. Headers of an object in slices
    /// are refreshed by the workers that know the object.
    pub fn unasked(&self) -> u64 {
        match self.is_index {
            true => self.lifetime.ttl,
            false => self.lifetime.unasked(),
        }
    }

    /// The way in which a slice is stored, whatever the lifetime of its object is.
    #[must_use]
    pub fn for_slice(self) -> Self {
        Self {
            lifetime: Lifetime {
                ttl: SLICE_TTL,
                ..Lifetime::default()
            },
            age: 0,
            forbids_stale: true,
            may_ask: false,
            ..self
        }
    }
}
