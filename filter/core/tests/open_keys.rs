// SPDX-License-Identifier: Apache-2.0
//! The bound on the keys that the v2 store keeps open, on several workers.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use std::collections::HashSet;

use proptest::prelude::*;
use sluice_core::board::KeyHash;
use sluice_core::host::SharedStore;
use sluice_core::open_keys::{Asked, OpenKeys, OpenKeysBound};
use sluice_core::testing::FakeSharedData;

const MOST: usize = 1_024;

/// A key's hash is as good as random.
fn key(number: u64) -> KeyHash {
    let mut bits = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    KeyHash(bits ^ (bits >> 31))
}

/// Some workers before one store, which ends no session before another instance takes its place.
struct Edge {
    workers: Vec<OpenKeys>,
    shared: FakeSharedData,
    sessions: HashSet<u64>,
    instance: u32,
}

impl Edge {
    fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| OpenKeys::default()).collect(),
            shared: FakeSharedData::default(),
            sessions: HashSet::new(),
            instance: 0,
        }
    }

    /// A request; whether it goes to the store.
    fn get(&mut self, worker: usize, number: u64, most: usize) -> bool {
        let bound = OpenKeysBound {
            most,
            instance: self.instance,
        };
        let asked = self.workers[worker].ask(key(number), bound, &mut self.shared);
        let enters = asked.unwrap() != Asked::Full;
        if self.sessions.contains(&number) {
            assert!(enters, "a key that is open is not turned away");
        }
        if enters {
            self.sessions.insert(number);
        }
        enters
    }
}

proptest! {
    #[test]
    fn there_are_never_more_sessions_than_there_may_be(
        most in 1_usize..2_000,
        requests in prop::collection::vec((0_usize..3, 0_u64..5_000), 1..4_000),
    ) {
        let mut edge = Edge::new(3);
        for (worker, number) in requests {
            edge.get(worker, number, most);
            prop_assert!(edge.sessions.len() <= most);
        }
    }
}

#[test]
fn a_flood_leaves_room_for_what_is_asked_for_again() {
    let mut edge = Edge::new(1);
    for number in 0..100_000 {
        edge.get(0, number, MOST);
    }
    let flooded = edge.sessions.len();
    assert!((MOST * 7 / 10..=MOST * 3 / 4).contains(&flooded));
    for number in 200_000..200_100 {
        assert!(!edge.get(0, number, MOST), "the first time");
        assert!(edge.get(0, number, MOST), "the second time");
    }
}

#[test]
fn another_instance_has_room_again_for_as_many_keys() {
    let mut edge = Edge::new(2);
    for instance in 0..4 {
        edge.instance = instance;
        edge.sessions.clear();
        for number in 0..10_000 {
            edge.get(0, number, MOST);
        }
        let open = edge.sessions.clone();
        assert!(open.len() >= MOST * 7 / 10 && open.len() <= MOST);
        assert!(open.iter().all(|number| edge.get(1, *number, MOST)));
    }
}

#[test]
fn requests_that_still_have_the_former_instance_count_nothing() {
    let mut edge = Edge::new(2);
    edge.instance = 1;
    for number in 0..64 {
        edge.get(0, number, MOST);
    }
    let sets = edge.shared.calls().set;
    edge.instance = 0;
    for number in 64..10_000 {
        assert!(edge.get(0, number, MOST) && edge.get(1, number, MOST));
    }
    assert_eq!(edge.shared.calls().set, sets);
}

#[test]
fn a_site_that_fits_goes_to_the_store_from_the_first_request_on() {
    let mut edge = Edge::new(4);
    for number in 0..20_000 {
        assert!(edge.get(0, number, 40_000), "{number}");
    }
    for worker in 0..4 {
        assert!((0..20_000).all(|number| edge.get(worker, number, 40_000)));
    }
}

#[test]
fn a_key_that_all_workers_ask_for_counts_once() {
    let mut edge = Edge::new(8);
    for number in 0..MOST as u64 / 2 {
        for worker in 0..8 {
            assert!(edge.get(worker, number, MOST));
        }
    }
}

#[test]
fn a_worker_that_is_made_anew_knows_what_is_open() {
    let mut edge = Edge::new(1);
    for number in 0..10_000 {
        edge.get(0, number, MOST);
    }
    edge.workers[0] = OpenKeys::default();
    let open = edge.sessions.clone();
    assert!(open.iter().all(|number| edge.get(0, *number, MOST)));
}

#[test]
fn a_worker_looks_at_shared_data_once_for_a_key() {
    let mut edge = Edge::new(2);
    for _ in 0..100 {
        edge.get(0, 1, MOST);
        edge.get(1, 1, MOST);
    }
    assert_eq!(edge.shared.calls().get, 2);
    assert_eq!(edge.shared.calls().set, 1);
}

#[test]
fn shared_data_that_cannot_be_used_is_a_fault_and_counts_nothing() {
    let mut edge = Edge::new(1);
    edge.shared.fail_next(1);
    let bound = OpenKeysBound {
        most: MOST,
        instance: 0,
    };
    let asked = edge.workers[0].ask(key(1), bound, &mut edge.shared);
    assert!(asked.is_err());
    assert!(edge.shared.get("sluice/open/4/0").unwrap().is_none());
    assert!(edge.get(0, 1, MOST));
}
