// SPDX-License-Identifier: Apache-2.0
//! Responses that a request's own headers may have caused: failures of the origin, and responses that are not stored.
//!
//! One header can make an application fail, such as an `Accept-Language` that it cannot read, or make it set a
//! cookie, such as a `Referer`. If the failure of a leader with such headers were shared, one client could inflict it
//! on all others. If its cookie made the key hit-for-miss, one client could switch caching off. So the first such
//! response is for its leader only. One of the waiting requests becomes the next leader, with its own headers, if
//! possible other ones than those of the former leader. The second such response in a row counts for all, so a crowd
//! costs an origin that is down two requests. If no request waits, the sequence of responses for one key is tracked
//! in [`OwnResponses`]. If none of the waiting requests may be a leader, such as HEADs and conditional requests, a
//! background fill becomes the next leader for them ([`Coalescer::lacks_heir`]).

use super::{Coalescer, NotStored, Turn};
use crate::metrics::Metric;
use crate::workers::message::{Doubt, FlightOutcome};
use crate::workers::recent_keys::RecentKeys;
use crate::workers::{KeyHash, Millis, OwnHeaders, StreamId};

/// Time for which a failure is remembered, unless the origin has answered otherwise since.
const FAILURE_MILLIS: Millis = 10_000;
/// Time for which followers without an heir may have a background fill as their leader. They are released in batches.
const HEIRLESS_MILLIS: Millis = 1_000;
/// Most keys that are remembered. A forgotten key costs one more request.
const MOST_KEYS: usize = 4_096;

/// A response for its leader only, while none of the waiting requests may be a leader.
#[derive(Clone, Copy, Debug)]
struct HeirlessResponse {
    doubt: Doubt,
    own_headers: OwnHeaders,
    /// Time at which it ended its flight.
    at: Millis,
    /// Whether a background fill has begun since.
    filled: bool,
}

/// The last responses for a key that allow a conclusion about the next one.
#[derive(Clone, Copy, Debug, Default)]
struct LastResponses {
    /// Time until which a failure of the origin is remembered.
    failed: Millis,
    /// Time until which a response that was not stored is remembered.
    unstored: Millis,
    heirless: Option<HeirlessResponse>,
}

/// The keys with such responses.
#[derive(Debug)]
pub(super) struct OwnResponses {
    keys: RecentKeys<LastResponses>,
}

impl Default for OwnResponses {
    fn default() -> Self {
        Self {
            keys: RecentKeys::new(MOST_KEYS),
        }
    }
}

impl OwnResponses {
    /// Remembers a response of kind `doubt` for `key` until `until`. Returns whether another one is remembered at
    /// `now`.
    fn note(&mut self, key: KeyHash, doubt: Doubt, now: Millis, until: Millis) -> bool {
        let mut last = self.keys.peek(key).copied().unwrap_or_default();
        let known = match doubt {
            Doubt::Failed => &mut last.failed,
            Doubt::NotStored => &mut last.unstored,
        };
        let before = std::mem::replace(known, until);
        self.keys.insert(key, last);
        before > now
    }

    /// Forgets the response of kind `doubt` for `key`.
    fn forget(&mut self, key: KeyHash, doubt: Doubt) {
        if let Some(last) = self.keys.peek_mut(key) {
            match doubt {
                Doubt::Failed => last.failed = 0,
                Doubt::NotStored => last.unstored = 0,
            }
        }
    }

    fn heirless(&mut self, key: KeyHash, now: Millis) -> Option<&mut HeirlessResponse> {
        let heirless = self.keys.peek_mut(key)?.heirless.as_mut();
        heirless.filter(|response| now < response.at.saturating_add(HEIRLESS_MILLIS))
    }

    fn set_heirless(&mut self, key: KeyHash, response: HeirlessResponse) {
        let last = self.keys.peek(key).copied().unwrap_or_default();
        let heirless = Some(response);
        self.keys.insert(key, LastResponses { heirless, ..last });
    }
}

impl Coalescer {
    /// Whether the followers of `key` have just lost their leader, whose response was for its client only, and none
    /// of them may be a leader.
    pub fn lacks_heir(&mut self, key: KeyHash, now: Millis) -> bool {
        self.own_responses.heirless(key, now).is_some()
    }

    /// Allows one background fill for these requests, also if they have waited for one before. Returns false if one
    /// has begun already.
    pub fn take_heirless_fill(&mut self, key: KeyHash, now: Millis) -> bool {
        let response = self.own_responses.heirless(key, now);
        response.is_some_and(|response| !std::mem::replace(&mut response.filled, true))
    }

    /// Remembers the flight of `key` if it ends with `Own` while requests wait for it that may not be leaders.
    pub(super) fn note_heirless(&mut self, key: KeyHash, outcome: &FlightOutcome, now: Millis) {
        if let FlightOutcome::Own { doubt, own_headers } = *outcome {
            let response = HeirlessResponse {
                doubt,
                own_headers,
                at: now,
                filled: false,
            };
            self.own_responses.set_heirless(key, response);
        }
    }

    /// Carries the doubt of such a flight over to the flight of its background fill: the next response of that kind
    /// counts for all.
    pub(super) fn inherit(&mut self, key: KeyHash, now: Millis) {
        let former = self.own_responses.heirless(key, now);
        if let Some((former, flight)) = former.zip(self.flights.get_mut(&key)) {
            flight.set_doubted(former.doubt, former.own_headers);
        }
    }

    /// Remembers a failure of the origin for `stream` and `key`. Returns true if the failure is the request's own:
    /// the request has own headers, and the failure is the first in a row.
    pub fn meet_failure(
        &mut self,
        key: KeyHash,
        stream: StreamId,
        own_headers: OwnHeaders,
        now: Millis,
    ) -> bool {
        let until = now.saturating_add(FAILURE_MILLIS);
        let before = self.own_responses.note(key, Doubt::Failed, now, until);
        self.is_first(Doubt::Failed, stream, before) && !own_headers.is_none()
    }

    /// Whether the response to `stream` is the first of its kind in a row. `before` is whether one is remembered for
    /// its key; it counts if no request waits.
    fn is_first(&mut self, doubt: Doubt, stream: StreamId, before: bool) -> bool {
        let led = self.led_by(stream);
        match led.and_then(|led| self.flights.get(&led)) {
            Some(flight) if flight.doubted(doubt).is_some() => false,
            Some(flight) if flight.is_awaited() => true,
            _ => !before,
        }
    }

    /// Forgets a failure, because the origin has answered a request for `key` and did not fail.
    pub fn origin_is_well(&mut self, key: KeyHash) {
        self.own_responses.forget(key, Doubt::Failed);
    }

    /// Ends the flight of `key` with `status` for the followers, because the origin failed for the leader. If the
    /// failure is the leader's own, another request becomes the leader.
    pub(super) fn failed(&mut self, key: KeyHash, status: u16, turn: &mut Turn<'_>) {
        let Some(leader) = self.leader(key) else {
            return;
        };
        if self.meet_failure(key, leader.stream, leader.own_headers, turn.now) {
            self.pass_on(key, Doubt::Failed, turn);
        } else {
            self.finish(key, FlightOutcome::Failed { status }, turn);
        }
    }

    /// Handles a response to `stream` that is not stored, as ORIGIN has seen. The key becomes hit-for-miss for some
    /// time, unless the request's own headers may be the reason.
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
        let until = turn.now.saturating_add(most);
        let before = self
            .own_responses
            .note(key, Doubt::NotStored, turn.now, until);
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

    /// Ends the hit-for-miss of `key`, because a response for it is being stored.
    pub fn response_is_stored(&mut self, key: KeyHash) {
        self.own_responses.forget(key, Doubt::NotStored);
        self.hints.end_mark(key);
    }

    /// Makes another request the leader of `key`, because the response of the present leader is for its client only.
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
        let (key, mut responses) = (KeyHash(7), OwnResponses::default());
        assert!(!responses.note(key, Doubt::Failed, 0, 10));
        assert!(responses.note(key, Doubt::Failed, 9, 20));
        assert!(
            !responses.note(key, Doubt::NotStored, 9, 20),
            "of another kind"
        );
        assert!(
            !responses.note(KeyHash(8), Doubt::Failed, 9, 20),
            "of another key"
        );
        assert!(!responses.note(key, Doubt::Failed, 20, 30));
        responses.forget(key, Doubt::Failed);
        assert!(!responses.note(key, Doubt::Failed, 21, 30));
    }
}
