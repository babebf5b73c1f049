// SPDX-License-Identifier: Apache-2.0
//! The last answer of the store for a response, and its time.

use crate::freshness::Lifetime;
use crate::workers::Millis;

/// Time after which a worker reads a hot object from the store again. The store thereby sees that the object is in
/// use. Workers also agree again if the store got another response too early, for example by a client's `no-cache`.
pub const REREAD_MILLIS: Millis = 5_000;

/// A moment at which the store served a response. Times are in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreCheck {
    /// The times for which the response may be served.
    pub lifetime: Lifetime,
    /// Its `Age` at that moment, in seconds.
    pub age: u64,
    /// The time of that moment.
    pub seen: Millis,
    /// Time after that moment for which the store serves it without asking the origin.
    pub left: Millis,
}

/// The facts of a hot copy that the store would serve now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotAnswer {
    /// Its `Age`, in seconds.
    pub age: u64,
    /// Seconds of freshness that it has left, at least one.
    pub fresh_for: i64,
}

impl StoreCheck {
    /// The facts at `now`; `None` if the response is stale, and after [`REREAD_MILLIS`].
    ///
    /// An age grows when the clock's second does, since it counts from a `Date` in whole seconds.
    pub fn at(&self, now: Millis) -> Option<HotAnswer> {
        // A clock that was set back gives no age.
        let passed = now.checked_sub(self.seen)?;
        if passed >= self.left.min(REREAD_MILLIS) {
            return None;
        }
        let age = self.age.saturating_add(now / 1_000 - self.seen / 1_000);
        let fresh_for = self.lifetime.fresh_for(age);
        (fresh_for > 0).then_some(HotAnswer { age, fresh_for })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: Millis = 784_111_777_600;

    fn sighting(ttl: u64, age: u64, left: Millis) -> StoreCheck {
        let lifetime = Lifetime {
            ttl,
            stale_while_revalidate: 60,
            stale_if_error: 60,
        };
        StoreCheck {
            lifetime,
            age,
            seen: SEEN,
            left,
        }
    }

    #[test]
    fn an_age_grows_with_the_seconds_of_the_clock() {
        let seen = sighting(60, 7, 1_000_000);
        let age = |passed| seen.at(SEEN + passed).map(|still| still.age);
        assert_eq!(age(0), Some(7));
        assert_eq!(age(399), Some(7));
        assert_eq!(age(400), Some(8), "it is the next second");
        assert_eq!(age(1_400), Some(9));
        assert_eq!(seen.at(SEEN + 400).unwrap().fresh_for, 52);
    }

    #[test]
    fn what_is_stale_is_left_to_the_store_whatever_windows_it_has() {
        let seen = sighting(8, 7, 1_000_000);
        assert_eq!(seen.at(SEEN + 399).unwrap().fresh_for, 1);
        assert_eq!(seen.at(SEEN + 400), None);
    }

    #[test]
    fn what_the_store_would_ask_about_is_left_to_it() {
        let seen = sighting(60, 7, 300);
        assert!(seen.at(SEEN + 299).is_some());
        assert_eq!(seen.at(SEEN + 300), None);
    }

    #[test]
    fn a_worker_reads_it_again_after_a_while() {
        let seen = sighting(60, 7, 1_000_000);
        assert!(seen.at(SEEN + REREAD_MILLIS - 1).is_some());
        assert_eq!(seen.at(SEEN + REREAD_MILLIS), None);
    }

    #[test]
    fn nothing_is_told_by_a_clock_that_was_set_back() {
        assert_eq!(sighting(60, 7, 1_000_000).at(SEEN - 1), None);
    }
}
