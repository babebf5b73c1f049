// SPDX-License-Identifier: Apache-2.0
//! Responses of a site's second origin, as the hop reports them in
//! [`SECOND_ORIGIN_HEADER`](crate::internal_headers::SECOND_ORIGIN_HEADER).
//!
//! The second origin gets a request that the first one has failed. It may have older objects, and may lack objects, so
//! its responses are fresh for a bounded time, and its 404 and 410 are not stored.

use crate::freshness::{Lifetime, Storage, Verdict};
use crate::metrics::Metric;

/// A response of the second origin, by the reason for which that was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondOrigin {
    /// The first origin has failed.
    Failover {
        /// Greatest freshness lifetime of the response, in seconds from the response's arrival.
        ttl: u64,
    },
    /// The first origin lacks the object. The response is stored as one of the first origin would be.
    Missing,
}

/// The hop's word for [`SecondOrigin::Missing`].
const MISSING: &[u8] = b"missing";

/// Whether a bucket lacks the object, by the mark of its server in
/// [`MISSING_HEADER`](crate::internal_headers::MISSING_HEADER). A bucket answers 403 `AccessDenied` for a missing object
/// to credentials that may not list it. Only a HEAD gets no code.
pub fn lacks_object(mark: &[u8], is_head: bool) -> bool {
    matches!(mark, b"NoSuchKey" | b"AccessDenied") || (is_head && mark == b"none")
}

impl SecondOrigin {
    /// Reads the hop's words. Words that cannot be read keep the response from the store.
    pub fn of(words: &[u8]) -> Self {
        if words == MISSING {
            return Self::Missing;
        }
        let ttl = str::from_utf8(words)
            .ok()
            .and_then(|text| text.parse().ok());
        Self::Failover {
            ttl: ttl.unwrap_or_default(),
        }
    }

    /// Detail in `Cache-Status` for its response.
    pub const fn detail(self) -> &'static str {
        match self {
            Self::Failover { .. } => "failover",
            Self::Missing => "on-missing",
        }
    }

    /// The metric that counts its responses.
    pub const fn metric(self) -> Metric {
        match self {
            Self::Failover { .. } => Metric::SecondOriginAnswers,
            Self::Missing => Metric::MissingObjectsAsked,
        }
    }

    /// Whether a response with that status only means that the second origin lacks an object that the first one may
    /// have.
    pub const fn may_lack_object(self, status: u16) -> bool {
        matches!(self, Self::Failover { .. }) && matches!(status, 404 | 410)
    }

    /// Returns the verdict on its response with that status, if `verdict` is the one on a response of the first
    /// origin.
    #[must_use]
    pub fn bound(self, verdict: Verdict, status: u16) -> Verdict {
        match verdict {
            Verdict::Store(_) if self.may_lack_object(status) => Verdict::ShareOnce,
            Verdict::Store(storage) => match self {
                Self::Failover { ttl } => bound_storage(storage, ttl),
                Self::Missing => verdict,
            },
            verdict => verdict,
        }
    }
}

/// The verdict on a response that would be stored in this way, if it may be fresh for `most` seconds. It is not served
/// while it is refreshed, so that the first origin's objects return soon. It is served stale if both origins fail.
fn bound_storage(storage: Storage, most: u64) -> Verdict {
    let lifetime = storage.lifetime;
    let ttl = lifetime.ttl.min(storage.age.saturating_add(most));
    if ttl <= storage.age && !lifetime.must_be_validated() {
        return Verdict::ShareOnce;
    }
    Verdict::Store(Storage {
        lifetime: Lifetime {
            ttl,
            stale_while_revalidate: 0,
            ..lifetime
        },
        ..storage
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::freshness::UncacheableReason;

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
        let error = Verdict::Passing(UncacheableReason::ServerError);
        for verdict in [error, Verdict::ShareOnce] {
            assert_eq!(SecondOrigin::of(b"60").bound(verdict, 404), verdict);
        }
    }

    #[test]
    fn what_the_first_origin_lacks_is_stored_like_any_object() {
        let second = SecondOrigin::of(b"missing");
        for status in [200, 404] {
            let verdict = Verdict::Store(STORAGE);
            assert_eq!(second.bound(verdict, status), verdict, "{status}");
        }
    }

    #[test]
    fn only_a_code_says_that_an_object_is_missing_and_to_a_head_its_absence() {
        for (mark, get, head) in [
            (&b"NoSuchKey"[..], true, true),
            (b"AccessDenied", true, true),
            (b"none", false, true),
            (b"SignatureDoesNotMatch", false, false),
            (b"NoSuchBucket", false, false),
            (b"", false, false),
            (b"\xff", false, false),
        ] {
            assert_eq!(lacks_object(mark, false), get, "{mark:?}");
            assert_eq!(lacks_object(mark, true), head, "{mark:?}");
        }
    }
}
