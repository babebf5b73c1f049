// SPDX-License-Identifier: Apache-2.0
//! The purge feed: a line that is appended to an object of the bucket is a purge on every edge.

use serde_json::{Value, json};
use sluice_core::purge::Feed;
use sluice_tests::bucket::role::Role;
use sluice_tests::bucket::software::Software;
use sluice_tests::bucket::{Bucket, minio};
use sluice_tests::edge::purger::{Purger, TOKEN};
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use sluice_tests::sns::{self, Sns, signed};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const KEY: &str = ".sluice/purges";
const EVERY: Duration = Duration::from_secs(2);

/// The policy of a bucket whose objects stay fresh for longer than a test takes.
fn policy(kind: &str, every: &str) -> String {
    format!(
        "origin: {{kind: {kind}}}\ncache: {{ttl: {{default: 1h}}}}\npurge: {{feed: {{every: {every}}}}}\n"
    )
}

fn edge(bucket: &Bucket, every: &str) -> Builder {
    Edge::bucket(bucket).policy(&policy("bucket", every))
}

/// Appends a hard purge to the feed, with the settings of an edge but without it. Returns the receipt.
async fn append(edge: &Edge, url: &str) -> Value {
    let arguments = ["purge", "--feed", "--json", "--url", url];
    edge.command(&arguments).await.json()
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
    let (mut times, mut fetched) = (Vec::new(), 0);
    for round in 1..=5 {
        for edge in &edges {
            assert_eq!(hit(edge, "/a").await, (round - 1).to_string().as_bytes());
            hit(edge, "/other").await;
        }
        if round == 1 {
            // In front of its first look at the feed, a worker validates.
            fetched = bucket.count("other");
        }
        let new = round.to_string();
        bucket.put("a", &[], new.as_bytes()).await;
        append(&edges[0], "/a").await;
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
        fetched,
        "the rest of the cache stays"
    );
}

#[tokio::test]
async fn an_edge_that_was_down_catches_up() {
    let bucket = minio::shared().await.bucket().await;
    bucket.put("a", &[], b"one").await;
    bucket.put("other", &[], b"other").await;
    // The worker that reads the feed is the one that serves.
    let edge = edge(&bucket, "300ms").workers(1);
    let mut edge = edge.start().await;
    append(&edge, "/first").await;
    hit(&edge, "/a").await;
    hit(&edge, "/other").await;
    read_again(&edge).await;
    let pid = edge.pid();
    edge.end_by(pid, libc::SIGTERM).await;
    bucket.put("a", &[], b"two").await;
    append(&edge, "/a").await;
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
    let edge = edge(&bucket, "300ms").start().await;
    let receipt = append(&edge, "/first").await;
    let cut = format!(
        "sluice-purges/1 {}\nbase 500 499\n",
        receipt["id"].as_str().unwrap()
    );
    hit(&edge, "/a").await;
    read_again(&edge).await;
    for (text, content) in [
        (cut.as_str(), "two"),
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
    for software in [Software::Minio, Software::VersityGw] {
        let (bucket, purger) = (software.bucket().await, Purger::new());
        let edge = purger.open(edge(&bucket, "300ms"));
        let edge = edge.env("SLUICE_PURGE_FEED_WRITE", "on").start().await;
        let edge = Arc::new(edge);
        let mut writers = JoinSet::new();
        for number in 0..20 {
            let edge = Arc::clone(&edge);
            writers.spawn(async move {
                let url = format!("/{number}");
                if number % 4 > 0 {
                    append(&edge, &url).await;
                    return;
                }
                let called = purger.call(&json!({"url": url})).await;
                // A busy worker may be late, which says nothing of the feed.
                assert!(matches!(called.status, 200 | 202), "{called}");
            });
        }
        writers.join_all().await;
        edge.wait_for_counter("sluice_purge_feed_lines", 20).await;
        assert_eq!(edge.counter("sluice_purge_feed_lines_ignored").await, 0);
        let feed = Feed::parse(&bucket.get(KEY).await.body).unwrap();
        assert_eq!((feed.base, feed.lines.len()), (0, 20));
    }
}

#[tokio::test]
async fn the_command_makes_a_feed_and_says_from_when_it_is_in_force() {
    for software in [Software::Minio, Software::VersityGw] {
        let bucket = software.bucket().await;
        bucket.put("a", &[], b"one").await;
        let edge = edge(&bucket, "300ms").start().await;
        for told in ["made", "is there already"] {
            let init = edge.command(&["purge", "--feed", "--init"]).await;
            assert_eq!(init.code, Some(0), "{init:?}");
            assert!(init.errors.contains(told), "{init:?}");
        }
        hit(&edge, "/a").await;
        bucket.put("a", &[], b"two").await;
        let arguments = ["purge", "--feed", "--wait", "--url", "/b", "--prefix", "/a"];
        let purge = edge.command(&arguments).await;
        let told = format!("2 hard purges up to 2 in s3://{}/{KEY}: ", bucket.name());
        assert!(purge.text.starts_with(&told), "{purge:?}");
        assert_eq!(edge.get("/a").await.body, b"two");
        let check = edge.command(&["check", "--online"]).await;
        assert_eq!((check.code, check.errors.as_str()), (Some(0), ""));
    }
}

#[tokio::test]
async fn the_command_refuses_to_write_what_edges_would_not_read() {
    let bucket = minio::shared().await.bucket().await;
    let edge = edge(&bucket, "300ms").start().await;
    let purge = async || edge.command(&["purge", "--feed", "--all"]).await;
    bucket.put(KEY, &[], b"<!doctype html>").await;
    let refused = purge().await;
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.errors.contains("the object is no feed"),
        "{refused:?}"
    );
    let checked = edge.command(&["check", "--online"]).await;
    assert!(
        checked.errors.contains("the object is no feed"),
        "{checked:?}"
    );
    assert_eq!(bucket.get(KEY).await.body, b"<!doctype html>");
    // A line that cannot be read may be any purge, so the next feed is another one.
    bucket
        .put(KEY, &[], b"sluice-purges/1 00000001\nbase 0 0\n1 broken\n")
        .await;
    assert_eq!(purge().await.code, Some(0));
    let feed = Feed::parse(&bucket.get(KEY).await.body).unwrap();
    assert_ne!(feed.id.to_string(), "00000001");
    assert!(!feed.is_damaged);
}

#[tokio::test]
async fn keys_that_only_read_write_no_feed() {
    let bucket = minio::shared().await.bucket().await;
    let role = Role::reading(&bucket).await;
    let edge = edge(&bucket, "300ms")
        .env("AWS_ACCESS_KEY_ID", &role.access_key_id)
        .env("AWS_SECRET_ACCESS_KEY", &role.secret_access_key)
        .env("AWS_SESSION_TOKEN", &role.session_token);
    let edge = edge.start().await;
    let refused = edge.command(&["purge", "--feed", "--all"]).await;
    assert_eq!(refused.code, Some(1));
    assert!(refused.errors.contains("allow s3:PutObject"), "{refused:?}");
    assert_eq!(bucket.get(KEY).await.status, 404);
    let checked = edge.command(&["check", "--online"]).await;
    assert!(
        checked.errors.contains("there is no feed yet"),
        "{checked:?}"
    );
}

#[tokio::test]
async fn the_feed_is_not_served() {
    let bucket = minio::shared().await.bucket().await;
    bucket
        .put(KEY, &[], b"sluice-purges/1 00000001\nbase 0 0\n")
        .await;
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

#[tokio::test]
async fn a_purge_at_one_edge_reaches_the_others_by_the_feed() {
    let purger = Purger::new();
    let minio = minio::notifying(purger.address(), TOKEN).await;
    let bucket = minio.bucket().await;
    bucket.put("a", &[], b"zero").await;
    bucket.put("other", &[], b"other").await;
    let (sns, edge_that_writes) = (Sns::start(), edge(&bucket, "300ms").workers(2));
    let writer = sns.open(purger.open(edge_that_writes));
    let writer = writer.env("SLUICE_PURGE_FEED_WRITE", "on").start().await;
    let reader = edge(&bucket, "300ms").workers(1).start().await;
    for edge in [&writer, &reader] {
        read_again(edge).await;
        hit(edge, "/a").await;
        hit(edge, "/other").await;
    }
    // SNS tells one edge of a change.
    bucket.put("a", &[], b"one").await;
    read_again(&reader).await;
    assert_eq!(reader.get("/a").await.body, b"zero");
    let message = signed(sns::notification(bucket.name(), "a"));
    let delivered = purger.deliver(&message).await;
    assert_eq!(delivered.status, 200, "{delivered}");
    for edge in [&reader, &writer] {
        eventually("the version of SNS", async || {
            edge.get("/a").await.body == b"one"
        })
        .await;
        hit(edge, "/a").await;
    }
    let fetched = bucket.count("other");
    // The bucket tells the same edge of the next change.
    bucket.notify().await;
    bucket.put("a", &[], b"two").await;
    eventually("the new version", async || {
        reader.get("/a").await.body == b"two"
    })
    .await;
    // A call to that edge.
    let receipt = purger.purge(json!({"url": "/a", "soft": true})).await;
    let number = receipt["feed"].as_u64().unwrap();
    assert!(receipt["by"].is_string(), "{receipt}");
    eventually("the line of the log", async || {
        let log = writer.command(&["purges", "--json"]).await.json();
        let last = log["purges"].as_array().and_then(|purges| purges.last());
        last.is_some_and(|last| last["feed"] == number)
    })
    .await;
    reader
        .wait_for_counter("sluice_purge_feed_lines", number)
        .await;
    assert_eq!(reader.counter("sluice_purge_feed_lines_ignored").await, 0);
    for edge in [&writer, &reader] {
        assert!(edge.get("/other").await.is_hit());
    }
    assert_eq!(
        bucket.count("other"),
        fetched,
        "the rest of the cache stays"
    );
    // No port leads to the way of the writes.
    let feed = format!("/{KEY}");
    for method in ["PUT", "GET"] {
        assert!(writer.send(method, &feed, &[]).await.status >= 400);
        let authorization = format!("Bearer {TOKEN}");
        let headers = [("authorization", authorization.as_str())];
        assert_eq!(purger.send(method, &feed, &headers, "").await.status, 404);
    }
    // The feed itself is an object of the bucket, whose events are no purges.
    let feed = Feed::parse(&bucket.get(KEY).await.body).unwrap();
    let lines: Vec<_> = feed
        .lines
        .iter()
        .map(|line| line.subject.to_string())
        .collect();
    let object = format!("url s3://{}/a", bucket.name());
    assert_eq!(
        (feed.newest(), &lines[0], lines[2].as_str()),
        (number, &object, "url /a")
    );
    assert!(lines[1].starts_with(&format!("{object}#")), "{lines:?}");
    assert_eq!(lines.len(), 3, "{lines:?}");
}

#[tokio::test]
async fn a_purge_that_the_bucket_keeps_out_of_the_feed_is_in_force_at_its_edge() {
    let bucket = minio::shared().await.bucket().await;
    let role = Role::reading(&bucket).await;
    let purger = Purger::new();
    let edge = purger
        .open(edge(&bucket, "300ms"))
        .env("SLUICE_PURGE_FEED_WRITE", "on")
        .env("AWS_ACCESS_KEY_ID", &role.access_key_id)
        .env("AWS_SECRET_ACCESS_KEY", &role.secret_access_key)
        .env("AWS_SESSION_TOKEN", &role.session_token);
    let edge = edge.start().await;
    bucket.put("a", &[], b"one").await;
    assert_eq!(hit(&edge, "/a").await, b"one");
    bucket.put("a", &[], b"two").await;
    let refused = purger.call(&json!({"url": "/a"})).await;
    let receipt: Value = serde_json::from_slice(&refused.body).unwrap();
    let error = receipt["error"].as_str().unwrap();
    assert_eq!(refused.status, 502, "{receipt}");
    assert!(
        error.contains("on this edge only") && error.contains("allow s3:PutObject"),
        "{error}"
    );
    assert_eq!(edge.get("/a").await.body, b"two");
    assert_eq!(edge.counter("sluice_purge_feed_write_errors").await, 1);
    assert_eq!(bucket.get(KEY).await.status, 404);
}
