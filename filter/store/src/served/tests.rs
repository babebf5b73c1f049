// SPDX-License-Identifier: Apache-2.0
//! Judgement of responses from the store.

use super::*;
use sluice_core::freshness::Lifetime;
use sluice_core::http::caching::cache_name::CacheName;
use sluice_core::workers::BodyId;

const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const MILLIS: Millis = 784_111_777_000;
const OWN: FillId = FillId {
    nonce: 1,
    stream: 2,
};

/// Name of the cache.
fn name() -> CacheName {
    CacheName::parse("sluice").unwrap()
}

/// Fresh for 10 seconds, served stale for 5 more, and for 100 more if the origin fails.
fn entry() -> Entry<'static> {
    Entry {
        fill: FillId {
            nonce: 9,
            stream: 2,
        },
        body: BodyId(11),
        status: 200,
        lifetime: Lifetime {
            ttl: 10,
            stale_while_revalidate: 5,
            stale_if_error: 100,
        },
        age: 3,
        purge: 0,
        declared: 0,
        stored: true,
        revalidated: false,
        disguised: false,
        shared_once: false,
        allows_authenticated: false,
        is_of_index: false,
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
    headers: &[(&'static str, &'static str)],
    arrival: &Arrival,
) -> Served<'static> {
    let fields = headers.iter();
    let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    Served::of(entry, &StoredFields::of(fields), arrival)
}

fn aged(entry: Entry<'static>, age: &'static str) -> Served<'static> {
    served(entry, &[("age", age)], &arrival())
}

fn status(served: &Served<'_>, request: StoreRequest) -> String {
    served.cache_status(request, false).member_of(&name())
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
        lifetime: Lifetime {
            ttl: 10,
            ..Lifetime::default()
        },
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
fn what_was_counted_in_another_second_is_seen_as_old_as_it_is() {
    let seen = |age| {
        let headers = [("date", DATE), ("age", age)];
        served(entry(), &headers, &arrival()).sighting().age
    };
    assert_eq!(seen("3"), 4, "its `Age` is from the second before");
    assert_eq!(seen("4"), 4);
    assert_eq!(seen("9"), 9, "the clock was set back");
}

#[test]
fn a_request_counts_as_what_its_response_is() {
    let revalidated = Entry {
        revalidated: true,
        ..own()
    };
    let rows = [
        (aged(entry(), "1"), StoreRequest::Fresh, Metric::RequestsHit),
        (
            aged(entry(), "10"),
            StoreRequest::Fresh,
            Metric::RequestsStale,
        ),
        (
            aged(entry(), "10"),
            StoreRequest::Collapsed,
            Metric::RequestsCollapsed,
        ),
        (
            aged(own(), "1"),
            StoreRequest::Collapsed,
            Metric::RequestsMiss,
        ),
        (
            aged(revalidated, "1"),
            StoreRequest::Lead,
            Metric::RequestsRevalidated,
        ),
    ];
    for (served, request, metric) in rows {
        assert_eq!(served.metric(request), metric);
        assert_eq!(served.is_hit(request), metric == Metric::RequestsHit);
    }
}

#[test]
fn what_the_store_keeps_as_the_origin_fails_is_no_hit() {
    let failed = Arrival {
        failure: Some(503),
        ..arrival()
    };
    let served = served(entry(), &[("age", "1")], &failed);
    assert!(!served.is_hit(StoreRequest::Fresh));
    let expected = "sluice; fwd=stale; fwd-status=503; ttl=9";
    assert_eq!(status(&served, StoreRequest::Fresh), expected);
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
    let unstored = Entry {
        lifetime: Lifetime::default(),
        ..no_room
    };
    let rows = [
        (entry(), StoreRequest::Fresh, "sluice; hit; ttl=9"),
        (
            own(),
            StoreRequest::Lead,
            "sluice; fwd=uri-miss; fwd-status=200; stored; ttl=9",
        ),
        (
            revalidated,
            StoreRequest::Lead,
            "sluice; fwd=stale; fwd-status=304; ttl=9",
        ),
        (
            revalidated,
            StoreRequest::Unshared,
            "sluice; fwd=request; fwd-status=304; ttl=9",
        ),
        (
            no_room,
            StoreRequest::Lead,
            "sluice; fwd=uri-miss; fwd-status=200; detail=no-room",
        ),
        (
            unstored,
            StoreRequest::Lead,
            "sluice; fwd=uri-miss; fwd-status=200",
        ),
    ];
    for (entry, request, expected) in rows {
        assert_eq!(status(&aged(entry, "1"), request), expected);
    }
}

#[test]
fn who_has_waited_is_told_of_the_miss_or_of_the_validation() {
    let miss = aged(entry(), "1").cache_status(StoreRequest::Collapsed, true);
    assert_eq!(
        miss.member_of(&name()),
        "sluice; fwd=uri-miss; collapsed; ttl=9"
    );
    let stale = aged(entry(), "12").cache_status(StoreRequest::Collapsed, true);
    assert_eq!(
        stale.member_of(&name()),
        "sluice; fwd=stale; collapsed; ttl=-2"
    );
}
