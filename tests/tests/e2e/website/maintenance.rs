// SPDX-License-Identifier: Apache-2.0
//! The maintenance page: a file of the edge, for clients whose response can come neither from the origin nor from the
//! store.

use sluice_tests::client::Response;
use sluice_tests::client::crowd::Crowd;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use std::path::PathBuf;
use tempfile::TempDir;

/// A page in a file, and the policy that names it.
fn page(folder: &TempDir, text: &str) -> (PathBuf, String) {
    let path = folder.path().join("sorry.html");
    std::fs::write(&path, text).unwrap();
    let policy = format!("response: {{maintenance_page: {}}}\n", path.display());
    (path, policy)
}

fn assert_page(response: &Response, text: &str) {
    assert_eq!(response.status, 503, "{response}");
    assert_eq!(String::from_utf8_lossy(&response.body), text, "{response}");
    assert_eq!(
        response.header("content-type"),
        "text/html; charset=utf-8",
        "{response}"
    );
    assert_eq!(response.header("cache-control"), "no-store", "{response}");
    assert_eq!(response.header("retry-after"), "30", "{response}");
}

async fn shows_the_page_if_nothing_else_can_be_served(origin: &Origin, edge: Builder, http: bool) {
    let folder = TempDir::new().unwrap();
    let text = "<h1>Back soon</h1>\n";
    let (path, policy) = page(&folder, text);
    let kind = if http { "origin: {kind: http}\n" } else { "" };
    let mut edge = edge
        .workers(1)
        .policy(&format!("{kind}{policy}"))
        .start()
        .await;
    assert_eq!(edge.get("/stored").await.status, 200);
    eventually("it is stored", async || edge.get("/stored").await.is_hit()).await;
    origin.refuse().await;
    assert!(edge.get("/stored").await.is_hit());
    assert_page(&edge.get("/cold").await, text);
    // Followers, and requests that pass the store.
    let crowd = Crowd::connect(edge.address(), 10)
        .await
        .fire("/crowd")
        .land()
        .await;
    assert_eq!(crowd.responses().count(), 10);
    for response in crowd.responses() {
        assert_page(response, text);
    }
    let bypassing = [("cache-control", "no-store")];
    assert_page(&edge.send("GET", "/cold", &bypassing).await, text);
    let head = edge.send("HEAD", "/head", &[]).await;
    let length = text.len().to_string();
    assert_eq!(
        (head.status, head.header("content-length")),
        (503, &*length),
        "{head}"
    );
    if http {
        let posted = edge.send("POST", "/cold", &[("content-length", "0")]).await;
        assert_ne!(String::from_utf8_lossy(&posted.body), text, "{posted}");
    }
    assert_eq!(edge.get("/x/..%2f..%2fother").await.status, 400);
    // A reload reads the file again, and keeps the former page if the file is none.
    std::fs::write(&path, "no page").unwrap();
    edge.signal(libc::SIGHUP);
    edge.wait_for_log("response.maintenance_page").await;
    assert_page(&edge.get("/later").await, text);
    std::fs::write(&path, "<p>Tomorrow</p>").unwrap();
    edge.signal(libc::SIGHUP);
    eventually("the new page", async || {
        edge.get("/cold").await.body == b"<p>Tomorrow</p>"
    })
    .await;
    origin.listen().await;
    eventually("the origin's response", async || {
        edge.get("/cold").await.status == 200
    })
    .await;
}

#[tokio::test]
async fn a_bucket_that_is_down_is_the_page() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(100).max_age(600));
    let edge = Edge::scripted_bucket(&origin).env("SLUICE_S3_RETRIES", "0");
    shows_the_page_if_nothing_else_can_be_served(&origin, edge, false).await;
}

#[tokio::test]
async fn an_http_origin_that_is_down_is_the_page() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(100).max_age(600));
    shows_the_page_if_nothing_else_can_be_served(&origin, Edge::http(&origin), true).await;
}

#[tokio::test]
async fn control_an_http_origins_own_error_is_its_own() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::text("its own").with_status(503));
    let folder = TempDir::new().unwrap();
    let (_, policy) = page(&folder, "<p>Soon</p>");
    let policy = format!("origin: {{kind: http}}\n{policy}");
    let edge = Edge::http(&origin).policy(&policy).start().await;
    let response = edge.get("/a").await;
    assert_eq!((response.status, &*response.body), (503, &b"its own"[..]));
}
