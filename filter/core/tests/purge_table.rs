// SPDX-License-Identifier: Apache-2.0
//! What purges cover, in whatever order a worker hears of them, and what shared data keeps of them.

use std::collections::BTreeSet;

use proptest::prelude::*;
use sluice_core::policy::purge::{Kind, Record, Scope, bucket_of};
use sluice_core::purge::{
    Confirmations, Generations, Initial, MAX_PREFIXES, Noted, Purges, SharedPurges, TagHash, Tags,
};
use sluice_core::workers::{KeyHash, Roster, WorkerId};
use sluice_fake::FakeSharedData;

fn record(number: u64, kind: Kind, scope: Scope) -> Record {
    Record {
        number,
        kind,
        scope,
    }
}

fn url(text: &str) -> Scope {
    Scope::Bucket(bucket_of(text))
}

fn prefix(text: &str) -> Scope {
    Scope::Prefix(text.to_owned())
}

fn table(records: &[(u64, Kind, Scope)]) -> Purges {
    let mut purges = Purges::default();
    for (number, kind, scope) in records {
        purges.apply(&record(*number, *kind, scope.clone()));
    }
    purges
}

fn prefixes(purges: &Purges) -> usize {
    let scopes = purges.records().map(|record| record.scope);
    let prefixes = scopes.filter(|scope| matches!(scope, Scope::Prefix(_)));
    prefixes.collect::<BTreeSet<Scope>>().len()
}

fn buckets(purges: &Purges) -> usize {
    let scopes = purges.records().map(|record| record.scope);
    let buckets = scopes.filter(|scope| matches!(scope, Scope::Bucket(_)));
    buckets.collect::<BTreeSet<Scope>>().len()
}

fn generations(hard: u64, soft: u64) -> Generations {
    Generations { hard, soft }
}

#[test]
fn the_newest_purge_that_covers_a_url_counts() {
    use Kind::{Hard, Soft};
    let purges = table(&[
        (1, Hard, Scope::Everything),
        (2, Hard, prefix("a.test/css/")),
        (3, Soft, prefix("a.test/css/old/")),
        (4, Hard, url("a.test/css/one.css")),
        (5, Soft, url("a.test/")),
    ]);
    for (text, expected) in [
        ("b.test/", generations(1, 0)),
        ("a.test/css", generations(1, 0)),
        ("a.test/css/two.css", generations(2, 0)),
        ("a.test/css/old/x.css", generations(2, 3)),
        ("a.test/css/one.css", generations(4, 0)),
        ("a.test/", generations(1, 5)),
    ] {
        assert_eq!(purges.generations(text), expected, "{text}");
    }
    assert_eq!(purges.newest(), 5);
}

#[test]
fn a_hard_purge_overtakes_a_soft_one_and_not_the_other_way_round() {
    use Kind::{Hard, Soft};
    let overtaken = table(&[(1, Soft, url("a/x")), (2, Hard, url("a/x"))]);
    assert_eq!(overtaken.generations("a/x"), generations(2, 0));
    let both = table(&[(1, Hard, url("a/x")), (2, Soft, url("a/x"))]);
    assert_eq!(both.generations("a/x"), generations(1, 2));
}

#[test]
fn what_a_wider_and_newer_purge_covers_is_forgotten() {
    use Kind::{Hard, Soft};
    let mut purges = table(&[
        (1, Hard, url("a/x")),
        (2, Soft, prefix("a/b/")),
        (3, Hard, prefix("a/b/c/")),
    ]);
    purges.apply(&record(4, Hard, prefix("a/b/")));
    assert_eq!((prefixes(&purges), buckets(&purges)), (1, 1));
    purges.apply(&record(5, Soft, Scope::Everything));
    assert_eq!(
        (prefixes(&purges), buckets(&purges)),
        (1, 1),
        "hard ones stay"
    );
    purges.apply(&record(6, Hard, Scope::Everything));
    assert_eq!((prefixes(&purges), buckets(&purges)), (0, 0));
    purges.apply(&record(3, Hard, url("a/x")));
    assert_eq!(buckets(&purges), 0, "old news");
}

#[test]
fn with_too_many_prefixes_the_closest_two_become_one() {
    let mut purges = Purges::default();
    for number in 0..MAX_PREFIXES as u64 {
        let host = format!("host-{number}.test/");
        purges.apply(&record(number + 1, Kind::Soft, Scope::Prefix(host)));
    }
    assert_eq!(purges.fold(), None);
    purges.apply(&record(1_000, Kind::Hard, prefix("host-7.test/a/b/one")));
    purges.apply(&record(1_001, Kind::Soft, prefix("host-7.test/a/b/two")));
    let (kind, scope) = purges.fold().expect("too many");
    assert_eq!((kind, &scope), (Kind::Hard, &prefix("host-7.test/a/b/")));
    purges.apply(&record(1_002, kind, scope));
    assert_eq!(prefixes(&purges), MAX_PREFIXES + 1);
    let (kind, scope) = purges.fold().expect("still too many");
    assert_eq!((kind, scope), (Kind::Hard, prefix("host-7.test/")));
}

#[test]
fn prefixes_of_different_hosts_fold_into_everything() {
    let mut purges = Purges::default();
    for number in 0..=MAX_PREFIXES as u64 {
        let host = format!("{number}.test/");
        purges.apply(&record(number + 1, Kind::Soft, Scope::Prefix(host)));
    }
    assert_eq!(purges.fold(), Some((Kind::Soft, Scope::Everything)));
}

fn any_record() -> impl Strategy<Value = Record> {
    let scope = prop_oneof![
        (0..4_u16).prop_map(Scope::Bucket),
        "[ab]/[ab]{0,2}".prop_map(Scope::Prefix),
        Just(Scope::Everything),
        Just(Scope::Nothing),
    ];
    let kind = prop_oneof![Just(Kind::Hard), Just(Kind::Soft)];
    (1..40_u64, kind, scope).prop_map(|(number, kind, scope)| record(number, kind, scope))
}

proptest! {
    #[test]
    fn order_and_repetition_make_no_difference(
        records in prop::collection::vec(any_record(), 0..20).prop_flat_map(|records| {
            (Just(records.clone()), Just(records).prop_shuffle())
        })
    ) {
        let (records, shuffled) = records;
        let (mut one, mut other) = (Purges::default(), Purges::default());
        records.iter().for_each(|record| one.apply(record));
        shuffled.iter().chain(&records).for_each(|record| other.apply(record));
        prop_assert_eq!(&one, &other);
        let mut copy = Purges::default();
        prop_assert!(copy.apply_text(&one.to_text()));
        prop_assert_eq!(one, copy);
    }

    #[test]
    fn after_a_hard_purge_no_covered_url_has_a_generation_that_it_had_before(
        before in prop::collection::vec(any_record(), 0..20),
        path in "[ab]/[ab]{0,3}",
        wide in any::<bool>(),
    ) {
        let mut purges = Purges::default();
        let mut earlier = vec![purges.generations(&path).hard];
        for record in &before {
            purges.apply(record);
            earlier.push(purges.generations(&path).hard);
        }
        let scope = if wide { prefix(&path[..3.min(path.len())]) } else { url(&path) };
        purges.apply(&record(purges.newest() + 1, Kind::Hard, scope));
        prop_assert!(!earlier.contains(&purges.generations(&path).hard));
    }
}

#[test]
fn a_replica_that_starts_late_has_what_the_others_were_told() {
    let store = FakeSharedData::default();
    let mut shared = SharedPurges::new(&store);
    shared.start(&Initial::default()).unwrap();
    let mut told = Purges::default();
    for number in 0..330 {
        let scopes = [
            url(&format!("a.test/{number}")),
            prefix(&format!("a.test/{}/", number % 300)),
        ];
        let kind = if number % 3 == 0 {
            Kind::Soft
        } else {
            Kind::Hard
        };
        for record in shared.commit(kind, &scopes).unwrap() {
            told.apply(&record);
        }
    }
    assert_eq!(shared.load().unwrap(), told);
    assert!(prefixes(&told) <= MAX_PREFIXES);
    shared.start(&Initial::default()).unwrap();
    assert_eq!(
        shared.load().unwrap(),
        told,
        "a later start changes nothing"
    );
}

#[test]
fn numbers_go_on_where_the_journal_ends() {
    let store = FakeSharedData::default();
    let purges = table(&[
        (70, Kind::Hard, url("a/x")),
        (71, Kind::Hard, prefix("a/b")),
    ]);
    let initial = Initial {
        purges: purges.clone(),
        unindexed_entries: true,
    };
    let mut shared = SharedPurges::new(&store);
    shared.start(&initial).unwrap();
    assert_eq!(shared.load().unwrap(), purges);
    assert!(!shared.is_indexed().unwrap());
    let records = shared.commit(Kind::Hard, &[Scope::Everything]).unwrap();
    assert_eq!(records, [record(72, Kind::Hard, Scope::Everything)]);
    assert!(shared.is_indexed().unwrap(), "what is left is indexed");
    shared.lose_index().unwrap();
    assert!(!shared.is_indexed().unwrap());
}

#[test]
fn a_rival_commit_takes_another_number() {
    let store = FakeSharedData::default();
    SharedPurges::new(&store)
        .start(&Initial::default())
        .unwrap();
    store.before_next_set(|store| {
        SharedPurges::new(store)
            .commit(Kind::Hard, &[url("a/y")])
            .unwrap();
    });
    let mut shared = SharedPurges::new(&store);
    let records = shared.commit(Kind::Hard, &[url("a/x")]).unwrap();
    assert_eq!(records, [record(2, Kind::Hard, url("a/x"))]);
    assert_eq!(shared.load().unwrap().generations("a/y").hard, 1);
}

#[test]
fn the_roster_has_each_worker_once_and_no_expelled_one() {
    let store = FakeSharedData::default();
    let mut roster = Roster::new(&store);
    for worker in [1, 2, 2, 3] {
        roster.join(WorkerId(worker)).unwrap();
    }
    roster.expel(&[WorkerId(2)]).unwrap();
    assert_eq!(roster.members().unwrap(), [WorkerId(1), WorkerId(3)]);
}

#[test]
fn confirmations_are_bounded_and_keep_the_newest() {
    let store = FakeSharedData::default();
    let mut confirmations = Confirmations::new(&store);
    for key in 0..20_000 {
        confirmations.add(KeyHash(key)).unwrap();
    }
    assert!(confirmations.has(KeyHash(19_999)).unwrap());
    assert!(!confirmations.has(KeyHash(0)).unwrap());
    let bytes: usize = store.values().iter().map(|(_, value)| value.len()).sum();
    assert!(bytes <= 64 * 128 * 8, "{bytes}");
}

#[test]
fn what_others_have_written_in_the_place_of_confirmations_confirms_nothing() {
    let store = FakeSharedData::default();
    Confirmations::new(&store).add(KeyHash(5)).unwrap();
    store.set("sluice/confirmed/5", &[0; 9], 0).unwrap();
    let mut confirmations = Confirmations::new(&store);
    assert_eq!(confirmations.has(KeyHash(0)), Ok(false));
    confirmations.add(KeyHash(5)).unwrap();
    assert_eq!(confirmations.has(KeyHash(5)), Ok(true));
}

#[test]
fn a_surrogate_key_finds_the_urls_that_have_it() {
    let store = FakeSharedData::default();
    let mut tags = Tags::new(&store, 0);
    let (red, blue) = (TagHash::of("red"), TagHash::of("blue"));
    assert_eq!(tags.note(&[red, blue], 1, 0), Ok(Noted::Indexed));
    assert_eq!(tags.note(&[red], 2, 0), Ok(Noted::Indexed));
    assert_eq!(tags.purge(red, 5), Ok(Some(vec![1, 2])));
    assert_eq!(tags.purge(blue, 6), Ok(Some(vec![1])));
    assert_eq!(tags.purge(TagHash::of("green"), 7), Ok(Some(vec![])));
}

#[test]
fn a_response_that_was_on_its_way_when_its_surrogate_key_was_purged_is_found_out() {
    let store = FakeSharedData::default();
    let mut tags = Tags::new(&store, 0);
    let red = TagHash::of("red");
    assert_eq!(tags.purge(red, 5), Ok(Some(vec![])));
    assert_eq!(tags.note(&[red], 1, 4), Ok(Noted::Purged));
    assert_eq!(tags.note(&[red], 1, 5), Ok(Noted::Indexed));
}

#[test]
fn an_index_that_overflows_says_so_until_everything_is_purged() {
    let store = FakeSharedData::default();
    let red = TagHash::of("red");
    let mut tags = Tags::new(&store, 0);
    for bucket in 0..5_000 {
        tags.note(&[red], bucket, 0).unwrap();
    }
    assert_eq!(tags.purge(red, 9), Ok(None));
    let bytes: usize = store.values().iter().map(|(_, value)| value.len()).sum();
    assert!(bytes < 10_000, "{bytes}");
    let mut tags = Tags::new(&store, 9);
    assert_eq!(tags.purge(red, 10), Ok(Some(vec![])));
}
