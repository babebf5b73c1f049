// SPDX-License-Identifier: Apache-2.0
//! What the keeper's thread does with files that come and go.

use std::fs;
use std::sync::mpsc;

use super::*;
use crate::system::joining_thread::JoiningThread;
use tempfile::TempDir;

const ROOM: Usage = Usage {
    bytes: 1 << 20,
    files: 1_000,
};

/// A folder with a cache in it, and a thread's view of that.
struct Scene {
    dir: TempDir,
}

impl Scene {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir(dir.path().join("entries")).unwrap();
        Self { dir }
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

    /// Does `play` with a thread that has just started.
    fn play(
        self,
        shortage: Shortage,
        play: impl FnOnce(&Self, &mut KeeperThread, &StopToken) + Send + 'static,
    ) {
        let (ended, end) = mpsc::channel();
        let folder = self.dir.path().join("entries");
        let root = self.dir.path().to_owned();
        let mut work = KeeperThread::new(&folder, Some(root), ROOM, shortage).unwrap();
        let thread = JoiningThread::start("test", move |stop| {
            play(&self, &mut work, &stop);
            ended.send(()).unwrap();
        });
        end.recv().expect("no panic");
        drop(thread);
    }
}

#[test]
fn files_are_counted_exactly_and_are_in_the_manifest_when_they_are_finished() {
    Scene::new().play(Shortage::default(), |scene, work, _| {
        scene.store(1, "12345");
        scene.store(2, "123");
        scene.store(1, "1234567");
        work.follow();
        assert_eq!(
            work.usage,
            Usage {
                bytes: 10,
                files: 2
            }
        );
        assert_eq!(scene.manifest(), work.files);
        scene.remove(1);
        scene.store(3, "gone before anybody looks");
        scene.remove(3);
        work.follow();
        assert_eq!(work.usage, Usage { bytes: 3, files: 1 });
    });
}

#[test]
fn changes_that_the_system_has_lost_are_found_in_the_folder() {
    Scene::new().play(Shortage::default(), |scene, work, _| {
        for (number, text) in [(1, "stays"), (2, "goes"), (3, "changes")] {
            scene.store(number, text);
        }
        work.follow();
        scene.remove(2);
        scene.store(3, "has changed");
        scene.store(4, "new");
        work.watch = FolderWatch::start(&work.folder).unwrap();
        work.follow();
        assert_eq!(work.usage.files, 3, "it has seen nothing of that");
        let found = work.rescan();
        work.record(&found);
        assert_eq!(
            work.usage,
            Usage {
                bytes: 19,
                files: 3
            }
        );
        for (number, file) in &work.files {
            assert_eq!(scene.manifest().get(number), Some(file));
        }
    });
}

#[test]
fn room_is_made_for_a_batch_when_the_bound_is_near() {
    Scene::new().play(Shortage::default(), |scene, work, stop| {
        let most = ROOM.files - ROOM.files / 64;
        for number in 0..most {
            scene.store(number, "x");
        }
        work.follow();
        work.make_room(stop);
        assert_eq!(scene.files(), most);
        scene.store(most, "x");
        work.follow();
        work.make_room(stop);
        assert_eq!((scene.files(), work.usage.files), (924, 924));
    });
}

#[test]
fn a_shortage_is_acted_on_once() {
    let shortage = Shortage::default();
    shortage.publish(50);
    Scene::new().play(shortage.clone(), |scene, work, stop| {
        for number in 0..100 {
            scene.store(number, "x");
        }
        work.follow();
        work.make_room(stop);
        assert_eq!(scene.files(), 44);
        work.make_room(stop);
        assert_eq!(scene.files(), 44);
    });
    assert_eq!(shortage.bytes(), 0);
}
