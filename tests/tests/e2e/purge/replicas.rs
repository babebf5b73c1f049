// SPDX-License-Identifier: Apache-2.0
//! Three edges with one purge feed under a thousand purges: one writes the feed, one is started again, and one cannot read
//! it for a minute.

use serde_json::json;
use sluice_tests::bucket::proxy::Proxy;
use sluice_tests::bucket::{Bucket, minio};
use sluice_tests::edge::Edge;
use sluice_tests::edge::purger::Purger;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const FEED: &str = ".sluice/purges";
/// Time within which an edge that reads the feed every two seconds has applied a purge.
const BOUND: Duration = Duration::from_secs(3);
const OBJECTS: usize = 20;
/// Number of purges of each object.
const ROUNDS: u32 = 50;
/// Time between two purges of one object.
const PACE: Duration = Duration::from_millis(1_600);
/// Time after which one edge is ended and another one is cut off.
const BEFORE: Duration = Duration::from_secs(10);
/// Time for which one edge cannot read the feed.
const CUT: Duration = Duration::from_secs(60);
/// Time for which one edge is down.
const DOWN: Duration = Duration::from_secs(10);
/// Pause between two requests of one client.
const PAUSE: Duration = Duration::from_millis(10);

/// The versions of the objects, with the times of the answers to their purges.
#[derive(Default)]
struct Ledger {
    purged: Mutex<BTreeMap<usize, Vec<(Instant, u32)>>>,
}

impl Ledger {
    fn note(&self, object: usize, version: u32) {
        let mut purged = self.purged.lock().unwrap();
        purged
            .entry(object)
            .or_default()
            .push((Instant::now(), version));
    }

    /// The version of the last purge that was answered by then.
    fn version_at(&self, object: usize, time: Instant) -> u32 {
        let purged = self.purged.lock().unwrap();
        let of_object = purged.get(&object).into_iter().flatten().rev();
        let mut earlier = of_object.filter(|(at, _)| *at <= time);
        earlier.next().map_or(0, |(_, version)| *version)
    }

    /// The time of the first purge after which this version was old.
    fn purge_after(&self, object: usize, version: u32) -> Option<Instant> {
        let purged = self.purged.lock().unwrap();
        let mut of_object = purged.get(&object).into_iter().flatten();
        Some(of_object.find(|(_, newer)| *newer > version)?.0)
    }
}

/// Responses of an edge.
#[derive(Debug, Default)]
struct Watch {
    responses: usize,
    hits: usize,
    /// Responses that were older than the last purge that was answered before their requests.
    old: usize,
    /// The greatest time between the answer to a purge and a request that got an older version.
    late: Duration,
    /// The time of the last request that got an older version.
    last: Option<Instant>,
}

impl Watch {
    /// Requests the objects in turn until `end`. The response to a request at the time `t` must not be older than the
    /// purges that were answered by `known(t)`.
    async fn run(
        &mut self,
        edge: &Edge,
        ledger: &Ledger,
        end: Instant,
        known: impl Fn(Instant) -> Instant,
    ) {
        for object in (0..OBJECTS).cycle() {
            let asked = Instant::now();
            if asked >= end {
                return;
            }
            let (version, is_hit) = version(edge, object).await;
            let least = ledger.version_at(object, known(asked));
            assert!(version >= least, "{object}: {version}, purged for {least}");
            self.responses += 1;
            self.hits += usize::from(is_hit);
            if let Some(purged) = ledger.purge_after(object, version)
                && purged <= asked
            {
                self.old += 1;
                self.last = Some(asked);
                self.late = self.late.max(asked - purged);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Requests an object. Returns its version, and whether it was a hit.
async fn version(edge: &Edge, object: usize) -> (u32, bool) {
    let response = edge.get(&format!("/{object}")).await;
    assert_eq!(response.status, 200, "{response}");
    let text = std::str::from_utf8(&response.body).unwrap();
    (text.parse().unwrap(), response.is_hit())
}

/// Writes and purges new versions of one object.
async fn change(
    object: usize,
    bucket: Arc<Bucket>,
    purger: Purger,
    ledger: Arc<Ledger>,
    begin: Instant,
) {
    for version in 1..=ROUNDS {
        tokio::time::sleep_until((begin + PACE * version).into()).await;
        let (key, text) = (object.to_string(), version.to_string());
        bucket.put(&key, &[], text.as_bytes()).await;
        let receipt = purger.purge(json!({"url": format!("/{object}")})).await;
        assert!(receipt["feed"].is_u64(), "{receipt}");
        ledger.note(object, version);
    }
}

/// Reads from an edge that is down for a while in the middle.
async fn watch_restarted(edge: &mut Edge, ledger: &Ledger, begin: Instant, end: Instant) -> Watch {
    let mut watch = Watch::default();
    let bounded = |time: Instant| time.checked_sub(BOUND).unwrap();
    watch.run(edge, ledger, begin + BEFORE, bounded).await;
    edge.end_by(edge.pid(), libc::SIGTERM).await;
    tokio::time::sleep(DOWN).await;
    let started = Instant::now();
    edge.start_again().await;
    let known = |time| bounded(time).max(started);
    watch.run(edge, ledger, end, known).await;
    watch
}

/// Reads from an edge whose readings of the feed are held for a while.
async fn watch_cut_off(
    edge: &Edge,
    proxy: &Proxy,
    feed: &str,
    ledger: &Ledger,
    [begin, end]: [Instant; 2],
) -> Watch {
    let (mut watch, mut cut_off) = (Watch::default(), Watch::default());
    let bounded = |time: Instant| time.checked_sub(BOUND).unwrap();
    watch.run(edge, ledger, begin + BEFORE, bounded).await;
    let gate = proxy.hold(feed);
    let cut = bounded(Instant::now());
    cut_off
        .run(edge, ledger, Instant::now() + CUT, |_| cut)
        .await;
    assert!(cut_off.old > 0, "the edge was not cut off: {cut_off:?}");
    gate.open();
    let opened = Instant::now();
    let mut back = Watch::default();
    back.run(edge, ledger, opened + BOUND, |_| cut).await;
    let last = back.last.map(|last| last - opened);
    println!(
        "cut off: {} old, the last one {last:?} after it",
        cut_off.old
    );
    watch.run(edge, ledger, end, bounded).await;
    watch
}

#[tokio::test]
#[ignore = "long: make soak"]
async fn no_edge_serves_an_old_object_after_it_is_ready() {
    let bucket = Arc::new(minio::shared().await.bucket().await);
    let (purger, proxy) = (Purger::new(), Proxy::start(bucket.server().address()));
    let policy =
        "origin: {kind: bucket}\ncache: {ttl: {default: 1h}}\npurge: {feed: {every: 2s}}\n";
    let edge = || Edge::bucket(&bucket).policy(policy).workers(2);
    let writer = purger.open(edge()).env("SLUICE_PURGE_FEED_WRITE", "on");
    let writer = writer.start().await;
    let mut restarted = edge().start().await;
    let endpoint = format!("http://{}", proxy.address());
    let cut_off = edge().env("SLUICE_S3_ENDPOINT", endpoint).start().await;
    for object in 0..OBJECTS {
        bucket.put(&object.to_string(), &[], b"0").await;
    }
    let (ledger, begin) = (Arc::new(Ledger::default()), Instant::now());
    let end = begin + PACE * (ROUNDS + 1) + BOUND;
    let mut changes = JoinSet::new();
    for object in 0..OBJECTS {
        let (bucket, ledger) = (Arc::clone(&bucket), Arc::clone(&ledger));
        changes.spawn(change(object, bucket, purger, ledger, begin));
    }
    let mut watch = Watch::default();
    let feed = bucket.target(FEED);
    let (of_restarted, of_cut_off, ()) = tokio::join!(
        watch_restarted(&mut restarted, &ledger, begin, end),
        watch_cut_off(&cut_off, &proxy, &feed, &ledger, [begin, end]),
        // A purge that was answered is in force at the edge that writes.
        watch.run(&writer, &ledger, end, |asked| asked),
    );
    changes.join_all().await;
    println!("writes: {watch:?}\nrestarted: {of_restarted:?}\ncut off: {of_cut_off:?}");
    tokio::time::sleep(BOUND).await;
    for edge in [&writer, &restarted, &cut_off] {
        for object in 0..OBJECTS {
            assert_eq!(version(edge, object).await.0, ROUNDS, "{object}");
        }
    }
    for watch in [watch, of_restarted, of_cut_off] {
        assert!(watch.hits * 4 > watch.responses, "{watch:?}");
    }
}
