// SPDX-License-Identifier: Apache-2.0
//! Fuzzes journals of purges, and bytes in place of the purges in shared data, which other filters may write. A
//! journal that was read can be written again, means the same in any order, and never causes a trap.
//!
//! Input: a journal up to the first NUL, then foreign bytes.
#![no_main]
// A fuzz target reports what it finds by a panic.
#![allow(clippy::expect_used)]

use libfuzzer_sys::fuzz_target;
use sluice_core::key::secret::StoreSecret;
use sluice_core::policy::purge::{Kind, Scope, UrlHash};
use sluice_core::purge::{
    Confirmations, InitialPurges, PurgeOrder, PurgeSubject, Purges, SharedPurges, TagHash, Tags,
    carry_out,
};
use sluice_core::workers::Roster;
use sluice_core::workers::message::Message;
use sluice_core::workers::{KeyHash, WorkerId};
use sluice_fake::FakeSharedData;

const SECRET: StoreSecret = StoreSecret::new([1, 2]);
/// Greater than any number of purges in practice.
const OUT_OF_REACH: u64 = 1 << 62;
const URLS: [&str; 4] = ["", "edge.test/a", "assets!edge.test/a", "/site/index.html"];

fuzz_target!(|input: &[u8]| {
    let mut halves = input.splitn(2, |byte| *byte == 0);
    let journal = halves.next().unwrap_or_default();
    let foreign = halves.next().unwrap_or_default();
    if let Ok(text) = std::str::from_utf8(journal) {
        check_journal(text);
    }
    if let Some(message) = Message::decode(foreign) {
        assert_eq!(Message::decode(&message.encode()), Some(message));
    }
    check_shared(foreign);
});

fn check_journal(text: &str) {
    let mut purges = Purges::default();
    purges.apply_text(text);
    let written = purges.to_text();
    let mut again = Purges::default();
    assert!(again.apply_text(&written), "{written:?}");
    assert_eq!(again, purges);
    let mut backwards = Purges::default();
    for line in text.lines().rev() {
        backwards.apply_text(line);
    }
    assert_eq!(backwards, purges);
    for url in URLS {
        let found = purges.generations(url, &SECRET);
        assert!(found.hard.max(found.soft).max(found.changed) <= purges.newest());
        assert_eq!(again.generations(url, &SECRET), found);
    }
    if purges.newest() < OUT_OF_REACH {
        check_purge(purges);
    }
}

/// Checks that after any journal a purge of everything is newer than all other purges, and so is a purge of a prefix
/// for the URLs that it covers.
fn check_purge(purges: Purges) {
    let store = FakeSharedData::default();
    let mut shared = SharedPurges::new(&store, 1);
    let initial = InitialPurges {
        purges,
        unindexed_entries: false,
    };
    shared.start(&initial).expect("the store is well");
    let before = shared.load().expect("the store is well");
    for scope in [Scope::Prefix("/site/".into()), Scope::Everything] {
        shared
            .commit(Kind::Hard, &[scope])
            .expect("the store is well");
        let after = shared.load().expect("the store is well");
        let url = "/site/a/b";
        assert!(after.generations(url, &SECRET).hard > before.newest());
    }
}

/// Checks that with any bytes in place of the purges calls succeed, and the last purge applies.
fn check_shared(foreign: &[u8]) {
    let store = FakeSharedData::default();
    use_shared(&store);
    for (name, _) in store.values() {
        store.set(&name, foreign, 0).expect("room");
    }
    let purges = SharedPurges::new(&store, 1).load();
    if purges.expect("the store is well").newest() < OUT_OF_REACH {
        use_shared(&store);
    }
}

fn use_shared(store: &FakeSharedData) {
    let tag = TagHash::of("red", &SECRET);
    let noted = Tags::new(store, "", 0, 1).note(&[tag], UrlHash(1), 0);
    noted.expect("the store is well");
    for what in [
        PurgeSubject::Tags {
            tags: vec![tag],
            site: String::new(),
        },
        PurgeSubject::Scopes(vec![
            Scope::of_url("/x", &SECRET),
            Scope::Prefix("/site/a".into()),
        ]),
    ] {
        let order = PurgeOrder {
            what,
            kind: Kind::Hard,
        };
        let records = carry_out(store, &order, 1).expect("the store is well");
        assert!(!records.is_empty());
    }
    let purges = SharedPurges::new(store, 1)
        .load()
        .expect("the store is well");
    assert!(purges.generations("/site/a/b", &SECRET).hard > 0);
    let mut roster = Roster::new(store);
    roster.join(WorkerId(7)).expect("the store is well");
    let members = roster.members().expect("the store is well");
    assert!(members.contains(&WorkerId(7)));
    let mut confirmations = Confirmations::new(store);
    confirmations.add(KeyHash(5)).expect("the store is well");
    assert_eq!(confirmations.has(KeyHash(5)), Ok(true));
}
