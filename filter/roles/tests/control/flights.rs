// SPDX-License-Identifier: Apache-2.0
//! The flights that are under way.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use serde_json::json;
use sluice_fake::{Answer, FakeEnvoy};

use super::{answer_of, inspect};
use crate::support::{FIRST, KEY, envoy, fill};

#[test]
fn a_flight_is_told_by_the_worker_that_leads_and_by_those_that_follow() {
    let mut envoy = envoy(3);
    envoy.get(0, KEY);
    envoy.advance(300);
    envoy.get(0, KEY);
    envoy.get(1, KEY);
    envoy.get(1, KEY);
    envoy.advance(100);
    let document = inspect(&mut envoy, 2, "/flights", &[]);
    let led = json!([{
        "site": "", "key": "/7", "query": false, "since_ms": 400, "bytes": 0, "length": null,
        "status": null, "waiting": 1, "leader": "here", "client": true,
    }]);
    assert_eq!(answer_of(&envoy, &document, 0)["flights"], led);
    let followed = json!([{
        "site": "", "key": "/7", "query": false, "since_ms": 100, "bytes": null, "length": null,
        "status": null, "waiting": 2, "leader": "other worker", "client": false,
    }]);
    assert_eq!(answer_of(&envoy, &document, 1)["flights"], followed);
    assert_eq!(answer_of(&envoy, &document, 2)["flights"], json!([]));
    fill(&mut envoy, FIRST);
    let document = inspect(&mut envoy, 2, "/flights", &[]);
    assert_eq!(answer_of(&envoy, &document, 0)["flights"], json!([]));
}

#[test]
fn the_status_and_the_bytes_of_a_fill_are_told_while_it_runs() {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    envoy.answer(FIRST, Answer::Storable);
    let document = inspect(&mut envoy, 0, "/flights", &[]);
    let before = answer_of(&envoy, &document, 0)["flights"][0].clone();
    assert_eq!(before["status"], 200);
    envoy.progress(FIRST);
    let document = inspect(&mut envoy, 0, "/flights", &[]);
    let after = answer_of(&envoy, &document, 0)["flights"][0].clone();
    assert!(
        after["bytes"].as_u64() > before["bytes"].as_u64(),
        "{after}"
    );
}

#[test]
fn the_query_of_a_url_is_not_told() {
    let mut envoy = envoy(1);
    envoy.request(0, "GET", KEY, &[(":path", "/7?token=secret")]);
    let document = inspect(&mut envoy, 0, "/flights", &[]);
    let flight = &answer_of(&envoy, &document, 0)["flights"][0];
    assert_eq!(
        (&flight["key"], &flight["query"]),
        (&json!("/7"), &json!(true))
    );
    assert!(!document.to_string().contains("secret"));
}

#[test]
fn an_answer_that_is_too_long_has_the_flights_with_most_waiting_requests() {
    let mut envoy = envoy(2);
    let get = |envoy: &mut FakeEnvoy, number: u64| {
        let path = format!("/{number}/{}", "x".repeat(900));
        envoy.request(0, "GET", KEY, &[(":path", &path)]);
    };
    for number in 0..300 {
        get(&mut envoy, number);
    }
    get(&mut envoy, 299);
    let document = inspect(&mut envoy, 1, "/flights", &[]);
    let answer = answer_of(&envoy, &document, 0);
    assert_eq!(answer["cut"], true);
    let flights = answer["flights"].as_array().unwrap();
    assert!((200..300).contains(&flights.len()), "{}", flights.len());
    assert_eq!(flights[0]["waiting"], 1);
}
