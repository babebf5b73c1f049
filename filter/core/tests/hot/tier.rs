// SPDX-License-Identifier: Apache-2.0
//! The hot tier keeps objects with frequent requests, and stays within its limits, with any traffic.

use proptest::prelude::*;
use sluice_core::hot::{HotAdmission, HotLookup, HotTier};

use crate::support::allocations::{BYTES, MOST};

use super::support::{NOW, POLICY, SITE, ask, bounds, copy, get, hash};

#[test]
fn one_pass_over_a_million_keys_neither_flushes_it_nor_outgrows_it() {
    const MAX_BYTES: usize = 4 << 20;
    let before = BYTES.get();
    MOST.set(before);
    let mut tier = HotTier::new(bounds(MAX_BYTES));
    let working_set = 0..200;
    for _ in 0..3 {
        for object in working_set.clone() {
            ask(&mut tier, object, 10_000);
        }
    }
    for object in 1_000..1_001_000 {
        ask(&mut tier, object, (object % 3_000) as usize + 1);
        // Hot objects are requested in between.
        if object % 50 == 0 {
            ask(&mut tier, (object / 50) % 200, 10_000);
        }
    }
    let kept = working_set.filter(|&object| ask(&mut tier, object, 10_000));
    assert!(kept.count() >= 190);
    assert!(tier.bytes() <= MAX_BYTES as u64);
    let most = usize::try_from(MOST.get() - before).unwrap();
    assert!(most <= MAX_BYTES, "{most} bytes were allocated");
}

#[test]
fn the_smallest_objects_outgrow_it_no_more_than_others() {
    const MAX_BYTES: usize = 1 << 20;
    let before = BYTES.get();
    MOST.set(before);
    let mut tier = HotTier::new(bounds(MAX_BYTES));
    for round in 0..2 {
        for object in 0..20_000 {
            ask(&mut tier, object + round, 1);
        }
    }
    assert!(tier.len() > 500, "{}", tier.len());
    let most = usize::try_from(MOST.get() - before).unwrap();
    assert!(most <= MAX_BYTES, "{most} bytes were allocated");
}

#[test]
fn what_comes_once_is_not_even_copied_when_it_is_full() {
    let mut tier = HotTier::new(bounds(1 << 20));
    let mut object = 0;
    while tier.wants(SITE, hash(object), 10_000) {
        tier.insert(SITE, hash(object), copy(object, 10_000));
        object += 1;
    }
    assert!((60..=105).contains(&object), "{object}");
    assert!(tier.wants(SITE, hash(object), 10_000), "the second time");
}

#[test]
fn a_copy_is_of_one_key_one_policy_and_no_purge() {
    let mut tier = HotTier::new(bounds(1 << 20));
    tier.insert(SITE, hash(7), copy(7, 10));
    let wanted = HotLookup {
        key: "7",
        known_as: hash(7),
        policy: POLICY,
    };
    let gets = |wanted| tier.get(SITE, hash(7), &wanted, NOW).is_some();
    assert!(gets(wanted));
    assert!(
        !gets(HotLookup { key: "8", ..wanted }),
        "another of one hash"
    );
    let known_as = hash(8);
    assert!(
        !gets(HotLookup { known_as, ..wanted }),
        "after a soft purge"
    );
    let policy = POLICY + 1;
    assert!(!gets(HotLookup { policy, ..wanted }));
}

#[test]
fn a_copy_takes_the_place_of_the_one_before() {
    let mut tier = HotTier::new(bounds(1 << 20));
    let kept = |admitted| HotAdmission {
        admitted,
        evicted: 0,
    };
    assert_eq!(tier.insert(SITE, hash(7), copy(7, 10)), kept(true));
    let before = tier.bytes();
    assert_eq!(tier.insert(SITE, hash(7), copy(7, 20)), kept(false));
    assert_eq!((tier.len(), tier.bytes()), (1, before + 10));
    assert_eq!(get(&tier, 7, NOW + 1_000).unwrap().age, 2);
    tier.remove(SITE, hash(7));
    assert!(tier.is_empty());
    assert_eq!(get(&tier, 7, NOW), None);
}

#[test]
fn large_and_empty_objects_and_those_without_a_tier_are_not_copied() {
    let mut tier = HotTier::new(bounds(1 << 20));
    assert!(tier.wants(SITE, hash(1), 64 << 10));
    assert!(!tier.wants(SITE, hash(2), (64 << 10) + 1));
    assert!(!tier.wants(SITE, hash(3), 0));
    let mut none = HotTier::new(bounds(0));
    assert!(!none.wants(SITE, hash(1), 1));
    assert_eq!(get(&none, 1, NOW), None);
}

#[test]
fn no_more_is_in_the_making_than_an_eighth() {
    let mut tier = HotTier::new(bounds(1 << 20));
    let begun = (0..1_000).filter(|_| tier.begin(10_000));
    assert_eq!(begun.count(), 12);
    tier.end(10_000);
    assert!(tier.begin(10_000));
    assert!(!tier.begin(10_000));
}

proptest! {
    #[test]
    fn no_sequence_exceeds_the_bounds(
        max_bytes in 0_usize..200_000,
        requests in prop::collection::vec((0_u64..60, 1_usize..70_000, any::<bool>()), 0..300),
    ) {
        let mut tier = HotTier::new(bounds(max_bytes));
        for (object, length, forget) in requests {
            ask(&mut tier, object, length);
            if forget {
                tier.remove(SITE, hash(object / 2));
            }
            prop_assert!(tier.bytes() <= max_bytes as u64);
        }
    }
}
