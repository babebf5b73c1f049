// SPDX-License-Identifier: Apache-2.0
//! The responses that purges cover, in any order in which a worker receives them, and the records in shared data.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use proptest::prelude::*;
use sluice_core::key::secret::StoreSecret;
use sluice_core::policy::purge::{Kind, Record, Scope, UrlHash};
use sluice_core::purge::{
    Confirmations, Generations, InitialPurges, PurgeOrder, PurgeSubject, Purges, SharedPurges,
    TagHash, TagIndexing, Tags, carry_out, invalidate_groups,
};
use sluice_core::workers::{KeyHash, Roster, WorkerId};
use sluice_fake::FakeSharedData;

const SECRET: StoreSecret = StoreSecret::new([1, 2]);
/// Most prefixes that are stored separately if there is one site.
const PREFIXES: usize = 256;

fn record(number: u64, kind: Kind, scope: Scope) -> Record {
    Record {
        number,
        kind,
        scope,
    }
}

fn url(text: &str) -> Scope {
    Scope::of_url(text, &SECRET)
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

fn urls(purges: &Purges) -> usize {
    let scopes = purges.records().map(|record| record.scope);
    let urls = scopes.filter(|scope| matches!(scope, Scope::Url { .. }));
    urls.collect::<BTreeSet<Scope>>().len()
}

/// The purges that cover a URL.
fn covering(purges: &Purges, url: &str) -> Generations {
    purges.generations(url, &SECRET)
}

fn generations(hard: u64, soft: u64) -> Generations {
    Generations {
        hard,
        soft,
        changed: 0,
    }
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
        assert_eq!(covering(&purges, text), expected, "{text}");
    }
    assert_eq!(purges.newest(), 5);
}

#[test]
fn a_hard_purge_overtakes_a_soft_one_and_not_the_other_way_round() {
    use Kind::{Hard, Soft};
    let overtaken = table(&[(1, Soft, url("a/x")), (2, Hard, url("a/x"))]);
    assert_eq!(covering(&overtaken, "a/x"), generations(2, 0));
    let both = table(&[(1, Hard, url("a/x")), (2, Soft, url("a/x"))]);
    assert_eq!(covering(&both, "a/x"), generations(1, 2));
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
    assert_eq!((prefixes(&purges), urls(&purges)), (1, 1));
    purges.apply(&record(5, Soft, Scope::Everything));
    assert_eq!((prefixes(&purges), urls(&purges)), (1, 1), "hard ones stay");
    purges.apply(&record(6, Hard, Scope::Everything));
    assert_eq!((prefixes(&purges), urls(&purges)), (0, 0));
    purges.apply(&record(3, Hard, url("a/x")));
    assert_eq!(urls(&purges), 0, "old news");
}

#[test]
fn with_too_many_prefixes_the_closest_two_become_one() {
    let mut purges = Purges::default();
    for number in 0..PREFIXES as u64 {
        let host = format!("host-{number}.test/");
        purges.apply(&record(number + 1, Kind::Soft, Scope::Prefix(host)));
    }
    assert_eq!(purges.fold(PREFIXES), None);
    purges.apply(&record(1_000, Kind::Hard, prefix("host-7.test/a/b/one")));
    purges.apply(&record(1_001, Kind::Soft, prefix("host-7.test/a/b/two")));
    let (kind, scope) = purges.fold(PREFIXES).expect("too many");
    assert_eq!((kind, &scope), (Kind::Hard, &prefix("host-7.test/a/b/")));
    purges.apply(&record(1_002, kind, scope));
    assert_eq!(prefixes(&purges), PREFIXES + 1);
    let (kind, scope) = purges.fold(PREFIXES).expect("still too many");
    assert_eq!((kind, scope), (Kind::Hard, prefix("host-7.test/")));
}

#[test]
fn prefixes_of_different_hosts_fold_into_all_of_their_site() {
    for (site, all) in [("", Scope::Everything), ("one!", Scope::Site("one".into()))] {
        let mut purges = Purges::default();
        for number in 0..=PREFIXES as u64 {
            let path = format!("{site}{number}.test/");
            purges.apply(&record(number + 1, Kind::Soft, Scope::Prefix(path)));
        }
        assert_eq!(purges.fold(PREFIXES), Some((Kind::Soft, all)));
    }
}

fn any_record() -> impl Strategy<Value = Record> {
    let scope = prop_oneof![
        "(s!|t!)?[ab]/[ab]{0,2}".prop_map(|text| url(&text)),
        "(s!|t!)?[ab]/[ab]{0,2}".prop_map(Scope::Prefix),
        ("[st]?", 0..3_u64).prop_map(|(site, hash)| Scope::Part {
            site,
            part: UrlHash::of(&format!("a/{}", "a".repeat(hash as usize)), &SECRET).part(),
        }),
        "[st]".prop_map(Scope::Site),
        Just(Scope::Everything),
        Just(Scope::Nothing),
    ];
    let kind = prop_oneof![Just(Kind::Hard), Just(Kind::Soft), Just(Kind::Changed)];
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
        path in "(s!|t!)?[ab]/[ab]{0,3}",
        wide in any::<bool>(),
    ) {
        let mut purges = Purges::default();
        let mut earlier = vec![covering(&purges, &path).hard];
        for record in &before {
            purges.apply(record);
            earlier.push(covering(&purges, &path).hard);
        }
        let scope = if wide { prefix(&path[..path.len().min(path.find('/').unwrap() + 2)]) } else { url(&path) };
        purges.apply(&record(purges.newest() + 1, Kind::Hard, scope));
        prop_assert!(!earlier.contains(&covering(&purges, &path).hard));
    }
}

#[test]
fn a_replica_that_starts_late_has_what_the_others_were_told() {
    let store = FakeSharedData::default();
    let mut shared = SharedPurges::new(&store, 1);
    shared.start(&InitialPurges::default()).unwrap();
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
    assert!(prefixes(&told) <= PREFIXES);
    shared.start(&InitialPurges::default()).unwrap();
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
    let initial = InitialPurges {
        purges: purges.clone(),
        unindexed_entries: true,
    };
    let mut shared = SharedPurges::new(&store, 1);
    shared.start(&initial).unwrap();
    assert_eq!(shared.load().unwrap(), purges);
    assert!(!shared.is_indexed("").unwrap());
    let records = shared.commit(Kind::Hard, &[Scope::Everything]).unwrap();
    assert_eq!(records, [record(72, Kind::Hard, Scope::Everything)]);
    assert!(shared.is_indexed("").unwrap(), "what is left is indexed");
    shared.lose_index("").unwrap();
    assert!(!shared.is_indexed("").unwrap());
}

#[test]
fn a_rival_commit_takes_another_number() {
    let store = FakeSharedData::default();
    SharedPurges::new(&store, 1)
        .start(&InitialPurges::default())
        .unwrap();
    store.before_next_set(|store| {
        SharedPurges::new(store, 1)
            .commit(Kind::Hard, &[url("a/y")])
            .unwrap();
    });
    let mut shared = SharedPurges::new(&store, 1);
    let records = shared.commit(Kind::Hard, &[url("a/x")]).unwrap();
    assert_eq!(records, [record(2, Kind::Hard, url("a/x"))]);
    assert_eq!(covering(&shared.load().unwrap(), "a/y").hard, 1);
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

fn tag(text: &str) -> TagHash {
    TagHash::of(text, &SECRET)
}

#[test]
fn a_surrogate_key_finds_the_urls_that_have_it() {
    let store = FakeSharedData::default();
    let mut tags = Tags::new(&store, "", 0, 1);
    let (red, blue) = (tag("red"), tag("blue"));
    assert_eq!(
        tags.note(&[red, blue], UrlHash(1), 0),
        Ok(TagIndexing::Indexed)
    );
    assert_eq!(tags.note(&[red], UrlHash(2), 0), Ok(TagIndexing::Indexed));
    assert_eq!(tags.purge(red, 5), Ok(Some(vec![UrlHash(1), UrlHash(2)])));
    assert_eq!(tags.purge(blue, 6), Ok(Some(vec![UrlHash(1)])));
    assert_eq!(tags.purge(tag("green"), 7), Ok(Some(vec![])));
}

#[test]
fn a_response_that_was_on_its_way_when_its_surrogate_key_was_purged_is_found_out() {
    let store = FakeSharedData::default();
    let mut tags = Tags::new(&store, "", 0, 1);
    let red = tag("red");
    assert_eq!(tags.purge(red, 5), Ok(Some(vec![])));
    assert_eq!(tags.note(&[red], UrlHash(1), 4), Ok(TagIndexing::Purged));
    assert_eq!(tags.note(&[red], UrlHash(1), 5), Ok(TagIndexing::Indexed));
}

#[test]
fn an_index_that_overflows_says_so_until_all_of_its_site_is_purged() {
    let store = FakeSharedData::default();
    let red = tag("red");
    let mut tags = Tags::new(&store, "", 0, 1);
    for url in 0..5_000 {
        tags.note(&[red], UrlHash(url), 0).unwrap();
    }
    assert_eq!(tags.purge(red, 9), Ok(None));
    let bytes: usize = store.values().iter().map(|(_, value)| value.len()).sum();
    assert!(bytes < 40_000, "{bytes}");
    let mut tags = Tags::new(&store, "", 9, 1);
    assert_eq!(tags.purge(red, 10), Ok(Some(vec![])));
}

#[test]
fn a_flood_of_surrogate_keys_of_one_site_leaves_those_of_another_as_they_are() {
    let store = FakeSharedData::default();
    let mut quiet = Tags::new(&store, "quiet", 0, 2);
    quiet.note(&[tag("red")], UrlHash(7), 0).unwrap();
    let mut loud = Tags::new(&store, "loud", 0, 2);
    for url in 0..5_000 {
        loud.note(&[tag("red")], UrlHash(url), 0).unwrap();
    }
    assert_eq!(loud.purge(tag("red"), 8), Ok(None));
    assert_eq!(quiet.purge(tag("red"), 9), Ok(Some(vec![UrlHash(7)])));
    assert_eq!(
        quiet.note(&[tag("blue")], UrlHash(8), 9),
        Ok(TagIndexing::Indexed)
    );
    // After too many keys in one response, the index is incomplete for the site of that response.
    let mut shared = SharedPurges::new(&store, 2);
    shared.start(&InitialPurges::default()).unwrap();
    shared.lose_index("loud").unwrap();
    assert_eq!(shared.is_indexed("loud"), Ok(false));
    assert_eq!(shared.is_indexed("quiet"), Ok(true));
    let all = [Scope::Site("loud".into())];
    shared.commit(Kind::Hard, &all).unwrap();
    assert_eq!(
        shared.is_indexed("loud"),
        Ok(true),
        "what is left is indexed"
    );
}

/// The purges of an edge with two sites, after `purge`.
fn of_two_sites(purge: impl FnOnce(&FakeSharedData, &mut SharedPurges<'_>)) -> Purges {
    let store = FakeSharedData::default();
    let mut shared = SharedPurges::new(&store, 2);
    shared.start(&InitialPurges::default()).unwrap();
    purge(&store, &mut shared);
    shared.load().unwrap()
}

/// Checks that no purge covers a URL of the other site.
fn assert_other_is_untouched(purges: &Purges) {
    for number in 0..2_000 {
        let url = format!("other!edge.test/{number}");
        assert_eq!(covering(purges, &url), Generations::default(), "{url}");
    }
}

#[test]
fn too_many_urls_of_one_site_are_parts_of_that_site_and_none_of_another() {
    let mut told = Purges::default();
    let purges = of_two_sites(|_, shared| {
        for call in 0..2 {
            let names =
                (0..65_536).map(|number| format!("mine!edge.test/{}", call * 65_536 + number));
            let scopes: Vec<Scope> = names.map(|name| url(&name)).collect();
            let records = shared.commit(Kind::Hard, &scopes).unwrap();
            records.iter().for_each(|record| told.apply(record));
        }
    });
    assert_eq!(purges, told);
    assert!(urls(&purges) <= 65_536 / 2, "{}", urls(&purges));
    for number in 0..2 * 65_536 {
        let url = format!("mine!edge.test/{number}");
        assert!(covering(&purges, &url).hard > number, "{url}");
    }
    assert_other_is_untouched(&purges);
}

#[test]
fn what_clients_change_forgets_no_purge_and_takes_nothing_out_of_reach() {
    let purges = of_two_sites(|_, shared| {
        shared
            .commit(Kind::Hard, &[url("mine!edge.test/hard")])
            .unwrap();
        shared
            .commit(Kind::Soft, &[url("mine!edge.test/soft")])
            .unwrap();
        let names = (0..70_000).map(|number| format!("mine!edge.test/{number}"));
        let scopes: Vec<Scope> = names.map(|name| url(&name)).collect();
        shared.commit(Kind::Changed, &scopes).unwrap();
    });
    assert_eq!(covering(&purges, "mine!edge.test/hard").hard, 1);
    let records = purges
        .records()
        .filter(|record| record.kind != Kind::Changed);
    let scopes: Vec<Scope> = records.map(|record| record.scope).collect();
    let expected = [
        Scope::Nothing,
        url("mine!edge.test/hard"),
        url("mine!edge.test/soft"),
    ];
    assert_eq!(
        scopes.iter().collect::<BTreeSet<_>>(),
        expected.iter().collect()
    );
    for number in 0..70_000 {
        let url = format!("mine!edge.test/{number}");
        let found = covering(&purges, &url);
        assert!(
            (found.hard, found.soft) == (0, 0) && found.changed > number,
            "{url}: {found:?}"
        );
    }
    assert_other_is_untouched(&purges);
}

#[test]
fn too_many_prefixes_of_one_site_leave_those_of_another_as_they_are() {
    let other = [
        prefix("other!edge.test/css/aaaa1"),
        prefix("other!edge.test/css/aaaa2"),
    ];
    let purges = of_two_sites(|_, shared| {
        shared.commit(Kind::Soft, &other).unwrap();
        for number in 0..1_000 {
            let path = format!("mine!{number}.test/");
            shared.commit(Kind::Hard, &[Scope::Prefix(path)]).unwrap();
        }
    });
    assert_eq!(
        covering(&purges, "other!edge.test/css/aaaa3"),
        Generations::default()
    );
    assert_eq!(
        covering(&purges, "other!edge.test/css/aaaa2"),
        generations(0, 2)
    );
    assert!(
        prefixes(&purges) <= PREFIXES / 2 + 2,
        "{}",
        prefixes(&purges)
    );
}

#[test]
fn prefixes_of_many_sites_never_fold_into_everything() {
    let store = FakeSharedData::default();
    let mut shared = SharedPurges::new(&store, 400);
    shared.start(&InitialPurges::default()).unwrap();
    for number in 0..400 {
        let path = format!("site-{number}!edge.test/a");
        shared.commit(Kind::Hard, &[Scope::Prefix(path)]).unwrap();
    }
    let purges = shared.load().unwrap();
    assert_eq!(purges.everything(), Generations::default());
    assert_eq!(prefixes(&purges), 400);
}

#[test]
fn a_group_or_a_surrogate_key_of_one_site_covers_no_url_of_another() {
    let purges = of_two_sites(|store, _| {
        // The other site has a URL with the same hash, and the same words.
        for (site, hash) in [("mine", 1), ("mine", 2), ("other", 1)] {
            let words = [tag("red"), tag("edge.test red")];
            let noted = Tags::new(store, site, 0, 2).note(&words, UrlHash(hash), 0);
            noted.unwrap();
        }
        invalidate_groups(store, "mine", &[tag("edge.test red")], 2).unwrap();
        let what = PurgeSubject::Tags {
            site: "mine".into(),
            tags: vec![tag("red")],
        };
        let order = PurgeOrder {
            what,
            kind: Kind::Hard,
        };
        carry_out(store, &order, 2).unwrap();
    });
    let is_of_other = |scope: &Scope| match scope {
        Scope::Nothing => false,
        Scope::Url { site, .. } => site != "mine",
        other => panic!("{other:?}"),
    };
    let scopes: Vec<Scope> = purges.records().map(|record| record.scope).collect();
    assert!(!scopes.iter().any(is_of_other), "{scopes:?}");
    assert_eq!(urls(&purges), 2);
}

#[test]
fn a_purge_by_surrogate_key_that_the_index_cannot_tell_covers_all_of_its_site_and_no_other() {
    let store = FakeSharedData::default();
    let initial = InitialPurges {
        unindexed_entries: true,
        ..InitialPurges::default()
    };
    let mut shared = SharedPurges::new(&store, 2);
    shared.start(&initial).unwrap();
    let what = PurgeSubject::Tags {
        site: "mine".into(),
        tags: vec![tag("red")],
    };
    let kind = Kind::Hard;
    let order = PurgeOrder { what, kind };
    let records = carry_out(&store, &order, 2).unwrap();
    assert_eq!(records.last().unwrap().scope, Scope::Site("mine".into()));
    let purges = shared.load().unwrap();
    assert_other_is_untouched(&purges);
    // The remaining entries of the site are indexed.
    let again = carry_out(&store, &order, 2).unwrap();
    assert_eq!(again.len(), 1, "{again:?}");
    assert_eq!(shared.is_indexed("other"), Ok(false));
}
