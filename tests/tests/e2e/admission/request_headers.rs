// SPDX-License-Identifier: Apache-2.0
//! The headers of a request cannot change what other clients get, and few of them reach the origin.

use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};

const SPOOFED: [(&str, &str); 16] = [
    ("x-sluice-link", "1"),
    ("x-sluice-proof", "1"),
    ("x-sluice-entry", "status=200"),
    ("x-sluice-cache-control", "max-age=1"),
    ("x-sluice-anything", "1"),
    ("x-envoy-original-path", "/other"),
    ("x-envoy-upstream-rq-timeout-ms", "1"),
    ("x-envoy-retry-on", "5xx"),
    ("x-envoy-max-retries", "9"),
    ("x-envoy-internal", "true"),
    ("x-envoy-decorator-operation", "x"),
    ("x-amz-security-token", "stolen"),
    ("x-amz-date", "20200101T000000Z"),
    ("x-amz-content-sha256", "0"),
    ("x-http-method-override", "DELETE"),
    ("x-original-url", "/other"),
];

#[tokio::test]
async fn a_bucket_sees_an_allow_list_of_headers() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1000));
    let edge = Edge::scripted_bucket(&origin).workers(1).start().await;
    let mut sent = SPOOFED.to_vec();
    sent.extend([
        ("cookie", "a=1"),
        ("authorization", "Basic eDp5"),
        ("origin", "http://evil.test"),
        ("accept-language", "fr"),
        ("user-agent", "curl"),
        ("x-forwarded-for", "1.2.3.4"),
        ("x-forwarded-host", "evil.test"),
        ("x-request-id", "chosen"),
        ("cache-control", "no-cache"),
        ("pragma", "no-cache"),
        ("if-range", "\"sluice-bypass\""),
    ]);
    sent.push(("range", "bytes=0-9"));
    // The first response is a miss. The later ones are sent around the cache.
    assert_eq!(edge.send("GET", "/a", &sent).await.status, 200);
    origin.on("/b", Reply::ok(1000).header("cache-control", "private"));
    for _ in 0..2 {
        assert_eq!(edge.send("GET", "/b", &sent).await.status, 200);
    }
    let own = [
        "host",
        "accept",
        "accept-encoding",
        "authorization",
        "x-amz-date",
        "x-amz-content-sha256",
        "range",
        "content-length",
        "if-range",
        "cdn-loop",
    ];
    for request in origin.requests().all() {
        for (name, value) in &request.headers.0 {
            let name = name.to_ascii_lowercase();
            assert!(
                own.contains(&name.as_str()),
                "{}: {name}: {value}",
                request.target
            );
            assert!(
                !value.contains("stolen") && value != "20200101T000000Z",
                "{name}: {value}"
            );
            assert!(!value.contains("sluice-bypass"), "{name}: {value}");
            assert!(
                name != "authorization" || value.starts_with("AWS4-HMAC-SHA256 "),
                "{value}"
            );
        }
    }
}

#[tokio::test]
async fn headers_of_the_internal_namespaces_never_pass_either_way() {
    let origin = Origin::start().ready().await;
    let leaky = Reply::ok(1000)
        .header("x-sluice-entry", "spoofed")
        .header("x-amz-request-id", "1");
    origin.on(
        "*",
        leaky
            .header("x-envoy-upstream-service-time", "1")
            .header("x-minio-deployment-id", "1"),
    );
    let edge = Edge::http(&origin).workers(1).start().await;
    let around = [SPOOFED.to_vec(), vec![("cookie", "a=1")]].concat();
    for sent in [SPOOFED.to_vec(), SPOOFED.to_vec(), around] {
        let response = edge.send("GET", "/a", &sent).await;
        assert_eq!(response.status, 200, "{response}");
        for prefix in ["x-sluice-", "x-amz-", "x-envoy-", "x-minio-"] {
            assert!(!response.headers.any_with_prefix(prefix), "{response}");
        }
    }
    for request in origin.requests().all() {
        assert!(
            !request.headers.any_with_prefix("x-sluice-"),
            "{:?}",
            request.headers
        );
        for name in [
            "x-envoy-original-path",
            "x-envoy-upstream-rq-timeout-ms",
            "x-envoy-retry-on",
        ] {
            assert_eq!(request.headers.get(name), None, "{name}");
        }
    }
}

#[tokio::test]
async fn a_client_cannot_force_revalidation_or_a_store() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000));
    let edge = Edge::http(&origin).start().await;
    let first = edge.get("/a").await.stamp("/a");
    for value in ["no-cache", "no-store", "max-age=0", "only-if-cached"] {
        let response = edge
            .send(
                "GET",
                "/a",
                &[("cache-control", value), ("pragma", "no-cache")],
            )
            .await;
        assert_eq!(response.stamp("/a"), first, "{value}");
    }
    assert_eq!(origin.count("/a"), 1);
}
