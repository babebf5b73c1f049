// SPDX-License-Identifier: Apache-2.0
//! Responses are compressed once, on their way into the cache, and every client gets a coding that it accepts.

use sluice_tests::client::{Client, Response, request};
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use std::io::Read as _;

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

async fn edge(origin: &Origin, workers: usize) -> Edge {
    Edge::scripted_bucket(origin).workers(workers).start().await
}

async fn get(edge: &Edge, path: &str, accepted: &str) -> Response {
    edge.send("GET", path, &[("accept-encoding", accepted)])
        .await
}

/// Returns the decoded bytes of a body.
fn decoded(coding: Option<&str>, bytes: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    let read = match coding {
        None => return bytes.to_vec(),
        Some("gzip") => flate2::read::GzDecoder::new(bytes).read_to_end(&mut content),
        Some("br") => brotli_decompressor::Decompressor::new(bytes, 4096).read_to_end(&mut content),
        Some("zstd") => ruzstd::decoding::StreamingDecoder::new(bytes)
            .unwrap()
            .read_to_end(&mut content),
        Some(other) => panic!("{other} was not asked for"),
    };
    read.unwrap_or_else(|error| panic!("no {coding:?}: {error}"));
    content
}

/// The object in a response, decoded.
fn object(response: &Response) -> Vec<u8> {
    decoded(response.headers.get("content-encoding"), &response.body)
}

/// `Accept-Encoding`, the coding of the response, and its tag.
const OFFERS: [(&str, Option<&str>, &str); 4] = [
    ("gzip, deflate", Some("gzip"), "W/\"v1\""),
    ("gzip, deflate, br, zstd", Some("br"), "W/\"v1\""),
    ("zstd, gzip", Some("zstd"), "W/\"v1\""),
    ("deflate", None, "\"v1\""),
];

#[tokio::test]
async fn an_object_is_fetched_and_compressed_once_for_each_coding() {
    let origin = Origin::start().ready().await;
    origin.on("/site/a.css", reply());
    let edge = edge(&origin, 1).await;
    for (accepted, coding, etag) in OFFERS {
        let mut bodies = Vec::new();
        for _ in 0..3 {
            let response = get(&edge, "/a.css", accepted).await;
            assert_eq!(response.headers.get("content-encoding"), coding);
            assert_eq!(response.header("etag"), etag, "{response}");
            assert_eq!(response.header("vary"), "Accept-Encoding");
            assert_eq!(response.header("content-type"), "text/css");
            bodies.push(response.body);
        }
        bodies.dedup();
        assert_eq!(bodies.len(), 1, "{accepted}");
        assert_eq!(decoded(coding, &bodies[0]), style());
        let small = bodies[0].len() < style().len() / 2;
        assert_eq!(small, coding.is_some(), "{accepted}");
        let head = [("accept-encoding", accepted)];
        let head = edge.send("HEAD", "/a.css", &head).await;
        assert_eq!(head.headers.get("content-encoding"), coding);
        assert!(head.is_reused(), "{head}");
    }
    assert_eq!(origin.count("/site/a.css"), 4);
    let asked = origin.requests().of("/site/a.css");
    let told = |name| {
        asked
            .iter()
            .any(|request| request.headers.get(name).is_some())
    };
    assert!(!told("accept-encoding") && !told("x-sluice-compress"));
}

#[tokio::test]
async fn an_object_that_does_not_compress_is_one_for_all_codings() {
    let origin = Origin::start().ready().await;
    origin.on("/site/a.png", reply());
    let edge = edge(&origin, 1).await;
    for accepted in ["gzip", "br", "", "zstd;q=0.1", "identity"] {
        let response = get(&edge, "/a.png", accepted).await;
        assert_eq!(response.body, style());
        assert_eq!(response.headers.get("vary"), None, "{response}");
    }
    assert_eq!(origin.count("/site/a.png"), 1);
}

#[tokio::test]
async fn what_the_origin_has_compressed_stays_as_it_is() {
    let origin = Origin::start().ready().await;
    origin.on("/site/a.css", reply().header("content-encoding", "gzip"));
    let edge = edge(&origin, 1).await;
    for _ in 0..2 {
        let response = get(&edge, "/a.css", "br").await;
        assert_eq!(response.header("content-encoding"), "gzip");
        assert_eq!(response.header("etag"), "\"v1\"");
        assert_eq!(response.body, style());
    }
    assert_eq!(origin.count("/site/a.css"), 1);
}

#[tokio::test]
async fn heads_conditions_and_ranges_hold_on_what_the_edge_has_compressed() {
    let origin = Origin::start().ready().await;
    origin.on("/site/a.css", reply());
    let edge = edge(&origin, 1).await;
    for (accepted, coding, etag) in OFFERS {
        let whole = loop {
            let response = get(&edge, "/a.css", accepted).await;
            if response.is_hit() {
                break response;
            }
        };
        let mut client = Client::connect(edge.address()).await;
        let mut send = async |method: &str, name: &str, value: &str| {
            let headers = [("accept-encoding", accepted), (name, value)];
            let response = client.exchange(request(method, "/a.css", &headers)).await;
            assert_eq!(response.header("etag"), etag, "{response}");
            assert_eq!(response.header("vary"), "Accept-Encoding");
            response
        };
        let head = send("HEAD", "x-none", "").await;
        assert_eq!((head.status, head.body.len()), (200, 0), "{head}");
        assert_eq!(head.headers.get("content-encoding"), coding);
        for tag in ["W/\"v1\"", "\"v1\"", "\"x\", W/\"v1\"", "*"] {
            for method in ["GET", "HEAD"] {
                let response = send(method, "if-none-match", tag).await;
                assert_eq!(response.status, 304, "{tag}: {response}");
            }
        }
        let changed = send("GET", "if-none-match", "\"v0\"").await;
        assert_eq!(changed.body, whole.body, "{accepted}");
        let part = send("GET", "range", "bytes=10-19").await;
        assert_eq!(part.status, 206, "{part}");
        assert_eq!(part.body, whole.body[10..20], "{part}");
        let range = format!("bytes 10-19/{}", whole.body.len());
        assert_eq!(part.header("content-range"), range, "{part}");
        assert_eq!(part.headers.get("content-encoding"), coding);
        let headers = [
            ("accept-encoding", accepted),
            ("range", "bytes=10-19"),
            ("if-range", etag),
        ];
        // A weak tag does not prove that bytes are the same (RFC 9110, 13.1.5).
        let same = edge.send("GET", "/a.css", &headers).await;
        let status = if coding.is_none() { 206 } else { 200 };
        assert_eq!(same.status, status, "{same}");
    }
    assert_eq!(origin.count("/site/a.css"), 4);
}

#[tokio::test]
async fn a_cold_head_says_nothing_that_the_get_after_it_does_not() {
    let origin = Origin::start().ready().await;
    origin.on("/site/*", reply());
    let edge = edge(&origin, 1).await;
    for (accepted, coding, _) in OFFERS {
        let path = format!("/{}.css", coding.unwrap_or("plain"));
        let headers = [("accept-encoding", accepted)];
        let head = edge.send("HEAD", &path, &headers).await;
        let get = get(&edge, &path, accepted).await;
        assert_eq!(object(&get), style(), "{accepted}");
        assert_eq!((head.status, head.body.len()), (200, 0), "{head}");
        for name in ["etag", "vary", "content-type"] {
            let (said, is) = (head.header(name), get.header(name));
            assert_eq!(said, is, "{name} of {accepted}: {head}");
        }
        // A HEAD may leave out fields that are known only after compression (RFC 9110, 9.3.2).
        let length = get.body.len().to_string();
        for (name, is) in [
            ("content-encoding", coding.unwrap_or_default()),
            ("content-length", length.as_str()),
        ] {
            let said = head.headers.get(name);
            assert!(said.is_none_or(|said| said == is), "{name}: {head}");
        }
    }
}

#[tokio::test]
async fn what_the_edge_has_compressed_is_revalidated_with_the_origins_own_tag() {
    let origin = Origin::start().ready().await;
    let reply = Reply::text(style()).header("content-type", "text/css");
    let strict = "max-age=1, must-revalidate";
    origin.on(
        "/site/a.css",
        reply.etag("v1").header("cache-control", strict),
    );
    let edge = edge(&origin, 1).await;
    let first = get(&edge, "/a.css", "gzip").await;
    let mut revalidated = first.clone();
    eventually("a revalidation", async || {
        revalidated = get(&edge, "/a.css", "gzip").await;
        origin.count("/site/a.css") > 1
    })
    .await;
    assert_eq!(revalidated.body, first.body);
    assert_eq!(revalidated.header("content-encoding"), "gzip");
    assert_eq!(revalidated.header("etag"), "W/\"v1\"");
    let asked = origin.requests().of("/site/a.css");
    assert_eq!(asked[1].headers.get("if-none-match"), Some("\"v1\""));
}

#[tokio::test]
async fn an_http_origins_responses_are_compressed_where_the_policy_says_so() {
    const COMPRESSING: &str = "origin: {kind: http}\ncompression: {enabled: true}\n";
    let origin = Origin::start().ready().await;
    origin.on("/a.css", reply());
    let edge = Edge::http(&origin).workers(1).policy(COMPRESSING);
    let edge = edge.start().await;
    for (accepted, coding, etag) in OFFERS {
        for _ in 0..3 {
            let response = get(&edge, "/a.css", accepted).await;
            assert_eq!(response.headers.get("content-encoding"), coding);
            assert_eq!(object(&response), style(), "{accepted}");
            assert_eq!(response.header("etag"), etag, "{response}");
            assert_eq!(response.header("vary"), "Accept-Encoding");
        }
    }
    assert_eq!(origin.count("/a.css"), 4);
    for asked in origin.requests().of("/a.css") {
        let told = asked.headers.get("accept-encoding");
        assert!(
            matches!(told, None | Some("br" | "zstd" | "gzip")),
            "{told:?}"
        );
    }

    // The control: by default the edge does not compress for an HTTP origin, which may compress itself.
    let edge = Edge::http(&origin).workers(1).start().await;
    let response = get(&edge, "/a.css", "gzip").await;
    assert_eq!(response.headers.get("content-encoding"), None);
    assert_eq!(response.body, style());
}

#[tokio::test]
async fn a_no_transform_response_stays_as_it_is() {
    let origin = Origin::start().ready().await;
    let strict = Reply::text(style())
        .header("content-type", "text/css")
        .header("cache-control", "max-age=60, no-transform")
        .etag("v1");
    origin.on("/site/strict.css", strict);
    origin.on("/site/control.css", reply());
    let edge = edge(&origin, 1).await;
    for (accepted, coding, _) in OFFERS {
        for _ in 0..2 {
            let response = get(&edge, "/strict.css", accepted).await;
            assert_eq!(response.headers.get("content-encoding"), None);
            assert_eq!(response.body, style(), "{accepted}");
            assert_eq!(response.header("etag"), "\"v1\"", "{response}");
            let told = response.header("cache-control");
            assert!(told.contains("no-transform"), "{response}");
        }
        let control = get(&edge, "/control.css", accepted).await;
        assert_eq!(control.headers.get("content-encoding"), coding);
    }
}
