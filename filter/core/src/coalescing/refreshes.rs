// SPDX-License-Identifier: Apache-2.0
//! Refreshes: the choice of the worker that asks the origin for a stale response, and of the time.
//!
//! No request waits for a refresh, so it is not a flight. A claim in shared data lets one worker begin. Each worker
//! reads the claims at most once per interval, so that a hit on a stale key costs as much as any other hit.

use super::{Coalescer, Turn};
use crate::coalescing::shared::claims::Claims;
use crate::metrics::Metric;
use crate::workers::{KeyHash, Millis};

/// Time for which a claim on a refresh lasts without renewal. After that another worker may claim the key.
pub const CLAIM_MILLIS: Millis = 60_000;

impl Coalescer {
    /// Handles a request that was served a stale response. Returns true if this worker has to refresh it. It then
    /// calls [`Coalescer::refreshing`] now and then, and [`Coalescer::refreshed`] at the end.
    ///
    /// `pause` is the time until this worker tries again, if another worker has the claim.
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
            // Without the claim each worker refreshes alone.
            Err(_) => {
                turn.count(Metric::HostErrors);
                (true, until)
            }
        };
        self.hints.set_refresh(key, next);
        begins
    }

    /// Extends the claim on a refresh that this worker has begun and that is still under way.
    pub fn refreshing(&mut self, key: KeyHash, turn: &mut Turn<'_>) {
        self.claim_until(key, turn.now.saturating_add(CLAIM_MILLIS), turn);
    }

    /// Ends a refresh, or notes that a client's request has asked the origin. Whatever the answer was, the origin is
    /// not asked again for `pause` while there is a stale response to serve.
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
