// SPDX-License-Identifier: Apache-2.0

use super::*;
use crate::settings::Reserve;
use sluice_core::policy::LargeUrl;
use tempfile::TempDir;

fn disk(dir: &Path) -> Cache {
    Cache {
        medium: Medium::Disk,
        dir: dir.to_owned(),
        max_bytes: 1 << 20,
        max_entries: 10,
        max_object_bytes: 1 << 10,
        reserve: Reserve::Bytes(0),
    }
}

fn memory(max_bytes: u64) -> Cache {
    Cache {
        medium: Medium::Memory,
        max_bytes,
        ..disk(Path::new("/dev/shm"))
    }
}

#[test]
fn one_edge_at_a_time_uses_a_folder() {
    let dir = TempDir::new().unwrap();
    let cache = disk(&dir.path().join("new/cache"));
    let first = CacheFolder::open(&cache).unwrap();
    let second = CacheFolder::open(&cache).unwrap_err();
    assert!(
        second.to_string().contains("another edge is using"),
        "{second}"
    );
    drop(first);
    CacheFolder::open(&cache).unwrap();
}

fn store_something(folder: &CacheFolder) {
    fs::write(folder.entries.join("cache-1"), "entry").unwrap();
}

/// Number of entries that are set aside.
fn aside(folder: &CacheFolder) -> usize {
    let entries = |path: &PathBuf| fs::read_dir(path).unwrap().count();
    folder.unchecked.iter().map(entries).sum()
}

#[test]
fn entries_of_earlier_runs_stand_aside_at_each_start() {
    let dir = TempDir::new().unwrap();
    let cache = disk(dir.path());
    for runs in 0..3 {
        let folder = CacheFolder::open(&cache).unwrap();
        assert_eq!(fs::read_dir(&folder.entries).unwrap().count(), 0);
        assert_eq!(
            (aside(&folder), folder.earlier_runs().warm),
            (runs, runs > 0)
        );
        assert_eq!(folder.notice.as_deref(), None);
        store_something(&folder);
    }
}

#[test]
fn entries_of_another_format_are_in_no_manifest_and_that_is_said() {
    let dir = TempDir::new().unwrap();
    let cache = disk(dir.path());
    store_something(&CacheFolder::open(&cache).unwrap());
    fs::write(dir.path().join("manifest"), "old").unwrap();
    fs::write(dir.path().join("format"), "sluice cache 0\n").unwrap();
    let folder = CacheFolder::open(&cache).unwrap();
    let notice = folder.notice.as_deref().expect("a notice");
    assert!(
        notice.contains("sluice cache 0") && notice.contains(FORMAT.trim()),
        "{notice}"
    );
    assert!(!dir.path().join("manifest").exists());
    assert_eq!((aside(&folder), folder.earlier_runs().warm), (1, false));
    drop(folder);
    assert_eq!(CacheFolder::open(&cache).unwrap().notice, None);
}

#[test]
fn the_urls_of_objects_in_slices_outlive_the_edge_and_not_its_entries() {
    let dir = TempDir::new().unwrap();
    let cache = disk(dir.path());
    let mut first = CacheFolder::open(&cache).unwrap();
    assert_eq!(first.earlier_runs().large_urls, []);
    let list = first.large_urls.as_mut().unwrap();
    list.add_slice(b"a.example", b"/large#00;s=0.1f").unwrap();
    let secret = first.secret.store_secret().unwrap();
    drop(first);
    let url = LargeUrl::of("a.example/large", &secret);
    let second = CacheFolder::open(&cache).unwrap();
    assert_eq!(second.earlier_runs().large_urls, [url]);
    drop(second);
    fs::write(dir.path().join("format"), "sluice cache 0\n").unwrap();
    let third = CacheFolder::open(&cache).unwrap();
    assert_eq!(third.earlier_runs().large_urls, []);
    assert!(!dir.path().join("large-urls").exists());
    let memory = CacheFolder::open(&memory(1 << 20)).unwrap();
    assert!(memory.large_urls.is_none());
}

#[test]
fn a_cache_without_its_secret_starts_empty_with_a_new_one_and_that_is_said() {
    let dir = TempDir::new().unwrap();
    let (cache, path) = (disk(dir.path()), dir.path().join("secret"));
    let first = CacheFolder::open(&cache).unwrap();
    assert_eq!(first.notice, None, "a new cache has no secret yet");
    let secret = first.secret.clone();
    drop(first);
    let second = CacheFolder::open(&cache).unwrap();
    assert_eq!((&second.secret, &second.notice), (&secret, &None));
    store_something(&second);
    drop(second);
    for torn in [None, Some("0123")] {
        fs::remove_file(&path).unwrap();
        torn.map_or(Ok(()), |text| private::write(&path, text))
            .unwrap();
        fs::write(dir.path().join("manifest"), "old").unwrap();
        let folder = CacheFolder::open(&cache).unwrap();
        let notice = folder.notice.as_deref().expect("a notice");
        assert!(notice.contains("secret is missing, damaged"), "{notice}");
        assert!(!notice.contains(secret.digits()) && !notice.contains(folder.secret.digits()));
        assert!(!dir.path().join("manifest").exists());
        assert!(!folder.earlier_runs().warm);
        assert_ne!(folder.secret, secret);
        let new = folder.secret.clone();
        drop(folder);
        let next = CacheFolder::open(&cache).unwrap();
        assert_eq!((&next.secret, &next.notice), (&new, &None));
    }
}

#[test]
fn a_cache_of_which_envoy_dies_is_given_up_and_that_is_said() {
    let dir = TempDir::new().unwrap();
    let cache = disk(dir.path());
    store_something(&CacheFolder::open(&cache).unwrap());
    fs::write(dir.path().join("manifest"), "old").unwrap();
    fs::write(dir.path().join("early-deaths"), "2\n").unwrap();
    let folder = CacheFolder::open(&cache).unwrap();
    let notice = folder.notice.as_deref().expect("a notice");
    assert!(notice.contains("died twice"), "{notice}");
    assert!(!dir.path().join("manifest").exists());
    drop(folder);
    assert_eq!(CacheFolder::open(&cache).unwrap().notice, None);
}

#[test]
fn a_folder_of_somebody_elses_stays_as_it_is() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("thesis.txt"), "years of work").unwrap();
    let error = CacheFolder::open(&disk(dir.path())).unwrap_err();
    assert!(
        error.to_string().contains("there are other files"),
        "{error}"
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_cache_in_memory_ends_with_its_edge() {
    let folder = CacheFolder::open(&memory(1 << 20)).unwrap();
    let entries = folder.entries.clone();
    assert!(entries.starts_with("/dev/shm") && entries.is_dir());
    drop(folder);
    assert!(!entries.exists() && !entries.parent().unwrap().exists());
}

#[test]
fn what_a_dead_edge_left_in_memory_is_removed_and_a_living_edges_is_not() {
    let living = CacheFolder::open(&memory(1 << 20)).unwrap();
    let dead = TempDir::with_prefix_in(tmpfs::PREFIX, "/dev/shm").unwrap();
    fs::write(dead.path().join("format"), FORMAT).unwrap();
    fs::create_dir(dead.path().join(ENTRIES)).unwrap();
    let foreign = TempDir::with_prefix_in(tmpfs::PREFIX, "/dev/shm").unwrap();
    let next = CacheFolder::open(&memory(1 << 20)).unwrap();
    assert!(!dead.path().exists());
    assert!(living.entries.exists() && next.entries.exists() && foreign.path().exists());
}

#[test]
fn memory_has_to_be_memory_and_large_enough() {
    let wrong = CacheFolder::open(&Cache {
        dir: "/proc".into(),
        ..memory(1)
    });
    let wrong = wrong.unwrap_err().to_string();
    assert!(wrong.contains("expected a folder on a tmpfs"), "{wrong}");
    let large = CacheFolder::open(&memory(1 << 60)).unwrap_err();
    assert!(
        large.to_string().starts_with("SLUICE_CACHE_MAX_BYTES="),
        "{large}"
    );
}
