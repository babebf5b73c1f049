// SPDX-License-Identifier: Apache-2.0
//! The keeper, with files that appear and disappear.

use std::fs::{self, FileTimes};
use std::sync::mpsc;
use std::time::SystemTime;

use super::*;
use crate::system::joining_thread::JoiningThread;
use sluice_core::key::secret::StoreSecret;
use sluice_core::policy::LargeUrl;
use tempfile::TempDir;

const ROOM: Usage = Usage {
    bytes: 1 << 20,
    files: 1_000,
};

/// The folder of a cache that a keeper's thread watches.
struct KeptCache {
    dir: TempDir,
    shares: Shares,
}

impl KeptCache {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir(dir.path().join("entries")).unwrap();
        let shares = Shares::default();
        Self { dir, shares }
    }

    /// Adds these sites, with equal weights.
    fn with_sites(mut self, sites: &[&str]) -> Self {
        self.shares = Shares::new(sites.iter().map(|name| (*name, 1)));
        self
    }

    /// Stores an entry of a site, with the part of Envoy's format that names the site.
    fn store_of(&self, site: &str, number: u64) {
        let (host, zeros) = (format!("{site}!a"), "\0".repeat(16));
        let length = char::from(host.len() as u8);
        self.store(
            number,
            &format!("CACH0000{zeros}\n\x20\n\x01c\x12{length}{host}"),
        );
    }

    fn store(&self, number: u64, text: &str) {
        let new = self.dir.path().join("new");
        fs::write(&new, text).unwrap();
        let entry = self.dir.path().join(format!("entries/cache-{number}"));
        let _ = fs::remove_file(&entry);
        fs::hard_link(&new, entry).unwrap();
        fs::remove_file(new).unwrap();
    }

    fn remove(&self, number: u64) {
        fs::remove_file(self.dir.path().join(format!("entries/cache-{number}"))).unwrap();
    }

    fn files(&self) -> u64 {
        fs::read_dir(self.dir.path().join("entries"))
            .unwrap()
            .count() as u64
    }

    fn manifest(&self) -> Fingerprints {
        Manifest::read(self.dir.path()).unwrap()
    }

    /// Calls `play` with a thread that has just started.
    fn play(
        self,
        shortage: Shortage,
        play: impl FnOnce(&Self, &mut Keeper, &StopToken) + Send + 'static,
    ) {
        let (ended, end) = mpsc::channel();
        let folder = self.dir.path().join("entries");
        let root = self.dir.path().to_owned();
        let shared = SharedState {
            shares: self.shares.clone(),
            most_variants: MostVariants::new(usize::MAX),
            reports: ReportDesk::default(),
        };
        let mut keeper = Keeper::new(&folder, Some(root), ROOM, shortage, shared).unwrap();
        let thread = JoiningThread::start("test", move |stop| {
            play(&self, &mut keeper, &stop);
            ended.send(()).unwrap();
        });
        end.recv().expect("no panic");
        drop(thread);
    }
}

#[test]
fn files_are_counted_exactly_and_are_in_the_manifest_when_they_are_finished() {
    KeptCache::new().play(Shortage::default(), |cache, thread, _| {
        cache.store(1, "12345");
        cache.store(2, "123");
        cache.store(1, "1234567");
        thread.follow();
        assert_eq!(
            thread.usage,
            Usage {
                bytes: 10,
                files: 2
            }
        );
        assert_eq!(cache.manifest(), thread.files);
        cache.remove(1);
        cache.store(3, "gone before anybody looks");
        cache.remove(3);
        thread.follow();
        assert_eq!(thread.usage, Usage { bytes: 3, files: 1 });
    });
}

#[test]
fn changes_that_the_system_has_lost_are_found_in_the_folder() {
    KeptCache::new().play(Shortage::default(), |cache, thread, _| {
        for (number, text) in [(1, "stays"), (2, "goes"), (3, "changes")] {
            cache.store(number, text);
        }
        thread.follow();
        cache.remove(2);
        cache.store(3, "has changed");
        cache.store(4, "new");
        thread.watch = FolderWatch::start(&thread.live.path).unwrap();
        thread.follow();
        assert_eq!(thread.usage.files, 3, "it has seen nothing of that");
        let found = thread.rescan();
        thread.record(&found);
        assert_eq!(
            thread.usage,
            Usage {
                bytes: 19,
                files: 3
            }
        );
        for (number, file) in &thread.files {
            assert_eq!(cache.manifest().get(number), Some(file));
        }
    });
}

#[test]
fn room_is_made_for_a_batch_when_the_bound_is_near() {
    KeptCache::new().play(Shortage::default(), |cache, thread, stop| {
        let most = ROOM.files - ROOM.files / 64;
        for number in 0..most {
            cache.store(number, "x");
        }
        thread.follow();
        thread.make_room(stop);
        assert_eq!(cache.files(), most);
        cache.store(most, "x");
        thread.follow();
        thread.make_room(stop);
        assert_eq!((cache.files(), thread.usage.files), (924, 924));
    });
}

/// The text of an entry with this path, for the authority `a`.
fn entry_of(path: &str) -> String {
    let zeros = "\0".repeat(16);
    let (path_length, key_length) = (path.len() as u8, path.len() as u8 + 8);
    let (path_length, key_length) = (char::from(path_length), char::from(key_length));
    format!("CACH0000{zeros}\n{key_length}\n\x01c\x12\x01a\x1a{path_length}{path}")
}

#[test]
fn the_url_of_a_stored_slice_is_listed() {
    KeptCache::new().play(Shortage::default(), |cache, thread, _| {
        let secret = StoreSecret::new([1, 2]);
        let list = || LargeUrls::read(cache.dir.path(), secret).unwrap();
        thread.large_urls = Some(list());
        cache.store(1, &entry_of("/small#00"));
        cache.store(2, &entry_of("/large#00;s=0.1f"));
        cache.store(3, &entry_of("/large#00;s=1.1f"));
        thread.follow();
        let found: Vec<_> = list().urls().collect();
        assert_eq!(found, [LargeUrl::of("a/large", &secret)]);
    });
}

/// An entry of 1,000 bytes with this path.
fn long_entry_of(path: &str) -> String {
    format!("{:_<1000}", entry_of(path))
}

#[test]
fn slices_of_an_object_that_is_read_through_go_and_older_files_stay() {
    KeptCache::new().play(Shortage::default(), |cache, thread, stop| {
        for number in 0..300 {
            cache.store(number, &long_entry_of("/small#00"));
        }
        for slice in 0..5_000 {
            let path = format!("/large#00;s={slice}.1f");
            cache.store(1_000 + slice, &long_entry_of(&path));
            thread.follow();
            thread.make_room(stop);
        }
        let kept = (0..300).filter(|number| thread.files.contains_key(number));
        assert_eq!(kept.count(), 300);
        assert!(thread.files.contains_key(&5_999), "the last one is shared");
    });
}

#[test]
fn slices_that_clients_have_read_again_stay_and_older_files_go() {
    KeptCache::new().play(Shortage::default(), |cache, thread, stop| {
        let later = SystemTime::now() + 2 * FIRST_READING;
        for number in 0..986 {
            let path = match number {
                0..300 => "/small#00".to_owned(),
                _ => format!("/large#00;s={number}.1f"),
            };
            cache.store(number, &entry_of(&path));
            if number >= 300 {
                let file = cache.dir.path().join(format!("entries/cache-{number}"));
                let times = FileTimes::new().set_accessed(later);
                let file = fs::File::options().write(true).open(file).unwrap();
                file.set_times(times).unwrap();
            }
        }
        thread.follow();
        thread.make_room(stop);
        let kept = (300..986).filter(|number| thread.files.contains_key(number));
        assert_eq!((kept.count(), thread.files.len()), (686, 924));
    });
}

#[test]
fn a_reading_counts_after_the_first_minute_although_there_was_one_before() {
    KeptCache::new().play(Shortage::default(), |cache, thread, _| {
        let path = cache.dir.path().join("entries/cache-1");
        cache.store(1, &entry_of("/large#00;s=0.1f"));
        let stored = SystemTime::now() - 2 * FIRST_READING;
        let early = stored + FIRST_READING / 2;
        let times = FileTimes::new().set_modified(stored).set_accessed(early);
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_times(times).unwrap();
        thread.follow();
        let entry = |thread: &Keeper| thread.live.look_at(1).unwrap();
        assert_eq!(thread.slices.take_grown(Instant::now()), None);
        assert!(thread.slices.unread(&entry(thread)).is_some());
        let grown = thread.slices.take_grown(Instant::now() + FIRST_READING);
        assert_eq!(grown, Some(1));
        thread.live.take_back_readings(1, FIRST_READING);
        let fresh = entry(thread);
        assert_eq!(fresh.touched.0, fresh.written, "no reading is recorded");
        assert!(thread.slices.unread(&fresh).is_some());
        fs::read(&path).unwrap();
        let read = entry(thread);
        assert!(
            read.touched > fresh.touched,
            "the file system records readings"
        );
        assert_eq!(thread.slices.unread(&read), None);
        thread.live.take_back_readings(1, FIRST_READING);
        assert_eq!(entry(thread), read, "this reading counts");
    });
}

#[test]
fn a_url_keeps_as_many_variants_as_it_may_and_those_that_were_stored_last() {
    KeptCache::new().play(Shortage::default(), |cache, thread, _| {
        thread.shared.most_variants = MostVariants::new(10);
        for number in 0..30 {
            let path = format!("/p#00;vary-x={number:02}");
            cache.store(number, &entry_of(&path));
            cache.store(100 + number, "another");
            thread.follow();
        }
        thread.follow();
        assert_eq!(cache.files(), 40);
        assert!((20..30).all(|number| thread.files.contains_key(&number)));
    });
}

#[test]
fn a_shortage_is_acted_on_once() {
    let shortage = Shortage::default();
    shortage.publish(50);
    KeptCache::new().play(shortage.clone(), |cache, thread, stop| {
        for number in 0..100 {
            cache.store(number, "x");
        }
        thread.follow();
        thread.make_room(stop);
        assert_eq!(cache.files(), 44);
        thread.make_room(stop);
        assert_eq!(cache.files(), 44);
    });
    assert_eq!(shortage.bytes(), 0);
}

#[test]
fn a_scan_of_one_site_evicts_none_of_the_older_files_of_another() {
    let cache = KeptCache::new().with_sites(&["a", "b"]);
    cache.play(Shortage::default(), |cache, thread, stop| {
        for number in 0..300 {
            cache.store_of("a", number);
        }
        for number in 300..5_000 {
            cache.store_of("b", number);
            thread.follow();
            thread.make_room(stop);
        }
        assert!(cache.files() <= ROOM.files);
        let kept = (0..300).filter(|number| thread.files.contains_key(number));
        assert_eq!(kept.count(), 300);
    });
}

#[test]
fn the_sites_of_files_are_known_when_a_second_site_is_added() {
    let cache = KeptCache::new().with_sites(&["a"]);
    let shares = cache.shares.clone();
    cache.play(Shortage::default(), move |cache, thread, stop| {
        for number in 0..800 {
            cache.store_of(if number < 200 { "a" } else { "b" }, number);
        }
        thread.follow();
        shares.publish([("a", 1), ("b", 1)]);
        for number in 800..1_000 {
            cache.store_of("b", number);
            thread.follow();
        }
        thread.make_room(stop);
        assert_eq!(thread.files.len(), 924);
        assert!((0..200).all(|number| thread.files.contains_key(&number)));
    });
}

#[test]
fn a_report_has_the_files_of_each_site_and_the_evictions() {
    let cache = KeptCache::new().with_sites(&["a", "b"]);
    let shares = cache.shares.clone();
    cache.play(Shortage::default(), move |cache, thread, stop| {
        for number in 0..1_000 {
            cache.store_of(if number < 100 { "a" } else { "b" }, number);
        }
        thread.follow();
        thread.make_room(stop);
        let report = thread.report();
        let [(a, of_a), (b, of_b)] = report.sites.as_slice() else {
            panic!("{report:?}");
        };
        assert_eq!((a.as_str(), of_a.usage.files), ("a", 100));
        assert_eq!((b.as_str(), of_b.usage.files), ("b", 824));
        assert_eq!(of_a.usage.and(of_b.usage), thread.usage);
        let age = of_a.oldest.unwrap().elapsed().unwrap();
        assert!(age < Duration::from_secs(3_600), "{age:?}");
        let evictions = |site| report.evictions_of(site).collect::<Vec<_>>();
        assert_eq!(evictions("a"), [("limit", 0), ("disk", 0), ("variants", 0)]);
        assert_eq!(
            evictions("b"),
            [("limit", 76), ("disk", 0), ("variants", 0)]
        );
        shares.publish([("a", 1)]);
        let report = thread.report();
        let names: Vec<_> = report.sites.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", ""], "files of a removed site");
    });
}

#[test]
fn the_files_of_a_site_that_is_removed_go_first() {
    let cache = KeptCache::new().with_sites(&["a", "b", "c"]);
    let shares = cache.shares.clone();
    cache.play(Shortage::default(), move |cache, thread, stop| {
        for (site, numbers) in [("a", 0..300), ("b", 300..985), ("c", 985..986)] {
            for number in numbers {
                cache.store_of(site, number);
            }
        }
        shares.publish([("a", 1), ("b", 1)]);
        thread.follow();
        thread.make_room(stop);
        assert_eq!(thread.files.len(), 924);
        assert!(!thread.files.contains_key(&985), "it is the newest");
    });
}
