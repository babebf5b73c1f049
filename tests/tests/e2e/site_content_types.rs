// SPDX-License-Identifier: Apache-2.0
//! Objects that were uploaded without a media type get one, where the policy says so.

use sluice_tests::edge::Edge;
use sluice_tests::matrix::on_each;
use sluice_tests::minio::Bucket;

const POLICY: &str =
    "site: {guess_content_type: true, content_types: {data: application/x-data}}\n";

#[tokio::test]
async fn what_has_no_type_gets_that_of_its_extension() {
    on_each(&[1], async |cell| {
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
            .cell(cell)
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
    })
    .await;
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
