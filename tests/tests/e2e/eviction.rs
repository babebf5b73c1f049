// SPDX-License-Identifier: Apache-2.0
//! A store that is nearly full is relieved of many objects at once, the oldest, before Envoy has to evict them one by one.

use sluice::cache_folder::ENTRIES;
use sluice_tests::client::{Client, request};
use sluice_tests::direct::Direct;
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::matrix::{Cell, Store};
use sluice_tests::origin::{Origin, Reply};
use std::ops::Range;
use std::path::PathBuf;
use tempfile::TempDir;

/// The bound.
const ROOM: usize = 1_000;
/// Nearly that: here room is made, or before, where it comes in fast.
const NEARLY: usize = 990;
/// For so many at least.
const BATCH: usize = 40;

/// An edge with room for so many, each of whose requests comes to the store, and whose files are seen.
struct Small {
    edge: Edge,
    entries: PathBuf,
    _folder: TempDir,
}

impl Small {
    /// With the entry point; without it, Envoy evicts alone.
    async fn start(origin: &Origin, store: Store, entry_point: bool) -> Self {
        let folder = TempDir::with_prefix_in("sluice-eviction-", "/dev/shm").unwrap();
        let builder = Edge::http(origin)
            .cell(Cell { store, workers: 2 })
            .env("HOT_BYTES", "0")
            .env("CACHE_DIR", folder.path().display().to_string())
            .env("CACHE_MAX_ENTRIES", ROOM.to_string());
        let builder = if entry_point {
            builder
        } else {
            builder.direct(Direct::default())
        };
        Self {
            edge: builder.start().await,
            entries: folder.path().join(ENTRIES),
            _folder: folder,
        }
    }

    async fn ask(&self, objects: Range<usize>) {
        let mut client = Client::connect(self.edge.address()).await;
        for object in objects {
            let asked = request("GET", &path(object), &[]);
            let response = client.exchange(asked).await;
            assert_eq!(response.status, 200, "{response}");
        }
    }

    fn files(&self) -> usize {
        std::fs::read_dir(&self.entries).unwrap().count()
    }

    async fn statistic(&self, name: &str) -> usize {
        let values = self.edge.stats(name).await.into_values();
        usize::try_from(values.sum::<u64>()).unwrap()
    }

    /// How many files Envoy believes that there are.
    async fn gauge(&self) -> usize {
        self.statistic("cache.size_count").await
    }

    /// How often Envoy has read the folder because it was above its bound.
    async fn reads(&self) -> usize {
        self.statistic("cache.eviction_runs").await
    }

    /// Waits until there are fewer files than Envoy believes, by so many as only the entry point removes at once; how many.
    async fn relieved(&self) -> usize {
        eventually("room", async || self.files() + BATCH <= self.gauge().await).await;
        self.files()
    }

    /// Asks for one new object after the other, from `next` on, each of which is stored, until `done`; the next.
    async fn ask_until(&self, mut next: usize, done: impl AsyncFn() -> bool) -> usize {
        while !done().await {
            let before = self.gauge().await;
            self.ask(next..next + 1).await;
            next += 1;
            eventually("another object, or a count", async || {
                self.gauge().await != before
            })
            .await;
            let files = self.files();
            assert!(files <= ROOM + 1, "{files}");
        }
        next
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
async fn the_oldest_make_room_before_the_bound_is_reached() {
    let store = Store::V1_DISK;
    let origin = origin().await;
    let (edge, alone) = tokio::join!(
        Small::start(&origin, store, true),
        Small::start(&origin, store, false)
    );
    tokio::join!(edge.ask(0..NEARLY), alone.ask(0..NEARLY));
    let left = edge.relieved().await;
    assert!(left > ROOM / 2, "{store}: {left}");
    assert_eq!(edge.reads().await, 0, "{store}: not Envoy's doing");
    eventually("all of it", async || alone.files() == NEARLY).await;
    let fetched = edge.edge.counter("sluice_origin_fetches").await;
    edge.ask(NEARLY - left + 10..NEARLY).await;
    let again = edge.edge.counter("sluice_origin_fetches").await;
    assert_eq!(again, fetched, "{store}: the newest are there");
    edge.ask(0..10).await;
    let again = edge.edge.counter("sluice_origin_fetches").await;
    assert_eq!(again, fetched + 10, "the oldest are not");
}

#[tokio::test]
async fn envoy_reads_the_folder_once_for_many_objects() {
    let store = Store::V1_DISK;
    let origin = origin().await;
    let (edge, alone) = tokio::join!(
        Small::start(&origin, store, true),
        Small::start(&origin, store, false)
    );
    tokio::join!(edge.ask(0..NEARLY), alone.ask(0..ROOM));
    let mut next = NEARLY;
    for reads in 1..=2 {
        let nearly_full = async || edge.gauge().await >= NEARLY;
        next = edge.ask_until(next, nearly_full).await;
        edge.relieved().await;
        let read = async || edge.gauge().await < NEARLY;
        next = edge.ask_until(next, read).await;
        assert_eq!(edge.reads().await, reads, "{store}");
    }
    assert!(next - NEARLY > BATCH, "{store}: {next}");
    // Alone, it does so for each.
    eventually("a full store", async || alone.files() == ROOM).await;
    for more in 1..=20 {
        alone.ask(ROOM + more..ROOM + more + 1).await;
        eventually("an eviction", async || alone.reads().await == more).await;
        eventually("its end", async || alone.files() == ROOM).await;
    }
}
