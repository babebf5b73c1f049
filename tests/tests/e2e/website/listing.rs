// SPDX-License-Identifier: Apache-2.0
//! Listings of directories of a real MinIO, which notifies the edge.

use sluice_tests::bucket::minio;
use sluice_tests::client::Response;
use sluice_tests::edge::Edge;
use sluice_tests::edge::purger::{Purger, TOKEN};
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};

/// Listings and objects stay fresh for longer than the test takes.
const POLICY: &str = "key: {index_document: index.html}\ncache: {ttl: {default: 1h}}\n\
                      website: {redirect_directories: true, listing: {prefixes: [/pub/*], page: 3, ttl: 1h}}\n";

/// The body as text.
fn text(response: &Response) -> String {
    String::from_utf8_lossy(&response.body).into_owned()
}

#[tokio::test]
async fn a_directory_without_an_index_document_is_listed_in_pages_until_it_changes() {
    let purger = Purger::new();
    let minio = minio::notifying(purger.address(), TOKEN).await;
    let bucket = minio.bucket().await;
    bucket.notify().await;
    for key in [
        "pub/.hidden",
        "pub/a&b<c>\"'.txt",
        "pub/other/index.html",
        "pub/sub/x",
        "pub/z+1.txt",
        "pub/ü.txt",
        "x",
    ] {
        bucket
            .put(key, &[("content-type", "text/plain")], key.as_bytes())
            .await;
    }
    let edge = purger.open(Edge::bucket(&bucket)).workers(2);
    let edge = edge.policy(POLICY).start().await;
    let first = edge.get("/pub/").await;
    assert_eq!(first.status, 200, "{first}");
    assert_eq!(first.header("content-type"), "text/html; charset=utf-8");
    assert!(first.cache_status().contains("detail=listing"), "{first}");
    let page = text(&first);
    let row = "<a href=\"a%26b%3Cc%3E%22%27.txt\">a&amp;b&lt;c&gt;&quot;&#39;.txt</a><td>16<td>20";
    for part in [
        row,
        "<a href=\"other/\">other/</a>",
        "href=\"?after=other/\"",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("hidden") && !page.contains("sub/"), "{page}");
    let object = edge.get("/pub/a%26b%3Cc%3E%22%27.txt").await;
    assert_eq!(object.body, "pub/a&b<c>\"'.txt".as_bytes(), "{object}");
    // The objects of a directory are not listed again behind it.
    let second = text(&edge.get("/pub/?after=other/").await);
    let parts = [
        "<a href=\"sub/\">sub/</a>",
        "<a href=\"z%2B1.txt\">z+1.txt</a>",
        "<a href=\"%C3%BC.txt\">ü.txt</a>",
    ];
    for part in parts {
        assert!(second.contains(part), "{part}: {second}");
    }
    assert!(
        !second.contains("other/") && !second.contains("?after="),
        "{second}"
    );
    let json = edge.get("/pub/?format=json&after=other/").await;
    assert_eq!(json.header("content-type"), "application/json", "{json}");
    let read: serde_json::Value = serde_json::from_slice(&json.body).unwrap();
    assert_eq!(
        read.pointer("/entries/2/name"),
        Some(&"ü.txt".into()),
        "{json}"
    );
    assert_eq!(edge.get("/pub/other/").await.body, b"pub/other/index.html");
    let redirect = edge.get("/pub/sub").await;
    assert_eq!(
        (redirect.status, redirect.header("location")),
        (302, "/pub/sub/"),
        "{redirect}"
    );
    assert_eq!(edge.get("/pub/none/").await.status, 404);
    assert_eq!(edge.get("/").await.status, 404, "nothing else is listed");
    assert_eq!(edge.get("/x?list-type=2&prefix=").await.body, b"x");
    let question = format!(
        "/{}/?delimiter=%2F&list-type=2&max-keys=3&prefix=pub%2F",
        bucket.name()
    );
    assert_eq!(edge.get("/pub/").await.body, first.body);
    let head = edge.send("HEAD", "/pub/", &[]).await;
    assert_eq!(
        head.header("content-length"),
        first.body.len().to_string(),
        "{head}"
    );
    assert_eq!(
        bucket.requests().count(&question),
        1,
        "{}",
        bucket.requests().summary()
    );
    bucket.put("pub/b.txt", &[], b"b").await;
    eventually("the new object", async || {
        text(&edge.get("/pub/").await).contains("b.txt")
    })
    .await;
    bucket.delete("pub/sub/x").await;
    eventually("the end of a directory", async || {
        edge.get("/pub/sub/").await.status == 404
            && !text(&edge.get("/pub/?after=other/").await).contains("sub/")
    })
    .await;
}

/// More bytes than Envoy buffers of a response, in the bucket's answer and in the page.
#[tokio::test]
async fn a_long_listing_is_whole_and_one_that_is_cut_is_a_502() {
    const QUESTION: &str = "/site/?delimiter=%2F&list-type=2&max-keys=1000&prefix=";
    let list = |directory: &str, end: &str| {
        let object = |number: usize| {
            format!(
                "<Contents><Key>{directory}/{number:03}{}</Key>\
                 <LastModified>2026-01-31T23:59:59.000Z</LastModified><Size>1</Size></Contents>",
                "&amp;".repeat(60)
            )
        };
        let objects: String = (0..1_000).map(object).collect();
        let start = format!("<ListBucketResult><Prefix>{directory}/</Prefix>");
        format!("{start}<IsTruncated>false</IsTruncated>{objects}{end}")
    };
    let origin = Origin::start().ready().await;
    let whole = Reply::text(list("whole", "</ListBucketResult>"));
    origin.on(&format!("{QUESTION}whole%2F"), whole.chunked());
    origin.on(&format!("{QUESTION}cut%2F"), Reply::text(list("cut", "")));
    for directory in ["whole", "cut"] {
        let index = format!("/site/{directory}/index.html");
        origin.on(&index, Reply::status(404));
    }
    let policy = "key: {index_document: index.html}\nwebsite: {listing: {prefixes: [/*]}}\n";
    let edge = Edge::scripted_bucket(&origin).policy(policy).start().await;
    for _ in 0..2 {
        let page = edge.get("/whole/").await;
        assert_eq!(page.status, 200, "{page}");
        assert_eq!(text(&page).matches("<tr><td><a href=\"").count(), 1_001);
        assert!(text(&page).ends_with("</table>\n"));
        assert_eq!(edge.get("/cut/").await.status, 502);
    }
    let asked = format!("{QUESTION}whole%2F");
    assert_eq!(origin.count(&asked), 1);
}

#[tokio::test]
async fn a_listing_is_refused_to_a_client_that_may_not_read_the_directory() {
    const QUESTION: &str = "/site/?delimiter=%2F&list-type=2&max-keys=1000&prefix=";
    let origin = Origin::start().ready().await;
    for directory in ["open", "closed"] {
        let index = format!("/site/{directory}/index.html");
        origin.on(&index, Reply::status(404));
        let list = format!(
            "<ListBucketResult><Prefix>{directory}/</Prefix><IsTruncated>false</IsTruncated>\
             <CommonPrefixes><Prefix>{directory}/x/</Prefix></CommonPrefixes></ListBucketResult>"
        );
        origin.on(&format!("{QUESTION}{directory}%2F"), Reply::text(list));
    }
    let rules = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&rules, "allow: [192.0.2.0/24]\nexcept: [/open/*]\n").unwrap();
    let policy = "key: {index_document: index.html}\nwebsite: {listing: {prefixes: [/*]}}\n";
    let edge = Edge::scripted_bucket(&origin).policy(policy);
    let edge = edge.env("SLUICE_ACCESS", rules.path().display().to_string());
    let edge = edge.start().await;
    assert_eq!(edge.get("/open/").await.status, 200);
    for path in ["/closed/", "/open/../closed/", "/closed/?format=json"] {
        assert_eq!(edge.get(path).await.status, 403, "{path}");
    }
    assert_eq!(origin.count(&format!("{QUESTION}open%2F")), 1);
    assert_eq!(origin.count(&format!("{QUESTION}closed%2F")), 0);
}
