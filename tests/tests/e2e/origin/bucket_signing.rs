// SPDX-License-Identifier: Apache-2.0
//! A private bucket gets signed requests, and only requests that the filter has approved.

use sluice_tests::bucket::Bucket;
use sluice_tests::edge::{ADMIN_PAGES, Edge};
use sluice_tests::machine::process::command_lines;
use sluice_tests::origin::{Origin, Reply};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use test_case::test_case;

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn a_private_object_is_served_and_stored(workers: usize) {
    let bucket = Bucket::new().await;
    bucket.put_stamped("dir/an object+.dat", 1, 100_000).await;
    let edge = Edge::bucket(&bucket).workers(workers).start().await;
    for _ in 0..3 {
        let response = edge.get("/dir/an%20object%2B.dat").await;
        let _ = response.stamp("/dir/an object+.dat");
        for prefix in ["x-amz-", "x-minio-", "x-sluice-", "x-envoy-"] {
            assert!(!response.headers.any_with_prefix(prefix), "{response}");
        }
        assert_eq!(response.headers.get("vary"), None, "{response}");
    }
    assert_eq!(
        bucket.requests().total(),
        1,
        "{}",
        bucket.requests().summary()
    );
}

#[tokio::test]
async fn requests_that_pass_the_cache_are_signed_too() {
    let bucket = Bucket::new().await;
    bucket.put_stamped("a", 1, 1000).await;
    let limited = Edge::bucket(&bucket).env("SLUICE_CACHE_MAX_OBJECT_BYTES", "500");
    let edge = limited.start().await;
    // The edge knows the object as too large after the first request.
    for _ in 0..2 {
        let part = edge.send("GET", "/a", &[("range", "bytes=0-9")]).await;
        assert_eq!((part.status, part.body.len()), (206, 10), "{part}");
    }
    let asked = bucket.requests().all();
    assert!(
        asked
            .iter()
            .any(|request| request.headers.get("range").is_some())
    );
    let head = edge.send("HEAD", "/a", &[]).await;
    assert_eq!(
        (head.status, head.header("content-length")),
        (200, "1000"),
        "{head}"
    );
}

#[tokio::test]
async fn a_missing_object_is_404_and_appears_a_second_later() {
    let bucket = Bucket::new().await;
    let edge = Edge::bucket(&bucket).start().await;
    assert_eq!(edge.get("/late").await.status, 404);
    bucket.put_stamped("late", 1, 1000).await;
    sluice_tests::eventually("the object", async || edge.get("/late").await.status == 200).await;
}

#[tokio::test]
async fn wrong_credentials_are_an_error_that_is_never_content() {
    let bucket = Bucket::new().await;
    bucket.put_stamped("a", 1, 1000).await;
    let edge = Edge::bucket(&bucket)
        .env("AWS_SECRET_ACCESS_KEY", "not-the-secret-key")
        .start()
        .await;
    let response = edge.get("/a").await;
    assert_eq!(response.status, 502, "{response}");
    assert!(!response.is_hit(), "{response}");
    edge.wait_for_log("403").await;
    let asked = bucket.count("a");
    sluice_tests::eventually("the bucket is asked again", async || {
        assert_eq!(edge.get("/a").await.status, 502);
        bucket.count("a") > asked
    })
    .await;
}

#[tokio::test]
async fn credentials_show_nowhere() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1000));
    let edge = Edge::scripted_bucket(&origin).start().await;
    assert_eq!(edge.get("/a").await.status, 200);
    let secret = "scripted-secret-value";
    for page in ADMIN_PAGES {
        let response = edge.admin_get(page).await;
        assert!(
            !String::from_utf8_lossy(&response.body).contains(secret),
            "{page}"
        );
    }
    assert!(!edge.log().contains(secret));
    assert!(!command_lines().any(|line| line.contains(secret)));
    no_readable_secret(edge.folder(), secret);
}

/// Checks that no file which others can read has the secret.
fn no_readable_secret(folder: &Path, secret: &str) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            no_readable_secret(&path, secret);
        } else if entry.metadata().unwrap().permissions().mode() & 0o077 != 0 {
            let content = std::fs::read(&path).unwrap_or_default();
            assert!(
                !String::from_utf8_lossy(&content).contains(secret),
                "{}",
                path.display()
            );
        }
    }
}
