// SPDX-License-Identifier: Apache-2.0
//! While a bucket is being moved, the second origin has the objects that the first one lacks.

use super::world::Pair;
use sluice_tests::bucket::Bucket;
use sluice_tests::bucket::role::Role;
use sluice_tests::edge::Edge;
use sluice_tests::origin::Reply;

/// A bucket's error with this code.
fn error(status: u16, code: &str) -> Reply {
    let text = format!("<Error><Code>{code}</Code></Error>");
    Reply::text(text).with_status(status)
}

#[tokio::test]
async fn only_a_missing_object_is_asked_for_elsewhere_and_is_stored_like_any() {
    let pair = Pair::start().await;
    let (edge, control) = tokio::join!(
        pair.buckets()
            .env("SLUICE_FAILOVER_ON_MISSING", "on")
            .start(),
        pair.buckets().start()
    );
    for (name, reply, status) in [
        ("no-key", error(404, "NoSuchKey"), 200),
        ("denied", error(403, "AccessDenied"), 200),
        ("no-bucket", error(404, "NoSuchBucket"), 502),
        ("key", error(403, "InvalidAccessKeyId"), 502),
        ("signature", error(403, "SignatureDoesNotMatch"), 502),
        ("status", Reply::status(404), 404),
        ("gone", Reply::status(410), 410),
    ] {
        let path = format!("/{name}");
        pair.first.on(&format!("/site{path}"), reply);
        let response = edge.get(&path).await;
        assert_eq!(response.status, status, "{name}: {response}");
        let told = response.cache_status();
        assert_eq!(
            told.contains("detail=on-missing"),
            status == 200,
            "{response}"
        );
        assert_eq!(
            pair.asked_second_bucket(&path),
            usize::from(status == 200),
            "{name}"
        );
        if status == 200 {
            assert!(edge.get(&path).await.is_hit());
            let (_, ttl) = told.split_once("; ttl=").unwrap();
            let ttl: u64 = ttl.split(';').next().unwrap().parse().unwrap();
            assert!(ttl > 3_000, "{told}");
        }
        assert!(control.get(&path).await.status >= 400, "{name}");
    }
    pair.first.on("/site/head", Reply::status(404).empty());
    assert_eq!(edge.send("HEAD", "/head", &[]).await.status, 200);
}

#[tokio::test]
async fn missing_objects_are_asked_for_beyond_the_limit_on_retries() {
    const CLIENTS: usize = 60;
    let pair = Pair::start().await;
    pair.first.on("/site/*", error(404, "NoSuchKey"));
    let edge = pair
        .buckets()
        .env("SLUICE_FAILOVER_ON_MISSING", "on")
        .start()
        .await;
    let mut all = tokio::task::JoinSet::new();
    for number in 0..CLIENTS {
        let edge = edge.address();
        all.spawn(async move {
            sluice_tests::client::send(edge, "GET", &format!("/{number}"), &[]).await
        });
    }
    while let Some(response) = all.join_next().await {
        let response = response.unwrap();
        assert_eq!(response.status, 200, "{response}");
    }
    let asked = (
        pair.first.requests().total(),
        pair.second.requests().total(),
    );
    assert_eq!(asked, (CLIENTS, CLIENTS));
}

#[tokio::test]
async fn a_bucket_that_may_not_be_listed_is_moved_and_keeps_what_it_has() {
    let (new, old) = (Bucket::new().await, Bucket::new().await);
    new.put_stamped("both", 2, 1_000).await;
    for key in ["both", "old"] {
        old.put_stamped(key, 1, 1_000).await;
    }
    let role = Role::not_listing(&new).await;
    let edge = Edge::bucket(&new)
        .env("AWS_ACCESS_KEY_ID", &role.access_key_id)
        .env("AWS_SECRET_ACCESS_KEY", &role.secret_access_key)
        .env("AWS_SESSION_TOKEN", &role.session_token)
        .env("SLUICE_FAILOVER_ORIGIN", format!("s3://{}", old.name()))
        .env("SLUICE_FAILOVER_ENDPOINT", old.endpoint())
        .env("SLUICE_FAILOVER_ACCESS_KEY_ID", &old.server().access_key)
        .env(
            "SLUICE_FAILOVER_SECRET_ACCESS_KEY",
            &old.server().secret_key,
        )
        .env("SLUICE_FAILOVER_ON_MISSING", "on")
        .start()
        .await;
    assert_eq!(edge.get("/both").await.stamp("/both").sequence, 2);
    assert_eq!(edge.get("/old").await.stamp("/old").sequence, 1);
    assert_eq!(edge.get("/none").await.status, 404);
}
