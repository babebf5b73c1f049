// SPDX-License-Identifier: Apache-2.0
//! A token of the issuer opens a site, and nothing else does.

use serde_json::{Value, json};
use sluice_tests::client::Response;
use sluice_tests::edge::direct::Direct;
use sluice_tests::edge::{ADMIN_PAGES, Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::token_issuer::{ISSUER, TokenIssuer, key_set, now};

use super::world::{Rules, origin};

/// A public key, whose private part is deleted.
const RSA_KEY: &str = "\
xeaor_TXMxd58yphToKbvQPj2uT-9T29R8Y93IdcWts03ZtE0h1g5XpBZbT1mk7Pz4e4VpCj04FyPGcqvA-4p3KuE8pxQob-aJyW\
4c56BL8QOeMMO0Trzh7d22TKCQ67mb_rq2vlfm75lt5BDSBZY1lCJ8-_2uGUOds2W0JYAE023H1F8xzBbokGNSnHh3YhZmKZtcfM\
nHAQNvPpoDYaQT6ONaZkgxg3KVfvWbTyREncRMZPOj4wJrcHGl5mehz0PLDJTcf0WjlToh3aXMsNqnbEvzWlYCBOvI6QdYwzHru-\
yHJuqraYkpZDx1gRsLzPy3cyylhoHlrMERIzgEqezQ\
";
/// A token with RS256 by that key, until the year 2100.
const RSA_TOKEN: &str = "\
eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYSJ9.eyJpc3MiOiJodHRwczovL2lkLnRlc3QiLCJhdWQiOiJkb2NzIiwic3ViIjoicnN\
hIiwiZXhwIjo0MTAyNDQ0ODAwfQ.Nk3jEh8IPyrXbkiXYKjWH5Z7lVWW1MEUxIJamqpkf7MYi2iF4eeZsgpggycm8LVRzjhZJuy-\
M5j20cJnPyc6M7yKyALTzGz8x6qj7ws2IZGI-4QT8QKNIiMjlFcKAGN4kkX2eZhLy-f-GnbC8QV9Sn4j0qboHuMGgeJQLGKt1E-2\
cspnzyiVuHHLtyj1Gx2H3F5_6iKuvvTDl2s8_xzl_3ej-o2vcfV1CLWZ5OxpfdWSYkR6pdWcpuYajQqpL-onEpTBZvulfhs9LMyJ\
sPfQAneGGwSu6HVFp4TyhZ4W8JwxBRn-n2an1e8N494BqISeHGDcFa7TK4NnAVixwMwTYg\
";

fn rules(jwks: &str, more: &str) -> Rules {
    Rules::new(&format!(
        "any_of: [{{jwt: {{issuer: {ISSUER}, audiences: [docs, wiki], jwks: {jwks}, cookie: session{more}}}}}]\n"
    ))
}

/// Rules with the keys of these issuers in a file.
fn of_file(issuers: &[&TokenIssuer]) -> Rules {
    let rules = rules("keys.json", "");
    put_keys(&rules, &key_set(issuers));
    rules
}

fn put_keys(rules: &Rules, text: &str) {
    let part = rules.0.path().join("keys.part");
    std::fs::write(&part, text).unwrap();
    std::fs::rename(part, rules.0.path().join("keys.json")).unwrap();
}

async fn get(edge: &Edge, path: &str, token: &str) -> Response {
    let authorization = format!("Bearer {token}");
    let headers = [("authorization", authorization.as_str())];
    edge.send("GET", path, &headers).await
}

fn assert_invalid(response: &Response, what: &str) {
    assert_eq!(response.status, 401, "{what}: {response}");
    let challenge = r#"Bearer realm="Restricted", error="invalid_token""#;
    assert_eq!(response.header("www-authenticate"), challenge, "{what}");
    assert_eq!(response.header("cache-control"), "no-store", "{what}");
    assert_eq!(response.body, b"The token is not valid.\n", "{what}");
}

#[tokio::test]
async fn a_valid_token_admits_and_reaches_neither_key_nor_origin_nor_log() {
    let (origin, edwards, elliptic) = (
        origin().await,
        TokenIssuer::edwards("a"),
        TokenIssuer::elliptic("b"),
    );
    let rules = of_file(&[]);
    let rsa = json!({ "kty": "RSA", "kid": "rsa", "alg": "RS256", "n": RSA_KEY, "e": "AQAB" });
    let keys = json!({ "keys": [edwards.jwk(), elliptic.jwk(), rsa] });
    put_keys(&rules, &keys.to_string());
    let edge = rules.edge(&origin).env("SLUICE_ACCESS_LOG", "json");
    let edge = edge.start().await;
    let wiki = json!({ "aud": ["x", "wiki"], "sub": "eve\r\nx" });
    let tokens = [
        edwards.token(&json!({})),
        elliptic.token(&json!({})),
        RSA_TOKEN.to_owned(),
        edwards.token(&wiki),
        // Two clocks may differ by a minute.
        edwards.token(&json!({ "exp": now() - 30 })),
        edwards.token(&json!({ "nbf": now() + 30 })),
    ];
    for token in &tokens {
        let response = get(&edge, "/a", token).await;
        assert_eq!(response.status, 200, "{response}");
        let cookies = format!("theme=dark; session={token}; b=2");
        let headers = [("cookie", cookies.as_str())];
        assert_eq!(edge.send("GET", "/b", &headers).await.status, 200);
    }
    // All users share the object, and the cookie of the session alone is removed.
    assert_eq!(origin.count("/a"), 1);
    for request in origin.requests().all() {
        assert_eq!(request.headers.get("authorization"), None, "{request:?}");
        let expected = (request.target == "/b").then_some("theme=dark; b=2");
        assert_eq!(request.headers.get("cookie"), expected, "{request:?}");
    }
    for user in [
        r#""access_user":"ada""#,
        r#""access_user":"rsa""#,
        "eve\u{fffd}\u{fffd}x",
    ] {
        eventually("the user in the log", async || edge.log().contains(user)).await;
    }
    assert_eq!(edge.counter("sluice_access_by_token").await, 12);
    for token in &tokens {
        let signature = token.rsplit_once('.').unwrap().1;
        assert!(!edge.log().contains(signature), "{token}");
        for page in ADMIN_PAGES {
            let dump = edge.admin_get(page).await;
            assert!(
                !String::from_utf8_lossy(&dump.body).contains(signature),
                "{page}"
            );
        }
    }
}

#[tokio::test]
async fn no_other_token_admits() {
    let (origin, issuer, stranger) = (
        origin().await,
        TokenIssuer::edwards("a"),
        TokenIssuer::edwards("a"),
    );
    let rules = of_file(&[&issuer]);
    let edge = rules.edge(&origin).start().await;
    let valid = issuer.token(&json!({}));
    let header = json!({ "alg": "EdDSA", "kid": "a" });
    let other_kid = json!({ "alg": "EdDSA", "kid": "z" });
    let claims = json!({ "iss": ISSUER, "aud": "docs", "exp": now() + 600 });
    let none = issuer.sign(&json!({ "alg": "none" }), &claims);
    let unsigned = none.rsplit_once('.').unwrap().0;
    for (what, token) in [
        ("expired", issuer.token(&json!({ "exp": now() - 90 }))),
        ("without expiry", issuer.token(&json!({ "exp": null }))),
        ("an expiry of 0", issuer.token(&json!({ "exp": 0 }))),
        (
            "an expiry that is a text",
            issuer.token(&json!({ "exp": "9999999999" })),
        ),
        ("not yet valid", issuer.token(&json!({ "nbf": now() + 90 }))),
        ("another audience", issuer.token(&json!({ "aud": "other" }))),
        ("no audience", issuer.token(&json!({ "aud": null }))),
        ("no audience in a list", issuer.token(&json!({ "aud": [] }))),
        (
            "another issuer",
            issuer.token(&json!({ "iss": "https://id.test/" })),
        ),
        ("no issuer", issuer.token(&json!({ "iss": null }))),
        ("another key", stranger.token(&json!({}))),
        ("an unknown key", issuer.sign(&other_kid, &claims)),
        ("the algorithm none", none.clone()),
        ("no signature", format!("{unsigned}.")),
        ("two parts", unsigned.to_owned()),
        (
            "an extension",
            issuer.sign(
                &json!({ "alg": "EdDSA", "kid": "a", "crit": ["x"], "x": 1 }),
                &claims,
            ),
        ),
        (
            "another algorithm",
            issuer.sign(&json!({ "alg": "HS256", "kid": "a" }), &claims),
        ),
        ("claims that are none", issuer.sign(&header, &json!([]))),
        ("no token", String::new()),
        ("another form", "a.b.c".to_owned()),
    ] {
        assert_invalid(&get(&edge, "/a", &token).await, what);
        assert_invalid(&get(&edge, "/x/../a", &token).await, what);
        if !token.is_empty() {
            let cookie = format!("session={token}");
            let response = edge.send("GET", "/a", &[("cookie", &cookie)]).await;
            assert_invalid(&response, what);
        }
    }
    let (bearer, cookie) = (format!("Bearer {valid}"), format!("session={valid}"));
    let twice = [
        ("authorization", bearer.as_str()),
        ("authorization", &bearer),
    ];
    assert_invalid(&edge.send("GET", "/a", &twice).await, "two headers");
    let twice = [("cookie", format!("{cookie}; {cookie}"))];
    let twice = twice
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    assert_invalid(&edge.send("GET", "/a", &twice).await, "two cookies");
    let without = edge.get(&format!("/a?access_token={valid}")).await;
    assert_eq!(without.status, 401, "{without}");
    assert_eq!(
        without.header("www-authenticate"),
        r#"Bearer realm="Restricted""#
    );
    // No header of a client is a proof.
    let forged = [
        ("x-sluice-token-issuer", ISSUER),
        ("authorization", "Bearer e30.e30.e30"),
    ];
    assert_invalid(&edge.send("GET", "/a", &forged).await, "a forged proof");
    assert_eq!(origin.requests().total(), 0);
    assert_eq!(get(&edge, "/a", &valid).await.status, 200);
}

#[tokio::test]
async fn keys_of_a_url_are_fetched_when_they_can_be_and_kept_when_not() {
    let (origin, keys) = (origin().await, Origin::start().ready().await);
    let (first, second) = (TokenIssuer::edwards("a"), TokenIssuer::edwards("b"));
    let [former, newer] = [&first, &second].map(|issuer| issuer.token(&json!({})));
    keys.on("/keys", Reply::text(key_set(&[&first])));
    keys.refuse().await;
    let rules = Rules::new("");
    let file = rules.0.path().join("sites.yaml");
    let access = format!(
        "{{any_of: [{{jwt: {{issuer: {ISSUER}, audiences: [docs], jwks: '{}/keys', refresh: 1s}}}}]}}",
        keys.url()
    );
    let site = format!(
        "- name: docs\n  origin: {}\n  access: {access}\n",
        origin.url()
    );
    std::fs::write(&file, format!("sites:\n{site}")).unwrap();
    let edge = Builder::new().env("SLUICE_SITES", file.display().to_string());
    let edge = edge.metrics().allow_log_of("jwt").start().await;
    let unknown = get(&edge, "/a", &former).await;
    assert_eq!(unknown.status, 503, "{unknown}");
    assert_eq!(unknown.header("retry-after"), "1", "{unknown}");
    assert_eq!(unknown.body, b"Access could not be checked. Try again.\n");
    assert_eq!(origin.requests().total(), 0);
    keys.listen().await;
    eventually("the keys", async || {
        get(&edge, "/a", &former).await.status == 200
    })
    .await;
    assert_invalid(&get(&edge, "/a", &newer).await, "a key that is not there");
    // Both keys, then the second alone.
    for (served, before, after) in [
        (key_set(&[&first, &second]), 200, 200),
        (key_set(&[&second]), 401, 200),
    ] {
        keys.on("/keys", Reply::text(served));
        eventually("other keys", async || {
            let statuses = [
                get(&edge, "/a", &former).await,
                get(&edge, "/a", &newer).await,
            ];
            statuses.map(|response| response.status) == [before, after]
        })
        .await;
    }
    // Envoy has fetched the keys in the background, and not only for a request.
    let asked = keys.requests().total();
    eventually("fetches in the background", async || {
        keys.requests().total() > asked + 2
    })
    .await;
    for reply in [
        Reply::status(500).empty(),
        Reply::text("{}"),
        Reply::text("no keys"),
    ] {
        let asked = keys.requests().total();
        keys.on("/keys", reply);
        eventually("a failed fetch", async || keys.requests().total() > asked).await;
        assert_eq!(get(&edge, "/a", &newer).await.status, 200);
    }
    keys.refuse().await;
    assert_eq!(get(&edge, "/a", &newer).await.status, 200);
    // Each fetch is counted for its site.
    for (result, least) in [("success", 3), ("failed", 3)] {
        let name = format!("envoy_http_jwt_authn_jwks_fetch_{result}{{");
        let document = edge.metrics_document().await;
        let mut lines = document.lines().filter(|line| line.starts_with(&name));
        let line = lines.next().unwrap_or_default();
        assert!(line.contains(r#"site="docs""#), "{name} {line}");
        let counted = line.rsplit(' ').next().and_then(|count| count.parse().ok());
        assert!(counted.is_some_and(|count: u64| count >= least), "{line}");
    }
    let refused = r#"sluice_access_failures_total{check="jwt",site="docs"}"#;
    let document = edge.metrics_document().await;
    assert!(document.contains(refused), "{document}");
}

fn verifier(config: &mut Value) -> &mut Value {
    let listeners = config["static_resources"]["listeners"]
        .as_array_mut()
        .unwrap();
    let is_verifier = |listener: &&mut Value| {
        listener["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("sluice_jwt_"))
    };
    listeners.iter_mut().find(is_verifier).unwrap()
}

fn manager(config: &mut Value) -> &mut Value {
    &mut verifier(config)["filter_chains"][0]["filters"][0]["typed_config"]
}

/// A change of Envoy's configuration.
type Change = fn(&mut Value);

/// Each part of the way to a verified token, taken out of Envoy's configuration.
const PARTS: &[(&str, Change)] = &[
    ("the filter", |config| {
        manager(config)["http_filters"]
            .as_array_mut()
            .unwrap()
            .remove(0);
    }),
    ("the rule of the filter", |config| {
        manager(config)["http_filters"][0]["typed_config"]["rules"] = json!([]);
    }),
    ("the filter, switched off", |config| {
        manager(config)["http_filters"][0]["disabled"] = true.into();
    }),
    ("the proof", |config| {
        let route = &mut manager(config)["route_config"]["virtual_hosts"][0]["routes"][0];
        route["response_headers_to_add"] = json!([]);
    }),
    ("the claims for the proof", |config| {
        let filter = &mut manager(config)["http_filters"][0]["typed_config"];
        filter["providers"]["token"]["payload_in_metadata"] = "".into();
    }),
    ("the route", |config| {
        manager(config)["route_config"]["virtual_hosts"][0]["routes"] = json!([]);
    }),
    ("the listener", |config| {
        verifier(config)["name"] = "former".into();
    }),
];

#[tokio::test]
async fn a_verifier_without_one_of_its_parts_admits_nobody() {
    let (origin, issuer) = (origin().await, TokenIssuer::edwards("a"));
    let rules = of_file(&[&issuer]);
    let whole: (&str, Change) = ("nothing", |_| {});
    for (part, change) in PARTS.iter().chain([&whole]) {
        let change = Direct {
            change: Some(*change),
            ..Direct::default()
        };
        let edge = rules.edge(&origin).direct(change).start().await;
        for token in [issuer.token(&json!({})), issuer.token(&json!({ "exp": 1 }))] {
            let response = get(&edge, "/a", &token).await;
            let is_control = *part == "nothing" && !token.is_empty() && response.status == 200;
            assert!(
                is_control || matches!(response.status, 401 | 503),
                "without {part}: {response}"
            );
        }
        let expected = usize::from(*part == "nothing");
        assert_eq!(origin.requests().total(), expected, "without {part}");
    }
}

#[tokio::test]
async fn a_reload_to_other_rules_admits_no_former_token_afterwards() {
    let (origin, issuer) = (origin().await, TokenIssuer::edwards("a"));
    let rules = Rules::new("");
    put_keys(&rules, &key_set(&[&issuer]));
    let file = rules.0.path().join("sites.yaml");
    let put = |issuer: &str, audience: &str| {
        let jwt = format!("{{issuer: {issuer}, audiences: [{audience}], jwks: keys.json}}");
        let origin = origin.url();
        let site =
            format!("- name: docs\n  origin: {origin}\n  access: {{any_of: [{{jwt: {jwt}}}]}}\n");
        let part = file.with_extension("part");
        std::fs::write(&part, format!("sites:\n{site}")).unwrap();
        std::fs::rename(part, &file).unwrap();
    };
    put(ISSUER, "docs");
    let edge = Builder::new().env("SLUICE_SITES", file.to_str().unwrap());
    let mut edge = edge.workers(2).start().await;
    let former = issuer.token(&json!({}));
    for (name, audience) in [(ISSUER, "wiki"), ("https://other.test", "docs")] {
        assert_eq!(get(&edge, "/a", &former).await.status, 200);
        put(name, audience);
        let newer = issuer.token(&json!({ "iss": name, "aud": audience }));
        let reloads = edge.log().matches("sluice: reloaded").count();
        edge.signal(libc::SIGHUP);
        let mut seen = Vec::new();
        eventually("the new rules on all workers", async || {
            for _ in 0..8 {
                seen.push((
                    get(&edge, "/a", &former).await.status,
                    get(&edge, "/a", &newer).await.status,
                ));
            }
            let is_reloaded = edge.log().matches("sluice: reloaded").count() > reloads;
            is_reloaded && seen.ends_with(&[(401, 200); 8])
        })
        .await;
        let other = seen
            .iter()
            .filter(|(former, newer)| *former == 503 || *newer == 503);
        assert_eq!(other.count(), 0, "{seen:?}");
        for _ in 0..20 {
            assert_eq!(get(&edge, "/a", &former).await.status, 401);
        }
        put(ISSUER, "docs");
        edge.signal(libc::SIGHUP);
        eventually("the former rules", async || {
            let mut all = true;
            for _ in 0..8 {
                all &= get(&edge, "/a", &former).await.status == 200;
            }
            all
        })
        .await;
    }
}

#[tokio::test]
async fn a_token_comes_in_front_of_a_server_and_the_server_in_its_place() {
    let (origin, checker, keys) = (
        origin().await,
        Origin::start().ready().await,
        Origin::start().ready().await,
    );
    let issuer = TokenIssuer::edwards("a");
    keys.on("/keys", Reply::text(key_set(&[&issuer])));
    keys.refuse().await;
    checker.on("/auth/in/*", Reply::status(200).empty());
    checker.on(
        "/auth/out/*",
        Reply::status(302).empty().header("location", "/login"),
    );
    let jwt = format!(
        "{{issuer: {ISSUER}, audiences: [docs], jwks: '{}/keys', cookie: session}}",
        keys.url()
    );
    let forward = format!("{{url: {}/auth, append: true}}", checker.url());
    let rules = Rules::new(&format!(
        "any_of: [{{forward: {forward}}}, {{jwt: {jwt}}}]\n"
    ));
    let edge = rules.edge(&origin).allow_log_of("jwt").start().await;
    let token = issuer.token(&json!({}));
    // While the keys are missing, the server may admit a client, but its refusal does not count.
    assert_eq!(get(&edge, "/in/a", &token).await.status, 200);
    assert_eq!(get(&edge, "/out/a", &token).await.status, 503);
    keys.listen().await;
    eventually("the keys", async || {
        get(&edge, "/out/a", &token).await.status == 200
    })
    .await;
    let asked = checker.requests().total();
    let cookie = format!("session={token}; theme=dark");
    assert_eq!(
        edge.send("GET", "/out/a", &[("cookie", &cookie)])
            .await
            .status,
        200
    );
    assert_eq!(
        checker.requests().total(),
        asked,
        "a valid token needs no question"
    );
    let expired = issuer.token(&json!({ "exp": 1 }));
    let refused = get(&edge, "/out/a", &expired).await;
    assert_eq!(
        (refused.status, refused.header("location")),
        (302, "/login")
    );
    assert_eq!(get(&edge, "/in/b", &expired).await.status, 200);
    let cookie = format!("session={expired}; theme=dark");
    assert_eq!(
        edge.send("GET", "/in/c", &[("cookie", &cookie)])
            .await
            .status,
        200
    );
    let last = checker.requests().all().pop().unwrap();
    assert_eq!(
        last.headers.get("cookie"),
        Some("theme=dark"),
        "no token for the server"
    );
}
