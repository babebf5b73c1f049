// SPDX-License-Identifier: Apache-2.0
//! The edge's claims about buckets, tested with two independent S3 servers.

use sluice_tests::bucket::Bucket;
use sluice_tests::bucket::role::Role;
use sluice_tests::bucket::software::Software;
use sluice_tests::client::crowd::stampede;
use sluice_tests::client::{self, Response};
use sluice_tests::edge::{Builder, Edge};
use test_case::test_case;

/// Keys with characters that have a meaning in URLs, signatures or file systems, and the path that a client requests.
const KEYS: [(&str, &str); 12] = [
    ("plain.txt", "/plain.txt"),
    ("dir/a b+c.dat", "/dir/a%20b%2Bc.dat"),
    ("dir/a+b", "/dir/a+b"),
    ("p%ct", "/p%25ct"),
    ("p%20ct", "/p%2520ct"),
    ("ü/€.txt", "/%C3%BC/%E2%82%AC.txt"),
    ("日本.html", "/%e6%97%a5%e6%9c%ac.html"),
    ("q?x=1", "/q%3Fx=1"),
    ("a&b=c;d,e", "/a&b=c;d,e"),
    ("tilde~par(en)'s!*", "/tilde~par(en)'s!*"),
    ("#:@$[]", "/%23:@$%5B%5D"),
    ("deep/1/2/3/4/5/6/7", "/deep//1/2/./3/4/5/6/7"),
];

#[test_case(Software::Minio; "with minio")]
#[test_case(Software::VersityGw; "with versitygw")]
#[tokio::test]
async fn an_object_is_served_and_stored_whatever_its_key(software: Software) {
    let bucket = software.bucket().await;
    for (key, _) in KEYS {
        bucket.put_stamped(key, 1, 10_000).await;
    }
    let edge = Edge::bucket(&bucket).start().await;
    for _ in 0..2 {
        for (key, path) in KEYS {
            let response = edge.get(path).await;
            assert_eq!(response.status, 200, "{path}: {response}");
            let _ = response.stamp(&format!("/{key}"));
            for prefix in ["x-amz-", "x-minio-", "x-sluice-", "x-envoy-"] {
                assert!(!response.headers.any_with_prefix(prefix), "{response}");
            }
            assert_eq!(response.headers.get("server"), Some("sluice"), "{response}");
        }
    }
    let asked = bucket.requests();
    assert_eq!(asked.total(), KEYS.len(), "{}", asked.summary());
}

#[test_case(Software::Minio; "with minio")]
#[test_case(Software::VersityGw; "with versitygw")]
#[tokio::test]
async fn the_buckets_name_may_stand_in_the_host(software: Software) {
    let bucket = software.by_host("localhost").await.bucket().await;
    bucket.put_stamped("dir/a b+c", 1, 1000).await;
    let endpoint = bucket.endpoint().replace("127.0.0.1", "localhost");
    let edge = Edge::bucket(&bucket)
        .env("SLUICE_S3_ENDPOINT", &endpoint)
        .env("SLUICE_S3_ADDRESSING", "virtual_host")
        .start()
        .await;
    let _ = edge.get("/dir/a%20b%2Bc").await.stamp("/dir/a b+c");
    assert_eq!(edge.get("/missing").await.status, 404);
    let host = endpoint.replace("http://", &format!("{}.", bucket.name()));
    let asked = bucket.requests().of("/dir/a%20b%2Bc");
    let hosts: Vec<_> = asked.iter().map(|it| it.headers.get("host")).collect();
    assert_eq!(hosts, [Some(host.as_str())]);
}

#[test_case(Software::Minio; "with minio")]
#[test_case(Software::VersityGw; "with versitygw")]
#[tokio::test]
async fn a_cold_object_is_asked_for_once_by_many_clients(software: Software) {
    const CLIENTS: usize = 50;
    let bucket = software.bucket().await;
    bucket.put_stamped("a.dat", 1, 200_000).await;
    let edge = Edge::bucket(&bucket).start().await;
    stampede(edge.address(), CLIENTS, "/a.dat")
        .await
        .same_object("/a.dat");
    assert_eq!(bucket.count("a.dat"), 1, "{}", bucket.requests().summary());
}

/// The store answers, or the bucket itself where the object is too large for the store.
#[test_case(Software::Minio, "1MiB"; "with minio and stored")]
#[test_case(Software::Minio, "500"; "with minio and passed on")]
#[test_case(Software::VersityGw, "1MiB"; "with versitygw and stored")]
#[test_case(Software::VersityGw, "500"; "with versitygw and passed on")]
#[tokio::test]
async fn ranges_conditions_and_heads_are_answered(software: Software, most: &str) {
    let bucket = software.bucket().await;
    bucket.put_stamped("a.dat", 1, 1000).await;
    let edge = Edge::bucket(&bucket)
        .env("SLUICE_CACHE_MAX_OBJECT_BYTES", most)
        .start()
        .await;
    let whole = edge.get("/a.dat").await;
    let _ = whole.stamp("/a.dat");
    let (tag, modified) = (whole.header("etag"), whole.header("last-modified"));
    assert!(!tag.starts_with("W/"), "{whole}");
    for (range, status, part) in [
        ("bytes=10-19", 206, &whole.body[10..20]),
        ("bytes=990-", 206, &whole.body[990..]),
        ("bytes=-10", 206, &whole.body[990..]),
    ] {
        let response = edge.send("GET", "/a.dat", &[("range", range)]).await;
        assert_eq!(response.status, status, "{range}: {response}");
        assert_eq!(response.body, part, "{range}: {response}");
        assert_eq!(response.header("etag"), tag, "{range}: {response}");
    }
    let beyond = edge
        .send("GET", "/a.dat", &[("range", "bytes=5000-")])
        .await;
    assert_eq!(beyond.status, 416, "{beyond}");
    let mut conditions = vec![("if-none-match", tag)];
    // VersityGW compares fractions of a second, and `Last-Modified` has none.
    if software == Software::Minio || whole.cache_status().contains("stored") {
        conditions.push(("if-modified-since", modified));
    }
    for condition in conditions {
        let response = edge.send("GET", "/a.dat", &[condition]).await;
        assert_eq!(response.status, 304, "{condition:?}: {response}");
    }
    let changed = edge
        .send("GET", "/a.dat", &[("if-none-match", "\"other\"")])
        .await;
    assert_eq!((changed.status, changed.body.len()), (200, 1000));
    let head = edge.send("HEAD", "/a.dat", &[]).await;
    let told = (head.status, head.header("content-length"));
    assert_eq!(told, (200, "1000"), "{head}");
    assert_eq!(head.header("etag"), tag, "{head}");
}

#[test_case(Software::Minio; "with minio")]
#[test_case(Software::VersityGw; "with versitygw")]
#[tokio::test]
async fn an_object_that_has_not_changed_is_confirmed(software: Software) {
    let bucket = software.bucket().await;
    bucket.put_stamped("a.dat", 1, 10_000).await;
    let edge = Edge::bucket(&bucket).policy("cache: {ttl: 1s, stale_while_revalidate: 0s}\n");
    let edge = edge.start().await;
    let first = edge.get("/a.dat").await.stamp("/a.dat");
    sluice_tests::eventually("the bucket confirms it", async || {
        let response = edge.get("/a.dat").await;
        assert_eq!(response.stamp("/a.dat"), first);
        response.cache_status().contains("fwd-status=304")
    })
    .await;
    bucket.put_stamped("a.dat", 2, 10_000).await;
    sluice_tests::eventually("the new version", async || {
        edge.get("/a.dat").await.stamp("/a.dat") != first
    })
    .await;
}

#[test_case(Software::Minio; "with minio")]
#[test_case(Software::VersityGw; "with versitygw")]
#[tokio::test]
async fn an_object_of_parts_is_one_object(software: Software) {
    let bucket = software.bucket().await;
    let content = bucket.put_in_parts("large.dat").await;
    let edge = Edge::bucket(&bucket).start().await;
    let whole = edge.get("/large.dat").await;
    assert!(whole.status == 200 && whole.body == content, "{whole}");
    let tag = whole.header("etag");
    assert!(tag.ends_with("-2\""), "{whole}");
    let hit = client::until_hit(edge.address(), "/large.dat").await;
    assert!(hit.body == content && hit.header("etag") == tag, "{hit}");
    // The range spans the border of two parts.
    let range = format!("bytes={}-{}", (5 << 20) - 2, (5 << 20) + 1);
    let part = edge.send("GET", "/large.dat", &[("range", &range)]).await;
    assert_eq!(part.body, b"aabb", "{part}");
    let same = edge
        .send("GET", "/large.dat", &[("if-none-match", tag)])
        .await;
    assert_eq!(same.status, 304, "{same}");
    assert_eq!(bucket.count("large.dat"), 1);
}

#[test_case(Software::Minio; "with minio")]
#[test_case(Software::VersityGw; "with versitygw")]
#[tokio::test]
async fn a_folder_is_its_index_document(software: Software) {
    let bucket = software.bucket().await;
    bucket.put_stamped("docs/index.html", 1, 1000).await;
    bucket.put_stamped("docs/empty/a.txt", 1, 1000).await;
    let edge = Edge::bucket(&bucket)
        .policy("key: {index_document: index.html}\nwebsite: {redirect_directories: true}\n");
    let edge = edge.start().await;
    let _ = edge.get("/docs/").await.stamp("/docs/index.html");
    let moved = edge.get("/docs").await;
    assert_eq!(
        (moved.status, moved.header("location")),
        (302, "/docs/"),
        "{moved}"
    );
    // A server that keeps objects in folders has a folder of this name, and no object.
    for path in ["/docs/empty", "/docs/empty/", "/"] {
        let response = edge.get(path).await;
        assert_eq!(response.status, 404, "{path}: {response}");
    }
}

#[test_case(Software::Minio; "with minio")]
#[test_case(Software::VersityGw; "with versitygw")]
#[tokio::test]
async fn a_key_may_end_in_a_slash(software: Software) {
    let bucket = software.bucket().await;
    // Consoles create a folder in this way.
    bucket.put("folder/", &[], b"").await;
    let edge = Edge::bucket(&bucket).policy("key: {max_bytes: 512}\n");
    let edge = edge.start().await;
    for _ in 0..2 {
        let response = edge.get("/folder/").await;
        assert_eq!(
            (response.status, response.body.len()),
            (200, 0),
            "{response}"
        );
    }
    assert_eq!(bucket.count("folder/"), 1);
}

/// Amazon S3 answers 403 for a missing object if the key may not list the bucket. These servers do not.
#[test_case(Software::Minio; "with minio")]
#[test_case(Software::VersityGw; "with versitygw")]
#[tokio::test]
async fn a_key_that_may_only_read_objects_is_enough(software: Software) {
    let bucket = software.bucket().await;
    bucket.put_stamped("a", 1, 1000).await;
    let role = software.not_listing(&bucket).await;
    let edge = as_role(&bucket, &role).start().await;
    let _ = edge.get("/a").await.stamp("/a");
    for method in ["GET", "HEAD"] {
        let response = edge.send(method, "/missing", &[]).await;
        assert_eq!(response.status, 404, "{method}: {response}");
    }
    assert_eq!(edge.log_lines("sluice: the bucket"), [""; 0]);
    bucket.put_stamped("missing", 1, 1000).await;
    sluice_tests::eventually("the object", async || {
        edge.get("/missing").await.status == 200
    })
    .await;
}

#[test_case(Software::Minio; "with minio")]
#[test_case(Software::VersityGw; "with versitygw")]
#[tokio::test]
async fn a_key_of_another_bucket_is_forbidden_and_told_what_it_needs(software: Software) {
    let (bucket, other) = (software.bucket().await, software.bucket().await);
    bucket.put_stamped("a", 1, 1000).await;
    let role = software.not_listing(&other).await;
    let edge = as_role(&bucket, &role).env("SLUICE_ACCESS_LOG", "json");
    let edge = edge.start().await;
    for method in ["GET", "HEAD"] {
        let response = edge.send(method, "/a", &[]).await;
        assert_eq!(response.status, 403, "{method}: {response}");
        assert_says_nothing(&response, &bucket);
    }
    edge.wait_for_log("\"bucket_error\":\"AccessDenied\"").await;
    let (code, told) = check_online(&edge).await;
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("allow s3:GetObject"), "{told}");
}

#[test_case(Software::Minio; "with minio")]
#[test_case(Software::VersityGw; "with versitygw")]
#[tokio::test]
async fn a_server_names_what_is_wrong_with_the_settings(software: Software) {
    let bucket = software.of_one_region().await.bucket().await;
    bucket.put_stamped("a", 1, 1000).await;
    for (name, value, told) in [
        ("AWS_ACCESS_KEY_ID", "AKIDUNKNOWN", "403 InvalidAccessKeyId"),
        (
            "AWS_SECRET_ACCESS_KEY",
            "not-the-secret-key",
            "403 SignatureDoesNotMatch",
        ),
        ("SLUICE_ORIGIN", "s3://no-such-bucket", "404 NoSuchBucket"),
        (
            "AWS_REGION",
            "eu-west-1",
            "400 AuthorizationHeaderMalformed): set AWS_REGION=us-east-1",
        ),
    ] {
        let edge = Edge::bucket(&bucket).workers(1).env(name, value);
        let edge = edge.start().await;
        for _ in 0..2 {
            let response = edge.get("/a").await;
            assert_eq!(response.status, 502, "{name}: {response}");
            assert_says_nothing(&response, &bucket);
        }
        edge.wait_for_log(told).await;
        let (code, told) = check_online(&edge).await;
        assert_eq!(code, Some(1), "{name}: {told}");
        assert!(told.contains(name), "{name}: {told}");
    }
    let edge = Edge::bucket(&bucket).workers(1).start().await;
    assert_eq!(check_online(&edge).await, (Some(0), String::new()));
}

/// A server that knows no host names of buckets takes the beginning of the key for the bucket's name.
#[test_case(Software::Minio; "with minio")]
#[test_case(Software::VersityGw; "with versitygw")]
#[tokio::test]
async fn the_wrong_addressing_is_named(software: Software) {
    let bucket = software.bucket().await;
    bucket.put_stamped("a", 1, 1000).await;
    let endpoint = bucket.endpoint().replace("127.0.0.1", "localhost");
    let edge = Edge::bucket(&bucket)
        .env("SLUICE_S3_ENDPOINT", endpoint)
        .env("SLUICE_S3_ADDRESSING", "virtual_host")
        .start()
        .await;
    let response = edge.get("/a").await;
    assert_eq!(response.status, 502, "{response}");
    assert_says_nothing(&response, &bucket);
    edge.wait_for_log("S3_ADDRESSING").await;
}

#[test_case(Software::Minio; "with minio")]
#[test_case(Software::VersityGw; "with versitygw")]
#[tokio::test]
async fn control_the_bucket_refuses_unsigned_requests(software: Software) {
    let bucket = software.bucket().await;
    bucket.put_stamped("a", 1, 1000).await;
    let response = client::get(bucket.server().address(), &bucket.target("a")).await;
    assert_eq!(response.status, 403, "{response}");
}

/// An edge that signs with the credentials of a role.
fn as_role(bucket: &Bucket, role: &Role) -> Builder {
    let edge = Edge::bucket(bucket)
        .env("AWS_ACCESS_KEY_ID", &role.access_key_id)
        .env("AWS_SECRET_ACCESS_KEY", &role.secret_access_key);
    if role.session_token.is_empty() {
        edge
    } else {
        edge.env("AWS_SESSION_TOKEN", &role.session_token)
    }
}

/// Checks that neither the bucket's name nor S3's own error reaches a client.
#[track_caller]
fn assert_says_nothing(response: &Response, bucket: &Bucket) {
    let text = format!("{response}{}", String::from_utf8_lossy(&response.body));
    for secret in [bucket.name(), "<Code>", "us-east-1", "x-amz-", "x-minio-"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}

/// Exit code and error output of `sluice check --online` with the edge's settings.
async fn check_online(edge: &Edge) -> (Option<i32>, String) {
    let mut command = edge.entry_point("check");
    command.arg("--online");
    let output = tokio::task::spawn_blocking(move || command.output());
    let output = output.await.unwrap().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), told)
}
