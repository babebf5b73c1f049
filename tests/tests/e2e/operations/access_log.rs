// SPDX-License-Identifier: Apache-2.0
//! The access log and the traces show for each request how it was answered, and why it was slow.

use serde_json::Value;
use sluice_tests::client::crowd::Crowd;
use sluice_tests::client::{self, Client, request};
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::time::Duration;

fn edge(origin: &Origin) -> Builder {
    Edge::http(origin).env("SLUICE_ACCESS_LOG", "json")
}

/// Waits until there are `count` lines for `path`, and returns the lines.
async fn lines(edge: &Edge, path: &str, count: usize) -> Vec<Value> {
    let of_path = || {
        let log = edge.log();
        let lines = log.lines().filter(|line| line.starts_with('{'));
        let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines
            .filter(|line| line["path"] == path)
            .collect::<Vec<_>>()
    };
    eventually("lines in the access log", async || of_path().len() >= count).await;
    let lines = of_path();
    assert_eq!(lines.len(), count, "{lines:#?}");
    lines
}

fn milliseconds(line: &Value, field: &str) -> u64 {
    let number = line[field].as_u64();
    number.unwrap_or_else(|| panic!("no number {field}: {line}"))
}

#[tokio::test]
async fn a_line_names_the_result_the_role_and_the_times() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/slow", Reply::ok(5_000).max_age(600).hold(&gate));
    let edge = edge(&origin).workers(2).start().await;
    let followers = Crowd::connect(edge.address(), 10).await;
    let leader = tokio::spawn(client::get(edge.address(), "/slow"));
    gate.wait_reached(1).await;
    let flight = followers.fire("/slow");
    edge.wait_for_value("sluice_parked_now", 10).await;
    // The wait is long enough for the logged times not to be 0.
    tokio::time::sleep(Duration::from_millis(60)).await;
    gate.open();
    flight.land().await.same_object("/slow");
    assert_eq!(leader.await.unwrap().status, 200);
    // Followers may have a copy before the store has the object.
    edge.wait_for_value("sluice_flights_now", 0).await;
    assert!(edge.get("/slow").await.is_hit());

    let lines = lines(&edge, "/slow", 12).await;
    let with = |result: &str| {
        let of = lines.iter().filter(|line| line["result"] == result);
        of.collect::<Vec<_>>()
    };
    let (misses, collapsed, hits) = (with("miss"), with("collapsed"), with("hit"));
    assert_eq!(
        (misses.len(), collapsed.len(), hits.len()),
        (1, 10, 1),
        "{lines:#?}"
    );
    let miss = misses[0];
    assert_eq!(
        (&miss["role"], &miss["attempts"]),
        (&"leader".into(), &1.into())
    );
    assert!(milliseconds(miss, "origin_ms") >= 60, "{miss}");
    assert!(miss.get("wait_ms").is_none(), "{miss}");
    for follower in collapsed {
        assert_eq!(follower["role"], "follower", "{follower}");
        assert!(milliseconds(follower, "wait_ms") >= 60, "{follower}");
        assert!(follower.get("attempts").is_none(), "{follower}");
    }
    for field in ["role", "wait_ms", "origin_ms", "attempts"] {
        assert!(hits[0].get(field).is_none(), "{}", hits[0]);
    }
    assert!(lines.iter().all(|line| line["key"] == miss["key"]));
    assert!(
        miss["duration_ms"].is_u64() && miss["status"] == 200,
        "{miss}"
    );
}

#[tokio::test]
async fn results_have_the_names_of_the_metrics_that_count_them() {
    let origin = Origin::start().ready().await;
    origin.on(
        "/private",
        Reply::ok(100).header("cache-control", "private"),
    );
    origin.on("/other", Reply::ok(100));
    // There is one worker, because only the worker that has served an uncacheable key remembers the key.
    let edge = edge(&origin).workers(1).start().await;
    for path in ["/private", "/private", "/a%00b", "/other"] {
        let _ = edge.get(path).await;
    }
    let _ = edge
        .send("POST", "/posted", &[("content-length", "0")])
        .await;
    for (path, results) in [
        ("/private", vec!["miss", "hit_for_miss"]),
        ("/a%00b", vec!["rejected"]),
        ("/other", vec!["miss"]),
        ("/posted", vec!["passed"]),
    ] {
        let lines = lines(&edge, path, results.len()).await;
        let found: Vec<_> = lines.iter().map(|line| &line["result"]).collect();
        assert_eq!(found, results, "{path}: {lines:#?}");
        for result in results {
            let counter = format!("sluice_requests_{result}");
            assert!(edge.counter(&counter).await > 0, "{counter}");
        }
    }
    // Here keys differ by their URL alone.
    let keys = [
        lines(&edge, "/private", 2).await,
        lines(&edge, "/other", 1).await,
    ]
    .concat();
    assert_eq!(keys[0]["key"], keys[1]["key"]);
    assert_ne!(keys[0]["key"], keys[2]["key"]);
}

#[tokio::test]
async fn a_client_that_leaves_while_it_waits_has_a_line() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/slow", Reply::ok(100).hold(&gate));
    let edge = edge(&origin).start().await;
    let leader = tokio::spawn(client::get(edge.address(), "/slow"));
    gate.wait_reached(1).await;
    let mut follower = Client::connect(edge.address()).await;
    follower.send(request("GET", "/slow", &[])).await.unwrap();
    edge.wait_for_value("sluice_parked_now", 1).await;
    follower.reset();
    edge.wait_for_value("sluice_parked_now", 0).await;
    let left = lines(&edge, "/slow", 1).await;
    assert_eq!(left[0]["role"], "follower", "{left:?}");
    assert!(
        left[0]["flags"].as_str().unwrap().contains("DC"),
        "{left:?}"
    );
    let _ = milliseconds(&left[0], "wait_ms");
    gate.open();
    assert_eq!(leader.await.unwrap().status, 200);
}

#[tokio::test]
async fn what_a_client_sends_stays_within_its_field() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(100));
    let edge = edge(&origin).start().await;
    let odd = r#"/a?"},{"path":"/b","x":"\"#;
    let sent = [
        ("user-agent", r#"a"b\"#),
        ("referer", "http://other/"),
        ("x-request-id", "client-1"),
    ];
    let _ = edge.send("GET", odd, &sent).await;
    let _ = edge.get("/end").await;
    let line = lines(&edge, odd, 1).await.swap_remove(0);
    for (name, value) in sent {
        let field = name.trim_start_matches("x-").replace('-', "_");
        assert_eq!(line[&field], value, "{line}");
    }
    let _ = lines(&edge, "/end", 1).await;
    assert!(edge.log_lines("\"/b\"").is_empty());
}

#[tokio::test]
async fn the_logged_path_is_the_clients_and_not_the_keys() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("*", Reply::ok(100).max_age(600));
    let varying = Reply::ok(100).max_age(600);
    origin.on("/vary", varying.header("vary", "X-Side").hold(&gate));
    let edge = edge(&origin).start().await;
    let spelt_otherwise = "/%7Euser";
    let spoken_of_otherwise = [("x-envoy-original-path", "/else")];
    let _ = edge
        .send("GET", spelt_otherwise, &spoken_of_otherwise)
        .await;
    assert_eq!(origin.count("/~user"), 1);
    let _ = edge.send("GET", "/plain", &spoken_of_otherwise).await;
    // The response proves to vary, so that its followers continue as requests for variants.
    let leader = tokio::spawn(client::get(edge.address(), "/vary"));
    gate.wait_reached(1).await;
    let follower = tokio::spawn(client::get(edge.address(), "/vary"));
    edge.wait_for_value("sluice_parked_now", 1).await;
    gate.open();
    assert_eq!(leader.await.unwrap().status, 200);
    assert_eq!(follower.await.unwrap().status, 200);
    for (path, count) in [(spelt_otherwise, 1), ("/plain", 1), ("/vary", 2)] {
        let _ = lines(&edge, path, count).await;
    }
    assert!(edge.log_lines("/else").is_empty());
}

#[tokio::test]
async fn a_share_of_hits_leaves_every_other_line() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(100).max_age(600));
    let none = edge(&origin).env("ACCESS_LOG_HITS", "0").start().await;
    let all = edge(&origin).start().await;
    for edge in [&none, &all] {
        let _ = client::until_hit(edge.address(), "/a").await;
        let _ = edge.get("/end").await;
        let _ = lines(edge, "/end", 1).await;
    }
    let hit = "\"result\":\"hit\"";
    assert!(none.log_lines(hit).is_empty(), "{}", none.log());
    assert!(!none.log_lines("\"path\":\"/a\"").is_empty());
    // The control.
    assert!(!all.log_lines(hit).is_empty(), "{}", all.log());
}

#[tokio::test]
async fn without_an_access_log_there_are_no_lines() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(100));
    let quiet = edge(&origin).env("SLUICE_ACCESS_LOG", "off").start().await;
    let text = edge(&origin).env("SLUICE_ACCESS_LOG", "text").start().await;
    for edge in [&quiet, &text] {
        let _ = edge.get("/a").await;
    }
    // The control: the other edge logs the same request.
    text.wait_for_log("GET /a 200").await;
    assert!(quiet.log_lines("GET /a").is_empty(), "{}", quiet.log());
}

#[tokio::test]
async fn a_span_for_each_request_has_the_result_and_continues_the_clients_trace() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(100).max_age(600));
    let collector = Origin::start().ready().await;
    collector.on("/v1/traces", Reply::ok(0).empty());
    let edge = edge(&origin).env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url());
    let edge = edge
        .env("OTEL_SERVICE_NAME", "edge-of-the-test")
        .start()
        .await;
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{trace}-b7ad6b7169203331-01");
    let _ = edge.send("GET", "/a", &[("traceparent", &parent)]).await;
    let line = lines(&edge, "/a", 1).await.swap_remove(0);
    assert_eq!(line["trace"], trace, "{line}");
    let _ = client::until_hit(edge.address(), "/a").await;
    // Spans are protobuf, which has names and texts unchanged.
    let spans = || {
        let sent = collector.requests().of("/v1/traces");
        let bodies = sent.iter().map(|request| request.body.as_slice());
        bodies.collect::<Vec<_>>().concat()
    };
    let has = |wanted: &[u8]| spans().windows(wanted.len()).any(|part| part == wanted);
    for wanted in [
        "edge-of-the-test",
        "sluice.result",
        "miss",
        "hit",
        "sluice.key",
        "leader",
    ] {
        eventually(wanted, async || has(wanted.as_bytes())).await;
    }
    let id: Vec<u8> = (0..16)
        .map(|at| u8::from_str_radix(&trace[2 * at..2 * at + 2], 16).unwrap())
        .collect();
    assert!(has(&id), "no span of the client's trace");
    // The control: without a collector no request is traced.
    let untraced = Edge::http(&origin).start().await;
    let clusters = untraced.admin_get("/clusters").await;
    let clusters = String::from_utf8_lossy(&clusters.body).into_owned();
    assert!(!clusters.contains("opentelemetry"), "{clusters}");
}
