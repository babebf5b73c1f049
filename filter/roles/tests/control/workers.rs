// SPDX-License-Identifier: Apache-2.0
//! The workers that a question reaches, and the time that it takes.
#![allow(clippy::unwrap_used)]

use serde_json::json;
use sluice_fake::{Client, FakeEnvoy};

use super::{document, inspect, number};
use crate::support::{envoy, live};

/// Workers that have each served a request.
fn served(workers: usize) -> FakeEnvoy {
    let mut envoy = envoy(workers);
    for seat in 0..workers {
        let client = envoy.get(seat, seat as u64);
        envoy.abort(client);
    }
    envoy.deliver_all();
    envoy.tick_all();
    envoy
}

#[test]
fn one_worker_answers_for_all_that_have_served_a_request() {
    let mut envoy = served(3);
    for seat in 0..3 {
        let document = inspect(&mut envoy, seat, "/flights", &[]);
        let expected: Vec<_> = (0..3)
            .map(|seat| json!({"worker": number(&envoy, seat), "flights": []}))
            .collect();
        assert_eq!(document, json!({"workers": expected, "silent": []}));
    }
    let mut fresh = crate::support::envoy(2);
    let document = inspect(&mut fresh, 1, "/flights", &[]);
    let only = json!([{"worker": number(&fresh, 1), "flights": []}]);
    assert_eq!(document, json!({"workers": only, "silent": []}));
}

#[test]
fn a_worker_that_does_not_answer_within_a_second_is_named_as_silent() {
    let mut envoy = served(3);
    let silent = number(&envoy, 2);
    envoy.kill(2);
    let client = envoy.inspect(0, "/flights", &[]);
    envoy.deliver(1);
    envoy.deliver(0);
    live(&mut envoy, 900);
    assert_eq!(document(&envoy, client).0, 0, "it waits");
    live(&mut envoy, 200);
    let (status, document) = document(&envoy, client);
    assert_eq!(status, 200);
    assert_eq!(document["silent"], json!([silent]));
    assert_eq!(document["workers"].as_array().unwrap().len(), 2);
}

#[test]
fn an_answer_that_comes_too_late_is_dropped_and_no_timer_is_left() {
    let mut envoy = served(2);
    let client = envoy.inspect(0, "/flights", &[]);
    live(&mut envoy, 1_100);
    assert_eq!(
        document(&envoy, client).1["silent"],
        json!([number(&envoy, 1)])
    );
    envoy.deliver_all();
    envoy.tick_all();
    assert!(!envoy.tick(0), "no timer without work");
    let document = inspect(&mut envoy, 0, "/flights", &[]);
    assert_eq!(document["silent"], json!([]));
}

#[test]
fn a_caller_that_leaves_is_not_answered() {
    let mut envoy = served(2);
    let log = envoy.log();
    let client = envoy.inspect(0, "/flights", &[]);
    envoy.abort(client);
    envoy.deliver_all();
    live(&mut envoy, 1_100);
    assert_eq!(envoy.clients[client.0].status(), 0);
    assert_eq!(envoy.log(), log);
}

#[test]
fn a_17th_question_at_one_time_is_refused() {
    let mut envoy = served(2);
    let clients: Vec<Client> = (0..17).map(|_| envoy.inspect(0, "/flights", &[])).collect();
    let (status, error) = document(&envoy, clients[16]);
    assert_eq!(status, 503);
    assert_eq!(error, json!({"error": "too many questions are under way"}));
    envoy.deliver_all();
    let answered = clients[..16].iter();
    assert!(
        answered
            .into_iter()
            .all(|client| document(&envoy, *client).0 == 200)
    );
}

#[test]
fn an_unknown_path_or_method_is_refused_with_what_is_accepted() {
    let mut envoy = envoy(1);
    for (method, path, status, error) in [
        ("GET", "/", 404, "/: expected GET /flights"),
        ("POST", "/flights", 405, "expected GET"),
        ("GET", "/flights?x=1", 400, "x: expected no such parameter"),
    ] {
        let client = envoy.control(0, method, path, &[], None);
        let (known, document) = document(&envoy, client);
        assert_eq!(known, status, "{document}");
        let text = document["error"].as_str().unwrap();
        assert!(text.starts_with(error), "{text}");
    }
}
