// SPDX-License-Identifier: Apache-2.0
//! Envoy compresses a response on its way into the cache only if the filter asks for it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use support::edge::Variables;
use support::exchange;
use support::modules::{APPROVING, COMPRESSING};
use support::origin::Origin;

fn bucket(origin: &Origin, module: &str) -> Variables {
    Variables::new("s3://site", module)
        .set("SLUICE_S3_ENDPOINT", &origin.url())
        .set("AWS_ACCESS_KEY_ID", "key")
        .set("AWS_SECRET_ACCESS_KEY", "secret")
}

#[test]
fn the_coding_that_is_asked_for_is_the_one_that_comes() {
    let origin = Origin::start();
    let edge = bucket(&origin, COMPRESSING).start();
    for coding in ["br", "zstd", "gzip"] {
        let accept = format!("accept-encoding: {coding}\r\n");
        let path = format!("GET /site/style/{coding}");
        let answer = exchange(edge.port, &path, &accept);
        let content_encoding = format!("content-encoding: {coding}\r\n");
        assert!(answer.contains(&content_encoding), "{answer}");
        assert!(answer.contains("etag: W/\"style\"\r\n"), "{answer}");
        assert!(answer.len() < 1_000, "{answer}");
    }
    for coding in ["identity", "deflate"] {
        let accept = format!("accept-encoding: {coding}\r\n");
        let path = format!("GET /site/style/{coding}");
        let answer = exchange(edge.port, &path, &accept);
        assert!(!answer.contains("content-encoding"), "{answer}");
        assert!(answer.contains("etag: \"style\"\r\n"), "{answer}");
    }
    for request in origin.requests() {
        assert!(!request.contains("accept-encoding"), "{request}");
        assert!(!request.contains("x-sluice-"), "{request}");
    }
}

#[test]
fn a_policy_that_compresses_otherwise_has_compressors_of_its_own() {
    let origin = Origin::start();
    let variables = bucket(&origin, COMPRESSING);
    let policy = variables.folder().join("policy.yaml");
    let text = "compression: {min_bytes: 1, codings: [gzip], content_types: [image/png]}\n";
    std::fs::write(&policy, text).unwrap();
    let edge = variables
        .set("SLUICE_POLICY", policy.to_str().unwrap())
        .start();
    let accept = "accept-encoding: br, gzip\r\n";
    for (path, compressed) in [("/site/image", true), ("/site/style", false)] {
        let answer = exchange(edge.port, &format!("GET {path}"), accept);
        let is_compressed = answer.contains("content-encoding: gzip\r\n");
        assert_eq!(is_compressed, compressed, "{answer}");
    }
}

#[test]
fn small_responses_and_other_types_stay_as_they_are() {
    let origin = Origin::start();
    let edge = bucket(&origin, COMPRESSING).start();
    for path in ["GET /site/small", "GET /site/image"] {
        let answer = exchange(edge.port, path, "accept-encoding: gzip\r\n");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(!answer.contains("content-encoding"), "{answer}");
    }
}

#[test]
fn nothing_is_compressed_that_the_filter_does_not_ask_for() {
    let origin = Origin::start();
    let edge = bucket(&origin, APPROVING).start();
    let asks = "accept-encoding: gzip\r\nx-sluice-compress: 1\r\n";
    let answer = exchange(edge.port, "GET /site/style/a", asks);
    assert!(answer.contains("etag: \"style\"\r\n"), "{answer}");
    assert!(!answer.contains("content-encoding"), "{answer}");
}
