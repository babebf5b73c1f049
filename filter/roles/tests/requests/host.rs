// SPDX-License-Identifier: Apache-2.0
//! The fake host conforms to the checks of every host. The hosts of the modules are checked in the same way, with
//! Envoy.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use crate::support::{FIRST, KEY, envoy};

#[test]
fn the_fake_host_conforms_about_requests_and_replies() {
    let mut envoy = envoy(1);
    for status in ["200", "404", "503"] {
        let client = envoy.request(0, "GET", KEY, &[("x-conformance", status), ("x-empty", "")]);
        let client = &envoy.clients[client.0];
        assert_eq!(client.status().to_string(), status);
        assert_eq!(client.header("x-conformance"), Some("ok; ok"));
        assert_eq!(client.body(), b"ok \xe9\x00\xff");
    }
}

#[test]
fn the_fake_host_conforms_about_responses() {
    let mut envoy = envoy(1);
    let client = envoy.request(0, "GET", KEY, &[("x-conformance", "response")]);
    envoy.answer_with(FIRST, 200, &[("x-empty", "")], b"an object");
    envoy.end(FIRST);
    let client = &envoy.clients[client.0];
    assert_eq!(client.header("x-conformance"), Some("ok; ok"));
    assert_eq!(client.body(), b"ok ok an object");
}
