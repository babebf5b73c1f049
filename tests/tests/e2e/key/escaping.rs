// SPDX-License-Identifier: Apache-2.0
//! All spellings of one object are one key, and nothing leaves the bucket or its prefix.

use sluice_tests::bare::Bare;
use sluice_tests::client::Client;
use sluice_tests::edge::Edge;
use sluice_tests::edge::store::Store;
use sluice_tests::origin::{Origin, Reply};

/// Paths as clients send them, and the paths of the objects that the edge requests from the bucket.
const ONE_KEY: [(&str, &str); 17] = [
    ("/a%62c", "/site/abc"),
    ("/abc", "/site/abc"),
    ("/./abc", "/site/abc"),
    ("/x/../abc", "/site/abc"),
    ("/x/%2e%2E/abc", "/site/abc"),
    ("//abc", "/site/abc"),
    ("/abc?versions", "/site/abc"),
    ("/abc?acl", "/site/abc"),
    ("/abc?", "/site/abc"),
    ("/%41%7e", "/site/A~"),
    ("/A~", "/site/A~"),
    ("/caf%c3%a9", "/site/caf%C3%A9"),
    ("/caf%C3%A9", "/site/caf%C3%A9"),
    ("/a+b", "/site/a%2Bb"),
    ("/a%2bb", "/site/a%2Bb"),
    ("/a%20b", "/site/a%20b"),
    (
        "/(a)'*!;=@,&$:b",
        "/site/%28a%29%27%2A%21%3B%3D%40%2C%26%24%3Ab",
    ),
];

/// Paths that the edge itself refuses.
const REJECTED: [&str; 19] = [
    "/../other/x",
    "/..%2fother",
    "/..%2Fother/x",
    "/%2e%2e/other",
    "/%2e%2e%2fother",
    "/a/../../other/x",
    "/..%5cother",
    "/a%2fb",
    "/a%2Fb",
    "/a%00b",
    "/a%",
    "/a%2",
    "/a%zz",
    "/a%ff",
    "/a%c3%28",
    "/a#b",
    "*",
    "http://edge.test/../other/x",
    "http://elsewhere.test:1/%2e%2e/x",
];

/// An origin that has every object.
async fn full() -> Origin {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1000));
    origin
}

/// A bucket `site` that has every object, and an edge in front of it.
async fn bucket() -> (Origin, Edge) {
    let origin = full().await;
    let edge = Edge::scripted_bucket(&origin).start().await;
    (origin, edge)
}

fn assert_asked(origin: &Origin, requests: usize) {
    let seen = origin.requests();
    assert_eq!(seen.total(), requests, "{}", seen.summary());
}

fn assert_asked_once(origin: &Origin, target: &str) {
    let summary = origin.requests().summary();
    assert_eq!(origin.count(target), 1, "{target}: {summary}");
}

#[tokio::test]
async fn spellings_of_one_object_are_one_bucket_request() {
    let (origin, edge) = bucket().await;
    for (sent, asked) in ONE_KEY {
        let response = edge.get(sent).await;
        assert_eq!(response.status, 200, "{sent}: {response}");
        let _ = response.stamp(asked);
        assert_asked_once(&origin, asked);
    }
    let objects: std::collections::BTreeSet<_> = ONE_KEY.iter().map(|(_, asked)| asked).collect();
    assert_asked(&origin, objects.len());
}

#[tokio::test]
async fn nothing_leaves_the_bucket() {
    let origin = full().await;
    let edge = Edge::scripted_bucket(&origin).workers(1).start().await;
    for sent in REJECTED {
        let response = edge.get(sent).await;
        assert_eq!(response.status, 400, "{sent}: {response}");
    }
    assert_asked(&origin, 0);
}

#[tokio::test]
async fn a_folder_is_its_index_document() {
    let (origin, edge) = bucket().await;
    for sent in ["/", "/?list-type=2", "//", "/a/..", "/./"] {
        let _ = edge.get(sent).await.stamp("/site/index.html");
    }
    for sent in ["/dir/", "/dir/x/..", "/dir/?prefix=other"] {
        let _ = edge.get(sent).await.stamp("/site/dir/index.html");
    }
    assert_asked(&origin, 2);
}

#[tokio::test]
async fn without_an_index_document_no_listing_is_asked_for() {
    let origin = full().await;
    let edge = Edge::scripted_bucket(&origin)
        .policy("origin: {kind: bucket}\n")
        .start()
        .await;
    for sent in ["/", "/?list-type=2", "//", "/a/.."] {
        let response = edge.get(sent).await;
        assert_eq!(response.status, 404, "{sent}: {response}");
    }
    assert_asked(&origin, 0);
}

#[tokio::test]
async fn rejected_urls_are_counted_and_the_connection_stays() {
    let (_origin, edge) = bucket().await;
    let mut client = Client::connect(edge.address()).await;
    assert_eq!(client.get("/a%2fb").await.status, 400);
    assert_eq!(client.get("/a%00b").await.status, 400);
    assert_eq!(client.get("/abc").await.status, 200);
    assert_eq!(edge.counter("sluice_requests_rejected").await, 2);
}

#[tokio::test]
async fn double_encoding_is_decoded_once_and_stays_in_the_bucket() {
    let (origin, edge) = bucket().await;
    for (sent, asked) in [
        ("/%252e%252e/other", "/site/%252e%252e/other"),
        ("/a%252fb", "/site/a%252fb"),
        ("/%2541", "/site/%2541"),
    ] {
        let response = edge.get(sent).await;
        assert_eq!(response.status, 200, "{sent}: {response}");
        assert_asked_once(&origin, asked);
    }
}

#[tokio::test]
async fn whatever_is_sent_stays_below_bucket_and_prefix() {
    let origin = full().await;
    let edge = Edge::scripted_bucket(&origin)
        .env("SLUICE_ORIGIN", "s3://site/public/files")
        .start()
        .await;
    let pieces = [
        "..", "%2e%2e", ".%2E", "/", "%2f", "%5c", "\\", ";", "a", "%252e", "?", "//", ".", "%00",
        ":", "@",
    ];
    let mut rng = sluice_tests::chance::rng::Rng::new(7);
    let mut client = Client::connect(edge.address()).await;
    for _ in 0..500 {
        let mut target = "/".to_owned();
        for _ in 0..rng.below(8) + 1 {
            target.push_str(pieces[rng.below(pieces.len())]);
        }
        let bytes = sluice_tests::client::request("GET", &target, &[]);
        // Envoy closes the connection after a request that its parser refuses.
        if client
            .try_exchange(&bytes)
            .await
            .is_ok_and(|response| response.header("connection") != "close")
        {
            continue;
        }
        client = Client::connect(edge.address()).await;
    }
    for request in origin.requests().all() {
        let target = &request.target;
        assert!(target.starts_with("/site/public/files/"), "{target}");
        assert!(
            !target
                .split('/')
                .any(|segment| matches!(segment, "." | "..")),
            "{target}"
        );
        assert!(!target.contains('?') && !target.contains('\\'), "{target}");
        assert!(!target.to_ascii_lowercase().contains("%2f"), "{target}");
    }
    assert!(origin.requests().total() > 10, "nothing was let through");
}

#[tokio::test]
async fn methods_that_write_are_refused_with_allow() {
    let (origin, edge) = bucket().await;
    for method in [
        "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND",
    ] {
        let response = edge.send(method, "/abc", &[("content-length", "0")]).await;
        assert_eq!(response.status, 405, "{method}: {response}");
        assert_eq!(response.header("allow"), "GET, HEAD", "{method}");
    }
    assert_asked(&origin, 0);
}

#[tokio::test]
async fn paths_up_to_the_bound_pass_and_longer_ones_are_414() {
    let (origin, edge) = bucket().await;
    assert_eq!(
        edge.get(&format!("/{}", "a".repeat(1024))).await.status,
        200
    );
    // The bound is on the decoded key.
    assert_eq!(
        edge.get(&format!("/{}", "%61".repeat(1023))).await.status,
        200
    );
    assert_eq!(
        edge.get(&format!("/{}", "a".repeat(1025))).await.status,
        414
    );
    assert_asked(&origin, 2);
}

#[tokio::test]
async fn an_allow_list_lets_query_parameters_through_sorted() {
    let origin = full().await;
    let policy = "origin: {kind: bucket}\nkey: {query: {mode: drop, allow: [w, h]}}\n";
    let edge = Edge::scripted_bucket(&origin).policy(policy).start().await;
    for sent in ["/a?w=1&acl&h=2", "/a?h=2&w=1", "/a?versions&h=2&w=1&x=3"] {
        assert_eq!(edge.get(sent).await.status, 200, "{sent}");
    }
    assert_asked_once(&origin, "/site/a?h=2&w=1");
    assert_asked(&origin, 1);
}

#[tokio::test]
async fn an_http_origin_sees_the_query_and_it_is_part_of_the_key() {
    let origin = full().await;
    let edge = Edge::http(&origin).start().await;
    for target in ["/a?x=1&y=2", "/a?y=2&x=1", "/a"] {
        let _ = edge.get(target).await.stamp(target);
        let _ = edge.get(target).await.stamp(target);
        assert_asked_once(&origin, target);
    }
}

#[tokio::test]
async fn an_http_origin_may_sort_and_drop_parameters() {
    let origin = full().await;
    let policy = "origin: {kind: http}\nkey: {query: {mode: sort, remove: [\"utm_*\"]}}\n";
    let edge = Edge::http(&origin).policy(policy).start().await;
    for sent in [
        "/a?y=2&x=1&utm_source=z",
        "/a?x=1&y=2",
        "/a?utm_a=1&x=1&utm_b=2&y=2",
    ] {
        assert_eq!(edge.get(sent).await.status, 200, "{sent}");
    }
    assert_asked_once(&origin, "/a?x=1&y=2");
    assert_asked(&origin, 1);
}

#[tokio::test]
async fn host_is_part_of_an_http_origins_key_and_not_of_a_buckets() {
    let origin = full().await;
    let http = Edge::http(&origin).start().await;
    for host in ["one.test", "two.test", "ONE.test"] {
        assert_eq!(http.send("GET", "/a", &[("host", host)]).await.status, 200);
    }
    let hosts: Vec<_> = origin
        .requests()
        .of("/a")
        .iter()
        .map(|r| r.headers.get("host").unwrap().to_owned())
        .collect();
    assert_eq!(hosts, ["one.test", "two.test"]);
    let bucket = Edge::scripted_bucket(&origin).start().await;
    for host in ["one.test", "two.test"] {
        assert_eq!(
            bucket.send("GET", "/a", &[("host", host)]).await.status,
            200
        );
    }
    assert_eq!(origin.count("/site/a"), 1);
}

#[tokio::test]
async fn control_bare_envoy_asks_for_what_was_spelled() {
    let origin = full().await;
    let bare = Bare::start(&origin, Store::V1_DISK, 1).await;
    for target in ["/../other/x", "/..%2fother", "/a%62c", "/abc?acl"] {
        bare.get(target).await;
        assert_eq!(origin.count(target), 1, "{target}");
    }
}
