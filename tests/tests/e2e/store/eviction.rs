// SPDX-License-Identifier: Apache-2.0
//! When the store is nearly full, the entry point removes many of the oldest objects at once, so that Envoy does not
//! have to evict them one by one.

use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;
use sluice_tests::edge::direct::Direct;
use sluice_tests::edge::store::Medium;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use std::ops::Range;
use std::path::PathBuf;
use tempfile::TempDir;
use tokio::task::JoinSet;

/// Bound on the number of objects.
const ROOM: usize = 1_000;
/// Number of objects above which the entry point makes room.
const MOST: usize = ROOM - ROOM / 64;
/// Number of objects that are left after that.
const KEPT: usize = MOST - MOST / 16;

/// Number of clients that send requests at a time.
const CLIENTS: usize = 8;

/// An edge with room for [`ROOM`] objects. Each request reaches the store, and the test sees the store's files.
struct Small {
    edge: Edge,
    entries: PathBuf,
    _folder: TempDir,
}

impl Small {
    /// Starts an edge with the entry point, or without it. Without the entry point, Envoy evicts alone.
    async fn start(origin: &Origin, entry_point: bool) -> Self {
        let folder = TempDir::with_prefix_in("sluice-eviction-", "/dev/shm").unwrap();
        let builder = Edge::http(origin)
            .medium(Medium::Disk)
            .env("SLUICE_HOT_BYTES", "0")
            .env("SLUICE_CACHE_DIR", folder.path().display().to_string())
            .env("SLUICE_CACHE_MAX_ENTRIES", ROOM.to_string());
        let builder = if entry_point {
            builder
        } else {
            builder.direct(Direct::default())
        };
        Self {
            edge: builder.start().await,
            entries: folder.path().join("entries"),
            _folder: folder,
        }
    }

    /// Requests all of these objects, some at a time.
    async fn ask(&self, objects: Range<usize>) {
        let mut clients = JoinSet::new();
        for first in 0..CLIENTS {
            let address = self.edge.address();
            let objects = (objects.start + first..objects.end).step_by(CLIENTS);
            clients.spawn(async move {
                let mut client = Client::connect(address).await;
                for object in objects {
                    let asked = request("GET", &path(object), &[]);
                    let response = client.exchange(asked).await;
                    assert_eq!(response.status, 200, "{response}");
                }
            });
        }
        clients.join_all().await;
    }

    fn files(&self) -> usize {
        std::fs::read_dir(&self.entries).unwrap().count()
    }

    async fn statistic(&self, name: &str) -> usize {
        let values = self.edge.stats(name).await.into_values();
        usize::try_from(values.sum::<u64>()).unwrap()
    }

    /// Number of times that Envoy has read the folder because the store was above its bound.
    async fn reads(&self) -> usize {
        self.statistic("cache.eviction_runs").await
    }

    /// Checks that all of these objects are stored.
    async fn check(&self, objects: Range<usize>) {
        for object in objects {
            let response = self.edge.get(&path(object)).await;
            assert!(response.is_hit(), "{object}: {response}");
        }
    }

    async fn wait_for_files(&self, count: usize) {
        eventually(&format!("{count} files"), async || self.files() == count).await;
    }
}

fn path(object: usize) -> String {
    format!("/object/{object}")
}

async fn origin() -> Origin {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(500).max_age(3_600));
    origin
}

#[tokio::test]
async fn the_oldest_objects_make_room_before_the_bound_is_reached() {
    let origin = origin().await;
    let (edge, alone) = tokio::join!(Small::start(&origin, true), Small::start(&origin, false));
    edge.ask(0..ROOM / 2).await;
    tokio::join!(edge.ask(ROOM / 2..MOST), alone.ask(0..MOST + 1));
    edge.wait_for_files(MOST).await;
    edge.ask(MOST..MOST + 1).await;
    edge.wait_for_files(KEPT).await;
    alone.wait_for_files(MOST + 1).await;
    assert_eq!(edge.reads().await, 0, "not Envoy's doing");
    edge.check(ROOM / 2..MOST + 1).await;
}

#[tokio::test]
async fn objects_from_before_a_restart_count_towards_the_bound() {
    let origin = origin().await;
    let mut edge = Small::start(&origin, true).await;
    edge.ask(0..ROOM / 2).await;
    edge.ask(ROOM / 2..MOST).await;
    edge.wait_for_files(MOST).await;
    edge.edge.restart().await;
    edge.wait_for_files(MOST).await;
    edge.ask(MOST..MOST + 1).await;
    edge.wait_for_files(KEPT).await;
    // The order of the objects is the same as before the restart.
    edge.check(ROOM / 2..MOST + 1).await;
}

#[tokio::test]
async fn envoy_reads_the_folder_once_for_many_objects() {
    const MORE: usize = 100;
    let origin = origin().await;
    let (edge, alone) = tokio::join!(Small::start(&origin, true), Small::start(&origin, false));
    tokio::join!(edge.ask(0..MOST), alone.ask(0..ROOM));
    for next in MOST..MOST + MORE {
        edge.ask(next..next + 1).await;
        eventually("room", async || edge.files() <= MOST).await;
    }
    let reads = edge.reads().await;
    assert!(reads <= MORE / (ROOM - MOST), "{reads}");
    // Without the entry point, Envoy reads the folder for each new object.
    alone.wait_for_files(ROOM).await;
    for more in 1..=20 {
        alone.ask(ROOM + more..ROOM + more + 1).await;
        eventually("an eviction", async || alone.reads().await == more).await;
        alone.wait_for_files(ROOM).await;
    }
}
