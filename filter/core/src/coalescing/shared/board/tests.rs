// SPDX-License-Identifier: Apache-2.0
//! Tests of the board's slots.

use crate::coalescing::shared::board::*;

const KEY: KeyHash = KeyHash(7);
const LEASE: Millis = 3_000;

fn flight(worker: u16, sequence: u32) -> FlightId {
    FlightId {
        worker: WorkerId(worker),
        sequence,
    }
}

/// A key of an entry that was never purged softly.
fn only(key: KeyHash) -> FlightKey {
    FlightKey { entry: key, key }
}

#[test]
fn a_key_of_an_entry_that_is_filled_under_another_key_waits_for_that_fill() {
    let purged = FlightKey {
        entry: KEY,
        key: KeyHash(8),
    };
    let after = |id| Acquired::Follow {
        key: KEY,
        leader: id,
        progress: 0,
    };
    let mut slot = Slot::default();
    slot.acquire(only(KEY), flight(1, 1), 0, LEASE);
    for worker in [1, 2] {
        let acquired = slot.acquire(purged, flight(worker, 9), 5, LEASE);
        assert_eq!(acquired, after(flight(1, 1)), "worker {worker}");
    }
    let told = Some(vec![WorkerId(1), WorkerId(2)]);
    assert_eq!(slot.finish(KEY, flight(1, 1)), told);
    let acquired = slot.acquire(purged, flight(2, 10), 6, LEASE);
    assert_eq!(acquired, Acquired::Lead);
}

#[test]
fn a_fill_whose_lease_has_run_out_keeps_no_other_key_of_its_entry_waiting() {
    let purged = FlightKey {
        entry: KEY,
        key: KeyHash(8),
    };
    let mut slot = Slot::default();
    slot.acquire(only(KEY), flight(1, 1), 0, LEASE);
    let acquired = slot.acquire(purged, flight(2, 1), LEASE, LEASE);
    assert_eq!(acquired, Acquired::Lead);
}

#[test]
fn first_worker_leads_and_the_second_follows() {
    let mut slot = Slot::default();
    assert_eq!(
        slot.acquire(only(KEY), flight(1, 1), 0, LEASE),
        Acquired::Lead
    );
    let followed = slot.acquire(only(KEY), flight(2, 1), 10, LEASE);
    assert_eq!(
        followed,
        Acquired::Follow {
            key: KEY,
            leader: flight(1, 1),
            progress: 0
        }
    );
    assert_eq!(slot.finish(KEY, flight(1, 1)), Some(vec![WorkerId(2)]));
    assert!(slot.is_empty());
}

#[test]
fn a_worker_waits_once_however_often_it_asks() {
    let mut slot = Slot::default();
    slot.acquire(only(KEY), flight(1, 1), 0, LEASE);
    slot.acquire(only(KEY), flight(2, 1), 0, LEASE);
    slot.acquire(only(KEY), flight(2, 2), 0, LEASE);
    assert_eq!(slot.finish(KEY, flight(1, 1)), Some(vec![WorkerId(2)]));
}

#[test]
fn lease_that_ran_out_is_taken_over_with_its_waiting_list() {
    let mut slot = Slot::default();
    slot.acquire(only(KEY), flight(1, 1), 0, LEASE);
    slot.acquire(only(KEY), flight(2, 1), 0, LEASE);
    assert_eq!(
        slot.acquire(only(KEY), flight(3, 1), LEASE, LEASE),
        Acquired::Lead
    );
    assert_eq!(
        slot.finish(KEY, flight(1, 1)),
        None,
        "the old leader has nothing to end"
    );
    assert_eq!(slot.finish(KEY, flight(3, 1)), Some(vec![WorkerId(2)]));
}

#[test]
fn renewed_lease_does_not_run_out() {
    let mut slot = Slot::default();
    slot.acquire(only(KEY), flight(1, 1), 0, LEASE);
    assert!(slot.renew(KEY, flight(1, 1), 2 * LEASE, 500));
    let followed = slot.acquire(only(KEY), flight(2, 1), LEASE, LEASE);
    assert_eq!(
        followed,
        Acquired::Follow {
            key: KEY,
            leader: flight(1, 1),
            progress: 500
        }
    );
    assert!(
        !slot.renew(KEY, flight(2, 1), LEASE, 0),
        "a follower cannot renew"
    );
}

#[test]
fn full_slot_refuses_further_keys_until_leases_run_out() {
    let mut slot = Slot::default();
    for key in 0..FLIGHTS_PER_SLOT as u64 {
        assert_eq!(
            slot.acquire(only(KeyHash(key)), flight(1, 1), 0, LEASE),
            Acquired::Lead
        );
    }
    assert_eq!(
        slot.acquire(only(KeyHash(999)), flight(1, 2), 1, LEASE),
        Acquired::Full
    );
    assert_eq!(
        slot.acquire(only(KeyHash(999)), flight(1, 2), LEASE, LEASE),
        Acquired::Lead
    );
}

#[test]
fn leases_that_ran_out_go_with_the_next_key_unless_somebody_waits_for_them() {
    let mut slot = Slot::default();
    slot.acquire(only(KEY), flight(1, 1), 0, LEASE);
    slot.acquire(only(KeyHash(8)), flight(1, 2), 0, LEASE);
    slot.acquire(only(KeyHash(8)), flight(2, 1), 0, LEASE);
    slot.acquire(only(KeyHash(9)), flight(1, 3), LEASE, LEASE);
    let keys: Vec<_> = slot.leases().map(|(led, ..)| led.key).collect();
    assert_eq!(keys, [KeyHash(8), KeyHash(9)]);
}

#[test]
fn encoding_round_trips_and_foreign_bytes_are_refused() {
    let mut slot = Slot::default();
    slot.acquire(only(KEY), flight(1, 1), 5, LEASE);
    slot.acquire(only(KEY), flight(2, 9), 5, LEASE);
    slot.acquire(only(KeyHash(8)), flight(3, 4), 5, LEASE);
    let bytes = slot.encode();
    assert_eq!(Slot::decode(&bytes), Some(slot));
    for length in 1..bytes.len() {
        let _ = Slot::decode(&bytes[..length]);
    }
    assert_eq!(Slot::decode(b"somebody else's"), None);
    assert_eq!(Slot::decode(b""), None);
}
