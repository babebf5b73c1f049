// SPDX-License-Identifier: Apache-2.0
//! The bound on the keys that the v2 store keeps open, before a store that ends its sessions as Envoy's does: each
//! request looks at the session behind its own, and ends it if that has had five minutes without a request.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use std::collections::BTreeMap;

use sluice_core::board::{KeyHash, Millis};
use sluice_core::open_keys::{KEPT_MINUTES, OpenKeys};
use sluice_core::testing::FakeSharedData;

const MINUTE: Millis = 60_000;
const MOST: usize = 1_024;

/// A key's place among all others is as good as random.
fn key(number: u64) -> KeyHash {
    let mut bits = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    KeyHash(bits ^ (bits >> 31))
}

/// Envoy's `CacheSessions`.
#[derive(Default)]
struct Sessions {
    expiry: BTreeMap<u64, Millis>,
}

impl Sessions {
    fn ask(&mut self, key: KeyHash, now: Millis) {
        // Not the order of the pages.
        let place = key.0.rotate_left(17);
        self.expiry.insert(place, now + 5 * MINUTE);
        let behind = self.expiry.range(place + 1..).next();
        let behind = behind.or_else(|| self.expiry.first_key_value());
        if let Some((&place, &expiry)) = behind
            && expiry < now
        {
            self.expiry.remove(&place);
        }
    }
}

/// Some workers before one store.
struct Edge {
    workers: Vec<OpenKeys>,
    shared: FakeSharedData,
    sessions: Sessions,
    now: Millis,
    turn: usize,
    most_sessions: usize,
    asked: BTreeMap<KeyHash, Millis>,
}

impl Edge {
    fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| OpenKeys::default()).collect(),
            shared: FakeSharedData::default(),
            sessions: Sessions::default(),
            now: 7 * MINUTE,
            turn: 0,
            most_sessions: 0,
            asked: BTreeMap::new(),
        }
    }

    /// A request, on one worker after the other; whether it goes to the store.
    fn get(&mut self, number: u64) -> bool {
        self.turn = (self.turn + 1) % self.workers.len();
        let key = key(number);
        let worker = &mut self.workers[self.turn];
        let enters = worker.ask(key, MOST, self.now, &mut self.shared).unwrap();
        let known = self.asked.get(&key);
        if known.is_some_and(|last| self.now - last < 5 * MINUTE) {
            assert!(enters, "a key that is open is not turned away");
        }
        if enters {
            self.asked.insert(key, self.now);
            self.sessions.ask(key, self.now);
            self.most_sessions = self.most_sessions.max(self.sessions.expiry.len());
        }
        enters
    }

    /// Keys that were asked for within the last minutes.
    fn live(&mut self) -> usize {
        let now = self.now;
        self.asked.retain(|_, last| now - *last < 5 * MINUTE);
        self.asked.len()
    }
}

/// Keys that nobody has asked for before.
struct Fresh(u64);

impl Fresh {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

#[test]
fn a_flood_of_keys_leaves_no_more_sessions_than_there_may_be() {
    let (mut edge, mut fresh) = (Edge::new(2), Fresh(1_000_000));
    for _ in 0..4 * 60 * 6 {
        for _ in 0..100 {
            edge.get(fresh.next());
        }
        edge.now += MINUTE / 6;
        assert!(edge.live() <= MOST);
    }
    assert!(
        edge.most_sessions <= MOST * 11 / 10,
        "{} sessions",
        edge.most_sessions
    );
}

#[test]
fn without_a_bound_a_flood_leaves_more_of_them_than_were_asked_for_in_its_time() {
    let (mut sessions, mut fresh, mut now) = (Sessions::default(), Fresh(0), 0);
    for _ in 0..12 * 60 * 6 {
        for _ in 0..100 {
            sessions.ask(key(fresh.next()), now);
        }
        now += MINUTE / 6;
    }
    let in_time = 5 * 6 * 100;
    assert!(sessions.expiry.len() > 5 * in_time);
}

/// Hot keys, each asked for every ten seconds, while there are `churn` others a minute for so many minutes; how many of
/// the hot requests and of the others did not go to the store in the last half of the time.
fn site(edge: &mut Edge, hot: u64, churn: u64, minutes: u64) -> (u64, u64) {
    let mut fresh = Fresh(edge.now * 1_000_000);
    let mut turned_away = (0, 0);
    for step in 0..minutes * 6 {
        let counts = u64::from(step >= minutes * 3);
        for number in 0..hot {
            turned_away.0 += counts * u64::from(!edge.get(number));
        }
        for _ in 0..churn / 6 {
            turned_away.1 += counts * u64::from(!edge.get(fresh.next()));
        }
        edge.now += MINUTE / 6;
    }
    turned_away
}

#[test]
fn a_site_that_fits_is_in_the_store_whatever_is_asked_for_once_beside_it() {
    for churn in [0, 6, 30] {
        let mut edge = Edge::new(2);
        let turned_away = site(&mut edge, 300, churn, 120);
        assert_eq!(turned_away, (0, 0), "{churn} others a minute");
        assert!(edge.most_sessions <= MOST);
    }
}

#[test]
fn a_flood_takes_no_room_from_who_is_asked_for_again() {
    let mut edge = Edge::new(2);
    site(&mut edge, 0, 6_000, 20);
    let (hot, _) = site(&mut edge, 300, 6_000, 40);
    assert_eq!(hot, 0);
    assert!(edge.most_sessions <= MOST * 11 / 10);
}

#[test]
fn after_a_flood_the_store_is_there_for_others_again() {
    let mut edge = Edge::new(2);
    site(&mut edge, 0, 6_000, 20);
    let minutes = u64::from(KEPT_MINUTES) + 14;
    let turned_away = site(&mut edge, 800, 0, minutes);
    assert_eq!(turned_away, (0, 0));
}

#[test]
fn a_key_that_all_workers_ask_for_counts_once() {
    let mut edge = Edge::new(8);
    for number in (0..MOST as u64 / 2).flat_map(|number| [number; 8]) {
        assert!(edge.get(number));
    }
    assert_eq!(edge.live(), MOST / 2);
}

#[test]
fn a_key_is_looked_up_in_shared_data_once_a_minute_by_each_worker() {
    let mut edge = Edge::new(2);
    for _ in 0..100 {
        edge.get(1);
    }
    assert_eq!(edge.shared.calls().get, 2);
    assert_eq!(edge.shared.calls().set, 1);
    edge.now += MINUTE;
    for _ in 0..100 {
        edge.get(1);
    }
    assert_eq!(edge.shared.calls().get, 4);
    assert_eq!(edge.shared.calls().set, 2);
}
