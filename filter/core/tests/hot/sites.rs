// SPDX-License-Identifier: Apache-2.0
//! Several sites share the hot tier by their weights.

use proptest::prelude::*;
use sluice_core::hot::{HotTier, SiteNumber};

use crate::support::allocations::{BYTES, MOST};

use super::support::{NOW, ask_of, bounds, copy, get_of, hash};

const A: SiteNumber = SiteNumber(0);
const B: SiteNumber = SiteNumber(1);
const MAX_BYTES: usize = 4 << 20;

fn tier(shares: &[u32]) -> HotTier {
    let mut tier = HotTier::new(bounds(MAX_BYTES));
    tier.set_shares(shares);
    tier
}

/// The first object of a site. Sites have no objects in common.
fn first(site: SiteNumber) -> u64 {
    u64::from(site.0) << 32
}

/// Sends two requests of a site for each of its first `number` objects, which have 10,000 bytes each.
fn fill(tier: &mut HotTier, site: SiteNumber, number: u64, now: u64) {
    for object in first(site)..first(site) + number {
        ask_of(tier, site, object, 10_000, now);
        ask_of(tier, site, object, 10_000, now);
    }
}

/// Number of copies that a site has among its first `number` objects.
fn held(tier: &HotTier, site: SiteNumber, number: u64, now: u64) -> usize {
    let objects = first(site)..first(site) + number;
    let held = objects.filter(|object| get_of(tier, site, *object, now).is_some());
    held.count()
}

#[test]
fn a_scan_of_a_million_objects_takes_no_copy_of_another_site() {
    let before = BYTES.get();
    MOST.set(before);
    let mut tier = tier(&[1, 1]);
    fill(&mut tier, B, 150, NOW);
    assert_eq!(held(&tier, B, 150, NOW), 150);
    for object in 0..1_000_000 {
        ask_of(&mut tier, A, object, (object % 3_000) as usize + 1, NOW);
    }
    assert_eq!(held(&tier, B, 150, NOW), 150);
    assert!(tier.bytes() <= MAX_BYTES as u64);
    let most = usize::try_from(MOST.get() - before).unwrap();
    assert!(most <= MAX_BYTES, "{most} bytes were allocated");
}

#[test]
fn a_scan_does_not_keep_another_site_from_its_share() {
    let mut tier = tier(&[1, 1]);
    for object in 0..100_000 {
        ask_of(&mut tier, A, object, 3_000, NOW);
        // It sends a hundredth of the other site's requests, and two for each object.
        if object % 100 == 0 {
            ask_of(&mut tier, B, first(B) + object / 100 % 150, 10_000, NOW);
        }
    }
    assert_eq!(held(&tier, B, 150, NOW), 150);
}

#[test]
fn what_a_site_does_not_use_is_lent_and_comes_back() {
    let mut tier = tier(&[1, 1]);
    fill(&mut tier, A, 1_000, NOW);
    let alone = held(&tier, A, 1_000, NOW);
    assert!(alone > 300, "{alone}");
    fill(&mut tier, B, 100, NOW);
    assert_eq!(held(&tier, B, 100, NOW), 100);
    assert!(held(&tier, A, 1_000, NOW) > alone - 130);
    fill(&mut tier, B, 1_000, NOW);
    for site in [A, B] {
        let held = held(&tier, site, 1_000, NOW);
        assert!((alone * 2 / 5..=alone * 3 / 5).contains(&held), "{held}");
    }
}

#[test]
fn weights_say_how_much_each_has_when_all_need_more() {
    let mut tier = tier(&[3, 1]);
    for _ in 0..10 {
        fill(&mut tier, A, 1_000, NOW);
        fill(&mut tier, B, 1_000, NOW);
    }
    let [a, b] = [A, B].map(|site| held(&tier, site, 1_000, NOW));
    assert!((2 * b..=4 * b).contains(&a), "{a} and {b}");
}

#[test]
fn a_site_whose_copies_are_too_old_to_be_served_lends_all() {
    let mut tier = tier(&[1, 1]);
    fill(&mut tier, A, 1_000, NOW);
    let alone = held(&tier, A, 1_000, NOW);
    let later = NOW + 10_000;
    fill(&mut tier, B, 1_000, later);
    assert_eq!(held(&tier, A, 1_000, NOW), 0);
    assert!(held(&tier, B, 1_000, later) > alone * 9 / 10);
    fill(&mut tier, A, 100, later);
    assert_eq!(held(&tier, A, 100, later), 100, "it is back");
}

#[test]
fn a_clock_that_is_set_back_empties_nobody() {
    let mut tier = tier(&[1, 1]);
    fill(&mut tier, A, 100, NOW);
    fill(&mut tier, B, 1_000, NOW - 3_600_000);
    assert_eq!(held(&tier, A, 100, NOW), 100);
}

#[test]
fn a_site_without_a_weight_has_no_copies() {
    let mut tier = tier(&[1, 1]);
    fill(&mut tier, A, 100, NOW);
    fill(&mut tier, B, 100, NOW);
    tier.set_shares(&[1, 0]);
    assert_eq!((held(&tier, A, 100, NOW), tier.len()), (100, 100));
    for site in [B, SiteNumber(2), SiteNumber(u16::MAX)] {
        assert!(!tier.wants(site, hash(1), 10));
        assert_eq!(get_of(&tier, site, 1, NOW), None);
        let kept = tier.insert(site, hash(1), copy(1, 10));
        assert!(!kept.admitted);
        tier.remove(site, hash(1));
    }
    tier.set_shares(&[1, 1]);
    fill(&mut tier, B, 100, NOW);
    assert_eq!(held(&tier, B, 100, NOW), 100);
    tier.set_shares(&[]);
    assert!(tier.is_empty());
    assert_eq!(tier.bytes(), 0);
}

#[test]
fn what_goes_for_another_site_is_counted() {
    let mut tier = tier(&[1, 1]);
    fill(&mut tier, A, 1_000, NOW);
    let before = tier.len();
    let kept = tier.insert(B, hash(first(B)), copy(first(B), 10_000));
    assert!(kept.admitted && kept.evicted > 0, "{kept:?}");
    assert_eq!(tier.len(), before + 1 - kept.evicted as usize);
}

#[test]
fn a_thousand_sites_without_copies_take_little_memory() {
    let before = BYTES.get();
    let mut tier = tier(&[1; 1_000]);
    let empty = usize::try_from(BYTES.get() - before).unwrap();
    assert!(empty <= 400 * 1_000, "{empty} bytes");
    MOST.set(before);
    for round in 0..100 {
        for site in 0..1_000 {
            let object = first(SiteNumber(site)) + round / 2;
            ask_of(&mut tier, SiteNumber(site), object, 500, NOW);
        }
    }
    assert!(tier.len() > 3_000);
    let most = usize::try_from(MOST.get() - before).unwrap() - empty;
    assert!(most <= MAX_BYTES, "{most} bytes were allocated");
}

proptest! {
    #[test]
    fn no_site_takes_copies_of_one_that_has_less(
        shares in prop::collection::vec(1_u32..5, 2..5),
        requests in prop::collection::vec((0_u16..5, 0_u64..40, 100_usize..9_000), 0..400),
    ) {
        let mut tier = HotTier::new(bounds(200_000));
        tier.set_shares(&shares);
        // Size of the copy by object.
        let mut copies = std::collections::BTreeMap::new();
        let mut sites = vec![0_usize; shares.len()];
        for (site, object, length) in requests {
            let Some(&share) = shares.get(usize::from(site)) else { continue };
            let (site, object) = (SiteNumber(site), first(SiteNumber(site)) + object);
            if ask_of(&mut tier, site, object, length, NOW) {
                continue;
            }
            let before = sites.clone();
            let new = copy(object, length).bytes();
            copies.insert(object, (site, new));
            copies.retain(|object, (site, _)| get_of(&tier, *site, *object, NOW).is_some());
            sites.fill(0);
            for (site, bytes) in copies.values() {
                sites[usize::from(site.0)] += bytes;
            }
            prop_assert_eq!(tier.len(), copies.len());
            prop_assert_eq!(tier.bytes(), sites.iter().sum::<usize>() as u64);
            prop_assert!(tier.bytes() <= 200_000);
            let taker = sites[usize::from(site.0)].saturating_sub(new) / share as usize;
            for (other, (was, is)) in before.iter().zip(&sites).enumerate() {
                // Whole copies are evicted, so the last one may have been partly above the share. They were evicted
                // before the new one was inserted.
                let per_weight = (is + 10_000) / shares[other] as usize;
                let lost = other != usize::from(site.0) && is < was;
                prop_assert!(!lost || per_weight >= taker);
            }
        }
    }
}
