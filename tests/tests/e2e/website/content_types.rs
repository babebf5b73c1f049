// SPDX-License-Identifier: Apache-2.0
//! Objects that were uploaded without a media type get one, where the policy says so.

use sluice_tests::bucket::Bucket;
use sluice_tests::edge::Edge;

const POLICY: &str =
    "website: {guess_content_type: true, content_types: {data: application/x-data}}\n";

#[tokio::test]
async fn an_object_without_a_type_gets_that_of_its_extension() {
    let bucket = Bucket::new().await;
    for key in ["page.html", "app.JS", "x.data", "noext"] {
        bucket
            .put(key, &[("content-type", "binary/octet-stream")], b"x")
            .await;
    }
    bucket
        .put("own.html", &[("content-type", "text/plain")], b"x")
        .await;
    let edge = Edge::bucket(&bucket)
        .workers(1)
        .policy(POLICY)
        .start()
        .await;
    for (target, expected) in [
        ("/page.html", "text/html; charset=utf-8"),
        ("/app.JS", "text/javascript; charset=utf-8"),
        ("/x.data", "application/x-data"),
        ("/noext", "binary/octet-stream"),
        ("/own.html", "text/plain"),
    ] {
        for method in ["HEAD", "GET", "GET", "HEAD"] {
            let response = edge.send(method, target, &[]).await;
            assert_eq!(
                response.header("content-type"),
                expected,
                "{method} {target}: {response}"
            );
        }
    }
}

#[tokio::test]
async fn control_without_the_policy_types_stay() {
    let bucket = Bucket::new().await;
    bucket
        .put(
            "page.html",
            &[("content-type", "binary/octet-stream")],
            b"x",
        )
        .await;
    let edge = Edge::bucket(&bucket).start().await;
    assert_eq!(
        edge.get("/page.html").await.header("content-type"),
        "binary/octet-stream"
    );
}

#[tokio::test]
async fn an_object_whose_given_type_compresses_is_compressed() {
    let bucket = Bucket::new().await;
    let none = [("content-type", "binary/octet-stream")];
    for key in ["style.css", "noext", "app.data"] {
        bucket.put(key, &none, &[b'x'; 10_000]).await;
    }
    let (guessing, plain) = (Edge::bucket(&bucket).policy(POLICY), Edge::bucket(&bucket));
    let guessing = guessing.workers(1).start().await;
    let ask = async |edge: &Edge, path: &str| {
        let response = edge.send("GET", path, &[("accept-encoding", "gzip")]).await;
        assert_eq!(response.status, 200, "{response}");
        response.headers.get("content-encoding").map(str::to_owned)
    };
    for _ in 0..2 {
        let coding = ask(&guessing, "/style.css").await;
        assert_eq!(coding.as_deref(), Some("gzip"));
        for path in ["/noext", "/app.data"] {
            assert_eq!(ask(&guessing, path).await, None, "{path}");
        }
    }
    // Control: an object that keeps its type is not compressed.
    let plain = plain.workers(1).start().await;
    assert_eq!(ask(&plain, "/style.css").await, None);
}
