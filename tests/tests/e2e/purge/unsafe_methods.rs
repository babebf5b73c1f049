// SPDX-License-Identifier: Apache-2.0
//! After a successful request with an unsafe method, its URL is revalidated (RFC 9111, 4.4).

use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use test_case::test_case;

const LONG: u32 = 3_600;

#[test_case(1; "with one worker")]
#[test_case(4; "with four workers")]
#[tokio::test]
async fn the_url_of_an_unsafe_request_is_revalidated_on_all_workers(workers: usize) {
    let origin = Origin::start().ready().await;
    let paths = ["/a", "/list", "/item", "/other", "/elsewhere"];
    for path in paths {
        origin.on(path, Reply::ok(1_000).max_age(LONG).etag("x"));
    }
    let edge = Edge::http(&origin).workers(workers).start().await;
    for path in paths {
        eventually("a hit", async || edge.get(path).await.is_hit()).await;
    }
    let changed = Reply::ok(100)
        .header("Location", "/item")
        .header("Content-Location", "http://edge.test/list");
    origin.on("/a", changed);
    assert_eq!(edge.send("POST", "/a", &[]).await.status, 200);
    let foreign = Reply::ok(100).header("Location", "http://another.test/elsewhere");
    origin.on("/a", foreign);
    assert_eq!(edge.send("DELETE", "/a", &[]).await.status, 200);
    for path in paths {
        origin.on(path, Reply::ok(1_000).max_age(LONG).etag("y"));
    }
    for path in ["/a", "/list", "/item"] {
        for _ in 0..12 {
            assert_eq!(edge.get(path).await.header("etag"), "\"y\"", "{path}");
        }
    }
    for path in ["/other", "/elsewhere"] {
        assert_eq!(edge.get(path).await.header("etag"), "\"x\"", "{path}");
    }
    assert_eq!(edge.counter("sluice_invalidations").await, 2);
}

#[tokio::test]
async fn a_failed_unsafe_request_invalidates_nothing() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1_000).max_age(LONG));
    let edge = Edge::http(&origin).workers(1).start().await;
    eventually("a hit", async || edge.get("/a").await.is_hit()).await;
    let count = origin.count("/a");
    origin.on("/a", Reply::status(403));
    assert_eq!(edge.send("PUT", "/a", &[]).await.status, 403);
    origin.on("/a", Reply::ok(100));
    assert_eq!(edge.send("OPTIONS", "/a", &[]).await.status, 200);
    assert!(edge.get("/a").await.is_hit());
    assert_eq!(origin.count("/a"), count + 2);
}
