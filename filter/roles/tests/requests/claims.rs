// SPDX-License-Identifier: Apache-2.0
//! Requests through EDGE, the cache and ORIGIN, one claim at a time.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_core::metrics::Metric;
use sluice_core::workers::StreamId;
use sluice_fake::{Answer, Client, Ending, FakeEnvoy, FetchId, HeaderTexts as _, Stage};
use sluice_store::Link;

use crate::support::{
    FIRST, KEY, admission, assert_all_over, document, envoy, fill, plain, release,
};

#[test]
fn each_vm_says_at_its_start_what_a_log_of_its_level_has() {
    let lines = |envoy: &FakeEnvoy| {
        let says = |line: &String| line.contains("cookies, credentials");
        envoy.log().iter().filter(|line| says(line)).count()
    };
    let mut envoy = envoy(2);
    assert_eq!(lines(&envoy), 2);
    envoy.update_policy(0);
    assert_eq!(lines(&envoy), 2);
}

#[test]
fn a_miss_fills_the_store_and_the_next_request_is_a_hit() {
    let mut envoy = envoy(1);
    let miss = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, miss), Some(StoreRequest::Lead));
    fill(&mut envoy, FIRST);
    let hit = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, hit), Some(StoreRequest::Fresh));
    envoy.close_all();
    for client in [miss, hit] {
        let client = &envoy.clients[client.0];
        assert_eq!(client.stage, Stage::Over(Ending::Served));
        assert_eq!((client.status(), client.body().len()), (200, 1_024));
    }
    assert_eq!(envoy.fetches.len(), 1);
    assert_eq!(envoy.counter(Metric::RequestsHit), 1);
    assert_all_over(&mut envoy);
}

/// A worker with a hot tier.
fn hot() -> FakeEnvoy {
    FakeEnvoy::new(&document(r#""hot": {"max_bytes": 100000}"#), 1)
}

#[test]
fn a_hot_hit_is_answered_from_memory() {
    let mut envoy = hot();
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    for _ in 0..3 {
        envoy.get(0, KEY);
        envoy.close_all();
    }
    envoy.evict(KEY);
    let hot = envoy.get(0, KEY);
    let hot = &envoy.clients[hot.0];
    assert_eq!((hot.status(), hot.body().len()), (200, 1_024));
    assert!(
        hot.header("cache-status").unwrap().contains("detail=hot"),
        "{hot:?}"
    );
    assert_eq!(hot.request, None, "it went nowhere");
    assert_eq!(envoy.fetches.len(), 1);
}

#[test]
fn all_who_wait_for_a_miss_on_two_workers_get_its_body_for_one_fetch() {
    let mut envoy = envoy(2);
    let clients = [envoy.get(0, KEY), envoy.get(0, KEY), envoy.get(1, KEY)];
    assert_eq!(envoy.parked(), 2);
    fill(&mut envoy, FIRST);
    let leaders = envoy.clients[clients[0].0].body().to_vec();
    assert_eq!(leaders.len(), 1_024);
    for client in clients {
        assert_eq!(envoy.clients[client.0].body(), leaders);
    }
    assert_eq!(envoy.fetches.len(), 1);
    assert_all_over(&mut envoy);
}

#[test]
fn a_follower_of_a_failed_leader_gets_its_status() {
    let mut envoy = envoy(2);
    let (leader, near, far) = (plain(&mut envoy, 0), envoy.get(0, KEY), envoy.get(1, KEY));
    envoy.answer(FIRST, Answer::Failed(502));
    envoy.end(FIRST);
    envoy.deliver_all();
    envoy.close_all();
    for client in [leader, near, far] {
        assert_eq!(envoy.stage(client), Stage::Over(Ending::Failed(502)));
        assert_eq!(envoy.clients[client.0].status(), 502);
    }
    let told = envoy.clients[far.0].header("cache-status");
    assert_eq!(told, Some("sluice; fwd=miss; collapsed"));
    assert_eq!(envoy.fetches.len(), 1);
    assert_all_over(&mut envoy);
}

#[test]
fn a_client_that_asks_for_changes_has_its_304_while_the_fill_goes_on() {
    let mut envoy = envoy(1);
    let client = envoy.conditional(0, KEY);
    envoy.answer(FIRST, Answer::Storable);
    assert_eq!(envoy.stage(client), Stage::Over(Ending::Served));
    assert_eq!(envoy.clients[client.0].status(), 304);
    assert_eq!(envoy.open_fetches(), [FIRST]);
    fill(&mut envoy, FIRST);
    assert!(envoy.has(KEY));
    assert_all_over(&mut envoy);
}

#[test]
fn a_client_that_leads_and_leaves_with_its_304_has_its_fill_replaced() {
    let mut envoy = envoy(1);
    envoy.calls_fail = true;
    let client = envoy.conditional(0, KEY);
    envoy.answer(FIRST, Answer::Storable);
    envoy.progress(FIRST);
    assert!(envoy.has_its_304(client));
    envoy.calls_fail = false;
    envoy.abort(client);
    assert_eq!(envoy.open_fetches(), [FetchId(1)]);
    fill(&mut envoy, FetchId(1));
    assert!(envoy.has(KEY));
    assert_all_over(&mut envoy);
}

#[test]
fn a_purge_is_seen_by_every_worker_before_its_receipt_goes_out() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    envoy.get(1, KEY);
    envoy.close_all();
    assert_eq!(envoy.fetches.len(), 1, "the store has it for both");
    let purge = envoy.purge(0, r#"{"url": "http://edge.test/7"}"#);
    assert_eq!(envoy.stage(purge), Stage::Parked);
    // The line in the log names the caller and the order, but no token.
    let logged = ["sluice.purge_caller", "sluice.purge_order"];
    let logged = logged.map(|name| envoy.property(purge, name).unwrap_or_default());
    assert_eq!(logged, ["edge", r#"{"url":"http://edge.test/7"}"#]);
    envoy.deliver(1);
    assert_eq!(envoy.stage(purge), Stage::Parked);
    envoy.get(1, KEY);
    assert_eq!(envoy.fetches.len(), 2, "the other worker knows");
    envoy.deliver(0);
    let receipt = &envoy.clients[purge.0];
    assert_eq!(receipt.stage, Stage::Over(Ending::Served));
    assert_eq!(receipt.body(), b"{\"number\":1,\"workers\":2}\n");
    fill(&mut envoy, FetchId(1));
    assert_all_over(&mut envoy);
}

/// An edge of two workers with a stored object. The second worker has served it, and has not acknowledged a purge of
/// another URL in time.
fn with_a_silent_worker() -> FakeEnvoy {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    envoy.get(1, KEY);
    envoy.close_all();
    let purge = envoy.purge(0, r#"{"url": "http://edge.test/8"}"#);
    envoy.advance(2_000);
    envoy.tick(0);
    assert_eq!(envoy.stage(purge), Stage::Over(Ending::Served));
    assert_eq!(envoy.counter(Metric::PurgesUnacknowledged), 1);
    envoy
}

#[test]
fn a_worker_that_stood_still_reads_the_purges_in_front_of_its_next_answer() {
    let mut envoy = with_a_silent_worker();
    // The purge does not wait for a worker that is not on the roster.
    let purge = envoy.purge(0, r#"{"url": "http://edge.test/7"}"#);
    assert_eq!(envoy.stage(purge), Stage::Over(Ending::Served));
    envoy.get(1, KEY);
    assert_eq!(envoy.fetches.len(), 2, "the origin is asked");
    fill(&mut envoy, FetchId(1));
    assert_all_over(&mut envoy);
}

#[test]
fn a_worker_that_reads_a_purge_just_in_front_of_its_removal_joins_the_roster_again() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    envoy.get(1, KEY);
    envoy.close_all();
    envoy.purge(0, r#"{"url": "http://edge.test/8"}"#);
    envoy.deliver(1);
    // The acknowledgement is lost.
    envoy.lose(0);
    envoy.advance(2_000);
    envoy.tick(0);
    assert_eq!(envoy.counter(Metric::PurgesUnacknowledged), 1);
    envoy.deliver_all();
    let purge = envoy.purge(0, r#"{"url": "http://edge.test/7"}"#);
    assert_eq!(envoy.stage(purge), Stage::Parked, "it waits for both");
    envoy.deliver_all();
    assert_eq!(envoy.stage(purge), Stage::Over(Ending::Served));
    assert_all_over(&mut envoy);
}

#[test]
fn an_acknowledgement_counts_although_the_timer_comes_first() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    envoy.get(1, KEY);
    envoy.close_all();
    let purge = envoy.purge(0, r#"{"url": "http://edge.test/7"}"#);
    envoy.deliver(1);
    envoy.advance(2_000);
    envoy.tick(0);
    assert_eq!(envoy.stage(purge), Stage::Over(Ending::Served));
    assert_eq!(envoy.counter(Metric::PurgesUnacknowledged), 0);
    assert_all_over(&mut envoy);
}

#[test]
fn a_purge_is_in_the_journal_before_its_receipt_goes_out() {
    let purge = format!(
        r#"{{"origin": {{"kind": "http"}}, "purge": {{"warm": false, "recorded": true, "token_sha256": "{}"}}}}"#,
        FakeEnvoy::token_hash()
    );
    let mut envoy = FakeEnvoy::new(&purge, 1);
    let purge = envoy.purge(0, r#"{"everything": true}"#);
    assert_eq!(envoy.outside_calls(0), [b"1 hard everything\n"]);
    assert_eq!(envoy.stage(purge), Stage::Parked);
    envoy.answer_outside_call(0, 200);
    assert_eq!(envoy.clients[purge.0].status(), 200);
}

/// A bucket as a web site with this document.
fn site(document: &str) -> FakeEnvoy {
    let policy = format!(
        r#"{{"origin": {{"kind": "bucket", "bucket": "site", "authority": "s3.test"}},
        "compression": {{"enabled": false}}, "purge": {{"warm": false}}, "website": {{{document}}}}}"#
    );
    FakeEnvoy::new(&policy, 1)
}

const PAGE: &[u8] = b"<p>Nothing here.</p>";

#[test]
fn a_missing_objects_response_is_held_until_the_error_document_has_come() {
    let mut envoy = site(r#""error_document": "404.html""#);
    let client = envoy.get(0, KEY);
    envoy.answer_with(FIRST, 404, &[], b"<Error/>");
    assert_eq!(envoy.stage(client), Stage::Held);
    envoy.end(FIRST);
    let html = [("content-type", "text/html"), ("etag", "\"page\"")];
    envoy.answer_with(FetchId(1), 200, &html, PAGE);
    envoy.end(FetchId(1));
    assert_eq!(envoy.stage(client), Stage::Over(Ending::Served));
    let client = &envoy.clients[client.0];
    assert_eq!((client.status(), client.body()), (404, PAGE));
    assert_eq!(client.header("content-type"), Some("text/html"));
    assert_eq!(envoy.counter(Metric::ReenteredCallbacks), 0);
}

#[test]
fn a_fallback_document_answers_the_conditions_of_a_response_that_was_held() {
    let mut envoy = site(r#""fallback_document": "index.html", "fallback_for": "all""#);
    envoy.calls_fail = true;
    let client = envoy.conditional(0, KEY);
    envoy.answer_with(FIRST, 404, &[], b"<Error/>");
    envoy.end(FIRST);
    assert_eq!(envoy.stage(client), Stage::Held);
    envoy.answer_with(FetchId(1), 200, &[("etag", "\"v1\"")], PAGE);
    envoy.end(FetchId(1));
    let client = &envoy.clients[client.0];
    assert_eq!((client.status(), client.body()), (304, &b""[..]));
}

#[test]
fn a_request_that_finds_its_worker_in_use_goes_on_uncoalesced() {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    envoy.withhold_worker(0, 0..1);
    let client = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, client), Some(StoreRequest::Bypass));
    let second = FetchId(1);
    assert_eq!(envoy.fetches[1].client, client);
    envoy.answer(second, Answer::Storable);
    envoy.end(second);
    let told = envoy.clients[client.0].header("cache-status");
    assert_eq!(
        told,
        Some("sluice; fwd=bypass; fwd-status=200; detail=worker-in-use")
    );
    assert!(!envoy.fetches[1].fills);
    fill(&mut envoy, FIRST);
    assert_all_over(&mut envoy);
}

#[test]
fn a_true_link_from_outside_is_worth_nothing() {
    for request in StoreRequest::ALL {
        let mut envoy = envoy(1);
        envoy.get(0, KEY);
        fill(&mut envoy, FIRST);
        envoy.close_all();
        let link = Link {
            request,
            stream: StreamId(1),
            policy: 1,
        };
        let identity = &envoy.worker(0).unwrap().identity;
        let link = identity.vouching.encode(link, "");
        let headers = [
            ("x-sluice-link", link.as_str()),
            ("x-sluice-proof", "1"),
            ("x-sluice-path", "/other"),
        ];
        let client = envoy.request(0, "GET", KEY, &headers);
        // The request is an ordinary hit.
        assert_eq!(
            admission(&envoy, client),
            Some(StoreRequest::Fresh),
            "{request:?}"
        );
        envoy.close_all();
        let client = &envoy.clients[client.0];
        assert_eq!((client.status(), client.body().len()), (200, 1_024));
        assert_eq!(envoy.fetches.len(), 1, "{request:?}");
        assert_all_over(&mut envoy);
    }
}

#[test]
fn origin_refuses_what_edge_has_not_vouched_for() {
    let mut envoy = envoy(1);
    let client = envoy.get_past_edge(0, KEY);
    assert_eq!(envoy.clients[client.0].status(), 403);
    assert_eq!(envoy.counter(Metric::OriginUnlinked), 1);
    assert_eq!(envoy.fetches.len(), 0);
}

#[test]
fn origin_without_its_worker_proves_nothing_to_the_guard() {
    let mut envoy = envoy(1);
    envoy.withhold_worker(0, 1..2);
    let client = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, client), Some(StoreRequest::Lead));
    assert_eq!(envoy.clients[client.0].status(), 503);
    assert_eq!(envoy.fetches.len(), 0);
    envoy.close_all();
    assert_all_over(&mut envoy);
}

#[test]
fn who_waits_through_a_hard_purge_gets_nothing_from_before_the_soft_purge_that_it_came_after() {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    let soft = envoy.purge(0, r#"{"everything": true, "soft": true}"#);
    assert_eq!(envoy.clients[soft.0].status(), 200);
    let client = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, client), None, "the store fills the entry");
    envoy.purge(0, r#"{"everything": true}"#);
    fill(&mut envoy, FIRST);
    assert_eq!(envoy.clients[client.0].request, Some(StoreRequest::Lead));
    assert_eq!(envoy.fetches.len(), 2, "the origin is asked");
    fill(&mut envoy, FetchId(1));
    assert_eq!(envoy.clients[client.0].brought_by(), Some(FetchId(1)));
    assert_all_over(&mut envoy);
}

#[test]
fn cold_heads_share_the_headers_alone_and_wait_for_no_fill() {
    let mut envoy = envoy(1);
    let get = envoy.get(0, KEY);
    let heads = [envoy.head(0, KEY), envoy.head(0, KEY)];
    assert_eq!(envoy.lookups(0), 1, "one look at the store for both");
    envoy.answer_lookup(0);
    assert_eq!(envoy.fetches[1].headers.get(":method"), Some("HEAD"));
    fill(&mut envoy, FetchId(1));
    for head in heads {
        let head = &envoy.clients[head.0];
        assert_eq!(head.stage, Stage::Over(Ending::Served));
        assert_eq!((head.status(), head.body().len()), (200, 0));
        assert_eq!(head.header("content-length"), Some("1024"));
    }
    assert_eq!(envoy.stage(get), Stage::Fetching(FIRST));
    assert_eq!(envoy.fetches.len(), 2);
    fill(&mut envoy, FIRST);
    assert_all_over(&mut envoy);
}

/// A GET with a header of `bytes` bytes beside its key.
fn get_with(envoy: &mut FakeEnvoy, name: &str, bytes: usize) -> Client {
    let value = "x".repeat(bytes);
    envoy.request(0, "GET", KEY, &[(name, value.as_str())])
}

#[test]
fn a_request_with_many_headers_beside_its_key_never_leads() {
    let mut envoy = envoy(1);
    let long = get_with(&mut envoy, "x-padding", 5_000);
    assert_eq!(admission(&envoy, long), Some(StoreRequest::Alone));
    let next = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, next), Some(StoreRequest::Lead));
    let long = get_with(&mut envoy, "x-padding", 5_000);
    let follower = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, long), None, "it waits as others do");
    envoy.abort(next);
    assert_eq!(
        release(&envoy, follower),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    assert_eq!(envoy.stage(long), Stage::Parked);
    fill(&mut envoy, FetchId(2));
    assert_eq!(
        release(&envoy, long),
        Some(NextStep::Send(StoreRequest::Collapsed))
    );
}

#[test]
fn a_range_or_a_condition_of_a_request_with_many_headers_leads_nothing_either() {
    let value = "x".repeat(5_000);
    let padding = ("x-padding", value.as_str());
    for (method, demand, request) in [
        ("GET", ("range", "bytes=0-9"), StoreRequest::Bypass),
        ("GET", ("if-none-match", "\"v1\""), StoreRequest::Bypass),
        ("HEAD", ("x-a", "b"), StoreRequest::Alone),
    ] {
        let mut envoy = envoy(1);
        let client = envoy.request(0, method, KEY, &[demand, padding]);
        envoy.answer_lookup(0);
        let gone_on = envoy.clients[client.0].request;
        assert_eq!(gone_on, Some(request), "{demand:?}");
        assert_eq!(envoy.counter(Metric::FlightsLed), 0, "{demand:?}");
        envoy.abort(client);
        assert_eq!(envoy.counter(Metric::FlightsLed), 0, "{demand:?}");
    }
}

#[test]
fn headers_that_do_not_reach_the_origin_or_are_in_the_key_keep_nobody_from_leading() {
    let stripped =
        document(r#""request": {"cookies": "strip"}, "vary": {"max_value_bytes": 4096}"#);
    let mut envoy = FakeEnvoy::new(&stripped, 1);
    for (name, bytes) in [
        ("cookie", 5_000),
        ("accept-encoding", 5_000),
        ("x-padding", 4_000),
    ] {
        let client = get_with(&mut envoy, name, bytes);
        assert_eq!(
            admission(&envoy, client),
            Some(StoreRequest::Lead),
            "{name}"
        );
        envoy.abort(client);
    }
    let long = "x".repeat(3_000);
    let both = [("accept", long.as_str()), ("x-padding", long.as_str())];
    let varying = envoy.request(0, "GET", KEY, &both);
    assert_eq!(admission(&envoy, varying), Some(StoreRequest::Alone));
    envoy.abort(varying);
    envoy.get(0, KEY);
    let fetch = FetchId(envoy.fetches.len() - 1);
    envoy.answer(fetch, Answer::Varying);
    envoy.end(fetch);
    envoy.close_all();
    let keyed = envoy.request(0, "GET", KEY, &both);
    assert_eq!(admission(&envoy, keyed), Some(StoreRequest::Lead));
}

/// Sends an unsafe request for this path, which succeeds.
fn change(envoy: &mut FakeEnvoy, seat: usize, key: u64, headers: &[(&str, &str)]) {
    envoy.request(seat, "POST", key, &[]);
    let fetch = FetchId(envoy.fetches.len() - 1);
    envoy.answer_with(fetch, 200, headers, b"changed");
    envoy.end(fetch);
    envoy.deliver_all();
    envoy.close_all();
}

#[test]
fn an_unsafe_request_has_its_own_urls_revalidated_and_no_other() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    envoy.get(1, KEY);
    envoy.close_all();
    change(&mut envoy, 0, KEY + 1, &[]);
    for seat in [0, 1] {
        let client = envoy.get(seat, KEY);
        assert_eq!(
            admission(&envoy, client),
            Some(StoreRequest::Fresh),
            "{seat}"
        );
        envoy.close_all();
    }
    for headers in [
        &[][..],
        &[("location", "/7")],
        &[("location", "http://edge.test:80/7#new")],
        &[("location", "http://EDGE.test./7")],
        &[("location", "//edge.test/7")],
        &[("location", "7")],
        &[("content-location", "./7")],
    ] {
        let changed = if headers.is_empty() { KEY } else { 99 };
        change(&mut envoy, 1, changed, headers);
        let asked = envoy.get(0, KEY);
        assert_eq!(admission(&envoy, asked), Some(StoreRequest::Lead));
        let fetch = FetchId(envoy.fetches.len() - 1);
        assert!(envoy.fetches[fetch.0].headers.has("if-none-match"));
        envoy.answer(fetch, Answer::Unchanged);
        fill(&mut envoy, fetch);
        let confirmed = envoy.get(0, KEY);
        assert_eq!(admission(&envoy, confirmed), Some(StoreRequest::Fresh));
        envoy.close_all();
    }
    assert_eq!(envoy.counter(Metric::Invalidations), 8);
}

#[test]
fn what_an_unsafe_request_has_changed_is_not_served_while_the_origin_fails() {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    change(&mut envoy, 0, KEY, &[]);
    let asked = envoy.get(0, KEY);
    let fetch = FetchId(envoy.fetches.len() - 1);
    envoy.answer(fetch, Answer::Failed(503));
    envoy.end(fetch);
    envoy.close_all();
    assert_eq!(envoy.clients[asked.0].status(), 503);

    // A soft purge is milder, because its author has chosen so.
    let mut purged = self::envoy(1);
    purged.get(0, KEY);
    fill(&mut purged, FIRST);
    purged.purge(0, r#"{"everything": true, "soft": true}"#);
    let asked = purged.get(0, KEY);
    purged.answer(FetchId(1), Answer::Failed(503));
    purged.close_all();
    assert_eq!(purged.clients[asked.0].status(), 200);
}

/// Stores a response of this group under this path.
fn fill_group(envoy: &mut FakeEnvoy, key: u64, group: &str) {
    envoy.get(0, key);
    let fetch = FetchId(envoy.fetches.len() - 1);
    let grouped = [
        ("cache-control", "max-age=60"),
        ("etag", "\"v1\""),
        ("cache-groups", group),
    ];
    envoy.answer_with(fetch, 203, &grouped, b"of a group");
    fill(envoy, fetch);
}

#[test]
fn an_unsafe_request_has_the_groups_revalidated_that_its_response_names_and_no_other() {
    let mut envoy = envoy(2);
    let asks = |envoy: &mut FakeEnvoy, seat, key| {
        let before = envoy.fetches.len();
        let client = envoy.get(seat, key);
        envoy.close_all();
        let asks = envoy.fetches.len() > before;
        envoy.abort(client);
        asks
    };
    for (key, group) in [
        (7, "\"list\", \"x\""),
        (8, "\"list\";p=1"),
        (9, "\"List\""),
        (10, "list"),
    ] {
        fill_group(&mut envoy, key, group);
    }
    // A safe request invalidates no group, and neither does a failed one.
    envoy.request(0, "OPTIONS", 20, &[]);
    let fetch = FetchId(envoy.fetches.len() - 1);
    let named = [("cache-group-invalidation", "\"list\"")];
    envoy.answer_with(fetch, 200, &named, b"");
    envoy.request(0, "POST", 20, &[]);
    envoy.answer_with(FetchId(fetch.0 + 1), 403, &named, b"");
    envoy.close_all();
    assert!(!asks(&mut envoy, 1, 7));
    change(&mut envoy, 0, 20, &[("cache-group-invalidation", "list")]);
    assert!(!asks(&mut envoy, 1, 7), "no list of strings");
    change(&mut envoy, 0, 20, &named);
    for (key, asked) in [(7, true), (8, true), (9, false), (10, false)] {
        assert_eq!(asks(&mut envoy, 1, key), asked, "{key}");
    }
}

#[test]
fn a_purge_by_surrogate_key_takes_what_a_cache_tag_names() {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    let tagged = [
        ("cache-control", "max-age=60"),
        ("cache-tag", "a,article-7"),
    ];
    envoy.answer_with(FIRST, 203, &tagged, b"tagged");
    fill(&mut envoy, FIRST);
    let hit = envoy.get(0, KEY);
    assert_eq!(envoy.clients[hit.0].header("cache-tag"), None);
    envoy.purge(0, r#"{"surrogate_keys": ["article-7"]}"#);
    envoy.deliver_all();
    envoy.get(0, KEY);
    assert_eq!(envoy.fetches.len(), 2);
}

#[test]
fn a_worker_that_comes_later_knows_what_has_been_changed() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    change(&mut envoy, 0, KEY, &[]);
    envoy.kill(1);
    envoy.revive(1);
    envoy.get(1, KEY);
    let fetch = envoy.fetches.last().unwrap();
    assert!(fetch.headers.has("if-none-match"), "{fetch:?}");
}

#[test]
fn a_refresh_carries_only_what_the_key_has() {
    let stale = document(r#""cache": {"stale_while_revalidate": "1h"}"#);
    let mut envoy = FakeEnvoy::new(&stale, 1);
    envoy.ttl = 10;
    let theirs = [
        ("accept", "text/one"),
        ("x-padding", "theirs"),
        ("user-agent", "x"),
    ];
    let lead = |envoy: &mut FakeEnvoy, answer| {
        envoy.request(0, "GET", KEY, &theirs);
        let fetch = FetchId(envoy.fetches.len() - 1);
        envoy.answer(fetch, answer);
        fill(envoy, fetch);
    };
    // The response varies with a header, which is in the key from now on.
    lead(&mut envoy, Answer::Varying);
    lead(&mut envoy, Answer::Varying);
    envoy.advance(12_000);
    let fetches = envoy.fetches.len();
    let served = envoy.request(0, "GET", KEY, &theirs);
    assert_eq!(envoy.clients[served.0].status(), 200);
    assert_eq!(envoy.fetches.len(), fetches + 1);
    let refresh = envoy.fetches.last().unwrap();
    assert_eq!(refresh.request, StoreRequest::Refresh);
    assert_eq!(refresh.headers.get("accept"), Some("text/one"));
    assert_eq!(refresh.headers.get("x-forwarded-proto"), Some("http"));
    // The cache adds its own name (RFC 8586; RFC 9110, 7.6.3).
    let known = [
        "accept",
        "cdn-loop",
        "if-none-match",
        "via",
        "x-forwarded-proto",
        "x-sluice-proof",
    ];
    let names = refresh.headers.iter().map(|(name, _)| name);
    let others: Vec<_> = names
        .filter(|name| !name.starts_with(':') && !known.contains(name))
        .collect();
    assert_eq!(others, Vec::<&str>::new());
}
