// SPDX-License-Identifier: Apache-2.0
//! Responses are compressed once, on their way into the cache, and every client gets the coding that suits it.

use sluice_tests::client::Response;
use sluice_tests::edge::Edge;
use sluice_tests::matrix::{Cell, on_each};
use sluice_tests::origin::{Origin, Reply};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A style sheet of some kilobytes.
fn style() -> Vec<u8> {
    let rules = (0..500).map(|n| format!("p.c{n} {{ margin: {n}px }}\n"));
    rules.collect::<String>().into_bytes()
}

fn reply() -> Reply {
    Reply::text(style())
        .header("content-type", "text/css")
        .etag("v1")
        .max_age(60)
}

async fn edge(origin: &Origin, cell: Cell) -> Edge {
    Edge::scripted_bucket(origin).cell(cell).start().await
}

async fn get(edge: &Edge, path: &str, accepted: &str) -> Response {
    edge.send("GET", path, &[("accept-encoding", accepted)])
        .await
}

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = Command::new("gzip")
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    gzip.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = gzip.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}

#[tokio::test]
async fn an_object_is_fetched_and_compressed_once_for_each_coding() {
    on_each(&[1], async |cell| {
        let origin = Origin::start().ready().await;
        origin.on("/site/a.css", reply());
        let edge = edge(&origin, cell).await;
        for (accepted, coding, etag) in [
            ("gzip, deflate", Some("gzip"), "W/\"v1\""),
            ("gzip, deflate, br, zstd", Some("br"), "W/\"v1\""),
            ("zstd, gzip", Some("zstd"), "W/\"v1\""),
            ("deflate", None, "\"v1\""),
        ] {
            let mut bodies = Vec::new();
            for _ in 0..3 {
                let response = get(&edge, "/a.css", accepted).await;
                assert_eq!(response.headers.get("content-encoding"), coding, "{cell}");
                assert_eq!(response.header("etag"), etag, "{cell}: {response}");
                assert_eq!(response.header("vary"), "Accept-Encoding", "{cell}");
                assert_eq!(response.header("content-type"), "text/css", "{cell}");
                bodies.push(response.body);
            }
            bodies.dedup();
            assert_eq!(bodies.len(), 1, "{cell}: {accepted}");
            match coding {
                Some("gzip") => assert_eq!(gunzip(&bodies[0]), style(), "{cell}"),
                Some(_) => assert!(bodies[0].len() < style().len() / 2, "{cell}: {accepted}"),
                None => assert_eq!(bodies[0], style(), "{cell}"),
            }
            let head = [("accept-encoding", accepted)];
            let head = edge.send("HEAD", "/a.css", &head).await;
            assert_eq!(head.headers.get("content-encoding"), coding, "{cell}");
            assert!(head.is_reused(), "{cell}: {head}");
        }
        assert_eq!(origin.count("/site/a.css"), 4, "{cell}");
        let asked = origin.requests().of("/site/a.css");
        let told = |name| {
            asked
                .iter()
                .any(|request| request.headers.get(name).is_some())
        };
        assert!(
            !told("accept-encoding") && !told("x-sluice-compress"),
            "{cell}"
        );
    })
    .await;
}

#[tokio::test]
async fn what_does_not_compress_is_one_object_for_all() {
    on_each(&[1], async |cell| {
        let origin = Origin::start().ready().await;
        origin.on("/site/a.png", reply());
        let edge = edge(&origin, cell).await;
        for accepted in ["gzip", "br", "", "zstd;q=0.1", "identity"] {
            let response = get(&edge, "/a.png", accepted).await;
            assert_eq!(response.body, style(), "{cell}");
            assert_eq!(response.headers.get("vary"), None, "{cell}: {response}");
        }
        assert_eq!(origin.count("/site/a.png"), 1, "{cell}");
    })
    .await;
}

#[tokio::test]
async fn what_the_origin_has_compressed_stays_as_it_is() {
    on_each(&[1], async |cell| {
        let origin = Origin::start().ready().await;
        origin.on("/site/a.css", reply().header("content-encoding", "gzip"));
        let edge = edge(&origin, cell).await;
        for _ in 0..2 {
            let response = get(&edge, "/a.css", "br").await;
            assert_eq!(response.header("content-encoding"), "gzip", "{cell}");
            assert_eq!(response.header("etag"), "\"v1\"", "{cell}");
            assert_eq!(response.body, style(), "{cell}");
        }
        assert_eq!(origin.count("/site/a.css"), 1, "{cell}");
    })
    .await;
}

#[tokio::test]
async fn conditions_and_ranges_hold_on_what_the_edge_has_compressed() {
    on_each(&[1], async |cell| {
        let origin = Origin::start().ready().await;
        origin.on("/site/a.css", reply());
        let edge = edge(&origin, cell).await;
        let whole = loop {
            let response = get(&edge, "/a.css", "gzip").await;
            if response.is_hit() {
                break response;
            }
        };
        let send = async |name: &str, value: &str| {
            let headers = [("accept-encoding", "gzip"), (name, value)];
            edge.send("GET", "/a.css", &headers).await
        };
        for tag in ["W/\"v1\"", "\"v1\"", "\"x\", W/\"v1\""] {
            let response = send("if-none-match", tag).await;
            assert_eq!(response.status, 304, "{cell}: {tag}: {response}");
            assert_eq!(response.header("etag"), "W/\"v1\"", "{cell}");
            assert_eq!(response.header("vary"), "Accept-Encoding", "{cell}");
        }
        let part = send("range", "bytes=10-19").await;
        let expected = match part.status {
            206 => &whole.body[10..20],
            _ => &whole.body[..],
        };
        assert_eq!(part.body, expected, "{cell}: {part}");
        assert_eq!(part.header("content-encoding"), "gzip", "{cell}: {part}");
        assert_eq!(origin.count("/site/a.css"), 1, "{cell}");
    })
    .await;
}

#[tokio::test]
async fn what_the_edge_has_compressed_is_revalidated_with_the_origins_own_tag() {
    on_each(&[1], async |cell| {
        let origin = Origin::start().ready().await;
        let reply = Reply::text(style()).header("content-type", "text/css");
        let strict = "max-age=1, must-revalidate";
        origin.on(
            "/site/a.css",
            reply.etag("v1").header("cache-control", strict),
        );
        let edge = edge(&origin, cell).await;
        let first = get(&edge, "/a.css", "gzip").await;
        let revalidated = loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let response = get(&edge, "/a.css", "gzip").await;
            if origin.count("/site/a.css") > 1 {
                break response;
            }
        };
        assert_eq!(revalidated.body, first.body, "{cell}");
        assert_eq!(revalidated.header("content-encoding"), "gzip", "{cell}");
        assert_eq!(revalidated.header("etag"), "W/\"v1\"", "{cell}");
        let asked = origin.requests().of("/site/a.css");
        assert_eq!(
            asked[1].headers.get("if-none-match"),
            Some("\"v1\""),
            "{cell}"
        );
    })
    .await;
}
