// SPDX-License-Identifier: Apache-2.0
//! Responses that a request's own headers may have caused: failures of the origin, and responses that are not stored.
//!
//! One header can make an application fail, such as an `Accept-Language` that it cannot read, or set a cookie, such as a
//! `Referer`. If the failure of a leader with such headers were shared, one client could have all others get it; if its
//! cookie made the key hit-for-miss, one client could switch caching off. So the first such response is its leader's own,
//! and one of the waiting requests leads with its own headers, if possible with others than those of the former leader.
//! The second in a row counts for all: a crowd costs an origin that is down two requests. Where nobody waits, the
//! responses for one key follow each other in [`Doubts`]. Where the waiting requests may not lead, as HEADs and
//! conditional requests, a fill in the background leads for them next ([`Coalescer::lacks_heir`]).

use super::{Coalescer, NotStored, Turn};
use crate::metrics::Metric;
use crate::workers::message::{Doubt, FlightOutcome};
use crate::workers::recent_keys::RecentKeys;
use crate::workers::{KeyHash, Millis, OwnHeaders, StreamId};

/// How long a failure is remembered, unless the origin has answered otherwise since.
const FAILURE_MILLIS: Millis = 10_000;
/// How long followers without an heir may have a fill in the background lead for them. They go on in batches.
const HEIRLESS_MILLIS: Millis = 1_000;
/// How many keys are remembered at most. What is forgotten costs one more request.
const MOST_KEYS: usize = 4_096;

/// Keys whose last response was of one such kind, with the end of the time for which that is remembered.
#[derive(Debug)]
pub(super) struct Doubts {
    keys: RecentKeys<Millis>,
}

impl Default for Doubts {
    fn default() -> Self {
        Self {
            keys: RecentKeys::new(MOST_KEYS),
        }
    }
}

impl Doubts {
    /// Remembers a response for `key` until then. Whether another is remembered.
    pub(super) fn note(&mut self, key: KeyHash, now: Millis, until: Millis) -> bool {
        let before = self.keys.peek(key).is_some_and(|until| *until > now);
        self.keys.insert(key, until);
        before
    }

    /// Forgets the response for `key` that is remembered. Whether there is one.
    pub(super) fn take(&mut self, key: KeyHash, now: Millis) -> bool {
        let known = self.keys.peek(key).is_some_and(|until| *until > now);
        self.forget(key);
        known
    }

    fn forget(&mut self, key: KeyHash) {
        if !self.keys.is_empty() {
            self.keys.remove(key);
        }
    }
}

/// A response that was its leader's own, where none of the waiting requests may lead.
#[derive(Clone, Copy, Debug)]
struct OwnResponse {
    doubt: Doubt,
    own_headers: OwnHeaders,
    /// When it ended its flight.
    at: Millis,
    /// Whether a fill in the background has been begun since.
    filled: bool,
}

/// The keys of such responses.
#[derive(Debug)]
pub(super) struct Heirless {
    keys: RecentKeys<OwnResponse>,
}

impl Default for Heirless {
    fn default() -> Self {
        Self {
            keys: RecentKeys::new(MOST_KEYS),
        }
    }
}

impl Heirless {
    fn get(&self, key: KeyHash, now: Millis) -> Option<OwnResponse> {
        let known = self.keys.peek(key).copied();
        known.filter(|response| now < response.at.saturating_add(HEIRLESS_MILLIS))
    }
}

impl Coalescer {
    /// Whether requests for `key` go on that may not lead, because the response of their leader was its own.
    pub fn lacks_heir(&self, key: KeyHash, now: Millis) -> bool {
        self.heirless.get(key, now).is_some()
    }

    /// Lets one fill in the background begin for these requests, which may have waited for one before. False if one has
    /// begun.
    pub fn take_heirless_fill(&mut self, key: KeyHash, now: Millis) -> bool {
        let lacks = self.lacks_heir(key, now);
        let known = self.heirless.keys.peek_mut(key).filter(|_| lacks);
        known.is_some_and(|response| !std::mem::replace(&mut response.filled, true))
    }

    /// Remembers a flight of `key` that ends so while requests wait for it that may not lead.
    pub(super) fn note_heirless(&mut self, key: KeyHash, outcome: &FlightOutcome, now: Millis) {
        if let FlightOutcome::Own { doubt, own_headers } = *outcome {
            let response = OwnResponse {
                doubt,
                own_headers,
                at: now,
                filled: false,
            };
            self.heirless.keys.insert(key, response);
        }
    }

    /// Goes on with such a flight in the one that a fill in the background leads: the next response of that kind counts
    /// for all.
    pub(super) fn inherit(&mut self, key: KeyHash, now: Millis) {
        let former = self.heirless.get(key, now);
        if let Some((former, flight)) = former.zip(self.flights.get_mut(&key)) {
            flight.set_doubted(former.doubt, former.own_headers);
        }
    }

    /// Whether the failure of the origin that `stream` has met for `key` is its own, and remembers the failure. It is
    /// where the request has own headers, and the failure is the first in a row.
    pub fn is_own_failure(
        &mut self,
        key: KeyHash,
        stream: StreamId,
        own_headers: OwnHeaders,
        now: Millis,
    ) -> bool {
        let until = now.saturating_add(FAILURE_MILLIS);
        let before = self.failures.note(key, now, until);
        self.is_first(Doubt::Failed, stream, before) && !own_headers.is_none()
    }

    /// Whether the response to `stream` is the first of its kind in a row; `before` says that one for its key is
    /// remembered, which counts where nobody waits.
    fn is_first(&mut self, doubt: Doubt, stream: StreamId, before: bool) -> bool {
        let led = self.led_by(stream);
        match led.and_then(|led| self.flights.get(&led)) {
            Some(flight) if flight.doubted(doubt).is_some() => false,
            Some(flight) if flight.is_awaited() => true,
            _ => !before,
        }
    }

    /// The origin has answered a request for `key`, and did not fail.
    pub fn origin_is_well(&mut self, key: KeyHash) {
        self.failures.forget(key);
    }

    /// The origin has failed the leader of `key`, whose followers get that `status`, unless the failure is its own.
    pub(super) fn failed(&mut self, key: KeyHash, status: u16, turn: &mut Turn<'_>) {
        let Some(leader) = self.leader(key) else {
            return;
        };
        if self.is_own_failure(key, leader.stream, leader.own_headers, turn.now) {
            self.pass_on(key, Doubt::Failed, turn);
        } else {
            self.finish(key, FlightOutcome::Failed { status }, turn);
        }
    }

    /// ORIGIN has seen a response to `stream` that is not stored. Requests for its key do not wait for each other for a
    /// while, unless that may be the doing of its own headers.
    pub fn response_is_not_stored(
        &mut self,
        stream: StreamId,
        response: NotStored,
        turn: &mut Turn<'_>,
    ) {
        let NotStored {
            key,
            own_headers,
            reason,
            most,
        } = response;
        let led = self.led_by(stream);
        let before = self
            .unstored
            .note(key, turn.now, turn.now.saturating_add(most));
        if self.is_first(Doubt::NotStored, stream, before) && !own_headers.is_none() {
            if let Some(led) = led {
                self.pass_on(led, Doubt::NotStored, turn);
            }
            return;
        }
        turn.count(Metric::HitForMissMarked);
        let until = self.hints.mark(key, reason, most, turn.now);
        if let Some(led) = led {
            self.finish(led, FlightOutcome::HitForMiss { until, reason }, turn);
        }
    }

    /// The response for `key` goes into the store, so that the key is not hit-for-miss any more.
    pub fn response_is_stored(&mut self, key: KeyHash) {
        self.unstored.forget(key);
        self.hints.end_mark(key);
    }

    /// The response of the leader of `key` is its own: another request leads.
    pub(super) fn pass_on(&mut self, key: KeyHash, doubt: Doubt, turn: &mut Turn<'_>) {
        let Some(flight) = self.flights.get_mut(&key) else {
            return;
        };
        let Some(leader) = flight.leader() else {
            return;
        };
        let own_headers = leader.own_headers;
        flight.set_doubted(doubt, own_headers);
        self.finish(key, FlightOutcome::Own { doubt, own_headers }, turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_in_a_row_within_a_time_and_until_there_is_another() {
        let (key, mut doubts) = (KeyHash(7), Doubts::default());
        assert!(!doubts.note(key, 0, 10));
        assert!(doubts.note(key, 9, 20));
        assert!(!doubts.note(KeyHash(8), 9, 20), "of another key");
        assert!(!doubts.note(key, 20, 30));
        doubts.forget(key);
        assert!(!doubts.note(key, 21, 30));
    }
}
