// SPDX-License-Identifier: Apache-2.0
//! A response that is not stored has the reason in `Cache-Status`, in the access log and in a counter. The same
//! applies to later requests that are sent around the store because of it, on each worker.

use serde_json::{Value, json};
use sluice_core::freshness::UncacheableReason;
use sluice_core::metrics::Metric;
use sluice_tests::client::Response;
use sluice_tests::client::crowd::Crowd;
use sluice_tests::edge::purger::Purger;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::fs;
use test_case::test_case;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const POLICY: &str = "origin: {kind: http}
cache: {ttl: {\"200\": 1h, \"410\": 0s}}
request: {cookies: ignore}
coalesce: {max_wait: 1s}
";

fn edge(origin: &Origin) -> Builder {
    Edge::http(origin)
        .env("SLUICE_ACCESS_LOG", "json")
        .policy(POLICY)
}

/// Whether the response has this `reason` for not being stored: its own, or that of an earlier response.
fn says(response: &Response, reason: UncacheableReason, of_former: bool) -> bool {
    let name = if of_former {
        reason.hit_for_miss()
    } else {
        reason.name()
    };
    let detail = format!("; detail={name}");
    response.cache_status().ends_with(&detail)
}

/// Waits until the access log has `count` lines for `path` with this `reason`, and the counter has the same value.
async fn wait_for_account(edge: &Edge, path: &str, reason: UncacheableReason, count: usize) {
    eventually(&format!("{path} in the access log"), async || {
        let log = edge.log();
        let lines = log.lines().filter(|line| line.starts_with('{'));
        let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
        let told = |line: &Value| line["path"] == path && line["uncacheable"] == reason.name();
        lines.filter(told).count() == count
    })
    .await;
    let counter = Metric::of_reason(reason).name();
    assert_eq!(edge.counter(counter).await, count as u64, "{counter}");
}

/// A reason, a response that is enough for it, a header of its request, and whether the next request is sent around
/// the store because of it.
type Case = (
    UncacheableReason,
    Reply,
    Option<(&'static str, &'static str)>,
    bool,
);

/// Each reason for which one response is enough.
fn reasons() -> Vec<Case> {
    use UncacheableReason as Reason;
    let control = |value| Reply::ok(100).header("cache-control", value);
    let cookie = Some(("cookie", "id=1"));
    let credentials = Some(("authorization", "Basic YTpi"));
    let payload = Some(("rsc", "1"));
    vec![
        (Reason::Status, Reply::new(206, 100), None, false),
        (
            Reason::SetCookie,
            Reply::ok(100).header("set-cookie", "id=1"),
            None,
            true,
        ),
        (Reason::Cookie, Reply::ok(100), cookie, false),
        (
            Reason::NotUnderstood,
            Reply::new(299, 100).header("cache-control", "max-age=60, must-understand"),
            None,
            false,
        ),
        (Reason::NoStore, control("no-store"), None, true),
        (Reason::NoCache, control("no-cache"), None, true),
        (Reason::Private, control("private"), None, true),
        (Reason::Vary, Reply::ok(100).header("vary", "*"), None, true),
        (Reason::TooLarge, Reply::ok(40_000), None, true),
        (Reason::NoTtl, Reply::new(410, 100), None, true),
        (Reason::NoLifetime, Reply::new(302, 100), None, false),
        (
            Reason::Stale,
            control("max-age=10").header("age", "20"),
            None,
            true,
        ),
        (
            Reason::ServerError,
            Reply::new(500, 100).header("cache-control", "no-store"),
            None,
            false,
        ),
        (Reason::RequestError, Reply::new(403, 100), None, false),
        (
            Reason::Stream,
            Reply::ok(100)
                .chunked()
                .header("content-type", "text/event-stream"),
            None,
            true,
        ),
        (Reason::Authorization, Reply::ok(100), credentials, false),
        (
            Reason::RequestHeaders,
            Reply::ok(100).max_age(60),
            payload,
            false,
        ),
    ]
}

#[tokio::test]
async fn each_reason_is_in_cache_status_in_the_access_log_and_in_a_counter() {
    let origin = Origin::start().ready().await;
    let edge = edge(&origin).env("SLUICE_CACHE_MAX_OBJECT_BYTES", "20000");
    let edge = edge.workers(1).start().await;
    for (reason, reply, header, is_remembered) in reasons() {
        let path = format!("/{}", reason.name());
        origin.on(&path, reply);
        let headers: Vec<_> = header.into_iter().collect();
        let first = edge.send("GET", &path, &headers).await;
        assert!(says(&first, reason, false), "{reason:?}: {first}");
        if is_remembered {
            let next = edge.send("GET", &path, &headers).await;
            assert!(says(&next, reason, true), "{reason:?}: {next}");
        }
        wait_for_account(&edge, &path, reason, 1 + usize::from(is_remembered)).await;
    }
}

#[test]
fn each_reason_is_seen_by_a_test_of_this_file() {
    use UncacheableReason as Reason;
    let mut seen: Vec<_> = reasons().into_iter().map(|(reason, ..)| reason).collect();
    seen.extend([
        Reason::UnreadableHeader,
        Reason::Purged,
        Reason::NotTaken,
        Reason::KeyMismatch,
        // The tests of reports/response_headers.rs cover this reason.
        Reason::ResponseHeaders,
    ]);
    for reason in UncacheableReason::ALL {
        assert!(seen.contains(reason), "{reason:?}");
    }
}

#[test_case(1; "on its worker")]
#[test_case(2; "on two workers")]
#[tokio::test]
async fn followers_of_a_response_that_is_not_stored_say_its_reason(workers: usize) {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    let reply = Reply::ok(100).header("set-cookie", "id=1");
    origin.on_each("/a", [reply.clone().hold(&gate), reply]);
    let edge = edge(&origin).workers(workers).start().await;
    let flight = Crowd::connect(edge.address(), 20).await.fire("/a");
    edge.wait_for_counter("sluice_parked_now", 19).await;
    gate.open();
    let outcomes = flight.land().await;
    let reason = UncacheableReason::SetCookie;
    let own = outcomes.all(200).into_iter();
    let own = own.filter(|response| says(response, reason, false)).count();
    let of_former = outcomes.all(200).into_iter();
    let of_former = of_former.filter(|response| says(response, reason, true));
    assert_eq!((own, of_former.count()), (1, 19));
    wait_for_account(&edge, "/a", reason, 20).await;
}

#[tokio::test]
async fn followers_that_share_a_response_once_say_its_reason() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", Reply::ok(100).hold(&gate));
    let edge = Edge::http(&origin)
        .env("SLUICE_ACCESS_LOG", "json")
        .origin_decides();
    let edge = edge.workers(1).start().await;
    let flight = Crowd::connect(edge.address(), 5).await.fire("/a");
    edge.wait_for_counter("sluice_parked_now", 4).await;
    gate.open();
    let reason = UncacheableReason::NoLifetime;
    let outcomes = flight.land().await;
    for response in outcomes.all(200) {
        assert!(says(response, reason, false), "{response}");
    }
    wait_for_account(&edge, "/a", reason, 5).await;
}

#[tokio::test]
async fn a_response_whose_cache_control_is_no_text_says_so() {
    const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\
        Cache-Control: max-age=60, x=\xff\r\n\r\nx";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4_096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(RESPONSE).await;
        }
    });
    let unused = Origin::start();
    let edge = edge(&unused).env("SLUICE_ORIGIN", format!("http://{address}"));
    let edge = edge.workers(1).start().await;
    let reason = UncacheableReason::UnreadableHeader;
    let (first, next) = (edge.get("/a").await, edge.get("/a").await);
    assert!(says(&first, reason, false), "{first}");
    assert!(says(&next, reason, true), "{next}");
    wait_for_account(&edge, "/a", reason, 2).await;
}

#[tokio::test]
async fn a_response_whose_surrogate_key_was_purged_on_its_way_says_so() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    let reply = Reply::ok(100).header("surrogate-key", "red").hold(&gate);
    origin.on("/a", reply);
    let purger = Purger::new();
    let edge = purger.open(edge(&origin)).workers(1).start().await;
    let flight = Crowd::connect(edge.address(), 1).await.fire("/a");
    gate.wait_reached(1).await;
    purger.purge(json!({"surrogate_keys": ["red"]})).await;
    gate.open();
    let reason = UncacheableReason::Purged;
    let outcomes = flight.land().await;
    let response = outcomes.all(200)[0];
    assert!(says(response, reason, false), "{response}");
    wait_for_account(&edge, "/a", reason, 1).await;
}

#[tokio::test]
async fn a_response_that_the_store_does_not_take_says_so_the_next_time() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    let reply = Reply::ok(100).max_age(60);
    origin.on_each("/a", [reply.clone().hold(&gate), reply]);
    let edge = edge(&origin).workers(1).start().await;
    let cache = edge.folder().join("cache").join("entries");
    fs::rename(&cache, cache.with_extension("gone")).unwrap();
    let flight = Crowd::connect(edge.address(), 4).await.fire("/a");
    edge.wait_for_counter("sluice_parked_now", 3).await;
    gate.open();
    let outcomes = flight.land().await;
    let reason = UncacheableReason::NotTaken;
    let responses = outcomes.all(200).into_iter();
    let told = responses.filter(|response| says(response, reason, true));
    assert_eq!(told.count(), 2, "all but the two that have led");
    fs::rename(cache.with_extension("gone"), &cache).unwrap();
    wait_for_account(&edge, "/a", reason, 2).await;
}

#[tokio::test]
async fn a_key_in_whose_place_the_store_has_another_says_so() {
    let origin = Origin::start().ready().await;
    let reply = Reply::ok(100).max_age(60);
    origin.on("*", reply.header("content-type", "text/plain"));
    let edge = edge(&origin)
        .env("SLUICE_HOT_BYTES", "0")
        .allow_log("the store gave the response of another key")
        .workers(1);
    let edge = edge.start().await;
    let cache = edge.folder().join("cache").join("entries");
    let mut files = Vec::new();
    for path in ["/a", "/b"] {
        eventually("a hit", async || edge.get(path).await.is_hit()).await;
        let names = fs::read_dir(&cache).unwrap();
        let names = names.map(|file| file.unwrap().path());
        let new = names.filter(|name| !files.contains(name));
        files.extend(new.collect::<Vec<_>>());
    }
    assert_eq!(files.len(), 2, "{files:?}");
    fs::copy(&files[1], &files[0]).unwrap();
    let reason = UncacheableReason::KeyMismatch;
    for _ in 0..2 {
        let response = edge.get("/a").await;
        assert!(says(&response, reason, true), "{response}");
    }
}
