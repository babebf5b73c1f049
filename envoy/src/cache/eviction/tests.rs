// SPDX-License-Identifier: Apache-2.0
//! The choice of the entries to evict, for one site and for several.
#![allow(clippy::cast_precision_loss)]

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, FileTimes};
use std::path::Path;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use tempfile::TempDir;

use super::surplus::UNREAD;
use super::*;
use crate::cache::entries::{Entries, Entry, SiteId, UrlId, Usage};
use crate::cache::shares::Shares;

const ALL: Usage = Usage {
    bytes: u64::MAX,
    files: u64::MAX,
};
const NONE: Usage = Usage { bytes: 0, files: 0 };

fn list(folder: &Path) -> Vec<Entry> {
    let entries = Entries::open(folder).unwrap();
    entries.list(&mut || true).unwrap()
}

/// The numbers of the evicted entries if all belong to one site.
fn gone(entries: Vec<Entry>, target: Usage) -> Vec<u64> {
    let candidates = entries.into_iter().map(|entry| Candidate {
        site: SiteId::default(),
        entry,
        unread_slice_of: None,
    });
    numbers(&surplus(candidates.collect(), &Default::default(), target))
}

fn numbers(entries: &[Entry]) -> Vec<u64> {
    entries.iter().map(|entry| entry.number).collect()
}

#[test]
fn as_many_of_the_oldest_go_as_leave_the_others_within_both_bounds() {
    let dir = TempDir::new().unwrap();
    for (second, number, bytes) in [(30, 1, 5), (10, 2, 70), (20, 3, 5)] {
        let file = File::create(dir.path().join(format!("cache-{number}"))).unwrap();
        file.set_len(bytes).unwrap();
        let used = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        let times = FileTimes::new().set_accessed(used).set_modified(used);
        file.set_times(times).unwrap();
    }
    let gone = |target| gone(list(dir.path()), target);
    let keep = |bytes, files| Usage { bytes, files };
    assert!(gone(ALL).is_empty());
    assert!(gone(keep(80, 3)).is_empty());
    assert_eq!(gone(keep(80, 2)), [2]);
    assert_eq!(gone(keep(79, 3)), [2]);
    assert_eq!(gone(keep(9, 3)), [2, 3]);
    assert_eq!(gone(NONE), [2, 3, 1]);
    assert!(super::surplus(Vec::new(), &Default::default(), NONE).is_empty());
}

#[test]
fn what_was_read_or_written_last_stays_longest() {
    let dir = TempDir::new().unwrap();
    let path = |number: u64| dir.path().join(format!("cache-{number}"));
    let later = SystemTime::now() + Duration::from_secs(60);
    for number in [3, 1, 2] {
        let file = File::create(path(number)).unwrap();
        let read = later + Duration::from_secs(number);
        file.set_times(FileTimes::new().set_accessed(read)).unwrap();
    }
    // This entry was moved a moment ago, but has not been used for long.
    let long_ago = FileTimes::new()
        .set_accessed(SystemTime::UNIX_EPOCH)
        .set_modified(SystemTime::UNIX_EPOCH);
    let file = File::create(dir.path().join("elsewhere")).unwrap();
    file.set_times(long_ago).unwrap();
    fs::rename(dir.path().join("elsewhere"), path(9)).unwrap();
    assert_eq!(gone(list(dir.path()), NONE), [9, 1, 2, 3]);
}

/// Entries of several sites, with the sites' names and weights. Site 0 is not in use any more.
#[derive(Clone, Debug)]
struct Cached {
    shares: Vec<u32>,
    /// The site, the age and the bytes of each entry.
    entries: Vec<(usize, i64, u64)>,
    /// The object of each entry that is an unread slice, by the number of the entry. Missing ones are no slices.
    objects: Vec<Option<u64>>,
    target: Usage,
}

/// The evicted entries in their order: the site and the number.
type Evicted = Vec<(usize, u64)>;

impl Cached {
    fn name(site: usize) -> String {
        format!("site-{site}")
    }

    fn object(&self, number: u64) -> Option<u64> {
        self.objects.get(number as usize).copied().flatten()
    }

    /// The objects of the site `site` whose unread slices hold more than their part of its bytes, with those bytes.
    /// The entries `gone` are missing, but they count for the bytes of the site.
    fn excess(&self, site: usize, gone: &[(usize, u64)]) -> HashMap<u64, u64> {
        let whole = self.left(&[]).0[&site].bytes;
        let mut objects = HashMap::<u64, u64>::new();
        for ((of, _, bytes), number) in self.entries.iter().zip(0_u64..) {
            let is_gone = gone.contains(&(*of, number));
            if let Some(object) = self.object(number).filter(|_| *of == site && !is_gone) {
                *objects.entry(object).or_default() += bytes;
            }
        }
        objects.retain(|_, bytes| *bytes > whole / UNREAD);
        objects
    }

    fn listed(&self) -> Vec<Candidate> {
        let entries = self.entries.iter().zip(0..);
        let entries = entries.map(|((site, second, bytes), number)| {
            let touched = (*second, 0);
            let entry = Entry {
                written: 0,
                touched,
                number,
                bytes: *bytes,
            };
            let object = self.object(number);
            Candidate {
                site: SiteId::of(Self::name(*site).as_bytes()),
                entry,
                unread_slice_of: object.map(|object| UrlId::of(b"", &object.to_le_bytes())),
            }
        });
        entries.collect()
    }

    fn evict(&self) -> Evicted {
        let names: Vec<_> = (0..self.shares.len()).map(Self::name).collect();
        let sites = names
            .iter()
            .map(String::as_str)
            .zip(self.shares.iter().copied());
        let shares = Shares::new(sites.skip(1));
        let weights = shares.weights().unwrap();
        let gone = surplus(self.listed(), &weights, self.target);
        let site = |number: u64| self.entries[number as usize].0;
        gone.iter()
            .map(|entry| (site(entry.number), entry.number))
            .collect()
    }

    /// The usage of each site and of all sites without the entries `gone`.
    fn left(&self, gone: &[(usize, u64)]) -> (HashMap<usize, Usage>, Usage) {
        let gone: HashSet<_> = gone.iter().map(|(_, number)| *number).collect();
        let (mut sites, mut all) = (HashMap::<usize, Usage>::new(), Usage::default());
        for ((site, _, bytes), number) in self.entries.iter().zip(0_u64..) {
            if !gone.contains(&number) {
                let usage = sites.entry(*site).or_default();
                *usage = usage.with(*bytes);
                all = all.with(*bytes);
            }
        }
        (sites, all)
    }

    /// The number of shares that a site uses of the exceeded quantity.
    fn load(&self, site: usize, usage: Usage, all: Usage) -> f64 {
        let share = if site == 0 {
            0.0
        } else {
            f64::from(self.shares[site])
        };
        let load = |used: u64, all: u64, bound: u64| {
            if all > bound {
                used as f64 / bound.max(1) as f64 / share
            } else {
                0.0
            }
        };
        let bytes = load(usage.bytes, all.bytes, self.target.bytes);
        bytes.max(load(usage.files, all.files, self.target.files))
    }
}

fn cached() -> impl Strategy<Value = Cached> {
    let shares = prop::collection::vec(1_u32..10, 3..6);
    let entries = prop::collection::vec((0_usize..6, 0_i64..50, 1_u64..1_000), 0..80);
    let objects = prop::collection::vec(prop::option::of(0_u64..4), 0..80);
    let target = (0_u64..30_000, 0_u64..80);
    let all = (shares, entries, objects, target);
    all.prop_map(|(shares, mut entries, objects, (bytes, files))| {
        entries.retain(|(site, ..)| *site < shares.len());
        let target = Usage { bytes, files };
        Cached {
            shares,
            entries,
            objects,
            target,
        }
    })
}

/// `count` entries of a site, of ten bytes each, with ages from `second` on.
fn entries(site: usize, count: usize, second: i64) -> Vec<(usize, i64, u64)> {
    (second..)
        .take(count)
        .map(|second| (site, second, 10))
        .collect()
}

proptest! {
    #[test]
    fn as_many_go_as_must_and_no_more(cached in cached()) {
        let gone = cached.evict();
        prop_assert!(cached.left(&gone).1.is_within(cached.target));
        if let Some((_, but_last)) = gone.split_last() {
            prop_assert!(!cached.left(but_last).1.is_within(cached.target));
        }
    }

    #[test]
    fn of_one_site_the_oldest_unread_slices_of_a_large_object_go_first(cached in cached()) {
        let gone = cached.evict();
        for (done, (site, number)) in gone.iter().enumerate() {
            let excess = cached.excess(*site, &gone[..done]);
            let object = cached.object(*number);
            prop_assert!(excess.is_empty() || object.is_some_and(|object| excess.contains_key(&object)));
            let of_excess = |number| {
                let object = cached.object(number);
                excess.is_empty() || object.is_some_and(|object| excess.contains_key(&object))
            };
            let second = cached.entries[*number as usize].1;
            for (other, left) in cached.entries.iter().zip(0_u64..) {
                let stays = other.0 == *site && !gone[..=done].contains(&(*site, left));
                prop_assert!(!stays || !of_excess(left) || (other.1, left) > (second, *number));
            }
        }
    }

    #[test]
    fn without_slices_the_oldest_of_a_site_go_first(mut cached in cached()) {
        cached.objects.clear();
        let gone = cached.evict();
        let entry = |number: u64| &cached.entries[number as usize];
        let gone_numbers: HashSet<_> = gone.iter().map(|(_, number)| *number).collect();
        for (site, number) in &gone {
            for (other, kept) in cached.entries.iter().zip(0_u64..) {
                let stays = !gone_numbers.contains(&kept) && other.0 == *site;
                prop_assert!(!stays || (other.1, kept) > (entry(*number).1, *number));
            }
        }
    }

    #[test]
    fn each_goes_of_the_site_that_is_furthest_above_its_share(cached in cached()) {
        let gone = cached.evict();
        for (done, (site, _)) in gone.iter().enumerate() {
            let (sites, all) = cached.left(&gone[..done]);
            let load = |site: usize| cached.load(site, sites[&site], all);
            for other in sites.keys() {
                prop_assert!(load(*site) >= load(*other) * (1.0 - 1e-9));
            }
        }
    }

    #[test]
    fn a_site_within_its_share_loses_nothing(cached in cached()) {
        let (sites, all) = cached.left(&[]);
        let whole: u32 = cached.shares[1..].iter().sum();
        for (site, usage) in sites {
            let share = 1.0 / f64::from(whole);
            if cached.load(site, usage, all) <= share {
                prop_assert!(cached.evict().iter().all(|(gone, _)| *gone != site));
            }
        }
    }

    #[test]
    fn a_site_that_is_not_in_use_any_more_goes_first(cached in cached()) {
        let gone = cached.evict();
        let of_used = gone.iter().position(|(site, _)| *site != 0);
        let rest = &gone[of_used.unwrap_or(gone.len())..];
        prop_assert!(rest.iter().all(|(site, _)| *site != 0));
        if of_used.is_some() {
            prop_assert!(!cached.left(&gone).0.contains_key(&0));
        }
    }

    #[test]
    fn with_one_site_the_oldest_of_all_go(mut cached in cached()) {
        for (site, ..) in &mut cached.entries {
            *site = 1;
        }
        cached.objects.clear();
        let gone = cached.evict();
        let mut oldest: Vec<_> = cached.entries.iter().zip(0_u64..).collect();
        oldest.sort_by_key(|((_, second, _), number)| (*second, *number));
        let oldest = oldest.iter().map(|(_, number)| (1, *number));
        prop_assert_eq!(&gone, &oldest.take(gone.len()).collect::<Vec<_>>());
    }
}

#[test]
fn a_scan_of_one_site_takes_the_scan_and_not_the_older_entries_of_another() {
    let cached = Cached {
        shares: vec![0, 1, 1],
        entries: [entries(1, 400, 0), entries(2, 9_600, 1_000)].concat(),
        objects: Vec::new(),
        target: Usage {
            bytes: 1 << 40,
            files: 9_000,
        },
    };
    let gone = cached.evict();
    assert_eq!(gone.len(), 1_000);
    assert!(gone.iter().all(|(site, _)| *site == 2));
}

#[test]
fn what_a_site_leaves_of_its_share_is_lent_to_the_others() {
    let cached = |second: usize| Cached {
        shares: vec![0, 3, 1],
        entries: [entries(1, 100, 0), entries(2, second, 0)].concat(),
        objects: Vec::new(),
        target: Usage {
            bytes: 10_000,
            files: 1_000,
        },
    };
    assert!(cached(900).evict().is_empty(), "nine tenths for a quarter");
    let gone = cached(1_000).evict();
    assert_eq!(gone.len(), 100);
    assert!(gone.iter().all(|(site, _)| *site == 2));
}

#[test]
fn sites_above_their_shares_keep_what_their_weights_say() {
    let cached = Cached {
        shares: vec![0, 3, 1],
        entries: [entries(1, 1_000, 0), entries(2, 1_000, 0)].concat(),
        objects: Vec::new(),
        target: Usage {
            bytes: 4_000,
            files: 1_000,
        },
    };
    let (sites, _) = cached.left(&cached.evict());
    assert_eq!((sites[&1].files, sites[&2].files), (300, 100));
}

#[test]
fn many_small_entries_do_not_go_for_the_bytes_of_large_ones() {
    let large = (0..10).map(|second| (2, second, 1_000)).collect();
    let cached = Cached {
        shares: vec![0, 1, 1],
        entries: [entries(1, 500, 0), large].concat(),
        objects: Vec::new(),
        target: Usage {
            bytes: 12_000,
            files: 511,
        },
    };
    assert_eq!(cached.evict(), [(2, 500), (2, 501), (2, 502)]);
}

/// A cache of one site with `old` small objects, and `slices` newer slices of one object, each of ten bytes.
fn beside_slices(old: usize, slices: usize, target: u64) -> Cached {
    Cached {
        shares: vec![0, 1, 1],
        entries: [entries(1, old, 0), entries(1, slices, 1_000)].concat(),
        objects: [vec![None; old], vec![Some(1); slices]].concat(),
        target: Usage {
            bytes: target,
            files: u64::MAX,
        },
    }
}

#[test]
fn an_object_that_is_read_through_displaces_no_older_object() {
    let gone = beside_slices(500, 500, 9_000).evict();
    let oldest_slices: Vec<_> = (500..600).map(|number| (1, number)).collect();
    assert_eq!(gone, oldest_slices);
}

#[test]
fn an_eighth_of_the_site_stays_for_the_unread_slices_of_an_object() {
    let gone = beside_slices(560, 240, 5_000).evict();
    let slices = gone.iter().filter(|(_, number)| *number >= 560).count();
    assert_eq!((slices, gone.len()), (140, 300));
}

#[test]
fn slices_that_were_read_again_go_by_their_age_like_all_entries() {
    let mut cached = beside_slices(500, 500, 9_000);
    cached.objects.clear();
    let oldest: Vec<_> = (0..100).map(|number| (1, number)).collect();
    assert_eq!(cached.evict(), oldest);
}
