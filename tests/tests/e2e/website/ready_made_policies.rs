// SPDX-License-Identifier: Apache-2.0
//! The policies that are part of the edge, by their names.

use sluice_tests::bucket::Bucket;
use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;

const PAGE: &str = "text/html,*/*;q=0.8";

#[tokio::test]
async fn spa_keeps_assets_for_a_year_and_has_documents_revalidated() {
    let bucket = Bucket::new().await;
    // A careless upload has these metadata.
    let bare = [("content-type", "binary/octet-stream")];
    bucket.put("index.html", &bare, b"<h1>app</h1>").await;
    bucket.put("assets/app.3f9c2d.js", &bare, b"run()").await;
    let edge = Edge::bucket(&bucket)
        .workers(1)
        .env("SLUICE_POLICY", "spa")
        .start()
        .await;
    let mut client = Client::connect(edge.address()).await;
    for _ in 0..2 {
        let asset = client.get("/assets/app.3f9c2d.js").await;
        let told = (asset.header("cache-control"), asset.header("content-type"));
        let forever = "public, max-age=31536000, immutable";
        assert_eq!(told, (forever, "text/javascript; charset=utf-8"), "{asset}");
    }
    let mut etag = String::new();
    for target in ["/", "/index.html", "/users/42", "/users/42"] {
        let page = client
            .exchange(request("GET", target, &[("accept", PAGE)]))
            .await;
        assert_eq!(
            (page.status, page.body.as_slice()),
            (200, b"<h1>app</h1>".as_slice()),
            "{target}: {page}"
        );
        assert_eq!(page.header("cache-control"), "no-cache", "{target}: {page}");
        assert_eq!(
            page.header("x-content-type-options"),
            "nosniff",
            "{target}: {page}"
        );
        page.header("etag").clone_into(&mut etag);
    }
    for target in ["/", "/users/42", "/users/43"] {
        let headers = [("accept", PAGE), ("if-none-match", etag.as_str())];
        let same = client.exchange(request("GET", target, &headers)).await;
        assert_eq!(
            (same.status, same.header("etag")),
            (304, etag.as_str()),
            "{target}: {same}"
        );
    }
    let gone = client.get("/assets/app.000000.js").await;
    assert_eq!(
        (gone.status, gone.header("cache-control")),
        (404, ""),
        "{gone}"
    );
    assert_eq!(
        bucket.count("index.html"),
        1,
        "{}",
        bucket.requests().summary()
    );
}

#[tokio::test]
async fn downloads_cut_ranges_out_of_one_fetch() {
    let bucket = Bucket::new().await;
    bucket.put_stamped("disk.iso", 1, 3_000_000).await;
    let edge = Edge::bucket(&bucket)
        .workers(1)
        .env("SLUICE_POLICY", "downloads")
        .start()
        .await;
    let _ = edge.get("/disk.iso").await.stamp("/disk.iso");
    for range in ["bytes=0-9", "bytes=2999990-", "bytes=-10"] {
        let part = edge.send("GET", "/disk.iso", &[("range", range)]).await;
        assert_eq!((part.status, part.body.len()), (206, 10), "{range}: {part}");
    }
    let asked = bucket.requests().of(&bucket.target("disk.iso"));
    let asked: Vec<_> = asked.iter().map(|it| it.method.as_str()).collect();
    assert_eq!(asked, ["HEAD", "GET"], "it might be large by its name");
}
