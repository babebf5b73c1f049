// SPDX-License-Identifier: Apache-2.0
//! What unsafe requests have changed: what a change covers, and what a bounded table remembers of many.
#![allow(clippy::unwrap_used)]

use sluice_core::purge::{Invalidations, SharedInvalidations, SharedPurges, invalidate};
use sluice_core::workers::KeyHash;
use sluice_fake::FakeSharedData;

/// More URLs than the table has room for.
const MANY: u64 = 100_000;
/// What it has room for.
const ROOM: usize = 65_536;

/// Hashes as far apart as those of a keyed hash.
fn url(number: u64) -> KeyHash {
    KeyHash(number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
}

#[test]
fn a_change_covers_its_url_alone() {
    let mut changes = Invalidations::default();
    assert!(changes.is_empty());
    changes.note(url(1), 7);
    changes.note(url(2), 9);
    changes.note(url(1), 8);
    changes.note(url(2), 3);
    assert_eq!((changes.newest(url(1)), changes.newest(url(2))), (8, 9));
    for other in 3..MANY {
        assert_eq!(changes.newest(url(other)), 0);
    }
}

#[test]
fn what_is_forgotten_is_revalidated_and_the_table_stays_bounded() {
    let mut changes = Invalidations::default();
    for number in 1..=MANY {
        changes.note(url(number), number);
        assert_eq!(changes.newest(url(number)), number);
    }
    assert!(
        (ROOM / 4..=ROOM).contains(&changes.len()),
        "{}",
        changes.len()
    );
    for number in 1..=MANY {
        assert!(changes.newest(url(number)) >= number, "{number}");
    }
    // What was fetched since the older half of all changes is not revalidated.
    for other in MANY..2 * MANY {
        assert!(changes.newest(url(other + 1)) <= MANY - MANY / 6);
    }
}

#[test]
fn workers_that_come_later_read_what_has_been_changed() {
    let data = FakeSharedData::default();
    let shared = SharedInvalidations::new(&data);
    assert!(shared.load().unwrap().is_empty());
    let first = invalidate(&data, &[url(1), url(2)]).unwrap();
    let second = invalidate(&data, &[url(2)]).unwrap();
    assert!(first < second);
    let mut replica = Invalidations::default();
    for (url, number) in [(url(1), first), (url(2), first), (url(2), second)] {
        replica.note(url, number);
    }
    assert_eq!(shared.load().unwrap(), replica);
    assert_eq!(SharedPurges::new(&data).load().unwrap().newest(), second);
}

#[test]
fn changes_push_no_purge_out() {
    let data = FakeSharedData::default();
    let of_purges = || {
        let values = data.values().into_iter();
        values
            .filter(|(name, _)| name.starts_with("sluice/purges/"))
            .count()
    };
    invalidate(&data, &[url(0)]).unwrap();
    let head = of_purges();
    for number in 0..1_000 {
        invalidate(&data, &[url(number)]).unwrap();
    }
    assert_eq!(of_purges(), head);
    let purges = SharedPurges::new(&data).load().unwrap();
    assert!(purges.is_empty(), "{purges:?}");
}
