// SPDX-License-Identifier: Apache-2.0
//! Requests that wait for an answer of the verifier of tokens or of a server: only an answer that admits the request,
//! and that comes while its client waits, opens anything.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use std::fmt::Write as _;

use sluice_core::coalescing::StoreRequest;
use sluice_core::internal_headers::{TOKEN_ISSUER_HEADER, TOKEN_REFUSAL_HEADER};
use sluice_core::metrics::Metric;
use sluice_core::workers::Millis;
use sluice_fake::{Answer, Client, FakeEnvoy, HeaderTexts as _, Stage};

use crate::support::{FIRST, KEY, admission, assert_all_over, document, fill, live};

const FORWARD: &str = r#"{"forward": {"url": "http://checker.test/auth", "copy": ["x-user"], "headers": ["x-user"],
    "cookie": "session"}}"#;
const JWT: &str =
    r#"{"jwt": {"issuer": "https://id.test", "audiences": ["docs"], "jwks": {"installed": "00"}}}"#;
/// A token in the form of one.
const TOKEN: (&str, &str) = ("authorization", "Bearer e30.e30.c2ln");
/// The time limit of a question to the server, in milliseconds.
const PATIENCE: Millis = 2_000;
/// The most questions of a worker at one time.
const MOST: usize = 1_024;

fn rules(schemes: &[&str]) -> String {
    let schemes = schemes.join(", ");
    document(&format!(
        r#""hot": {{"max_bytes": 100000}}, "access": {{"any_of": [{schemes}], "except": ["/9"]}}"#
    ))
}

fn envoy(schemes: &[&str]) -> FakeEnvoy {
    FakeEnvoy::new(&rules(schemes), 2)
}

fn status(envoy: &FakeEnvoy, client: Client) -> u16 {
    envoy.clients[client.0].status()
}

/// Checks that the access of a client could not be checked.
fn assert_unknown(envoy: &FakeEnvoy, client: Client, what: &str) {
    let client = &envoy.clients[client.0];
    let told = (client.status(), client.header("retry-after"));
    assert_eq!(told, (503, Some("1")), "{what}");
    assert_eq!(client.header("cache-control"), Some("no-store"), "{what}");
    let body = String::from_utf8_lossy(client.body());
    assert_eq!(body, "Access could not be checked. Try again.\n", "{what}");
}

/// Checks that a request waits for an answer, and has looked up nothing.
fn assert_asking(envoy: &FakeEnvoy, client: Client) {
    assert_eq!(envoy.stage(client), Stage::Parked);
    assert_eq!(admission(envoy, client), None);
}

#[test]
fn a_client_that_leaves_ends_its_question_and_a_late_answer_opens_nothing() {
    let mut envoy = envoy(&[FORWARD]);
    let client = envoy.get(0, KEY);
    assert_asking(&envoy, client);
    assert_eq!(envoy.outside_questions(0).len(), 1);
    envoy.abort(client);
    envoy.answer_outside_call(0, 200);
    assert_eq!(envoy.fetches.len(), 0);
    for metric in [
        Metric::AccessByForward,
        Metric::AccessRefusedByForward,
        Metric::AccessForwardFailures,
    ] {
        assert_eq!(envoy.counter(metric), 0, "{metric:?}");
    }
    assert_all_over(&mut envoy);
}

#[test]
fn questions_of_clients_that_have_left_make_room_for_others() {
    let mut envoy = envoy(&[FORWARD]);
    let asking: Vec<_> = (0..MOST).map(|_| envoy.get(0, KEY)).collect();
    let refused = envoy.get(0, KEY);
    assert_unknown(&envoy, refused, "one too many");
    // Each worker has its own bound.
    let elsewhere = envoy.get(1, KEY);
    assert_asking(&envoy, elsewhere);
    envoy.abort(asking[MOST - 1]);
    let next = envoy.get(0, KEY);
    assert_asking(&envoy, next);
    // The answer to a question makes room as well.
    envoy.answer_outside_call(0, 403);
    assert_eq!(status(&envoy, asking[0]), 403);
    let last = envoy.get(0, KEY);
    assert_asking(&envoy, last);
    assert_eq!(envoy.counter(Metric::AccessForwardFailures), 1);
    assert_eq!(envoy.fetches.len(), 0);
}

#[test]
fn a_question_without_an_answer_in_time_is_503_and_the_answer_afterwards_is_not_heard() {
    let mut envoy = envoy(&[FORWARD]);
    let failed = envoy.get(0, KEY);
    envoy.fail_outside_call(0);
    assert_unknown(&envoy, failed, "a call that failed");
    let late = envoy.get(0, KEY);
    envoy.advance(PATIENCE - 1);
    assert_asking(&envoy, late);
    envoy.advance(1);
    assert_unknown(&envoy, late, "a late answer");
    assert_eq!(envoy.outside_questions(0).len(), 0);
    envoy.answer_outside_call(0, 200);
    assert_eq!(envoy.fetches.len(), 0);
    assert_eq!(envoy.counter(Metric::AccessForwardFailures), 2);
    let client = envoy.get(0, KEY);
    envoy.advance(PATIENCE - 1);
    envoy.answer_outside_call(0, 200);
    assert_eq!(envoy.clients[client.0].request, Some(StoreRequest::Lead));
    fill(&mut envoy, FIRST);
    assert_eq!(status(&envoy, client), 200);
    assert_all_over(&mut envoy);
}

#[test]
fn headers_that_the_server_may_copy_come_from_its_answer_alone() {
    let mut envoy = envoy(&[FORWARD]);
    let forged = [
        ("x-user", "admin"),
        ("x-user", "root"),
        ("cookie", "session=s; theme=dark"),
    ];
    for (number, told) in [vec![("x-user", "ada")], vec![], vec![("x-other", "1")]]
        .into_iter()
        .enumerate()
    {
        envoy.request(0, "POST", KEY, &forged);
        let asked = envoy.outside_questions(0)[0].1;
        let lines = asked.iter().filter(|(name, _)| *name == "x-user");
        assert_eq!(lines.count(), 0, "the server is told what a client claims");
        assert_eq!(asked.get("cookie"), Some("session=s; theme=dark"));
        envoy.answer_outside_call_with(0, 200, &told, b"");
        let reached = &envoy.fetches[number].headers;
        let lines = reached.iter().filter(|(name, _)| *name == "x-user");
        let lines: Vec<_> = lines.map(|(_, value)| value.to_vec()).collect();
        let copied = told.iter().filter(|(name, _)| *name == "x-user");
        let copied: Vec<_> = copied.map(|(_, value)| value.as_bytes().to_vec()).collect();
        assert_eq!(lines, copied);
        assert_eq!(reached.get("x-other"), None);
        assert_eq!(reached.get("cookie"), Some("theme=dark"));
    }
    // Where no question is asked, a client claims nothing either.
    envoy.request(0, "POST", 9, &forged);
    assert_eq!(envoy.outside_questions(0).len(), 0);
    assert_eq!(envoy.fetches[3].headers.get("x-user"), None);
}

#[test]
fn a_request_that_comes_back_and_a_refresh_ask_no_further_question() {
    let mut envoy = envoy(&[FORWARD]);
    envoy.ttl = 1;
    envoy.directives = ", stale-while-revalidate=60";
    // The end of the body arrives in front of the answer, or behind it.
    for (number, is_early) in [true, false].into_iter().enumerate() {
        let key = KEY + u64::try_from(number).unwrap() * 100;
        let client = envoy.open_ended(0, "GET", key, &[]);
        if is_early {
            envoy.send_body(client, 0, true);
        }
        assert_asking(&envoy, client);
        assert_eq!(envoy.fetches.len(), number);
        envoy.answer_outside_call(0, 200);
        if !is_early {
            envoy.send_body(client, 0, true);
        }
        assert_eq!(envoy.outside_questions(0).len(), 0);
        let fetch = *envoy.open_fetches().last().unwrap();
        fill(&mut envoy, fetch);
        assert_eq!(status(&envoy, client), 200, "{is_early}");
    }
    live(&mut envoy, 2_000);
    let stale = envoy.get(0, KEY);
    envoy.answer_outside_call(0, 200);
    envoy.deliver_all();
    live(&mut envoy, 100);
    envoy.close_all();
    assert_eq!(status(&envoy, stale), 200);
    assert_eq!(envoy.fetches.len(), 3, "a refresh");
    assert_eq!(envoy.outside_questions(0).len(), 0);
    assert_eq!(envoy.counter(Metric::AccessByForward), 3);
}

#[test]
fn a_part_of_a_body_that_arrives_meanwhile_opens_nothing() {
    let mut envoy = envoy(&[FORWARD]);
    let client = envoy.open_ended(0, "POST", KEY, &[("content-length", "20")]);
    envoy.send_body(client, 10, false);
    envoy.send_body(client, 20, true);
    assert_asking(&envoy, client);
    assert_eq!(envoy.fetches.len(), 0);
    envoy.answer_outside_call_with(0, 403, &[], b"no");
    assert_eq!(envoy.fetches.len(), 0);
    let refused = &envoy.clients[client.0];
    assert_eq!((refused.status(), refused.body()), (403, &b"no"[..]));
}

#[test]
fn a_request_joins_others_only_after_its_own_answer() {
    let mut envoy = envoy(&[FORWARD]);
    let leader = envoy.get(0, KEY);
    envoy.answer_outside_call(0, 200);
    assert_eq!(envoy.clients[leader.0].request, Some(StoreRequest::Lead));
    let beside = [envoy.get(0, KEY), envoy.get(0, KEY), envoy.get(1, KEY)];
    assert_eq!(envoy.parked(), 0, "no request waits for the leader");
    envoy.answer(FIRST, Answer::Storable);
    envoy.end(FIRST);
    envoy.commit(KEY);
    for client in beside {
        assert_asking(&envoy, client);
        assert_eq!(envoy.clients[client.0].body(), b"");
    }
    let cookie = [("set-cookie", "a=1")];
    envoy.answer_outside_call_with(0, 200, &cookie, b"");
    envoy.answer_outside_call_with(0, 403, &[], b"no");
    envoy.answer_outside_call(1, 500);
    envoy.deliver_all();
    live(&mut envoy, 2_000);
    for seat in 0..2 {
        while envoy.lookups(seat) > 0 {
            envoy.answer_lookup(seat);
        }
    }
    envoy.deliver_all();
    envoy.close_all();
    let [admitted, refused, unknown] = beside;
    assert_eq!(status(&envoy, admitted), 200);
    assert_eq!(envoy.clients[admitted.0].header("set-cookie"), Some("a=1"));
    assert_eq!(envoy.clients[leader.0].header("set-cookie"), None);
    let refused = &envoy.clients[refused.0];
    assert_eq!((refused.status(), refused.body()), (403, &b"no"[..]));
    assert_unknown(&envoy, unknown, "no verdict");
    assert_eq!(envoy.fetches.len(), 1);
    // A copy in memory is behind the question as well.
    for (status, hits) in [(200, 1), (403, 0)] {
        let before = envoy.counter(Metric::HotHits);
        let client = envoy.get(0, KEY);
        envoy.answer_outside_call(0, status);
        envoy.close_all();
        assert_eq!(envoy.clients[client.0].status(), status);
        assert_eq!(envoy.counter(Metric::HotHits) - before, hits);
    }
}

#[test]
fn an_answer_counts_for_the_rules_under_which_it_was_asked() {
    let mut envoy = envoy(&[FORWARD]);
    let [admitted, refused] = [envoy.get(0, KEY), envoy.get(0, KEY)];
    let cluster = envoy.outside_questions(0)[0].0.to_owned();
    let stricter = FORWARD.replace("/auth", "/strict");
    envoy.reconfigure(&rules(&[&stricter]));
    let next = envoy.get(0, KEY);
    let clusters = envoy.outside_questions(0);
    assert_eq!([clusters[0].0, clusters[1].0], [cluster.as_str(); 2]);
    assert_ne!(clusters[2].0, cluster, "the former server decides");
    envoy.answer_outside_call(0, 200);
    envoy.answer_outside_call(0, 403);
    envoy.answer_outside_call(0, 401);
    let fetch = *envoy.open_fetches().last().unwrap();
    fill(&mut envoy, fetch);
    let statuses = [admitted, refused, next].map(|client| status(&envoy, client));
    assert_eq!(statuses, [200, 403, 401]);
}

#[test]
fn a_callback_without_its_worker_admits_no_request() {
    let mut envoy = envoy(&[FORWARD]);
    let asking = envoy.get(0, KEY);
    envoy.withhold_worker(0, 0..1);
    envoy.answer_outside_call(0, 200);
    assert_unknown(&envoy, asking, "an answer without the worker");
    envoy.withhold_worker(0, 0..1);
    let client = envoy.get(0, KEY);
    assert_unknown(&envoy, client, "a request without the worker");
    assert_eq!(envoy.outside_questions(0).len(), 0);
    assert_eq!(envoy.fetches.len(), 0);
}

#[test]
fn a_worker_that_dies_takes_its_questions_with_it() {
    let mut envoy = envoy(&[FORWARD]);
    let lost = envoy.get(0, KEY);
    envoy.kill(0);
    envoy.revive(0);
    envoy.answer_outside_call(0, 200);
    assert_ne!(status(&envoy, lost), 200);
    assert_eq!(envoy.fetches.len(), 0);
    let next = envoy.get(0, KEY);
    assert_asking(&envoy, next);
    envoy.answer_outside_call(0, 200);
    assert_eq!(envoy.fetches.len(), 1);
}

/// The details with which Envoy refuses a token.
fn refusal(details: &str) -> Vec<(&'static str, String)> {
    let mut text = String::new();
    let _ = write!(text, "jwt_authn_access_denied{{{details}}}");
    vec![(TOKEN_REFUSAL_HEADER, text)]
}

#[test]
fn only_the_proof_of_the_verifier_admits_a_token() {
    let proof = |issuer: &str| vec![(TOKEN_ISSUER_HEADER, issuer.to_owned())];
    let cases = [
        (200, proof("https://id.test"), 200),
        (200, proof("https://other.test"), 503),
        (200, vec![], 503),
        (
            200,
            [proof("https://id.test"), proof("https://id.test")].concat(),
            503,
        ),
        (401, refusal("Jwt_is_expired"), 401),
        (401, refusal("Jwks_remote_fetch_is_failed"), 503),
        (401, vec![], 503),
        (503, proof("https://id.test"), 503),
    ];
    for (number, (answered, headers, expected)) in cases.into_iter().enumerate() {
        let mut envoy = envoy(&[JWT]);
        let forged = [TOKEN, (TOKEN_ISSUER_HEADER, "https://id.test")];
        let client = envoy.request(0, "GET", KEY, &forged);
        assert_asking(&envoy, client);
        let (cluster, asked) = envoy.outside_questions(0)[0];
        assert!(cluster.starts_with("sluice_jwt_"), "{cluster}");
        assert_eq!(asked.get("authorization"), Some(TOKEN.1));
        assert_eq!(asked.get(TOKEN_ISSUER_HEADER), None);
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        envoy.answer_outside_call_with(0, answered, &headers, b"");
        if expected == 200 {
            assert_eq!(envoy.fetches[0].headers.get("authorization"), None);
            fill(&mut envoy, FIRST);
        }
        assert_eq!(status(&envoy, client), expected, "case {number}");
        assert_eq!(envoy.fetches.len(), usize::from(expected == 200));
        assert_all_over(&mut envoy);
    }
    let mut envoy = envoy(&[JWT]);
    let without = envoy.get(0, KEY);
    assert_eq!(status(&envoy, without), 401, "nothing is asked");
    assert_eq!(envoy.outside_questions(0).len(), 0);
}

#[test]
fn the_server_is_asked_after_the_verifier_and_its_refusal_is_final_only_if_the_token_was_judged() {
    for (judged, refused) in [(true, 403), (false, 503)] {
        for admits in [true, false] {
            let mut envoy = envoy(&[JWT, FORWARD]);
            let client = envoy.request(0, "GET", KEY, &[TOKEN]);
            if judged {
                let details = refusal("Jwt_is_expired");
                envoy.answer_outside_call_with(0, 401, &[(details[0].0, &details[0].1)], b"");
            } else {
                envoy.fail_outside_call(0);
            }
            assert_asking(&envoy, client);
            let questions = envoy.outside_questions(0);
            assert_eq!(questions.len(), 1);
            assert!(questions[0].0.starts_with("sluice_forward_"));
            envoy.answer_outside_call(0, if admits { 200 } else { 403 });
            if admits {
                fill(&mut envoy, FIRST);
            }
            let expected = if admits { 200 } else { refused };
            assert_eq!(status(&envoy, client), expected, "{judged} {admits}");
            assert_all_over(&mut envoy);
        }
    }
}
