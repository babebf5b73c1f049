// SPDX-License-Identifier: Apache-2.0
//! The purge feed: a line that is appended to an object of the bucket is a purge on every edge.

use sluice_core::purge::{Feed, FeedId, FeedSubject};
use sluice_tests::bucket::{Bucket, minio};
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::task::JoinSet;

const KEY: &str = ".sluice/purges";
const EVERY: Duration = Duration::from_secs(2);
const ID: FeedId = FeedId(0x5eed);

/// The policy of a bucket whose objects stay fresh for longer than a test takes.
fn policy(kind: &str, every: &str) -> String {
    format!(
        "origin: {{kind: {kind}}}\ncache: {{ttl: {{default: 1h}}}}\npurge: {{feed: {{every: {every}}}}}\n"
    )
}

fn edge(bucket: &Bucket, every: &str) -> Builder {
    Edge::bucket(bucket).policy(&policy("bucket", every))
}

fn url(path: &str) -> FeedSubject {
    FeedSubject::Url(path.to_owned())
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap()
}

/// Appends a hard purge as any writer does: reads the feed, and replaces exactly that one. Returns the number of
/// attempts.
async fn append(bucket: &Bucket, subject: &FeedSubject) -> usize {
    for attempt in 1..100 {
        let read = bucket.get(KEY).await;
        let (mut feed, condition) = match read.status {
            200 => {
                let etag = read.header("etag").to_owned();
                (Feed::parse(&read.body).unwrap(), ("if-match", etag))
            }
            404 => (Feed::new(ID), ("if-none-match", "*".to_owned())),
            _ => panic!("{read}"),
        };
        feed.append(vec![(true, subject.clone())], now()).unwrap();
        let condition = [(condition.0, condition.1.as_str())];
        let text = feed.to_string();
        match bucket
            .try_put(KEY, &condition, text.as_bytes())
            .await
            .status
        {
            200 => return attempt,
            404 | 409 | 412 => {}
            status => panic!("{status}"),
        }
    }
    panic!("other writers were faster a hundred times");
}

async fn hit(edge: &Edge, path: &str) -> Vec<u8> {
    eventually("a hit", async || edge.get(path).await.is_hit()).await;
    edge.get(path).await.body
}

/// Waits until the edge has read the feed once more than before.
async fn read_again(edge: &Edge) {
    let reads = edge.counter("sluice_purge_feed_reads").await;
    edge.wait_for_counter("sluice_purge_feed_reads", reads + 2)
        .await;
}

#[tokio::test]
async fn a_purge_reaches_every_edge_within_the_interval() {
    let bucket = minio::shared().await.bucket().await;
    let mut edges = Vec::new();
    for workers in [1, 2, 2] {
        edges.push(edge(&bucket, "2s").workers(workers).start().await);
    }
    bucket.put("a", &[], b"0").await;
    bucket.put("other", &[], b"other").await;
    let mut times = Vec::new();
    for round in 1..=5 {
        for edge in &edges {
            assert_eq!(hit(edge, "/a").await, (round - 1).to_string().as_bytes());
            hit(edge, "/other").await;
        }
        let new = round.to_string();
        bucket.put("a", &[], new.as_bytes()).await;
        append(&bucket, &url("/a")).await;
        let purged = Instant::now();
        let mut waiting: Vec<&Edge> = edges.iter().collect();
        while !waiting.is_empty() {
            let mut left = Vec::new();
            for edge in waiting {
                match edge.get("/a").await.body == new.as_bytes() {
                    true => times.push(purged.elapsed()),
                    false => left.push(edge),
                }
            }
            waiting = left;
            assert!(
                purged.elapsed() < EVERY + Duration::from_secs(1),
                "{times:?}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    times.sort_unstable();
    println!("purges took {times:?}");
    // An idle machine needs half of the interval. The rest is room for a busy one.
    assert!(times[times.len() / 2] < EVERY.mul_f64(0.9), "{times:?}");
    assert_eq!(
        bucket.count("other"),
        edges.len(),
        "the rest of the cache stays"
    );
}

#[tokio::test]
async fn an_edge_that_was_down_catches_up() {
    let bucket = minio::shared().await.bucket().await;
    bucket.put("a", &[], b"one").await;
    bucket.put("other", &[], b"other").await;
    append(&bucket, &url("/first")).await;
    let mut edge = edge(&bucket, "300ms").start().await;
    hit(&edge, "/a").await;
    hit(&edge, "/other").await;
    read_again(&edge).await;
    let pid = edge.pid();
    edge.end_by(pid, libc::SIGTERM).await;
    bucket.put("a", &[], b"two").await;
    append(&bucket, &url("/a")).await;
    edge.start_again().await;
    assert_eq!(edge.get("/a").await.body, b"two");
    read_again(&edge).await;
    assert!(edge.get("/other").await.is_hit());
    assert_eq!(bucket.count("other"), 1);
}

#[tokio::test]
async fn a_feed_that_was_cut_or_replaced_purges_everything() {
    let bucket = minio::shared().await.bucket().await;
    bucket.put("a", &[], b"one").await;
    append(&bucket, &url("/first")).await;
    let edge = edge(&bucket, "300ms").start().await;
    hit(&edge, "/a").await;
    read_again(&edge).await;
    for (text, content) in [
        ("sluice-purges/1 00005eed\nbase 500 499\n", "two"),
        ("sluice-purges/1 00000001\nbase 0 0\n", "three"),
        ("sluice-purges/1 00000001\nbase 0 0\n1 broken\n", "four"),
    ] {
        bucket.put("a", &[], content.as_bytes()).await;
        assert_ne!(hit(&edge, "/a").await, content.as_bytes());
        bucket.put(KEY, &[], text.as_bytes()).await;
        eventually(content, async || {
            edge.get("/a").await.body == content.as_bytes()
        })
        .await;
    }
    assert_eq!(edge.counter("sluice_purge_feed_validations").await, 3);
}

#[tokio::test]
async fn twenty_writers_at_once_lose_nothing() {
    let bucket = minio::shared().await.bucket().await;
    let edge = edge(&bucket, "300ms").start().await;
    let mut writers = JoinSet::new();
    let bucket = std::sync::Arc::new(bucket);
    for number in 0..20 {
        let bucket = std::sync::Arc::clone(&bucket);
        let subject = url(&format!("/{number}"));
        writers.spawn(async move { append(&bucket, &subject).await });
    }
    writers.join_all().await;
    edge.wait_for_counter("sluice_purge_feed_lines", 20).await;
    assert_eq!(edge.counter("sluice_purge_feed_lines").await, 20);
    assert_eq!(edge.counter("sluice_purge_feed_lines_ignored").await, 0);
}

#[tokio::test]
async fn the_feed_is_not_served() {
    let bucket = minio::shared().await.bucket().await;
    append(&bucket, &url("/a")).await;
    bucket.put("p/.sluice/purges", &[], b"another feed").await;
    bucket.put("p/.sluices/purges", &[], b"no feed").await;
    let edge = edge(&bucket, "300ms").start().await;
    for path in [
        "/.sluice/purges",
        "/p/.sluice/purges",
        "/%2esluice/purges",
        "//.sluice//purges",
        "/x/../.sluice/purges",
        "/.sluice/purges?versionId=null",
        "/.SLUICE/purges",
    ] {
        assert_eq!(edge.get(path).await.status, 404, "{path}");
    }
    assert_eq!(edge.get("/p/.sluices/purges").await.body, b"no feed");
}

#[tokio::test]
async fn a_page_in_place_of_the_feed_validates_everything_once() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::text("<!doctype html>").etag("page"));
    origin.on("/a", Reply::ok(1_000).max_age(3_600).etag("one"));
    let edge = Edge::http(&origin).policy(&policy("http", "200ms"));
    let edge = edge.start().await;
    edge.wait_for_counter("sluice_purge_feed_validations", 1)
        .await;
    eventually("a hit", async || edge.get("/a").await.is_hit()).await;
    let asked = origin.count("/a");
    let errors = edge.counter("sluice_purge_feed_errors").await;
    edge.wait_for_counter("sluice_purge_feed_errors", errors + 3)
        .await;
    assert!(edge.get("/a").await.is_hit());
    assert_eq!(origin.count("/a"), asked);
    assert_eq!(edge.counter("sluice_purge_feed_validations").await, 1);
    edge.wait_for_log("the object is no feed").await;
}

#[tokio::test]
async fn a_fill_from_before_a_purge_is_not_served_after_it() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on(
        "/a",
        Reply::ok(20_000).max_age(3_600).hold_after(500, &gate),
    );
    origin.on("/.sluice/purges", Reply::status(404));
    let edge = Edge::http(&origin)
        .workers(2)
        .policy(&policy("http", "200ms"));
    let edge = edge.start().await;
    let feed =
        "sluice-purges/1 00005eed\nbase 0 0\n1 2026-11-25T07:31:02Z url http://edge.test/a\n";
    let (first, ()) = tokio::join!(edge.get("/a"), async {
        gate.wait_reached(1).await;
        origin.on("/.sluice/purges", Reply::text(feed).etag("feed"));
        edge.wait_for_counter("sluice_purge_feed_lines", 1).await;
        gate.open();
    });
    let first = first.stamp("/a");
    let second = edge.get("/a").await.stamp("/a");
    assert!(second.sequence > first.sequence);
    assert_eq!(origin.count("/a"), 2);
}
