// SPDX-License-Identifier: Apache-2.0
//! What EDGE judges of a response that has come through the store: its age, whether it is stale or too old, what the
//! request counts as, and what `Cache-Status` says.

use crate::hot::Sighting;
use crate::http::cache_status::{CacheStatus, Forward};
use crate::http::client_control::RequestControl;
use crate::http::date;
use crate::link::Purpose;
use crate::metrics::Metric;
use crate::store::entry::{Entry, FillId};
use crate::store::stored_fields::StoredFields;
use crate::workers::Millis;

/// What `Cache-Status` says of a response for which the store has no room.
pub const NO_ROOM: &str = "no-room";

/// How a response has come to EDGE.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The fill that this very request would be.
    pub fill: FillId,
    /// The status with which the origin has failed this request, where the store keeps what it has.
    pub failure: Option<u16>,
    /// Whether the stored response expired while the request was on its way to the store.
    pub late: bool,
    /// Whether the response was asked for before a soft purge.
    pub purged: bool,
    /// When, in milliseconds since 1970.
    pub now: Millis,
}

/// A response that ORIGIN has marked, and how it has come here.
#[derive(Debug)]
pub struct Served<'a> {
    /// The response's mark.
    pub entry: Entry<'a>,
    /// Whether it came from the origin because of this very request.
    pub own: bool,
    /// The status with which the origin has failed this request, where the store keeps what it has.
    pub failure: Option<u16>,
    late: bool,
    /// In seconds (RFC 9111, 4.2.3).
    pub age: u64,
    /// Whether the response says its age.
    pub has_age: bool,
    /// Whether it was asked for before a soft purge, and stored after: the fill was under way.
    pub predates_purge: bool,
    /// Milliseconds for which the store serves it without asking; 0 if it does not have it.
    pub served_for: Millis,
    seen: Millis,
}

impl<'a> Served<'a> {
    /// The response with that mark and these `fields`.
    pub fn of(entry: Entry<'a>, fields: &StoredFields<'_>, arrival: &Arrival) -> Self {
        let own = entry.fill == arrival.fill;
        let counted = fields.age();
        let age = match counted {
            Some(age) => age,
            // ORIGIN has taken the header with the age that the response came with.
            None if own => entry.age,
            None => age_by_date(fields, arrival.now),
        };
        Self {
            own,
            failure: arrival.failure,
            late: arrival.late,
            age,
            has_age: counted.is_some(),
            predates_purge: arrival.purged && !own,
            served_for: fields.served_for(&entry, arrival.now),
            seen: arrival.now,
            entry,
        }
    }

    /// Whether it is served within a window of staleness.
    pub fn is_stale(&self) -> bool {
        self.predates_purge || self.is_past_its_time()
    }

    /// What is seen of the stored response now.
    pub fn sighting(&self) -> Sighting {
        Sighting {
            lifetime: self.entry.lifetime(),
            age: self.age,
            seen: self.seen,
            left: self.served_for,
        }
    }

    /// The same of a response that the store does not have: it is good for as long as it is fresh.
    pub fn sighting_without_room(&self) -> Sighting {
        let left = self.entry.ttl.saturating_sub(self.age);
        Sighting {
            left: left.saturating_mul(1_000),
            ..self.sighting()
        }
    }

    /// Whether it must not be served (RFC 9111, 4.2.4): the origin had to be asked, and has failed. `control` is what
    /// the client accepts.
    pub fn is_expired(&self, control: &RequestControl) -> bool {
        let lifetime = self.entry.lifetime();
        let accepted = lifetime.ttl.saturating_add(control.max_stale.unwrap_or(0));
        // The stores count in whole seconds.
        let servable = lifetime.servable().max(accepted).saturating_add(1);
        !self.own && !self.late && self.entry.stored && self.age > servable
    }

    /// Whether a client takes it that takes what the store has and nothing else.
    pub fn satisfies(&self, control: &RequestControl) -> bool {
        let lifetime = self.entry.lifetime();
        let fresh_for = lifetime.fresh_for(self.age);
        control.accepts(self.age, fresh_for, lifetime.stale_while_revalidate)
    }

    /// Whether the origin has brought an object that goes into the store while its client gets it.
    pub fn is_fill(&self) -> bool {
        self.own && self.entry.stored && !self.entry.revalidated
    }

    /// Whether the store has served a 200 as it is, without a word from the origin.
    pub fn is_hit(&self, purpose: Purpose) -> bool {
        let whole = self.entry.stored && self.entry.status == 200;
        whole && self.failure.is_none() && self.metric(purpose) == Metric::RequestsHit
    }

    /// What the request counts as that was sent for `purpose`.
    pub fn metric(&self, purpose: Purpose) -> Metric {
        match purpose {
            _ if self.own && self.entry.revalidated => Metric::RequestsRevalidated,
            _ if self.own => Metric::RequestsMiss,
            Purpose::Collapsed => Metric::RequestsCollapsed,
            _ if self.is_stale() => Metric::RequestsStale,
            _ => Metric::RequestsHit,
        }
    }

    /// What `Cache-Status` says to a client whose request was sent for `purpose`. `collapsed` says that it has
    /// waited for another's response.
    pub fn cache_status(&self, purpose: Purpose, collapsed: bool) -> CacheStatus<'static> {
        if self.own {
            return self.own_cache_status(purpose);
        }
        if let Some(status) = self.failure {
            return CacheStatus::forwarded(Forward::Stale)
                .forward_status(status)
                .ttl(self.fresh_for());
        }
        if collapsed {
            return self.collapsed_cache_status();
        }
        CacheStatus::hit().ttl(self.fresh_for())
    }

    /// What `Cache-Status` says to the followers that have waited for this response.
    pub fn collapsed_cache_status(&self) -> CacheStatus<'static> {
        // What they have waited for was a validation, or there was nothing.
        let forward = if self.is_stale() || self.entry.revalidated {
            Forward::Stale
        } else {
            Forward::UriMiss
        };
        CacheStatus::forwarded(forward)
            .collapsed()
            .ttl(self.fresh_for())
    }

    fn own_cache_status(&self, purpose: Purpose) -> CacheStatus<'static> {
        let status = if self.entry.revalidated {
            let forward = match purpose {
                Purpose::Checked => Forward::Request,
                _ => Forward::Stale,
            };
            let status = CacheStatus::forwarded(forward).forward_status(304);
            status.ttl(self.fresh_for())
        } else {
            let status = CacheStatus::forwarded(Forward::UriMiss);
            let status = status.forward_status(self.entry.status);
            if self.entry.stored {
                return status.stored().ttl(self.fresh_for());
            }
            status
        };
        if self.entry.lacks_room() {
            status.detail(NO_ROOM)
        } else {
            status
        }
    }

    fn fresh_for(&self) -> i64 {
        self.entry.lifetime().fresh_for(self.age)
    }

    fn is_past_its_time(&self) -> bool {
        let lifetime = self.entry.lifetime();
        let windows = lifetime.servable() > lifetime.ttl;
        !self.own && windows && self.fresh_for() <= 0
    }
}

/// The age of a response that Envoy has not counted, as it comes from a revalidation.
fn age_by_date(fields: &StoredFields<'_>, now: Millis) -> u64 {
    let now = i64::try_from(now / 1_000).unwrap_or(i64::MAX);
    let date = fields.date().and_then(date::parse);
    let age = date.map_or(0, |date| now.saturating_sub(date));
    u64::try_from(age).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workers::BodyId;

    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const MILLIS: Millis = 784_111_777_000;
    const OWN: FillId = FillId {
        nonce: 1,
        stream: 2,
    };

    /// Fresh for 10 seconds, served stale for 5 more, and for 100 more where the origin fails.
    fn entry() -> Entry<'static> {
        Entry {
            fill: FillId {
                nonce: 9,
                stream: 2,
            },
            body: BodyId(11),
            status: 200,
            ttl: 10,
            age: 3,
            stale_while_revalidate: 5,
            stale_if_error: 100,
            purge: 0,
            stored: true,
            revalidated: false,
            disguised: false,
            key: "h/k",
        }
    }

    fn own() -> Entry<'static> {
        Entry {
            fill: OWN,
            ..entry()
        }
    }

    fn arrival() -> Arrival {
        Arrival {
            fill: OWN,
            failure: None,
            late: false,
            purged: false,
            now: MILLIS + 4_000,
        }
    }

    fn served(
        entry: Entry<'static>,
        headers: &[(&str, &str)],
        arrival: &Arrival,
    ) -> Served<'static> {
        let fields = headers.iter();
        let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        Served::of(entry, &StoredFields::of(fields), arrival)
    }

    fn aged(entry: Entry<'static>, age: &str) -> Served<'static> {
        served(entry, &[("age", age)], &arrival())
    }

    fn status(served: &Served<'_>, purpose: Purpose) -> String {
        served.cache_status(purpose, false).to_string()
    }

    #[test]
    fn the_age_is_the_stores_or_what_it_came_with_or_counts_from_its_date() {
        let rows = [
            (entry(), vec![("age", "7"), ("date", DATE)], 7),
            (own(), vec![("date", DATE)], 3),
            (entry(), vec![("date", DATE)], 4),
            (entry(), vec![("date", "soon")], 0),
            (entry(), vec![], 0),
        ];
        for (entry, headers, age) in rows {
            let served = served(entry, &headers, &arrival());
            assert_eq!(served.age, age, "{headers:?}");
            assert_eq!(served.has_age, age == 7);
        }
    }

    #[test]
    fn a_date_in_the_future_is_no_age() {
        let early = Arrival {
            now: MILLIS - 9_000,
            ..arrival()
        };
        assert_eq!(served(entry(), &[("date", DATE)], &early).age, 0);
    }

    #[test]
    fn a_response_is_stale_once_its_lifetime_is_over_and_it_has_a_window() {
        assert!(!aged(entry(), "9").is_stale());
        assert!(aged(entry(), "10").is_stale());
        assert!(!aged(own(), "10").is_stale());
        let strict = Entry {
            stale_while_revalidate: 0,
            stale_if_error: 0,
            ..entry()
        };
        assert!(!aged(strict, "10").is_stale());
    }

    #[test]
    fn what_was_asked_for_before_a_soft_purge_is_stale_except_to_its_own_client() {
        let purged = Arrival {
            purged: true,
            ..arrival()
        };
        assert!(served(entry(), &[("age", "1")], &purged).is_stale());
        assert!(!served(own(), &[("age", "1")], &purged).is_stale());
    }

    #[test]
    fn a_stored_response_expires_a_second_after_its_longest_window() {
        let control = RequestControl::default();
        assert!(!aged(entry(), "111").is_expired(&control));
        assert!(aged(entry(), "112").is_expired(&control));
        assert!(!aged(own(), "112").is_expired(&control));
        let unstored = Entry {
            stored: false,
            ..entry()
        };
        assert!(!aged(unstored, "112").is_expired(&control));
    }

    #[test]
    fn max_stale_and_being_late_keep_a_response_from_having_expired() {
        let patient = RequestControl {
            max_stale: Some(500),
            ..RequestControl::default()
        };
        assert!(!aged(entry(), "511").is_expired(&patient));
        assert!(aged(entry(), "512").is_expired(&patient));
        let late = Arrival {
            late: true,
            ..arrival()
        };
        let control = RequestControl::default();
        assert!(!served(entry(), &[("age", "112")], &late).is_expired(&control));
    }

    #[test]
    fn only_if_cached_takes_what_is_fresh_enough() {
        let fresh = RequestControl {
            max_age: Some(5),
            ..RequestControl::default()
        };
        assert!(aged(entry(), "5").satisfies(&fresh));
        assert!(!aged(entry(), "6").satisfies(&fresh));
        assert!(aged(entry(), "14").satisfies(&RequestControl::default()));
        assert!(!aged(entry(), "15").satisfies(&RequestControl::default()));
    }

    #[test]
    fn what_the_store_does_not_have_it_does_not_serve() {
        let headers = [("date", DATE), ("cache-control", "max-age=15")];
        let stored = served(entry(), &headers, &arrival());
        assert_eq!(stored.served_for, 12_000);
        assert_eq!(stored.sighting().left, 12_000);
        let unstored = Entry {
            stored: false,
            ..entry()
        };
        let unstored = served(unstored, &headers, &arrival());
        assert_eq!(unstored.served_for, 0);
        assert_eq!(unstored.sighting_without_room().left, 6_000);
    }

    #[test]
    fn a_request_counts_as_what_its_response_is() {
        let revalidated = Entry {
            revalidated: true,
            ..own()
        };
        let rows = [
            (aged(entry(), "1"), Purpose::Fresh, Metric::RequestsHit),
            (aged(entry(), "10"), Purpose::Fresh, Metric::RequestsStale),
            (
                aged(entry(), "10"),
                Purpose::Collapsed,
                Metric::RequestsCollapsed,
            ),
            (aged(own(), "1"), Purpose::Collapsed, Metric::RequestsMiss),
            (
                aged(revalidated, "1"),
                Purpose::Lead,
                Metric::RequestsRevalidated,
            ),
        ];
        for (served, purpose, metric) in rows {
            assert_eq!(served.metric(purpose), metric);
            assert_eq!(served.is_hit(purpose), metric == Metric::RequestsHit);
        }
    }

    #[test]
    fn what_the_store_keeps_as_the_origin_fails_is_no_hit() {
        let failed = Arrival {
            failure: Some(503),
            ..arrival()
        };
        let served = served(entry(), &[("age", "1")], &failed);
        assert!(!served.is_hit(Purpose::Fresh));
        let expected = "sluice; fwd=stale; fwd-status=503; ttl=9";
        assert_eq!(status(&served, Purpose::Fresh), expected);
    }

    #[test]
    fn only_an_object_that_goes_into_the_store_is_a_fill() {
        assert!(aged(own(), "1").is_fill());
        assert!(!aged(entry(), "1").is_fill());
        let revalidated = Entry {
            revalidated: true,
            ..own()
        };
        assert!(!aged(revalidated, "1").is_fill());
    }

    #[test]
    fn cache_status_tells_how_the_response_came() {
        let revalidated = Entry {
            revalidated: true,
            ..own()
        };
        let no_room = Entry {
            stored: false,
            ..own()
        };
        let unstored = Entry { ttl: 0, ..no_room };
        let rows = [
            (entry(), Purpose::Fresh, "sluice; hit; ttl=9"),
            (
                own(),
                Purpose::Lead,
                "sluice; fwd=uri-miss; fwd-status=200; stored; ttl=9",
            ),
            (
                revalidated,
                Purpose::Lead,
                "sluice; fwd=stale; fwd-status=304; ttl=9",
            ),
            (
                revalidated,
                Purpose::Checked,
                "sluice; fwd=request; fwd-status=304; ttl=9",
            ),
            (
                no_room,
                Purpose::Lead,
                "sluice; fwd=uri-miss; fwd-status=200; detail=no-room",
            ),
            (
                unstored,
                Purpose::Lead,
                "sluice; fwd=uri-miss; fwd-status=200",
            ),
        ];
        for (entry, purpose, expected) in rows {
            assert_eq!(status(&aged(entry, "1"), purpose), expected);
        }
    }

    #[test]
    fn who_has_waited_is_told_of_the_miss_or_of_the_validation() {
        let miss = aged(entry(), "1").cache_status(Purpose::Collapsed, true);
        assert_eq!(miss.to_string(), "sluice; fwd=uri-miss; collapsed; ttl=9");
        let stale = aged(entry(), "12").cache_status(Purpose::Collapsed, true);
        assert_eq!(stale.to_string(), "sluice; fwd=stale; collapsed; ttl=-2");
    }
}
