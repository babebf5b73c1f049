// SPDX-License-Identifier: Apache-2.0
//! Requests whose headers do not end the request.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::coalescing::StoreRequest;
use sluice_core::metrics::Metric;
use sluice_fake::{Ending, FakeEnvoy, HeaderTexts as _, Stage};

use crate::support::{FIRST, KEY, admission, assert_all_over, envoy, fill, live};

fn bucket() -> FakeEnvoy {
    let origin = r#"{"kind": "bucket", "bucket": "site", "prefix": "a/b", "authority": "s3.test"}"#;
    let policy = format!(r#"{{"origin": {origin}, "purge": {{"warm": false}}}}"#);
    FakeEnvoy::new(&policy, 1)
}

#[test]
fn requests_that_an_empty_body_ends_lead_and_wait_like_any_other() {
    let mut envoy = envoy(1);
    let leader = envoy.open_ended(0, "GET", KEY, &[]);
    assert_eq!(envoy.stage(leader), Stage::Parked);
    assert_eq!(envoy.fetches.len(), 0);
    envoy.send_body(leader, 0, true);
    let ended_by_trailers = envoy.open_ended(0, "GET", KEY, &[]);
    envoy.send_trailers(ended_by_trailers);
    let follower = envoy.get(0, KEY);
    assert_eq!(envoy.fetches.len(), 1);
    assert_eq!(envoy.parked(), 2);
    fill(&mut envoy, FIRST);
    for client in [leader, ended_by_trailers, follower] {
        let client = &envoy.clients[client.0];
        assert_eq!((client.status(), client.body().len()), (200, 1_024));
    }
    assert!(!envoy.fetches[0].headers.has("content-length"));
    assert_eq!(envoy.counter(Metric::BodiesAwaited), 2);
    assert_eq!(envoy.counter(Metric::BodiesOverdue), 0);
    assert_all_over(&mut envoy);
}

#[test]
fn a_request_to_a_bucket_that_an_empty_body_ends_is_for_the_object_that_its_client_names() {
    let mut envoy = bucket();
    for path in ["/x/../7?a", "/%37#x", "/7"] {
        let client = envoy.open_ended(0, "GET", KEY, &[(":path", path)]);
        if !envoy.is_over(client) {
            envoy.send_body(client, 0, true);
        }
    }
    assert_eq!(envoy.fetches.len(), 1);
    assert_eq!(envoy.fetches[0].headers.get(":path"), Some("/site/a/b/7"));
    assert_eq!(envoy.fetches[0].request, StoreRequest::Lead);
    assert_eq!(envoy.parked(), 1);
    assert_eq!(envoy.counter(Metric::RequestsRejected), 1, "the fragment");
}

#[test]
fn a_request_to_a_bucket_with_a_body_is_refused_before_anything_is_sent() {
    let mut envoy = bucket();
    for method in ["GET", "HEAD"] {
        let client = envoy.open_ended(0, method, KEY, &[]);
        envoy.send_body(client, 0, false);
        assert_eq!(envoy.stage(client), Stage::Parked, "more may come");
        envoy.send_body(client, 1, false);
        assert_eq!(envoy.clients[client.0].status(), 400);
    }
    assert_eq!(envoy.counter(Metric::RequestsRejected), 2);
    assert_eq!(envoy.fetches.len(), 0);
    assert_all_over(&mut envoy);
}

#[test]
fn a_request_to_a_bucket_whose_body_does_not_come_is_answered_after_a_second() {
    let mut envoy = bucket();
    let client = envoy.open_ended(0, "GET", KEY, &[]);
    live(&mut envoy, 900);
    assert_eq!(envoy.stage(client), Stage::Parked);
    live(&mut envoy, 200);
    assert_eq!(envoy.stage(client), Stage::Over(Ending::Served));
    assert_eq!(envoy.clients[client.0].status(), 408);
    assert_eq!(envoy.counter(Metric::BodiesOverdue), 1);
    assert_eq!(envoy.fetches.len(), 0);
    assert_all_over(&mut envoy);
}

#[test]
fn a_request_to_an_http_origin_with_a_body_passes_at_its_first_part_or_after_a_second() {
    let mut envoy = envoy(1);
    let early = envoy.open_ended(0, "GET", KEY, &[]);
    envoy.send_body(early, 1, false);
    assert_eq!(envoy.fetches.len(), 1);
    let late = envoy.open_ended(0, "GET", KEY, &[]);
    live(&mut envoy, 1_100);
    assert_eq!(envoy.fetches.len(), 2);
    envoy.send_body(late, 1, true);
    for (client, fetch) in [early, late].into_iter().zip([0, 1]) {
        assert_eq!(envoy.fetches[fetch].request, StoreRequest::Bypass);
        assert_eq!(envoy.fetches[fetch].client, client);
    }
    assert_eq!(envoy.counter(Metric::RequestsPassed), 2);
    assert_eq!(envoy.counter(Metric::BodiesOverdue), 1);
}

#[test]
fn what_passes_by_its_headers_does_not_wait_for_its_body() {
    let mut envoy = envoy(1);
    for (method, header) in [
        ("POST", ("accept", "text/plain")),
        ("GET", ("content-length", "5")),
        ("GET", ("authorization", "Basic eDp5")),
        ("GET", ("cookie", "id=1")),
    ] {
        let client = envoy.open_ended(0, method, KEY, &[header]);
        assert_eq!(admission(&envoy, client), Some(StoreRequest::Bypass));
    }
    assert_eq!(envoy.counter(Metric::BodiesAwaited), 0);
    assert_eq!(envoy.counter(Metric::RequestsPassed), 4);
}

#[test]
fn a_client_that_leaves_while_its_body_is_awaited_leaves_nothing_behind() {
    for mut envoy in [envoy(1), bucket()] {
        let client = envoy.open_ended(0, "GET", KEY, &[]);
        envoy.abort(client);
        live(&mut envoy, 1_200);
        assert_eq!(envoy.counter(Metric::BodiesOverdue), 0);
        let client = envoy.open_ended(0, "GET", KEY, &[]);
        envoy.send_body(client, 0, true);
        envoy.abort(client);
        assert_eq!(envoy.open_clients(), []);
    }
}

#[test]
fn no_client_can_come_back_by_itself() {
    let mut envoy = envoy(1);
    let headers = [("x-sluice-empty", "1"), ("x-sluice-link", "0")];
    let client = envoy.request(0, "GET", KEY, &headers);
    assert_eq!(admission(&envoy, client), Some(StoreRequest::Lead));
    fill(&mut envoy, FIRST);
    assert!(!envoy.fetches[0].headers.has("x-sluice-empty"));
}
