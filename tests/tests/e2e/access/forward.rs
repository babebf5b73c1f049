// SPDX-License-Identifier: Apache-2.0
//! A server that is asked decides about each client, and its answer reaches that client alone.

use std::time::Duration;

use sluice_tests::client::{Client, Response, request};
use sluice_tests::edge::Builder;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;

use super::world::{Rules, origin};

/// A server that admits what is below `/in/`.
async fn checker() -> Origin {
    let checker = Origin::start().ready().await;
    checker.on("/auth/in/*", Reply::status(202).empty());
    checker.on("/auth/out/*", Reply::status(403).empty());
    checker
}

fn rules(checker: &Origin, more: &str) -> Rules {
    let url = checker.url();
    Rules::new(&format!(
        "any_of: [{{forward: {{url: {url}/auth, append: true{more}}}}}]\nexcept: ['/public/*']\n"
    ))
}

fn assert_unknown(response: &Response, what: &str) {
    assert_eq!(response.status, 503, "{what}: {response}");
    assert_eq!(response.header("retry-after"), "1", "{what}: {response}");
    assert_eq!(response.header("cache-control"), "no-store", "{what}");
    let text = String::from_utf8_lossy(&response.body);
    assert_eq!(text, "Access could not be checked. Try again.\n", "{what}");
}

#[tokio::test]
async fn the_server_gets_the_facts_and_the_origin_the_headers_that_are_copied() {
    let (origin, checker) = (origin().await, checker().await);
    let admits = Reply::status(202)
        .empty()
        .header("x-auth-request-user", "ada")
        .header("x-other", "1")
        .header("set-cookie", "a=1; Path=/")
        .header("set-cookie", "b=2; HttpOnly");
    checker.on("/auth/in/*", admits);
    let more =
        ", copy: [x-auth-request-user], headers: [accept-language], cookie: '_oauth2_proxy*'";
    let rules = rules(&checker, more);
    let log = ("SLUICE_ACCESS_LOG", "json");
    let edge = rules.edge(&origin).env(log.0, log.1).start().await;
    let sent = [
        ("x-forwarded-for", "192.0.2.1, 10.1.2.3"),
        ("authorization", "Bearer token"),
        (
            "cookie",
            "_oauth2_proxy=s; theme=dark; _oauth2_proxy_csrf=c",
        ),
        ("accept-language", "de"),
        ("x-auth-request-user", "admin"),
        ("x-sluice-client", "192.0.2.9"),
        ("x-secret", "1"),
    ];
    let response = edge.send("POST", "/in/./x?q=1", &sent).await;
    assert_eq!(response.status, 200, "{response}");
    let cookies: Vec<_> = response.headers.all("set-cookie").collect();
    assert_eq!(cookies, ["a=1; Path=/", "b=2; HttpOnly"]);
    let asked = &checker.requests().all()[0];
    let field = |name| asked.headers.get(name).unwrap_or_default();
    let line = (asked.method.as_str(), asked.target.as_str());
    assert_eq!(line, ("GET", "/auth/in/x?q=1"));
    for (name, value) in [
        ("x-forwarded-method", "POST"),
        ("x-original-method", "POST"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", "edge.test"),
        ("x-forwarded-uri", "/in/x?q=1"),
        ("x-original-url", "http://edge.test/in/x?q=1"),
        ("x-forwarded-for", "10.1.2.3"),
        ("authorization", "Bearer token"),
        (
            "cookie",
            "_oauth2_proxy=s; theme=dark; _oauth2_proxy_csrf=c",
        ),
        ("accept-language", "de"),
        ("x-secret", ""),
        ("x-auth-request-user", ""),
        ("x-sluice-client", ""),
        ("x-envoy-expected-rq-timeout-ms", ""),
    ] {
        assert_eq!(field(name), value, "{name}");
    }
    let reached = origin.requests().all();
    for (name, value) in [
        ("x-auth-request-user", Some("ada")),
        ("x-other", None),
        ("authorization", None),
        ("cookie", Some("theme=dark")),
    ] {
        assert_eq!(reached[0].headers.get(name), value, "{name}");
    }
    eventually("the user in the log", async || {
        edge.log().contains(r#""access_user":"ada""#)
    })
    .await;
    // A response to a request with copied headers is for its client alone.
    for _ in 0..2 {
        let response = edge.get("/in/y").await;
        assert_eq!((response.status, response.is_hit()), (200, false));
    }
    assert_eq!(origin.count("/in/y"), 2);
    // A header of a client is removed where no question is asked, too.
    let forged = [("x-auth-request-user", "admin")];
    assert_eq!(edge.send("GET", "/public/x", &forged).await.status, 200);
    let open = origin.requests().of("/public/x");
    assert_eq!(open[0].headers.get("x-auth-request-user"), None);
    assert_eq!(checker.requests().total(), 3);
}

#[tokio::test]
async fn a_refusal_is_the_servers_own_and_anything_else_is_503() {
    let (origin, checker) = (origin().await, checker().await);
    let rules = rules(&checker, ", timeout: 500ms");
    let edge = rules.edge(&origin).start().await;
    for status in [301, 302, 303, 307, 308, 401, 403] {
        let reply = Reply::text("Go away.")
            .with_status(status)
            .header("location", "/login?rd=%2Fx")
            .header("www-authenticate", "Basic realm=\"x\"")
            .header("www-authenticate", "Bearer")
            .header("set-cookie", "a=1")
            .header("set-cookie", "b=2")
            .header("content-type", "text/x-refusal")
            .header("x-internal", "1");
        checker.on("/auth/out/*", reply);
        let refused = edge.get("/out/x").await;
        assert_eq!(refused.status, status, "{refused}");
        assert_eq!(refused.body, b"Go away.", "{refused}");
        assert_eq!(refused.header("location"), "/login?rd=%2Fx");
        assert_eq!(refused.header("content-type"), "text/x-refusal");
        assert_eq!(refused.header("cache-control"), "no-store");
        assert_eq!(refused.header("x-internal"), "");
        let all = |name| refused.headers.all(name).collect::<Vec<_>>();
        assert_eq!(all("www-authenticate"), ["Basic realm=\"x\"", "Bearer"]);
        assert_eq!(all("set-cookie"), ["a=1", "b=2"]);
    }
    let slow = Reply::status(200).empty().delay(Duration::from_secs(2));
    for (what, reply) in [
        ("an error", Reply::status(500).empty()),
        ("no page", Reply::status(404).empty()),
        ("nothing new", Reply::status(304).empty()),
        ("a redirect to nowhere", Reply::status(302).empty()),
        ("a long refusal", Reply::new(403, 65_537)),
        ("slow", slow),
        ("reset", Reply::status(200).empty().reset()),
    ] {
        checker.on("/auth/in/*", reply);
        assert_unknown(&edge.get("/in/x").await, what);
    }
    assert_eq!(origin.requests().total(), 0);
    checker.on("/auth/in/*", Reply::status(200).empty());
    assert_eq!(edge.get("/in/x").await.status, 200);
    checker.refuse().await;
    assert_unknown(&edge.get("/in/x").await, "down, with a stored object");
    checker.listen().await;
    eventually("the server again", async || {
        edge.get("/in/x").await.status == 200
    })
    .await;
    assert_eq!(origin.requests().total(), 1);
    assert_eq!(edge.counter("sluice_access_forward_failures").await, 8);
}

#[tokio::test]
async fn a_cookie_of_an_answer_is_for_its_client_alone() {
    let (origin, checker) = (Origin::start().ready().await, checker().await);
    let gate = Gate::new();
    origin.on("*", Reply::ok(5_000).max_age(600).hold(&gate));
    let replies = (0..9).map(|number| {
        Reply::status(200)
            .empty()
            .header("set-cookie", &format!("n={number}"))
    });
    checker.on_each("/auth/in/*", replies.chain([Reply::status(200).empty()]));
    let rules = rules(&checker, "");
    let edge = rules.edge(&origin).workers(2).start().await;
    let mut clients = Vec::new();
    for number in 1..=4 {
        let mut client = Client::connect(edge.address()).await;
        client.send(&request("GET", "/in/x", &[])).await.unwrap();
        eventually("the question", async || {
            checker.requests().total() == number
        })
        .await;
        clients.push(client);
    }
    gate.wait_reached(1).await;
    gate.open();
    let mut seen = Vec::new();
    for mut client in clients {
        let response = client.response().await.unwrap();
        assert_eq!(response.status, 200, "{response}");
        seen.extend(response.headers.all("set-cookie").map(str::to_owned));
    }
    for number in 4..9 {
        let response = edge.get("/in/x").await;
        assert_eq!(response.header("set-cookie"), format!("n={number}"));
    }
    assert_eq!(seen, ["n=0", "n=1", "n=2", "n=3"]);
    let plain = edge.get("/in/x").await;
    assert_eq!((plain.is_hit(), plain.header("set-cookie")), (true, ""));
    assert_eq!(origin.requests().total(), 1);
}

#[tokio::test]
async fn a_body_waits_for_the_answer_and_a_loop_ends() {
    let (origin, checker) = (origin().await, checker().await);
    let gate = Gate::new();
    checker.on("/auth/in/*", Reply::status(200).empty().hold(&gate));
    let rules = rules(&checker, "");
    let edge = rules.edge(&origin).start().await;
    let mut client = Client::connect(edge.address()).await;
    let body = "b".repeat(20_000);
    let length = [("content-length", "20000")];
    client
        .send(&request("POST", "/in/x", &length))
        .await
        .unwrap();
    client.send_more(&body).await.unwrap();
    gate.wait_reached(1).await;
    assert_eq!(origin.requests().total(), 0);
    gate.open();
    assert_eq!(client.response().await.unwrap().status, 200);
    assert_eq!(
        origin.requests().all()[0].headers.get("content-length"),
        Some("20000")
    );
    let name = checker.requests().all()[0]
        .headers
        .get("cdn-loop")
        .unwrap()
        .to_owned();
    let again = edge.send("GET", "/in/x", &[("cdn-loop", &name)]).await;
    assert_eq!(again.status, 508, "{again}");
    assert_eq!(checker.requests().total(), 1);
}

#[tokio::test]
async fn a_reload_to_another_server_has_no_moment_of_the_former_one() {
    let (origin, lenient, strict) = (origin().await, checker().await, checker().await);
    strict.on("/auth/in/*", Reply::status(403).empty());
    let rules = Rules::new("");
    let file = rules.0.path().join("sites.yaml");
    let put = |checker: &Origin| {
        let (origin, url) = (origin.url(), checker.url());
        let access =
            format!("access: {{any_of: [{{forward: {{url: {url}/auth, append: true}}}}]}}");
        let text = format!("sites:\n- name: docs\n  origin: {origin}\n  {access}\n");
        let part = file.with_extension("part");
        std::fs::write(&part, text).unwrap();
        std::fs::rename(part, &file).unwrap();
    };
    put(&lenient);
    let edge = Builder::new()
        .env("SLUICE_SITES", file.to_str().unwrap())
        .workers(2);
    let mut edge = edge.start().await;
    for (checker, status) in [(&strict, 403), (&lenient, 200), (&strict, 403)] {
        let former = edge.get("/in/x").await.status;
        assert_eq!(former, 603 - status);
        let reloads = edge.log().matches("sluice: reloaded").count();
        put(checker);
        edge.signal(libc::SIGHUP);
        let mut seen = Vec::new();
        eventually("the new server on all workers", async || {
            for _ in 0..8 {
                seen.push(edge.get("/in/x").await.status);
            }
            let is_reloaded = edge.log().matches("sluice: reloaded").count() > reloads;
            is_reloaded && seen.ends_with(&[status; 8])
        })
        .await;
        let others = seen.iter().filter(|seen| ![former, status].contains(seen));
        assert_eq!(others.count(), 0, "{seen:?}");
    }
}
