// SPDX-License-Identifier: Apache-2.0
//! Names of responses in the store, and the handling of two keys that have the same name nevertheless.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::coalescing::StoreRequest;
use sluice_core::metrics::Metric;
use sluice_fake::{Answer, Client, Ending, FakeEnvoy, FetchId, HeaderTexts as _, Stage};

use crate::support::{FIRST, KEY, assert_all_over, document, envoy, fill};

/// Path whose file replaces the file of [`KEY`].
const OTHER: u64 = KEY + 100;
const SECRET: &str = "000102030405060708090a0b0c0d0e0f";

/// Name of the first response in the store.
fn name_in(environment: &[(&str, &str)]) -> String {
    let mut envoy = FakeEnvoy::in_environment(&document(""), 2, environment);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    let hit = envoy.get(1, KEY);
    envoy.close_all();
    assert_eq!(envoy.clients[hit.0].status(), 200);
    assert_eq!(envoy.fetches.len(), 1, "one name on all workers");
    let fetch = &envoy.fetches[FIRST.0];
    assert_eq!(fetch.headers.get(":path"), Some(format!("/{KEY}").as_str()));
    let [_, hash] = *fetch.cache_key.split('#').collect::<Vec<_>>() else {
        unreachable!("{fetch:?}")
    };
    let told = [format!("{:?}", fetch.headers)].into_iter();
    let told = told.chain(
        envoy
            .clients
            .iter()
            .map(|client| format!("{:?}", client.response)),
    );
    for message in told {
        assert!(
            !message.contains(hash) && !message.contains(SECRET),
            "{message}"
        );
    }
    let name = fetch.cache_key.clone();
    assert_all_over(&mut envoy);
    name
}

#[test]
fn a_name_depends_on_the_secret_of_the_environment_and_on_nothing_else() {
    let named = |secret| name_in(&[("SLUICE_CACHE_SECRET", secret), ("HOME", "/")]);
    assert_eq!(named(SECRET), named(SECRET));
    assert_ne!(named(SECRET), named("000102030405060708090a0b0c0d0e10"));
}

#[test]
fn without_a_secret_all_workers_make_up_one_and_a_wrong_one_is_told_of() {
    let without = name_in(&[]);
    assert_ne!(without, name_in(&[("SLUICE_CACHE_SECRET", SECRET)]));
    let wrong = [("SLUICE_CACHE_SECRET", "not-a-secret")];
    assert_eq!(name_in(&wrong), without, "the same random numbers");
    let envoy = FakeEnvoy::in_environment(&document(""), 1, &wrong);
    let log = envoy.log().concat();
    assert!(
        log.contains("SLUICE_CACHE_SECRET: expected 32 hexadecimal digits"),
        "{log}"
    );
    assert!(!log.contains("not-a-secret"), "{log}");
}

/// Workers under a policy with these sections, with a store that has the file of another key for [`KEY`].
fn collided(workers: usize, sections: &str) -> FakeEnvoy {
    let mut envoy = FakeEnvoy::new(&document(sections), workers);
    for key in [KEY, OTHER] {
        envoy.get(0, key);
        let fetch = FetchId(envoy.fetches.len() - 1);
        fill(&mut envoy, fetch);
    }
    envoy.collide(KEY, OTHER);
    envoy
}

/// Answers all requests to the origin with a typed object.
fn answer_all(envoy: &mut FakeEnvoy) {
    answer_as(envoy, &[("content-type", "text/plain")]);
}

fn answer_as(envoy: &mut FakeEnvoy, headers: &[(&str, &str)]) {
    loop {
        while envoy.lookups(0) > 0 {
            envoy.answer_lookup(0);
        }
        let Some(fetch) = envoy.open_fetches().first().copied() else {
            break;
        };
        let version = fetch.0.to_string();
        let mut all = vec![
            ("cache-control", "max-age=3600"),
            ("etag", "\"v1\""),
            ("x-version", version.as_str()),
        ];
        all.extend(headers);
        let mut body = format!("{:>8}", fetch.0).into_bytes();
        body.resize(1_024, b'.');
        envoy.answer_with(fetch, 200, &all, &body);
        envoy.end(fetch);
        envoy.deliver_all();
    }
    envoy.close_all();
}

fn assert_served(envoy: &FakeEnvoy, client: Client, fetch: FetchId) {
    let client = &envoy.clients[client.0];
    assert_eq!(client.stage, Stage::Over(Ending::Served), "{client:?}");
    assert_eq!((client.status(), client.body().len()), (200, 1_024));
    assert_eq!(envoy.fetches[fetch.0].key, KEY);
}

#[test]
fn who_finds_the_response_of_another_key_gets_its_own_and_later_requests_go_around() {
    for sections in [
        "",
        r#""coalesce": {"enabled": false}"#,
        r#""hot": {"max_bytes": 100000}"#,
    ] {
        let mut envoy = collided(1, sections);
        let finder = envoy.get(0, KEY);
        assert_eq!(envoy.stage(finder), Stage::Held, "{sections}");
        assert_eq!(envoy.open_fetches(), [FetchId(2)], "{sections}");
        answer_all(&mut envoy);
        assert_served(&envoy, finder, FetchId(2));
        assert_eq!(envoy.counter(Metric::KeyMismatches), 1);
        for fetch in [FetchId(3), FetchId(4)] {
            let later = envoy.get(0, KEY);
            answer_all(&mut envoy);
            assert_eq!(
                envoy.clients[later.0].request,
                Some(StoreRequest::Bypass),
                "{sections}"
            );
            assert_served(&envoy, later, fetch);
        }
        assert_eq!(envoy.counter(Metric::KeyMismatches), 1, "{sections}");
        let other = envoy.get(0, OTHER);
        envoy.close_all();
        assert_eq!(envoy.clients[other.0].status(), 200);
        assert_eq!(envoy.fetches.len(), 5, "the other key is a hit: {sections}");
        assert_all_over(&mut envoy);
    }
}

#[test]
fn finders_of_one_worker_share_a_call_and_those_who_wait_go_around() {
    let mut envoy = collided(2, "");
    // This worker remembers nothing about the key, so that one request leads, and the others wait for it.
    let clients: Vec<_> = (0..3).map(|_| envoy.get(1, KEY)).collect();
    answer_all(&mut envoy);
    for client in clients {
        assert_eq!(envoy.stage(client), Stage::Over(Ending::Served));
    }
    assert_eq!(envoy.counter(Metric::KeyMismatches), 1);
    assert_all_over(&mut envoy);
}

#[test]
fn a_range_of_what_the_file_of_another_key_hides_is_cut_from_the_call() {
    let mut envoy = collided(1, "");
    let range = envoy.range(0, KEY);
    answer_all(&mut envoy);
    let client = &envoy.clients[range.0];
    assert_eq!(
        (client.status(), client.body().len()),
        (206, 10),
        "{client:?}"
    );
    assert_all_over(&mut envoy);
}

#[test]
fn where_the_call_brings_nothing_the_finder_is_told_to_try_again() {
    let mut envoy = collided(1, "");
    let finder = envoy.get(0, KEY);
    envoy.answer(FetchId(2), Answer::Failed(502));
    envoy.end(FetchId(2));
    envoy.close_all();
    let client = &envoy.clients[finder.0];
    assert_eq!(client.status(), 503, "{client:?}");
    assert_eq!(client.header("retry-after"), Some("1"));
    assert_eq!(client.header("cache-control"), Some("no-store"));
    let later = envoy.get(0, KEY);
    answer_all(&mut envoy);
    assert_served(&envoy, later, FetchId(3));
    assert_all_over(&mut envoy);
}

#[test]
fn an_object_without_a_media_type_is_not_given_one() {
    let mut envoy = collided(1, "");
    let finder = envoy.get(0, KEY);
    answer_as(&mut envoy, &[]);
    assert_eq!(envoy.clients[finder.0].status(), 503);
    let later = envoy.get(0, KEY);
    answer_as(&mut envoy, &[]);
    let later = &envoy.clients[later.0];
    assert_eq!((later.status(), later.header("content-type")), (200, None));
}

#[test]
fn a_head_that_finds_the_headers_of_another_key_is_told_to_try_again() {
    let mut envoy = envoy(1);
    for key in [KEY, OTHER] {
        envoy.head(0, key);
        envoy.answer_lookup(0);
        let fetch = FetchId(envoy.fetches.len() - 1);
        fill(&mut envoy, fetch);
    }
    envoy.collide(KEY, OTHER);
    let finder = envoy.head(0, KEY);
    answer_all(&mut envoy);
    let client = &envoy.clients[finder.0];
    assert_eq!(client.status(), 503, "{client:?}");
    assert_eq!(client.header("retry-after"), Some("1"));
    let later = envoy.head(0, KEY);
    answer_all(&mut envoy);
    assert_eq!(envoy.clients[later.0].status(), 200);
    assert_all_over(&mut envoy);
}
