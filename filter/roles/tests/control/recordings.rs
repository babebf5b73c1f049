// SPDX-License-Identifier: Apache-2.0
//! The requests that workers record for questions: their decisions, and their heaviest URLs.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use serde_json::{Value, json};
use sluice_fake::{Answer, Client, FakeEnvoy};

use super::{answer_of, inspect};
use crate::support::{FIRST, KEY, document, envoy, fill, live, plain};

/// How long a recording continues after a question, in milliseconds.
const RECORDING: u64 = 10_000;

/// Asks the first worker for the decisions of all workers from these numbers on. Returns the answer of the worker at
/// `seat`.
fn decisions(envoy: &mut FakeEnvoy, parameters: &str, seat: usize) -> Value {
    let document = inspect(envoy, 0, &format!("/decisions{parameters}"), &[]);
    answer_of(envoy, &document, seat).clone()
}

/// Asks the first worker for the heaviest URLs. Returns those of the worker at `seat`.
fn urls(envoy: &mut FakeEnvoy, parameters: &str, seat: usize) -> Value {
    let document = inspect(envoy, 0, &format!("/urls{parameters}"), &[]);
    answer_of(envoy, &document, seat)["urls"].clone()
}

fn count(list: &Value) -> usize {
    list.as_array().unwrap().len()
}

/// The parameter `after` with a number for each of two workers.
fn after(envoy: &FakeEnvoy, numbers: [u64; 2]) -> String {
    let places = [0, 1].map(|seat| usize::from(super::number(envoy, seat)));
    let mut list = vec![String::new(); places[0].max(places[1]) + 1];
    for (place, number) in places.into_iter().zip(numbers) {
        list[place] = number.to_string();
    }
    format!("?after={}", list.join(","))
}

/// Two workers that know each other, with a stored object.
fn filled() -> FakeEnvoy {
    let mut envoy = envoy(2);
    plain(&mut envoy, 0);
    fill(&mut envoy, FIRST);
    plain(&mut envoy, 1);
    envoy.close_all();
    envoy
}

/// Sends a GET for this path, and ends it.
fn get(envoy: &mut FakeEnvoy, seat: usize, path: &str) -> Client {
    let client = envoy.request(seat, "GET", KEY, &[(":path", path)]);
    envoy.close_all();
    client
}

#[test]
fn decisions_are_recorded_from_the_first_question_on_by_all_workers() {
    let mut envoy = filled();
    let first = decisions(&mut envoy, "", 1);
    assert_eq!((&first["next"], &first["lost"]), (&json!(0), &json!(0)));
    assert_eq!(count(&first["decisions"]), 0);
    for seat in [0, 1, 1] {
        get(&mut envoy, seat, "/7");
    }
    let list = after(&envoy, [0, 0]);
    for (seat, expected) in [(0, 1), (1, 2)] {
        let answer = decisions(&mut envoy, &list, seat);
        assert_eq!(answer["next"], expected);
        assert_eq!(count(&answer["decisions"]), expected);
        let decision = &answer["decisions"][0];
        for (field, value) in [
            ("site", json!("")),
            ("host", json!("edge.test")),
            ("method", json!("GET")),
            ("path", json!("/7")),
            ("status", json!(200)),
            ("result", json!("hit")),
            ("waited_ms", Value::Null),
            ("origin_ms", Value::Null),
            ("not_stored", Value::Null),
        ] {
            assert_eq!(decision[field], value, "{field}");
        }
        assert!(decision["bytes"].as_u64().unwrap() > 0);
    }
    let list = after(&envoy, [1, 2]);
    assert_eq!(count(&decisions(&mut envoy, &list, 1)["decisions"]), 0);
}

#[test]
fn recording_ends_ten_seconds_after_the_last_question_and_leaves_no_timer() {
    let mut envoy = filled();
    urls(&mut envoy, "", 1);
    live(&mut envoy, RECORDING - 1_000);
    get(&mut envoy, 1, "/7");
    let found = urls(&mut envoy, "", 1);
    assert_eq!(found[0]["requests"], 1);
    live(&mut envoy, RECORDING - 10);
    get(&mut envoy, 1, "/7");
    assert!(envoy.worker(1).unwrap().recorder.is_on());
    live(&mut envoy, 1_010);
    assert!(!envoy.worker(1).unwrap().recorder.is_on());
    for seat in [0, 1] {
        assert!(!envoy.tick(seat), "no timer without work");
    }
    get(&mut envoy, 1, "/7");
    assert_eq!(count(&urls(&mut envoy, "", 1)), 0, "a new recording");
}

#[test]
fn the_ring_keeps_the_last_requests_and_tells_how_many_are_lost() {
    let kept =
        document(r#""hot": {"max_bytes": 0}"#).replace("\"hints\"", "\"decisions\": 3, \"hints\"");
    let mut envoy = FakeEnvoy::new(&kept, 2);
    plain(&mut envoy, 0);
    fill(&mut envoy, FIRST);
    for path in ["/7?1", "/7?2", "/7?3", "/7?4"] {
        let client = get(&mut envoy, 1, path);
        envoy.abort(client);
    }
    let list = after(&envoy, [0, 0]);
    let answer = decisions(&mut envoy, &format!("{list}&query=1"), 1);
    assert_eq!((&answer["next"], &answer["lost"]), (&json!(4), &json!(1)));
    let found = answer["decisions"].as_array().unwrap();
    let paths: Vec<_> = found.iter().map(|decision| &decision["path"]).collect();
    assert_eq!(paths, ["/7?2", "/7?3", "/7?4"]);
    let whole = decisions(&mut envoy, "?all=1", 1);
    assert_eq!((count(&whole["decisions"]), &whole["lost"]), (3, &json!(0)));
    live(&mut envoy, RECORDING + 1_000);
    let later = decisions(&mut envoy, "?all=1", 1);
    assert_eq!(count(&later["decisions"]), 3, "without a question");
}

#[test]
fn each_kind_of_request_has_its_result_and_its_times() {
    let mut envoy = envoy(1);
    decisions(&mut envoy, "", 0);
    let leader = plain(&mut envoy, 0);
    envoy.advance(20);
    let follower = plain(&mut envoy, 0);
    let gone = plain(&mut envoy, 0);
    envoy.advance(30);
    envoy.abort(gone);
    fill(&mut envoy, FIRST);
    envoy.request(0, "GET", 8, &[("x-request-id", "r-1")]);
    let unstored = envoy.open_fetches()[0];
    envoy.advance(70);
    envoy.answer(unstored, Answer::Uncacheable);
    envoy.end(unstored);
    envoy.close_all();
    envoy.request(0, "POST", 9, &[]);
    let passed = envoy.open_fetches()[0];
    envoy.advance(15);
    envoy.answer(passed, Answer::Storable);
    envoy.end(passed);
    envoy.close_all();
    envoy.request(0, "GET", KEY, &[(":path", "/a/../../b%00")]);
    envoy.close_all();
    assert_eq!(
        [leader, follower].map(|client| envoy.clients[client.0].status()),
        [200; 2]
    );
    let answer = decisions(&mut envoy, "?after=,0,0&all=1", 0);
    let found = answer["decisions"].as_array().unwrap();
    let fact = |path: &str, result: &str, field: &str| {
        let mut found = found.iter();
        let is_this = |decision: &&Value| decision["path"] == path && decision["result"] == result;
        found.find(is_this).map(|decision| decision[field].clone())
    };
    assert_eq!(fact("/7", "miss", "origin_ms"), Some(json!(50)), "{answer}");
    assert_eq!(fact("/7", "miss", "waited_ms"), Some(Value::Null));
    let waited = fact("/7", "collapsed", "waited_ms").unwrap();
    assert!(waited.as_u64().unwrap() >= 30, "{answer}");
    let left = found.iter().find(|decision| decision["status"].is_null());
    assert_eq!(left.unwrap()["waited_ms"], 30, "{answer}");
    assert_eq!(fact("/8", "miss", "request_id"), Some(json!("r-1")));
    assert_eq!(fact("/8", "miss", "origin_ms"), Some(json!(70)));
    assert_eq!(fact("/8", "miss", "not_stored"), Some(json!("private")));
    assert_eq!(fact("/9", "passed", "origin_ms"), Some(json!(15)));
    assert_eq!(fact("/9", "passed", "method"), Some(json!("POST")));
    assert_eq!(
        fact("/a/../../b%00", "rejected", "status"),
        Some(json!(400))
    );
}

#[test]
fn a_request_that_is_sent_back_to_edge_is_recorded_once() {
    let mut envoy = envoy(1);
    decisions(&mut envoy, "", 0);
    let outer = envoy.open_ended(0, "GET", KEY, &[]);
    envoy.send_body(outer, 0, true);
    fill(&mut envoy, FIRST);
    let answer = decisions(&mut envoy, "?all=1", 0);
    assert_eq!(count(&answer["decisions"]), 1, "{answer}");
    let decision = &answer["decisions"][0];
    assert_eq!(
        (&decision["path"], &decision["result"]),
        (&json!("/7"), &json!("miss"))
    );
}

#[test]
fn a_request_is_recorded_with_its_site_and_the_host_that_it_names() {
    let site = |name: &str, host: &str| json!({"name": name, "hosts": [host], "policy": {"origin": {"kind": "http"}}});
    let sites = json!([site("one", "one.test"), site("two", "two.test")]);
    let document = json!({"edge": {"purge": {"warm": false}}, "sites": sites});
    let mut envoy = FakeEnvoy::new(&document.to_string(), 1);
    decisions(&mut envoy, "", 0);
    for (host, site, status) in [
        ("two.test:8080", json!("two"), json!(200)),
        ("none.test", Value::Null, json!(421)),
    ] {
        envoy.request(0, "GET", KEY, &[(":authority", host)]);
        for fetch in envoy.open_fetches() {
            fill(&mut envoy, fetch);
        }
        let answer = decisions(&mut envoy, "?all=1", 0);
        let decision = answer["decisions"].as_array().unwrap().last().unwrap();
        assert_eq!(
            (&decision["host"], &decision["site"], &decision["status"]),
            (&json!(host), &site, &status)
        );
    }
    let found = urls(&mut envoy, "", 0);
    assert_eq!(found, json!([]), "only decisions are recorded");
    let document = inspect(&mut envoy, 0, "/origins", &[]);
    let origins = &answer_of(&envoy, &document, 0)["origins"];
    let named = ["one", "two"].map(|site| json!({"site": site, "last_error": null}));
    assert_eq!(origins, &json!(named));
}

#[test]
fn a_hot_hit_is_recorded_with_its_bytes() {
    let mut envoy = FakeEnvoy::new(&document(r#""hot": {"max_bytes": 100000}"#), 1);
    plain(&mut envoy, 0);
    fill(&mut envoy, FIRST);
    for _ in 0..2 {
        plain(&mut envoy, 0);
        envoy.close_all();
    }
    decisions(&mut envoy, "", 0);
    let hot = plain(&mut envoy, 0);
    envoy.close_all();
    let body = envoy.clients[hot.0].body().len();
    let status = envoy.clients[hot.0]
        .header("cache-status")
        .unwrap_or_default();
    assert!(status.contains("detail=hot"), "{status}");
    let answer = decisions(&mut envoy, "?all=1", 0);
    let decision = &answer["decisions"][0];
    assert_eq!(
        (&decision["result"], &decision["bytes"]),
        (&json!("hit"), &json!(body))
    );
}

#[test]
fn neither_queries_nor_credentials_are_told() {
    let mut envoy = envoy(1);
    urls(&mut envoy, "", 0);
    urls(&mut envoy, "?query=1", 0);
    decisions(&mut envoy, "", 0);
    let path = "/7?q=private&X-Amz-Signature=secret-1&token=secret-2";
    let headers = [
        (":path", path),
        ("authorization", "Bearer secret-3"),
        ("cookie", "id=secret-4"),
    ];
    let client = envoy.request(0, "GET", KEY, &headers);
    let fetch = envoy.open_fetches()[0];
    let cookie = [("set-cookie", "id=secret-5")];
    envoy.answer_with(fetch, 500, &cookie, b"secret-6");
    envoy.end(fetch);
    envoy.close(client);
    for question in ["/urls", "/decisions?all=1", "/origins", "/flights"] {
        let document = inspect(&mut envoy, 0, question, &[]).to_string();
        for hidden in ["private", "secret"] {
            assert!(!document.contains(hidden), "{question}: {document}");
        }
    }
    for question in ["/urls?query=1", "/decisions?all=1&query=1"] {
        let document = inspect(&mut envoy, 0, question, &[]).to_string();
        assert!(
            document.contains("q=private&X-Amz-Signature=***&token=***"),
            "{document}"
        );
        assert!(!document.contains("secret"), "{question}: {document}");
    }
}

#[test]
fn the_urls_of_each_worker_have_their_requests_and_times() {
    let mut envoy = envoy(2);
    plain(&mut envoy, 1);
    envoy.close_all();
    urls(&mut envoy, "", 1);
    for _ in 0..2 {
        envoy.request(1, "GET", 8, &[(":path", "/8?x=1")]);
        let fetch = *envoy.open_fetches().last().unwrap();
        envoy.advance(40);
        envoy.answer(fetch, Answer::Uncacheable);
        envoy.end(fetch);
        envoy.close_all();
    }
    let found = urls(&mut envoy, "", 1);
    let url = &found[0];
    for (field, value) in [
        ("path", json!("/8")),
        ("query", json!(true)),
        ("requests", json!(2)),
        ("misses", json!(2)),
        ("origin_ms", json!(80)),
        ("origin_max_ms", json!(40)),
        ("origin_p50_ms", json!(40)),
        ("last", json!("hit_for_miss: private")),
    ] {
        assert_eq!(url[field], value, "{field}: {found}");
    }
    assert_eq!(count(&urls(&mut envoy, "", 0)), 0);
}

#[test]
fn the_last_error_of_an_origin_is_told_with_the_buckets_words() {
    let origin = r#""origin": {"kind": "bucket", "bucket": "edge", "addressing": "virtual_host", "authority": "edge.test"}"#;
    let mut envoy = FakeEnvoy::new(&format!("{{{origin}, \"purge\": {{\"warm\": false}}}}"), 1);
    let document = inspect(&mut envoy, 0, "/origins", &[]);
    let origins = &answer_of(&envoy, &document, 0)["origins"];
    assert_eq!(origins, &json!([{"site": "", "last_error": null}]));
    for (key, status, code) in [(7, 503, "SlowDown"), (8, 404, "NoSuchKey")] {
        envoy.get(0, key);
        let fetch = *envoy.open_fetches().last().unwrap();
        let error = (sluice_core::internal_headers::BUCKET_ERROR_HEADER, code);
        envoy.answer_with(
            fetch,
            status,
            &[error, ("x-amz-request-id", "4442587F")],
            b"<Error/>",
        );
        envoy.end(fetch);
        envoy.close_all();
    }
    let document = inspect(&mut envoy, 0, "/origins", &[]);
    let error = &answer_of(&envoy, &document, 0)["origins"][0]["last_error"];
    for (field, value) in [
        ("status", json!(503)),
        ("code", json!("SlowDown")),
        ("request_id", json!("4442587F")),
        ("path", json!("/7")),
    ] {
        assert_eq!(error[field], value, "{field}: {error}");
    }
    assert!(error["at_ms"].as_u64().unwrap() > 0);
}
