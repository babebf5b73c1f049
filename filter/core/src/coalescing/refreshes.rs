// SPDX-License-Identifier: Apache-2.0
//! Refreshes: which worker asks the origin again for a response that is served stale, and when.
//!
//! No request waits for a refresh, so it is no flight. A claim in shared data lets one worker begin; each
//! worker looks there at most once in every interval, so that a hit on a stale key costs what any
//! other hit costs.

use super::{Coalescer, Turn};
use crate::coalescing::shared::claims::Claims;
use crate::metrics::Metric;
use crate::workers::{KeyHash, Millis};

/// For how long a refresh is left alone whose worker gives no sign of life. Renewed while it runs.
pub const CLAIM_MILLIS: Millis = 60_000;

impl Coalescer {
    /// A request was served a stale response. True if this worker is the one to refresh it, in which
    /// case it says [`Coalescer::refreshing`] now and then, and [`Coalescer::refreshed`] at the end.
    ///
    /// `pause` is the time until this worker thinks of it again if another is on it.
    pub fn begin_refresh(&mut self, key: KeyHash, pause: Millis, turn: &mut Turn<'_>) -> bool {
        let now = turn.now;
        if self.hints.refresh(key) > now {
            return false;
        }
        let until = now.saturating_add(CLAIM_MILLIS);
        let taken = Claims::new(turn.store).take(key, now, until);
        let (begins, next) = match taken {
            Ok(None) => (true, until),
            Ok(Some(until)) => (false, until.min(now.saturating_add(pause))),
            // Uncoalesced: each worker refreshes by itself.
            Err(_) => {
                turn.count(Metric::HostErrors);
                (true, until)
            }
        };
        self.hints.set_refresh(key, next);
        begins
    }

    /// The refresh that this worker has begun is still under way.
    pub fn refreshing(&mut self, key: KeyHash, turn: &mut Turn<'_>) {
        self.claim_until(key, turn.now.saturating_add(CLAIM_MILLIS), turn);
    }

    /// The origin has been asked, in the background or by a request of its own, and whatever it said,
    /// it is not asked again for `pause` while there is something stale to serve.
    pub fn refreshed(&mut self, key: KeyHash, failed: bool, pause: Millis, turn: &mut Turn<'_>) {
        self.hints.set_failing(key, failed);
        self.claim_until(key, turn.now.saturating_add(pause), turn);
    }

    fn claim_until(&mut self, key: KeyHash, until: Millis, turn: &mut Turn<'_>) {
        self.hints.set_refresh(key, until);
        if Claims::new(turn.store).set(key, turn.now, until).is_err() {
            turn.count(Metric::HostErrors);
        }
    }
}
