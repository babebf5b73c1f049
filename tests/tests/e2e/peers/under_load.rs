// SPDX-License-Identifier: Apache-2.0
//! Purges while clients ask through all edges. Each edge has several workers, and one edge cannot read the feed.

use super::world::{World, wait_for_members};
use serde_json::json;
use sluice_tests::bucket::proxy::Proxy;
use sluice_tests::bucket::{Bucket, minio};
use sluice_tests::client;
use sluice_tests::edge::purger::Purger;
use sluice_tests::edge::{Builder, Edge};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

const FEED: &str = ".sluice/purges";
const POLICY: &str =
    "origin: {kind: bucket}\ncache: {ttl: {default: 1h}}\npurge: {feed: {every: 500ms}}\n";
const OBJECTS: usize = 12;
const EDGES: usize = 3;
/// The edge that cannot read the feed.
const CUT_OFF: usize = 2;
/// Clients of each edge.
const CLIENTS: usize = 3;
/// Time between two requests of a client.
const PAUSE: Duration = Duration::from_millis(5);
/// Time in which a message to another worker of the edge has surely arrived.
const MESSAGE: Duration = Duration::from_millis(100);
/// Time in which clients check a purge.
const CHECK: Duration = Duration::from_millis(300);

/// The least version of each object that a client of each edge may get.
#[derive(Default)]
struct Watch {
    least: [[AtomicU64; OBJECTS]; EDGES],
    is_over: AtomicBool,
}

/// Responses that clients have got.
#[derive(Debug, Default)]
struct Seen {
    responses: usize,
    /// Descriptions of the ones with an older version than their clients may get.
    old: Vec<String>,
}

/// Requests one object after the other through an edge.
async fn ask(watch: Arc<Watch>, edge: usize, address: SocketAddr, first: usize) -> (usize, Seen) {
    let mut seen = Seen::default();
    for number in first.. {
        if watch.is_over.load(Ordering::Relaxed) {
            break;
        }
        let object = number % OBJECTS;
        let least = watch.least[edge][object].load(Ordering::Relaxed);
        let response = client::get(address, &format!("/{object}")).await;
        assert_eq!(response.status, 200, "edge {edge}: {response}");
        let version: u64 = String::from_utf8_lossy(&response.body).parse().unwrap();
        if version < least {
            seen.old
                .push(format!("/{object}: {version}, not {least}: {response}"));
        }
        seen.responses += 1;
        tokio::time::sleep(PAUSE).await;
    }
    (edge, seen)
}

/// Three edges of one bucket, and their clients.
struct Fleet {
    bucket: Bucket,
    proxy: Proxy,
    purger: Purger,
    edges: [Edge; EDGES],
    watch: Arc<Watch>,
    clients: JoinSet<(usize, Seen)>,
}

impl Fleet {
    /// Starts the edges, as members of a world or alone, and their clients.
    async fn start(world: Option<&World>) -> Self {
        let bucket = minio::shared().await.bucket().await;
        let (purger, proxy) = (Purger::new(), Proxy::start(bucket.server().address()));
        let endpoint = format!("http://{}", proxy.address());
        let edge = || Edge::bucket(&bucket).policy(POLICY).workers(2);
        let builders = [
            purger.open(edge()).env("SLUICE_PURGE_FEED_WRITE", "on"),
            edge(),
            edge().env("SLUICE_S3_ENDPOINT", endpoint),
        ];
        for object in 0..OBJECTS {
            bucket.put(&object.to_string(), &[], b"1").await;
        }
        let mut numbers = 0..;
        let [a, b, c] = builders.map(|edge: Builder| {
            let number = numbers.next().unwrap();
            match world {
                Some(world) => world.member(number, edge).start(),
                None => edge.start(),
            }
        });
        let (a, b, c) = tokio::join!(a, b, c);
        let edges = [a, b, c];
        if world.is_some() {
            for edge in &edges {
                wait_for_members(edge, 3).await;
            }
        }
        let (watch, mut clients) = (Arc::new(Watch::default()), JoinSet::new());
        for number in 0..EDGES * CLIENTS {
            let edge = number % EDGES;
            let address = edges[edge].address();
            clients.spawn(ask(Arc::clone(&watch), edge, address, 5 * number));
        }
        Self {
            bucket,
            proxy,
            purger,
            edges,
            watch,
            clients,
        }
    }

    /// Writes a version of every second object, and purges these. Returns when the purges are in force at the edges
    /// that read the feed, and the third edge has heard of them, and clients have asked after that.
    async fn replace(&self, version: u64, is_cut_off: bool) {
        let objects = (0..OBJECTS).filter(|object| (object + version as usize).is_multiple_of(2));
        let objects: Vec<_> = objects.collect();
        for object in &objects {
            let text = version.to_string();
            self.bucket
                .put(&object.to_string(), &[], text.as_bytes())
                .await;
        }
        let mut purges = JoinSet::new();
        for object in &objects {
            let (purger, url) = (self.purger, format!("s3://{}/{object}", self.bucket.name()));
            purges.spawn(async move { purger.purge(json!({"url": url})).await });
        }
        let receipts = purges.join_all().await;
        let lines = receipts
            .iter()
            .map(|receipt| receipt["feed"].as_u64().unwrap());
        let last = lines.max().unwrap();
        let reading = if is_cut_off { CUT_OFF } else { EDGES };
        for edge in &self.edges[..reading] {
            edge.wait_for_value("sluice_purge_feed_number", last).await;
        }
        // Requests through the other edges tell the edge that is cut off.
        for object in 0..OBJECTS {
            self.edges[0].get(&format!("/{object}")).await;
        }
        tokio::time::sleep(MESSAGE).await;
        for least in &self.watch.least {
            for object in &objects {
                least[*object].store(version, Ordering::Relaxed);
            }
        }
        tokio::time::sleep(CHECK).await;
    }

    /// Ends the clients. Returns the responses of the clients of each edge.
    async fn seen(&mut self) -> [Seen; EDGES] {
        self.watch.is_over.store(true, Ordering::Relaxed);
        let mut all: [Seen; EDGES] = Default::default();
        while let Some(ended) = self.clients.join_next().await {
            let (edge, seen) = ended.unwrap();
            all[edge].responses += seen.responses;
            all[edge].old.extend(seen.old);
        }
        println!("responses: {:?}", all.each_ref().map(|seen| seen.responses));
        all
    }
}

#[tokio::test]
async fn no_client_gets_an_older_object_after_a_purge_is_in_force_at_its_edge() {
    let world = World::new().await;
    let mut fleet = Fleet::start(Some(&world)).await;
    fleet.replace(2, false).await;
    let cut_off = fleet.proxy.hold(&fleet.bucket.target(FEED));
    cut_off.wait_reached(1).await;
    for version in 3..=6 {
        fleet.replace(version, true).await;
    }
    cut_off.open();
    fleet.replace(7, false).await;
    for (number, seen) in fleet.seen().await.iter().enumerate() {
        assert_eq!(seen.old, [] as [String; 0], "edge {number}");
        assert!(seen.responses > 100, "edge {number}: {}", seen.responses);
        let hits = fleet.edges[number].counter("sluice_requests_hit").await;
        assert!(hits > 100, "edge {number} has owned keys: {hits}");
    }
    let lacking = "sluice_peer_requests_lacking_purges";
    assert!(fleet.edges[CUT_OFF].counter(lacking).await > 0);
}

#[tokio::test]
async fn control_an_edge_without_peers_that_cannot_read_the_feed_serves_older_objects() {
    let mut fleet = Fleet::start(None).await;
    fleet.replace(2, false).await;
    let cut_off = fleet.proxy.hold(&fleet.bucket.target(FEED));
    cut_off.wait_reached(1).await;
    fleet.replace(3, true).await;
    let seen = fleet.seen().await;
    for edge in &seen[..CUT_OFF] {
        assert_eq!(edge.old, [] as [String; 0]);
    }
    assert!(!seen[CUT_OFF].old.is_empty(), "{seen:?}");
    cut_off.open();
}
