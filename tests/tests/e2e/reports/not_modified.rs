// SPDX-License-Identifier: Apache-2.0
//! Origins that answer 304 to a request without a condition (RFC 9110, 15.4.5).

use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};

fn not_modified() -> Reply {
    Reply::status(304).empty().etag("v1").max_age(60)
}

/// `souin#794`.
#[tokio::test]
async fn a_304_that_was_not_asked_for_is_asked_for_once_more() {
    let origin = Origin::start().ready().await;
    let object = Reply::ok(1000).etag("v1").max_age(60);
    let http = Edge::http(&origin).workers(1).start().await;
    let bucket = Edge::scripted_bucket(&origin).workers(1).start().await;
    for (edge, prefix) in [(&http, ""), (&bucket, "/site")] {
        let (late, never) = (format!("{prefix}/late"), format!("{prefix}/never"));
        origin.on_each(&late, [not_modified(), object.clone()]);
        origin.on(&never, not_modified());
        let _ = edge.get("/late").await.stamp(&late);
        assert_eq!(origin.count(&late), 2);
        for asked in [2, 4] {
            let response = edge.get("/never").await;
            assert_eq!(response.status, 502, "{response}");
            assert!(!response.is_hit(), "{response}");
            assert_eq!(origin.count(&never), asked);
        }
        let head = edge.send("HEAD", "/never", &[]).await;
        assert_eq!(head.status, 502, "{head}");
    }
}

#[tokio::test]
async fn a_304_that_was_asked_for_goes_to_its_client() {
    let origin = Origin::start().ready().await;
    origin.on("*", not_modified());
    let edge = Edge::http(&origin).workers(1).start().await;
    let asked = [("cookie", "a=b"), ("if-none-match", "\"v1\"")];
    let response = edge.send("GET", "/a", &asked).await;
    assert_eq!(
        (response.status, origin.count("/a")),
        (304, 1),
        "{response}"
    );
}
