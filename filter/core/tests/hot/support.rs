// SPDX-License-Identifier: Apache-2.0
//! Objects, and requests for them.

use sluice_core::freshness::Lifetime;
use sluice_core::hot::{HotAnswer, HotCopy, HotLookup, HotTier, SiteNumber, StoreCheck};
use sluice_core::policy::HotPolicy;
use sluice_core::workers::KeyHash;

pub const NOW: u64 = 784_111_777_000;
pub const POLICY: u32 = 3;
pub const SITE: SiteNumber = SiteNumber(0);

pub fn bounds(max_bytes: usize) -> HotPolicy {
    HotPolicy {
        max_bytes,
        max_object_bytes: 64 << 10,
    }
}

pub fn hash(object: u64) -> KeyHash {
    // Odd, so that all hashes differ.
    KeyHash((object + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

pub fn copy(object: u64, length: usize) -> HotCopy {
    HotCopy {
        status: 200,
        key: object.to_string(),
        known_as: hash(object),
        policy: POLICY,
        sighting: StoreCheck {
            lifetime: Lifetime {
                ttl: 60,
                ..Lifetime::default()
            },
            age: 1,
            seen: NOW,
            left: 60_000,
        },
        headers: vec![0; 300],
        aged: true,
        typed: true,
        body: vec![0; length].into(),
    }
}

pub fn get(tier: &HotTier, object: u64, now: u64) -> Option<HotAnswer> {
    get_of(tier, SITE, object, now)
}

pub fn get_of(tier: &HotTier, site: SiteNumber, object: u64, now: u64) -> Option<HotAnswer> {
    let wanted = HotLookup {
        key: &object.to_string(),
        known_as: hash(object),
        policy: POLICY,
    };
    let (_, still) = tier.get(site, hash(object), &wanted, now)?;
    Some(still)
}

/// Sends a request for an object. Returns whether the tier answers it. Otherwise the store's answer passes the tier.
pub fn ask(tier: &mut HotTier, object: u64, length: usize) -> bool {
    ask_of(tier, SITE, object, length, NOW)
}

pub fn ask_of(tier: &mut HotTier, site: SiteNumber, object: u64, length: usize, now: u64) -> bool {
    if get_of(tier, site, object, now).is_some() {
        return true;
    }
    if tier.wants(site, hash(object), length) && tier.begin(length) {
        tier.end(length);
        let mut copy = copy(object, length);
        copy.sighting.seen = now;
        tier.insert(site, hash(object), copy);
    }
    false
}
