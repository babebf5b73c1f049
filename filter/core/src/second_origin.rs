// SPDX-License-Identifier: Apache-2.0
//! Responses of a site's second origin, as the hop reports them in
//! [`SECOND_ORIGIN_HEADER`](crate::internal_headers::SECOND_ORIGIN_HEADER).
//!
//! The second origin gets a request that the first one has failed. It may have older objects, and may lack objects, so
//! its responses are fresh for a bounded time, and its 404 and 410 are not stored.

use crate::freshness::{Lifetime, Storage, Verdict};
use crate::metrics::Metric;

/// A response of the second origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondOrigin {
    /// Greatest freshness lifetime of its response, in seconds from the response's arrival.
    pub ttl: u64,
}

impl SecondOrigin {
    /// Reads the hop's words. Words that cannot be read keep the response from the store.
    pub fn of(words: &[u8]) -> Self {
        let ttl = str::from_utf8(words)
            .ok()
            .and_then(|text| text.parse().ok());
        Self {
            ttl: ttl.unwrap_or_default(),
        }
    }

    /// Detail in `Cache-Status` for its response.
    pub const fn detail(self) -> &'static str {
        "failover"
    }

    /// The metric that counts its responses.
    pub const fn metric(self) -> Metric {
        Metric::SecondOriginAnswers
    }

    /// Whether a response with that status only means that the second origin lacks an object that the first one may
    /// have.
    pub const fn may_lack_object(self, status: u16) -> bool {
        matches!(status, 404 | 410)
    }

    /// Returns the verdict on its response with that status, if `verdict` is the one on a response of the first
    /// origin.
    #[must_use]
    pub fn bound(self, verdict: Verdict, status: u16) -> Verdict {
        match verdict {
            Verdict::Store(_) if self.may_lack_object(status) => Verdict::ShareOnce,
            Verdict::Store(storage) => match self.bound_storage(storage) {
                Some(storage) => Verdict::Store(storage),
                None => Verdict::ShareOnce,
            },
            verdict => verdict,
        }
    }

    /// The way in which its response is stored. It is not served while it is refreshed, so that the first origin's
    /// objects return soon. It is served stale if both origins fail. `None`: it is not stored.
    fn bound_storage(self, storage: Storage) -> Option<Storage> {
        let lifetime = storage.lifetime;
        let ttl = lifetime.ttl.min(storage.age.saturating_add(self.ttl));
        let is_stored = ttl > storage.age || lifetime.must_be_validated();
        is_stored.then_some(Storage {
            lifetime: Lifetime {
                ttl,
                stale_while_revalidate: 0,
                ..lifetime
            },
            ..storage
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORAGE: Storage = Storage {
        lifetime: Lifetime {
            ttl: 3_600,
            stale_while_revalidate: 600,
            stale_if_error: 86_400,
        },
        age: 100,
        forbids_stale: false,
        disguise: false,
        may_ask: true,
        is_said: true,
        allows_authenticated: false,
        is_index: false,
    };

    fn times(verdict: Verdict) -> Option<(u64, u64, u64)> {
        match verdict {
            Verdict::Store(Storage { lifetime, .. }) => Some((
                lifetime.ttl,
                lifetime.stale_while_revalidate,
                lifetime.stale_if_error,
            )),
            _ => None,
        }
    }

    #[test]
    fn a_response_of_the_second_origin_is_fresh_for_the_given_time_at_most() {
        let bound = |words: &[u8], ttl| {
            let lifetime = Lifetime {
                ttl,
                ..STORAGE.lifetime
            };
            let storage = Storage {
                lifetime,
                ..STORAGE
            };
            times(SecondOrigin::of(words).bound(Verdict::Store(storage), 200))
        };
        assert_eq!(bound(b"60", 3_600), Some((160, 0, 86_400)));
        assert_eq!(bound(b"60", 130), Some((130, 0, 86_400)));
        assert_eq!(bound(b"60", 0), Some((0, 0, 86_400)));
        for words in [&b"0"[..], b"", b"soon", b"\xff", b"-1"] {
            assert_eq!(bound(words, 3_600), None, "{words:?}");
        }
    }

    #[test]
    fn an_object_that_the_second_origin_lacks_is_not_stored_as_missing() {
        let second = SecondOrigin::of(b"60");
        for status in [404, 410] {
            let verdict = second.bound(Verdict::Store(STORAGE), status);
            assert_eq!(verdict, Verdict::ShareOnce, "{status}");
        }
        for status in [200, 301, 403] {
            let verdict = second.bound(Verdict::Store(STORAGE), status);
            assert!(times(verdict).is_some(), "{status}");
        }
    }

    #[test]
    fn another_verdict_stays() {
        for verdict in [Verdict::Share(503), Verdict::ShareOnce] {
            assert_eq!(SecondOrigin::of(b"60").bound(verdict, 404), verdict);
        }
    }
}
