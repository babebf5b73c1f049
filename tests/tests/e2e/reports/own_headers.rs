// SPDX-License-Identifier: Apache-2.0
//! Requests whose own headers, which no key has, change the origin's response: padding, a header that makes the
//! origin fail, a header for which the origin sets a cookie, a header that a framework obeys.

use sluice_tests::client::crowd::Crowd;
use sluice_tests::client::request;
use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use test_case::test_case;

const BROWSER: (&str, &str) = ("user-agent", "Mozilla/5.0");
const UNREADABLE: (&str, &str) = ("accept-language", "%");

/// An attacker's finding: padding above `limits.lead_header_bytes` makes the origin answer with another status, which
/// has a lifetime.
#[test_case(404; "with a 404")]
#[test_case(301; "with a redirect")]
#[test_case(200; "with another page")]
#[tokio::test]
async fn the_answer_to_padding_is_its_clients_alone(status: u16) {
    let origin = Origin::start().ready().await;
    let padded = Reply::new(status, 500)
        .max_age(600)
        .header("location", "/b");
    origin.on_each("/a", [padded, Reply::ok(1000).max_age(600)]);
    let edge = Edge::http(&origin).workers(2).start().await;
    let padding = "x".repeat(5_000);
    let headers = [("x-padding", padding.as_str())];
    let padded = edge.send("GET", "/a", &headers).await;
    assert_eq!(padded.status, status);
    assert!(!padded.cache_status().contains("stored"), "{padded}");
    let next = edge.get("/a").await;
    assert_eq!(next.stamp("/a").size, 1000);
    assert_eq!(origin.count("/a"), 2);
}

/// An attacker's finding: one header made the application answer 500, and all other clients got that response.
#[test_case(1, "no-cache"; "validated at each use, with one worker")]
#[test_case(2, "no-cache"; "validated at each use, with two workers")]
#[test_case(2, "s-maxage=1"; "for shared caches")]
#[test_case(2, "max-age=1, must-revalidate"; "never stale")]
#[tokio::test]
async fn a_header_that_makes_the_origin_fail_does_so_for_its_client_only(
    workers: usize,
    control: &str,
) {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).workers(workers).start().await;
    let gate = Gate::new();
    let page = || Reply::ok(1000).header("cache-control", control).etag("one");
    let failing = Reply::status(500).hold(&gate);
    origin.on_each("/a", [page(), failing, page()]);
    assert_eq!(edge.get("/a").await.status, 200);
    if control != "no-cache" {
        tokio::time::sleep(std::time::Duration::from_millis(2_100)).await;
    }
    let attack = Crowd::connect(edge.address(), 1).await;
    let attack = attack.fire_each(|_| request("GET", "/a", &[UNREADABLE]));
    gate.wait_reached(1).await;
    let others = Crowd::connect(edge.address(), 20).await;
    let others = others.fire_each(|_| request("GET", "/a", &[BROWSER]));
    edge.wait_for_value("sluice_parked_now", 20).await;
    gate.open();
    attack.land().await.all(500);
    others.land().await.all(200);
}

/// An attacker's finding: one `Referer` for which the origin adds `Set-Cookie` turned caching off for two minutes.
#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn a_header_that_has_the_origin_set_a_cookie_leaves_the_page_stored(workers: usize) {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).workers(workers).start().await;
    let gate = Gate::new();
    let page = || Reply::ok(1000).max_age(600);
    let marked = page().header("set-cookie", "from=there").hold(&gate);
    origin.on_each("/a", [marked, page()]);
    let attack = Crowd::connect(edge.address(), 1).await;
    let attack = attack.fire_each(|_| request("GET", "/a", &[("referer", "http://there.test/")]));
    gate.wait_reached(1).await;
    let others = Crowd::connect(edge.address(), 20).await;
    let others = others.fire_each(|_| request("GET", "/a", &[BROWSER]));
    edge.wait_for_value("sluice_parked_now", 20).await;
    gate.open();
    attack.land().await.all(200);
    for response in others.land().await.all(200) {
        assert_eq!(response.header("set-cookie"), "", "{response}");
    }
    assert_eq!(origin.count("/a"), 2);
    assert!(edge.get("/a").await.is_hit());
}

/// The clients are ordinary, and the origin is really down.
#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn a_crowd_of_browsers_costs_an_origin_that_is_down_two_requests(workers: usize) {
    const CLIENTS: usize = 200;
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).workers(workers).start().await;
    let gate = Gate::new();
    origin.on("/a", Reply::status(503).hold(&gate));
    let crowd = Crowd::connect(edge.address(), CLIENTS).await;
    let crowd = crowd.fire_each(|_| request("GET", "/a", &[BROWSER]));
    gate.wait_reached(1).await;
    edge.wait_for_value("sluice_parked_now", CLIENTS as u64 - 1)
        .await;
    gate.open();
    crowd.land().await.all(503);
    assert_eq!(origin.count("/a"), 2);
}

/// A failing page is stored for one second, as with nginx's `proxy_cache_valid any 1s`.
#[test_case("microcache"; "by microcache")]
#[test_case("origin: {kind: http}\ncache: {ttl: {\"500\": 1s}}\n"; "by the policy")]
#[tokio::test]
async fn a_failing_page_that_the_policy_names_is_asked_for_a_few_times_a_second(policy: &str) {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::status(500));
    let edge = Edge::http(&origin).origin_decides().workers(2);
    let edge = match policy {
        "microcache" => edge.env("SLUICE_POLICY", policy),
        policy => edge.policy(policy),
    };
    let edge = edge.start().await;
    let begun = std::time::Instant::now();
    for _ in 0..40 {
        assert_eq!(edge.send("GET", "/a", &[BROWSER]).await.status, 500);
    }
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap() + 1;
    // Each worker sends a second request before it trusts a failure. A stored page is kept for less than two seconds.
    let most = 2 + 3 * seconds;
    assert!(origin.count("/a") <= most, "{} of 40", origin.count("/a"));
}

/// GHSA-f46r-rw29-r322, GHSA-cpj6-fhp6-mr6j, GHSA-3g8h-86w9-wvmq, symfony/symfony#11664: headers that frameworks
/// obey.
#[tokio::test]
async fn headers_that_frameworks_obey_do_not_reach_the_origin() {
    let origin = Origin::start().ready().await;
    origin.on("/*", Reply::ok(1000).max_age(60));
    let edge = Edge::http(&origin).start().await;
    let headers = [
        ("Surrogate-Capability", "a=\"ESI/1.0\""),
        ("X-React-Router-SPA-Mode", "yes"),
        ("X-React-Router-Prerender-Data", "x"),
        ("X-Nextjs-Data", "1"),
        ("CF-Visitor", "{\"scheme\":\"http\"}"),
        ("X-Sendfile-Type", "X-Accel-Redirect"),
        ("X-Accel-Mapping", "/a=/b"),
        ("X-Nuxt-No-Ssr", "1"),
        ("X-Astro-Path", "/b"),
        ("WL-Proxy-SSL", "true"),
        ("$WSSC", "https"),
    ];
    for (number, header) in headers.into_iter().enumerate() {
        edge.send("GET", &format!("/{number}"), &[header]).await;
    }
    for (request, (name, _)) in origin.requests().all().iter().zip(headers) {
        assert!(request.headers.get(name).is_none(), "{name}");
    }
}

/// CVE-2025-49005, CVE-2026-44576: a payload of Next.js is one variant if `Vary` names it, and its client's alone
/// otherwise.
#[tokio::test]
async fn a_payload_that_vary_does_not_name_is_its_clients_alone() {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).workers(1).start().await;
    for vary in [None, Some("rsc, next-router-state-tree")] {
        let path = format!("/{}", vary.is_some());
        let reply = |size| match vary {
            Some(vary) => Reply::ok(size).max_age(60).header("vary", vary),
            None => Reply::ok(size).max_age(60),
        };
        origin.on_each(&path, [reply(300), reply(1000)]);
        let payload = edge.send("GET", &path, &[("RSC", "1")]).await;
        assert_eq!(payload.stamp(&path).size, 300);
        assert_eq!(edge.get(&path).await.stamp(&path).size, 1000, "{vary:?}");
        assert!(edge.get(&path).await.is_hit());
        let again = edge.send("GET", &path, &[("RSC", "1")]).await;
        let size = if vary.is_some() { 300 } else { 1000 };
        assert_eq!(again.stamp(&path).size, size, "{vary:?}");
        assert_eq!(origin.count(&path), 2);
    }
}
