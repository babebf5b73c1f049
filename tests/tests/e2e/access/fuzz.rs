// SPDX-License-Identifier: Apache-2.0
//! A client without rights gets no byte of a protected object, with any request, by HTTP/1.1 and HTTP/2.

use std::net::SocketAddr;

use serde_json::json;
use sluice_tests::chance::rng::Rng;
use sluice_tests::client::http2::Http2;
use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;
use sluice_tests::edge::purger::Purger;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;

use super::world::Rules;

/// Requests in each state of the object, unless [`VARIABLE`] has another number.
const TRIES: usize = 2_500;
/// The variable with the number of requests in each state.
const VARIABLE: &str = "FUZZ_REQUESTS";
/// Ways to write the path of a protected object, and of paths near it.
const PATHS: &[&str] = &[
    "/private/x",
    "/./private/x",
    "/a/../private/x",
    "/%70rivate/x",
    "/p%72ivate/%78",
    "/public/../private/x",
    "/public/%2e%2e/private/x",
    "/public/./../private/x",
    "/public/x/../../private/x",
    "/private/x?",
    "/private/x?/public/x",
    "/private/x?sluice-key=a",
    "/private/x?sluice-key=a&sluice-expires=9999999999&sluice-signature=00",
    "/private/y",
    "/./private/held",
    "/private/held",
    "/",
];
const METHODS: &[&str] = &["GET", "GET", "HEAD", "POST", "OPTIONS", "DELETE"];
const FIELDS: &[(&str, &str)] = &[
    ("authorization", "Basic YWRhOndyb25n"),
    ("authorization", "Basic YWRhOnNlY3JldA"),
    ("authorization", "Bearer x"),
    ("cookie", "sluice-signed=sluice-prefix=/*&sluice-key=a"),
    ("cookie", "session=admin"),
    ("range", "bytes=0-9"),
    ("if-none-match", "*"),
    ("cache-control", "no-cache"),
    ("cache-control", "only-if-cached"),
    ("x-forwarded-for", "10.1.2.3, 198.51.100.7"),
    ("x-forwarded-uri", "/public/x"),
    ("x-original-url", "/public/x"),
    ("x-auth-request-user", "admin"),
    ("x-sluice-access", "1"),
    ("x-sluice-client", "10.1.2.3"),
    ("x-sluice-link", "f0"),
    ("x-sluice-empty", "1"),
    ("x-envoy-original-path", "/public/x"),
    ("x-http-method-override", "GET"),
    ("origin", "https://a.test"),
    ("access-control-request-method", "GET"),
];

fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[rng.below(from.len())]
}

/// The method, the path and the fields of a request of a stranger.
fn draw(
    rng: &mut Rng,
) -> (
    &'static str,
    &'static str,
    Vec<(&'static str, &'static str)>,
) {
    let mut fields: Vec<(&str, &str)> = Vec::new();
    for _ in 0..rng.below(4) {
        let field = *pick(rng, FIELDS);
        if fields.iter().all(|(name, _)| *name != field.0) {
            fields.push(field);
        }
    }
    if fields.iter().all(|(name, _)| *name != "x-forwarded-for") {
        fields.push(("x-forwarded-for", "198.51.100.7"));
    }
    (*pick(rng, METHODS), *pick(rng, PATHS), fields)
}

/// Checks that a response has no byte of the origin.
fn assert_closed(status: u16, body: &[u8], what: &str) {
    assert!(
        [400, 401, 403, 405, 508].contains(&status),
        "{what}: {status}"
    );
    let text = String::from_utf8_lossy(body);
    let is_own = text.is_empty() || text.ends_with(".\n") || text == "no";
    assert!(is_own, "{what}: {text}");
}

async fn over_http1(address: SocketAddr, tries: usize, seed: u64) {
    let mut rng = Rng::new(seed);
    for _ in 0..tries.div_ceil(50) {
        let mut client = Client::connect(address).await;
        for _ in 0..50 {
            let (method, path, fields) = draw(&mut rng);
            let response = client.exchange(request(method, path, &fields)).await;
            let what = format!("{method} {path} {fields:?}");
            assert_closed(response.status, &response.body, &what);
            if response.header("connection") == "close" {
                client = Client::connect(address).await;
            }
        }
    }
}

async fn over_http2(address: SocketAddr, tries: usize, seed: u64) {
    let mut rng = Rng::new(seed);
    for _ in 0..tries.div_ceil(50) {
        let client = Http2::connect(address).await;
        for _ in 0..50 {
            let (method, path, fields) = draw(&mut rng);
            let answered = client.send(method, path, &fields).await;
            let what = format!("HTTP/2 {method} {path} {fields:?}");
            if let Ok((status, _, body)) = answered {
                assert_closed(status, &body, &what);
            }
        }
    }
}

/// Sends requests of strangers. None may reach the origin.
async fn attack(edge: &Edge, origin: &Origin, state: &str) {
    let tries = std::env::var(VARIABLE).ok();
    let tries = tries.map_or(TRIES, |number| number.parse().unwrap());
    let (address, before) = (edge.address(), origin.requests().total());
    tokio::join!(
        over_http1(address, tries / 4, 1),
        over_http1(address, tries / 4, 2),
        over_http2(address, tries / 4, 3),
        over_http2(address, tries / 4, 4),
    );
    assert_eq!(origin.requests().total(), before, "{state}");
}

/// The rules with all schemes that need no keys of an issuer.
fn rules(checker: &Origin) -> Rules {
    let url = checker.url();
    let rules = Rules::new(&format!(
        "any_of:\n- address: [10.0.0.0/8]\n- basic: {{users: users}}\n- signed: {{keys: {{a: {{env: SIGNING_KEY}}}}}}\n- \
         forward: {{url: '{url}', copy: [x-auth-request-user]}}\nexcept: ['/public/*']\n"
    ));
    let users = "ada:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n";
    std::fs::write(rules.0.path().join("users"), users).unwrap();
    rules
}

#[tokio::test]
async fn no_request_of_a_stranger_gets_a_byte_with_all_schemes_in_place() {
    let (origin, checker) = (Origin::start().ready().await, Origin::start().ready().await);
    let (gate, purger) = (Gate::new(), Purger::new());
    origin.on("*", Reply::ok(1_000).max_age(2).ranges());
    let held = Reply::ok(1_000).max_age(600).hold_after(500, &gate);
    origin.on("/private/held", held);
    checker.on("*", Reply::text("no").with_status(403));
    let rules = rules(&checker);
    let edge = purger.open(rules.edge(&origin)).workers(2).start().await;
    attack(&edge, &origin, "cold").await;
    assert_eq!(origin.requests().total(), 0);
    let inside = [("x-forwarded-for", "10.1.2.3")];
    let mut connection = Client::connect(edge.address()).await;
    connection.heat("/private/x", &inside).await;
    attack(&edge, &origin, "stored, hot, and then stale").await;
    connection.heat("/private/x", &inside).await;
    purger.purge(json!({"everything": true})).await;
    attack(&edge, &origin, "purged").await;
    let mut leader = Client::connect(edge.address()).await;
    leader
        .send(&request("GET", "/private/held", &inside))
        .await
        .unwrap();
    gate.wait_reached(1).await;
    attack(&edge, &origin, "on its way to a client inside").await;
    gate.open();
    let whole = leader.response().await.unwrap();
    assert_eq!((whole.status, whole.body.len()), (200, 1_000));
    let open = edge.send("GET", "/public/x", &[]).await;
    assert_eq!(open.status, 200, "{open}");
    assert!(checker.requests().total() > TRIES);
}
