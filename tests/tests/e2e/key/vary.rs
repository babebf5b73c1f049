// SPDX-License-Identifier: Apache-2.0
//! `Vary`: variants of one URL are stored side by side, although Envoy's store has no variants, and no client gets a
//! wrong variant.

use sluice_tests::bare::Bare;
use sluice_tests::bucket::Bucket;
use sluice_tests::client::crowd::Crowd;
use sluice_tests::client::{Response, request};
use sluice_tests::edge::Edge;
use sluice_tests::edge::store::Store;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::collections::BTreeMap;
use test_case::test_case;

#[tokio::test]
async fn the_vary_of_minio_does_not_prevent_storing() {
    let bucket = Bucket::new().await;
    bucket.put_stamped("a.dat", 1, 1000).await;
    let plain = bucket.get("a.dat").await;
    assert!(plain.header("vary").contains("Origin"), "{plain}");
    let edge = Edge::bucket(&bucket).workers(1).start().await;
    let senders: [&[(&str, &str)]; 4] = [
        &[],
        &[("origin", "http://one.test")],
        &[("origin", "http://two.test"), ("accept-encoding", "gzip")],
        &[("accept-encoding", "br, zstd")],
    ];
    let before = bucket.requests().total();
    for headers in senders {
        let response = edge.send("GET", "/a.dat", headers).await;
        assert_eq!(response.status, 200, "{response}");
        let _ = response.stamp("/a.dat");
    }
    assert!(edge.get("/a.dat").await.is_reused());
    assert_eq!(bucket.requests().total() - before, 1);
}

/// Sends a GET for this language.
async fn get_in(edge: &Edge, path: &str, language: &str) -> Response {
    edge.send("GET", path, &[("accept-language", language)])
        .await
}

#[tokio::test]
async fn variants_of_a_url_live_side_by_side() {
    let origin = Origin::start().ready().await;
    let reply = Reply::ok(1000).max_age(60);
    origin.on("/a", reply.header("vary", "Accept-Language"));
    let edge = Edge::http(&origin).workers(1).start().await;
    let french = get_in(&edge, "/a", "fr").await.stamp("/a");
    let german = get_in(&edge, "/a", "de").await.stamp("/a");
    let none = edge.get("/a").await.stamp("/a");
    assert_eq!(origin.count("/a"), 3);
    for (language, stamp) in [
        ("fr", french),
        ("de", german),
        ("DE ", german),
        ("fr", french),
    ] {
        let hit = get_in(&edge, "/a", language).await;
        assert!(hit.is_reused(), "{language}: {hit}");
        assert_eq!(hit.stamp("/a"), stamp, "{language}");
        assert_eq!(hit.header("vary"), "Accept-Language");
    }
    assert_eq!(edge.get("/a").await.stamp("/a"), none);
    let head = edge.send("HEAD", "/a", &[("accept-language", "de")]).await;
    assert!(head.is_reused(), "{head}");
    assert_eq!(
        head.header("x-origin-sequence"),
        german.sequence.to_string()
    );
    assert_eq!(origin.count("/a"), 3);
    let asked = origin.requests().of("/a");
    let asked = asked
        .iter()
        .map(|request| request.headers.get("accept-language"));
    assert!(asked.eq([Some("fr"), Some("de"), None]));
    assert_eq!(edge.counter("sluice_varying_learnt").await, 1);
}

#[tokio::test]
async fn variants_are_known_on_every_worker_and_after_a_restart() {
    let origin = Origin::start().ready().await;
    let reply = Reply::ok(1000).max_age(600).etag("v1");
    origin.on("/a", reply.header("vary", "accept-language"));
    let mut edge = Edge::http(&origin).workers(2).start().await;
    let french = get_in(&edge, "/a", "fr").await.stamp("/a");
    let german = get_in(&edge, "/a", "de").await.stamp("/a");
    for restarted in [false, true, true] {
        if restarted {
            edge.restart().await;
        }
        // The first request of each connection may reach any worker.
        for (language, stamp) in [("de", german), ("fr", french)].repeat(10) {
            let response = get_in(&edge, "/a", language).await;
            assert_eq!(response.status, 200, "{response}");
            assert_eq!(response.stamp("/a"), stamp, "{language}: {response}");
            assert_eq!(response.header("vary"), "accept-language");
        }
    }
    assert_eq!(origin.count("/a"), 2);
    edge.restart().await;
    // A variant that no client has requested yet, of a URL for which the workers know no `Vary`.
    let english = get_in(&edge, "/a", "en").await;
    assert!(english.stamp("/a") != german && english.stamp("/a") != french);
    let range = [("accept-language", "en"), ("range", "bytes=0-99")];
    edge.restart().await;
    assert_eq!(edge.send("GET", "/a", &range).await.status, 206);
    edge.restart().await;
    let unchanged = [("accept-language", "en"), ("if-none-match", "\"v1\"")];
    assert_eq!(edge.send("GET", "/a", &unchanged).await.status, 304);
    // A worker without knowledge of the URL looks in the store.
    let asked = origin.requests().of("/a");
    let asked = asked.iter().map(|request| request.method.as_str());
    assert!(asked.eq(["GET"; 3]));
}

#[tokio::test]
async fn another_variant_is_neither_validated_nor_served_after_a_restart() {
    let origin = Origin::start().ready().await;
    let reply = Reply::ok(1000).max_age(1).etag("v1");
    origin.on("/a", reply.header("vary", "accept-language"));
    let mut edge = Edge::http(&origin).workers(1).start().await;
    let french = get_in(&edge, "/a", "fr").await.stamp("/a");
    edge.restart().await;
    eventually("that the stored variant is stale", async || {
        let response = get_in(&edge, "/a", "de").await;
        assert_ne!(response.stamp("/a"), french);
        origin.count("/a") > 2
    })
    .await;
    let asked = origin.requests().of("/a");
    for request in asked.iter().skip(1) {
        assert_eq!(request.headers.get("accept-language"), Some("de"));
    }
    assert_eq!(asked[1].headers.get("if-none-match"), None);
}

#[tokio::test]
async fn control_bare_envoy_fetches_a_response_with_vary_each_time() {
    let origin = Origin::start().ready().await;
    let reply = Reply::ok(1000).max_age(60);
    origin.on("/a", reply.header("vary", "accept-language"));
    let bare = Bare::start(&origin, Store::V1_DISK, 1).await;
    for _ in 0..3 {
        let _ = bare.get("/a").await;
    }
    assert_eq!(origin.count("/a"), 3);
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn a_stampede_on_a_url_that_varies_costs_one_request_for_each_variant(workers: usize) {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    let reply = Reply::ok(1000)
        .max_age(60)
        .header("vary", "accept-language");
    origin.on_each("/a", [reply.clone().hold(&gate), reply]);
    let edge = Edge::http(&origin).workers(workers).start().await;
    let crowd = Crowd::connect(edge.address(), 100).await;
    let flight = crowd.fire_each(|n| {
        let language = ["fr", "de"][n % 2];
        request("GET", "/a", &[("accept-language", language)])
    });
    edge.wait_for_counter("sluice_parked_now", 99).await;
    gate.open();
    let outcomes = flight.land().await;
    outcomes.all(200);
    assert_eq!(origin.count("/a"), 2);
    let mut shares = BTreeMap::new();
    for response in outcomes.responses() {
        *shares.entry(response.stamp("/a")).or_insert(0) += 1;
    }
    assert!(shares.into_values().eq([50, 50]));
    edge.wait_for_value("sluice_parked_now", 0).await;
}

#[tokio::test]
async fn a_vary_that_changes_is_followed() {
    let origin = Origin::start().ready().await;
    let reply = |vary| Reply::ok(1000).max_age(60).header("vary", vary);
    let by_language = reply("accept-language");
    origin.on_each("/a", [by_language, reply("x-plan")]);
    let edge = Edge::http(&origin).workers(1).start().await;
    let get = async |language: &str, plan: &str| {
        let headers = [("accept-language", language), ("x-plan", plan)];
        edge.send("GET", "/a", &headers).await
    };
    get("fr", "gold").await;
    assert!(get("fr", "silver").await.is_reused());
    // The next response varies with another field.
    get("de", "gold").await;
    let gold = get("de", "gold").await.stamp("/a");
    let silver = get("de", "silver").await.stamp("/a");
    assert_ne!(gold, silver);
    assert_eq!(get("de", "gold").await.stamp("/a"), gold);
    assert_eq!(get("de", "silver").await.stamp("/a"), silver);
    assert_eq!(origin.count("/a"), 4);
}

#[tokio::test]
async fn an_origin_is_asked_for_all_codings_that_the_client_takes_in_one_form() {
    let origin = Origin::start().ready().await;
    let reply = Reply::ok(1000).max_age(60);
    origin.on("/a", reply.header("vary", "Accept-Encoding"));
    let edge = Edge::http(&origin).workers(1).start().await;
    edge.get("/a").await;
    for accepted in [
        "gzip, deflate, br, zstd",
        "br;q=1.0, gzip;q=0.8, *;q=0.1",
        "gzip",
        "gzip;q=0.2",
        "zstd;q=0.9, gzip;q=0.1",
        "deflate",
        "identity",
        "",
        "*",
    ] {
        let response = edge
            .send("GET", "/a", &[("accept-encoding", accepted)])
            .await;
        assert_eq!(response.header("vary"), "Accept-Encoding");
    }
    let asked = origin.requests().of("/a");
    let asked = asked
        .iter()
        .map(|request| request.headers.get("accept-encoding"));
    let expected = [
        None,
        Some("br, zstd, gzip"),
        Some("gzip"),
        Some("zstd, gzip"),
    ];
    assert!(asked.eq(expected), "{}", origin.requests().summary());
}

#[tokio::test]
async fn a_response_whose_vary_makes_no_variants_is_not_shared() {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).workers(1).start().await;
    for (n, vary) in [
        "*",
        "accept-language, *",
        "User-Agent",
        "a, b, c, d, e, f, g, h, i",
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/a{n}");
        origin.on(&path, Reply::ok(1000).max_age(60).header("vary", vary));
        let mut seen = Vec::new();
        for _ in 0..3 {
            let response = get_in(&edge, &path, "fr").await;
            assert!(!response.is_hit(), "{response}");
            assert_eq!(response.header("vary"), vary);
            seen.push(response.stamp(&path).sequence);
        }
        seen.dedup();
        assert_eq!(seen.len(), 3, "{vary}");
    }
    assert_eq!(edge.counter("sluice_varying_learnt").await, 0);
}

#[tokio::test]
async fn a_value_that_is_too_long_for_a_key_goes_around_the_cache() {
    let origin = Origin::start().ready().await;
    let reply = Reply::ok(1000).max_age(60);
    origin.on("/a", reply.header("vary", "x-plan"));
    let edge = Edge::http(&origin).workers(1).start().await;
    edge.get("/a").await;
    let long = "x".repeat(300);
    for _ in 0..2 {
        let response = edge.send("GET", "/a", &[("x-plan", &long)]).await;
        assert!(
            response.cache_status().contains("detail=vary"),
            "{response}"
        );
    }
    assert!(edge.get("/a").await.is_reused());
    assert_eq!(origin.count("/a"), 3);
}

#[tokio::test]
async fn a_stale_variant_is_revalidated_as_itself() {
    let origin = Origin::start().ready().await;
    let reply = Reply::ok(1000).max_age(1).etag("v1");
    origin.on("/a", reply.header("vary", "accept-language"));
    let edge = Edge::http(&origin).workers(1).start().await;
    get_in(&edge, "/a", "fr").await;
    let first = get_in(&edge, "/a", "fr").await.stamp("/a");
    get_in(&edge, "/a", "de").await;
    eventually("a revalidation", async || {
        let response = get_in(&edge, "/a", "fr").await;
        assert_eq!(response.stamp("/a"), first, "{response}");
        assert_eq!(response.header("vary"), "accept-language");
        response.cache_status().contains("fwd=stale")
    })
    .await;
    let asked = origin.requests().of("/a");
    let last = &asked[asked.len() - 1].headers;
    assert_eq!(last.get("accept-language"), Some("fr"));
    assert_eq!(last.get("if-none-match"), Some("\"v1\""));
}

#[tokio::test]
async fn requests_for_variants_do_not_wait_for_each_other() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    let reply = Reply::ok(1000).max_age(60).header("vary", "user-agent");
    origin.on_each("/a", [reply.clone(), reply.hold(&gate)]);
    let edge = Edge::http(&origin).start().await;
    assert_eq!(edge.get("/a").await.status, 200);
    let flight = Crowd::connect(edge.address(), 20).await.fire("/a");
    // The key is uncacheable now on every worker that has sent a request once.
    gate.wait_reached(19).await;
    gate.open();
    flight.land().await.all(200);
}

#[tokio::test]
async fn a_policy_may_declare_a_vary_irrelevant() {
    let origin = Origin::start().ready().await;
    let vary = "Accept-Language, Origin";
    origin.on("/a", Reply::ok(1000).max_age(60).header("vary", vary));
    let policy = "origin: {kind: http}\nresponse: {ignore_vary: [accept-language, origin]}\n";
    let edge = Edge::http(&origin).workers(1).policy(policy).start().await;
    for language in ["fr", "de", "fr"] {
        let response = edge
            .send("GET", "/a", &[("accept-language", language)])
            .await;
        let _ = response.stamp("/a");
    }
    assert_eq!(origin.count("/a"), 1);
}
