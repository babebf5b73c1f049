// SPDX-License-Identifier: Apache-2.0
//! Purges by the control listener, which asks for no token.
#![allow(clippy::unwrap_used)]

use serde_json::json;
use sluice_core::metrics::Metric;
use sluice_fake::{Client, FakeEnvoy, HeaderTexts as _};

use super::document;
use crate::support::{FIRST, KEY, envoy, fill};

fn purge(envoy: &mut FakeEnvoy, seat: usize, order: &str) -> Client {
    envoy.control(seat, "POST", "/purge", &[], Some(order))
}

#[test]
fn a_purge_without_a_token_is_carried_out_on_all_workers_and_gets_the_same_receipt() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    envoy.get(1, KEY);
    fill(&mut envoy, FIRST);
    let order = r#"{"url": "http://edge.test/7"}"#;
    let client = purge(&mut envoy, 1, order);
    assert_eq!(document(&envoy, client).0, 0, "one worker is missing");
    envoy.deliver_all();
    let by_control = document(&envoy, client);
    assert_eq!(by_control, (200, json!({"number": 1, "workers": 2})));
    let client = envoy.purge(0, order);
    envoy.deliver_all();
    let by_token = document(&envoy, client);
    assert_eq!(by_token, (200, json!({"number": 2, "workers": 2})));
    envoy.get(0, KEY);
    assert_eq!(envoy.fetches.len(), 2, "it is fetched again");
}

#[test]
fn the_log_names_the_control_socket_and_the_order() {
    let mut envoy = envoy(2);
    let other = envoy.get(1, KEY);
    envoy.abort(other);
    let client = purge(&mut envoy, 0, r#"{"url": "http://edge.test/7"}"#);
    let told = envoy.property(client, "sluice.purge_caller");
    assert_eq!(told.as_deref(), Some("control socket"));
    let told = envoy.property(client, "sluice.purge_order");
    assert_eq!(told.as_deref(), Some(r#"{"url":"http://edge.test/7"}"#));
}

#[test]
fn an_order_is_refused_as_the_listener_for_purges_refuses_it() {
    let mut envoy = envoy(1);
    for order in ["", "{}", r#"{"url": "http://other.test:99999/"}"#, "[1]"] {
        let by_token = envoy.purge(0, order);
        let by_control = purge(&mut envoy, 0, order);
        let (status, error) = document(&envoy, by_control);
        assert_eq!((status, error), document(&envoy, by_token), "{order}");
        assert_eq!(status, 400, "{order}");
    }
    assert_eq!(envoy.counter(Metric::PurgesRefused), 8);
    let client = envoy.control(0, "POST", "/purge", &[], None);
    assert_eq!(document(&envoy, client).0, 400);
    let client = envoy.control(0, "GET", "/purge", &[], None);
    let (status, error) = document(&envoy, client);
    assert_eq!((status, error), (405, json!({"error": "expected POST"})));
    let headers = &envoy.clients[client.0].response.as_ref().unwrap().headers;
    assert_eq!(headers.get("allow"), Some("POST"));
}
