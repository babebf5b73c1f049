// SPDX-License-Identifier: Apache-2.0
//! Failures of the origin that a request's own headers may have caused: the first failure is for this request alone,
//! and the second in a row is shared.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_core::internal_headers::FAILURE_HEADER;
use sluice_core::metrics::Metric;
use sluice_fake::{Answer, Client, Ending, FakeEnvoy, FetchId, Stage};

use crate::support::{
    FIRST, KEY, admission, assert_all_over, document, envoy, fill, live, plain, release,
};

/// A client whose header the application cannot read.
fn bad(envoy: &mut FakeEnvoy, seat: usize) -> Client {
    envoy.request(seat, "GET", KEY, &[("accept-language", "%")])
}

/// Answers with a complete error response, and delivers all messages.
fn fail(envoy: &mut FakeEnvoy, fetch: FetchId, status: u16, headers: &[(&str, &str)]) {
    envoy.answer_with(fetch, status, headers, b"an error");
    envoy.end(fetch);
    envoy.commit(KEY);
    envoy.deliver_all();
    envoy.close_all();
}

fn statuses(envoy: &FakeEnvoy, clients: &[Client]) -> Vec<u16> {
    let status = |client: &Client| match envoy.stage(*client) {
        Stage::Over(Ending::Failed(status)) => status,
        _ => envoy.clients[client.0].status(),
    };
    clients.iter().map(status).collect()
}

#[test]
fn the_first_failure_of_a_leader_with_headers_of_its_own_is_nobody_elses() {
    for status in [500, 503, 504, 599] {
        let mut envoy = envoy(2);
        let leader = bad(&mut envoy, 0);
        let others = [envoy.get(0, KEY), envoy.get(0, KEY), envoy.get(1, KEY)];
        fail(&mut envoy, FIRST, status, &[]);
        assert_eq!(statuses(&envoy, &[leader]), [status]);
        assert_eq!(
            release(&envoy, others[0]),
            Some(NextStep::Send(StoreRequest::Lead))
        );
        assert_eq!(envoy.parked(), 2, "one request at a time");
        fill(&mut envoy, FetchId(1));
        assert_eq!(statuses(&envoy, &others), [200; 3]);
        assert_eq!(envoy.fetches.len(), 2);
        assert_all_over(&mut envoy);
    }
}

#[test]
fn a_failure_that_the_origin_has_everybody_keep_is_for_all_from_the_first_on() {
    let cacheable = [("cache-control", "max-age=60")];
    let mut envoy = envoy(2);
    let leader = bad(&mut envoy, 0);
    let others = [envoy.get(0, KEY), envoy.get(0, KEY), envoy.get(1, KEY)];
    envoy.answer_with(FIRST, 500, &cacheable, b"an error");
    fill(&mut envoy, FIRST);
    assert_eq!(statuses(&envoy, &[leader]), [500]);
    assert_eq!(statuses(&envoy, &others), [500; 3]);
    assert_eq!(envoy.fetches.len(), 1);
    assert_all_over(&mut envoy);
}

#[test]
fn where_all_others_wait_on_another_worker_one_of_them_leads() {
    let mut envoy = envoy(2);
    bad(&mut envoy, 0);
    let others = [envoy.get(1, KEY), envoy.get(1, KEY)];
    fail(&mut envoy, FIRST, 500, &[]);
    assert_eq!(
        release(&envoy, others[0]),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    fill(&mut envoy, FetchId(1));
    assert_eq!(statuses(&envoy, &others), [200; 2]);
    assert_all_over(&mut envoy);
}

#[test]
fn a_crowd_costs_an_origin_that_is_down_two_requests() {
    for seats in [1, 2] {
        let mut envoy = envoy(2);
        let clients: Vec<_> = (0..200)
            .map(|number| envoy.get(number % seats, KEY))
            .collect();
        let mut fetch = 0;
        while fetch < envoy.fetches.len() {
            fail(&mut envoy, FetchId(fetch), 503, &[]);
            fetch += 1;
        }
        assert_eq!(envoy.fetches.len(), 2, "{seats} workers");
        assert_eq!(envoy.parked(), 0);
        assert_eq!(statuses(&envoy, &clients), [503; 200]);
        assert_all_over(&mut envoy);
    }
}

#[test]
fn the_only_request_of_its_worker_passes_its_failure_on_and_the_next_one_is_for_all() {
    let mut envoy = envoy(2);
    let first = envoy.get(0, KEY);
    let others = [envoy.get(1, KEY), envoy.get(1, KEY), envoy.get(1, KEY)];
    fail(&mut envoy, FIRST, 503, &[]);
    fail(&mut envoy, FetchId(1), 503, &[]);
    assert_eq!(envoy.fetches.len(), 2);
    assert_eq!(statuses(&envoy, &[first]), [503]);
    assert_eq!(statuses(&envoy, &others), [503; 3]);
    assert_all_over(&mut envoy);
}

#[test]
fn a_failure_that_no_header_can_have_caused_is_shared_at_once() {
    let bucket = r#"{"origin": {"kind": "bucket", "bucket": "site", "authority": "s3.test"}, "cache": {"ttl": {"5xx": "0s"}}, "purge": {"warm": false}}"#;
    for mut envoy in [envoy(1), FakeEnvoy::new(bucket, 1)] {
        plain(&mut envoy, 0);
        let others: Vec<_> = (0..20).map(|_| envoy.get(0, KEY)).collect();
        fail(&mut envoy, FIRST, 503, &[]);
        assert_eq!(envoy.fetches.len(), 1);
        assert_eq!(statuses(&envoy, &others), [503; 20]);
    }
}

#[test]
fn a_request_that_never_arrived_has_caused_nothing() {
    let refused = "upstream_reset_before_response_started{remote_connection_failure|refused}";
    let mut envoy = envoy(1);
    bad(&mut envoy, 0);
    let others = [envoy.get(0, KEY), envoy.get(0, KEY)];
    fail(&mut envoy, FIRST, 503, &[(FAILURE_HEADER, refused)]);
    assert_eq!(envoy.fetches.len(), 1);
    assert_eq!(statuses(&envoy, &others), [503; 2]);
}

#[test]
fn who_leads_next_does_not_send_the_same_headers() {
    let mut envoy = envoy(1);
    bad(&mut envoy, 0);
    let same = [bad(&mut envoy, 0), bad(&mut envoy, 0)];
    let other = envoy.get(0, KEY);
    fail(&mut envoy, FIRST, 500, &[]);
    assert_eq!(
        release(&envoy, other),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    fill(&mut envoy, FetchId(1));
    assert_eq!(statuses(&envoy, &same), [200; 2]);
    assert_eq!(envoy.fetches.len(), 2);
}

#[test]
fn many_failures_of_one_client_reach_nobody_who_waits() {
    let mut envoy = envoy(1);
    envoy.directives = ", no-cache";
    for _ in 0..50 {
        let failing = bad(&mut envoy, 0);
        let others = [envoy.get(0, KEY), bad(&mut envoy, 0), envoy.get(0, KEY)];
        let fetch = FetchId(envoy.fetches.len() - 1);
        fail(&mut envoy, fetch, 500, &[]);
        assert_eq!(statuses(&envoy, &[failing]), [500]);
        live(&mut envoy, 10);
        let fetch = FetchId(envoy.fetches.len() - 1);
        envoy.answer(fetch, Answer::Unchanged);
        fill(&mut envoy, fetch);
        live(&mut envoy, 200);
        assert_eq!(statuses(&envoy, &others), [200; 3]);
        assert_all_over(&mut envoy);
    }
    assert_eq!(envoy.fetches.len(), 100);
}

#[test]
fn a_stored_page_that_each_use_validates_or_that_has_expired_is_there_for_the_others() {
    for directives in [", no-cache", ", must-revalidate", ", s-maxage=1"] {
        let mut envoy = envoy(2);
        (envoy.ttl, envoy.directives) = (1, directives);
        envoy.get(0, KEY);
        fill(&mut envoy, FIRST);
        live(&mut envoy, 5_000);
        let failing = bad(&mut envoy, 0);
        let others = [envoy.get(0, KEY), envoy.get(1, KEY)];
        assert!(
            envoy.fetches[1].headers.has("if-none-match"),
            "{directives}"
        );
        fail(&mut envoy, FetchId(1), 500, &[]);
        assert_eq!(statuses(&envoy, &[failing]), [500], "{directives}");
        live(&mut envoy, 10);
        envoy.answer(FetchId(2), Answer::Unchanged);
        live(&mut envoy, 100);
        envoy.deliver_all();
        for seat in [0, 1] {
            envoy.answer_lookup(seat);
        }
        envoy.deliver_all();
        assert_eq!(statuses(&envoy, &others), [200; 2], "{directives}");
    }
}

/// A worker with a stored page that may be served stale while the origin fails.
fn stale() -> FakeEnvoy {
    let mut envoy = envoy(1);
    envoy.ttl = 1;
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    live(&mut envoy, 5_000);
    envoy
}

#[test]
fn a_failure_of_its_own_gives_its_client_the_stale_page_and_the_others_a_new_one() {
    let mut envoy = stale();
    let failing = bad(&mut envoy, 0);
    let other = envoy.get(0, KEY);
    fail(&mut envoy, FetchId(1), 500, &[]);
    let told = envoy.clients[failing.0].header("cache-status").unwrap();
    assert!(told.contains("fwd=stale; fwd-status=500"), "{told}");
    assert_eq!(envoy.clients[failing.0].brought_by(), Some(FIRST));
    assert_eq!(
        release(&envoy, other),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    envoy.answer_with(
        FetchId(2),
        200,
        &[("cache-control", "max-age=60")],
        b"       2 new",
    );
    envoy.end(FetchId(2));
    assert_eq!(envoy.clients[other.0].brought_by(), Some(FetchId(2)));
}

#[test]
fn heads_of_a_stale_page_cost_an_origin_that_is_down_two_requests() {
    let mut envoy = stale();
    let head = |_| envoy.request(0, "HEAD", KEY, &[("accept-language", "de")]);
    let clients: Vec<_> = (0..8).map(head).collect();
    envoy.answer_lookup(0);
    let mut fetch = 1;
    while fetch < envoy.fetches.len() {
        fail(&mut envoy, FetchId(fetch), 503, &[]);
        fetch += 1;
    }
    assert_eq!(statuses(&envoy, &clients), [200; 8]);
    assert_eq!(fetch, 3);
    assert_all_over(&mut envoy);
}

#[test]
fn conditional_requests_cost_an_origin_that_is_down_two_requests_of_each_worker() {
    for seats in [1, 2] {
        let mut envoy = envoy(2);
        let headers = [("accept-language", "de"), ("if-none-match", "\"v1\"")];
        let conditional = |number| envoy.request(number % seats, "GET", KEY, &headers);
        let clients: Vec<_> = (0..8).map(conditional).collect();
        let mut fetch = 0;
        while fetch < envoy.fetches.len() {
            fail(&mut envoy, FetchId(fetch), 503, &[]);
            fetch += 1;
        }
        assert_eq!(statuses(&envoy, &clients), [503; 8]);
        assert!(fetch <= 2 * seats, "{fetch} requests for {seats} workers");
        assert_all_over(&mut envoy);
    }
}

#[test]
fn the_second_failure_in_a_row_gives_all_the_stale_page() {
    let mut envoy = stale();
    let clients: Vec<_> = (0..20).map(|_| envoy.get(0, KEY)).collect();
    fail(&mut envoy, FetchId(1), 500, &[]);
    fail(&mut envoy, FetchId(2), 500, &[]);
    live(&mut envoy, 100);
    assert_eq!(envoy.fetches.len(), 3);
    for client in clients {
        assert_eq!(envoy.clients[client.0].brought_by(), Some(FIRST));
    }
    let next = envoy.get(0, KEY);
    assert_eq!(envoy.clients[next.0].brought_by(), Some(FIRST));
    assert_eq!(envoy.fetches.len(), 3, "the origin is left alone");
}

#[test]
fn a_body_that_breaks_is_a_failure_like_others() {
    let mut envoy = envoy(2);
    bad(&mut envoy, 0);
    let others = [envoy.get(0, KEY), envoy.get(1, KEY)];
    envoy.answer(FIRST, Answer::Storable);
    envoy.reset(FIRST);
    envoy.deliver_all();
    assert_eq!(
        release(&envoy, others[0]),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    envoy.answer(FetchId(1), Answer::Storable);
    envoy.reset(FetchId(1));
    envoy.deliver_all();
    assert_eq!(envoy.fetches.len(), 2);
    assert_eq!(envoy.stage(others[1]), Stage::Over(Ending::Failed(502)));
    assert_all_over(&mut envoy);
}

#[test]
fn a_failure_that_the_policy_names_is_kept_from_the_second_one_on() {
    let rules = r#""cache": {"ttl": {"500": "1s"}}"#;
    let mut envoy = FakeEnvoy::new(&document(rules), 1);
    let mut answered = 0;
    for _ in 0..40 {
        let client = bad(&mut envoy, 0);
        envoy.answer_lookup(0);
        if envoy.fetches.len() > answered {
            fail(&mut envoy, FetchId(answered), 500, &[]);
            answered += 1;
        }
        assert_eq!(statuses(&envoy, &[client]), [500]);
        live(&mut envoy, 20);
    }
    assert!(answered <= 3, "{answered} in 800 ms");
}

#[test]
fn a_failure_that_the_policy_names_is_not_kept_where_the_origin_has_answered_others() {
    let rules = r#""cache": {"ttl": {"500": "1s"}}"#;
    let mut envoy = FakeEnvoy::new(&document(rules), 1);
    for _ in 0..5 {
        let failing = bad(&mut envoy, 0);
        let fetch = FetchId(envoy.fetches.len() - 1);
        fail(&mut envoy, fetch, 500, &[]);
        assert_eq!(statuses(&envoy, &[failing]), [500]);
        assert!(!envoy.has(KEY));
        let other = envoy.get(0, KEY);
        assert_eq!(admission(&envoy, other), Some(StoreRequest::Lead));
        let fetch = FetchId(envoy.fetches.len() - 1);
        envoy.answer_with(fetch, 302, &[("cache-control", "no-store")], b"well");
        envoy.end(fetch);
        envoy.close_all();
    }
    assert_eq!(envoy.counter(Metric::FollowersFailed), 0);
}
