// SPDX-License-Identifier: Apache-2.0
//! Access rules: a refusal has looked up nothing, and the filter's own requests are not refused.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::access::grant::{Grant, GrantedResource};
use sluice_core::access::sealed_key::{KeyPlace, SealedKey};
use sluice_core::access::signing_key::SigningKey;
use sluice_core::coalescing::StoreRequest;
use sluice_core::hexadecimal;
use sluice_core::internal_headers::ORIGINAL_PATH_HEADER;
use sluice_core::key::secret::{SECRET_VARIABLE, StoreSecret};
use sluice_core::metrics::Metric;
use sluice_fake::{Answer, Client, FakeEnvoy, HeaderTexts as _};

use crate::support::{FIRST, KEY, admission, assert_all_over, document, fill, live};

const SECRET: &str = "000102030405060708090a0b0c0d0e0f";
const SIGNING_KEY: &str = "a key of signed URLs, with 32 bytes";
/// An address outside of the allowed networks.
const OUTSIDE: &str = "198.51.100.1:50000";

fn policy(access: &str, more: &str) -> String {
    document(&format!(
        r#""hot": {{"max_bytes": 100000}}, "access": {access}{more}"#
    ))
}

fn envoy(access: &str, more: &str) -> FakeEnvoy {
    FakeEnvoy::in_environment(&policy(access, more), 2, &[(SECRET_VARIABLE, SECRET)])
}

/// An edge whose clients must come from 192.0.2.0/24.
fn fenced() -> FakeEnvoy {
    envoy(r#"{"allow": ["192.0.2.0/24"], "except": ["/9"]}"#, "")
}

/// Rules for URLs that are signed by this key.
fn signed_by(key: &str) -> String {
    let secret = StoreSecret::parse(SECRET).unwrap();
    let place = KeyPlace {
        site: "",
        name: "a",
    };
    let sealed = SealedKey::seal(&secret, &place, key.as_bytes());
    let scheme = format!(r#"{{"signed": {{"keys": {{"a": {{"sealed": "{sealed}"}}}}}}}}"#);
    format!(r#"{{"any_of": [{scheme}]}}"#)
}

/// An edge with signed URLs.
fn signed() -> FakeEnvoy {
    envoy(
        &signed_by(SIGNING_KEY),
        r#", "response": {"account": true}"#,
    )
}

/// The parameters of a signature of this resource, which never expires.
fn parameters(resource: GrantedResource<'_>) -> String {
    let grant = Grant {
        method: "GET",
        host: "edge.test",
        resource,
        not_before: None,
        expires: u64::MAX,
        from: None,
        key: "a",
    };
    let mut digits = String::new();
    let key = SigningKey::new(SIGNING_KEY.as_bytes()).unwrap();
    hexadecimal::push(&mut digits, &key.sign(&grant));
    let prefix = match resource {
        GrantedResource::Prefix(prefix) => format!("&sluice-prefix={prefix}"),
        GrantedResource::Url(_) => String::new(),
    };
    let expires = u64::MAX;
    format!("sluice-key=a&sluice-expires={expires}{prefix}&sluice-signature={digits}")
}

/// The URL of [`KEY`] with its signature.
fn signed_url() -> String {
    format!(
        "/{KEY}?{}",
        parameters(GrantedResource::Url(&format!("/{KEY}")))
    )
}

fn get(envoy: &mut FakeEnvoy, path: &str) -> Client {
    envoy.request(0, "GET", KEY, &[(":path", path)])
}

fn status(envoy: &FakeEnvoy, client: Client) -> u16 {
    envoy.clients[client.0].status()
}

fn cache_control(envoy: &FakeEnvoy, client: Client) -> Option<&str> {
    envoy.clients[client.0].header("cache-control")
}

fn assert_refused(envoy: &FakeEnvoy, client: Client) {
    assert_eq!(status(envoy, client), 403);
    assert_eq!(cache_control(envoy, client), Some("no-store"));
    assert_eq!(envoy.clients[client.0].body(), b"Access denied.\n");
}

#[test]
fn a_refusal_looks_up_nothing_whether_the_object_is_unknown_stored_hot_or_led() {
    let mut envoy = fenced();
    envoy.address = OUTSIDE.to_owned();
    let cold = envoy.get(0, KEY);
    assert_refused(&envoy, cold);
    assert_eq!(envoy.fetches.len(), 0);
    envoy.address = "192.0.2.7:50000".to_owned();
    let leader = envoy.get(0, KEY);
    envoy.address = OUTSIDE.to_owned();
    let beside = [
        envoy.get(0, KEY),
        envoy.get(1, KEY),
        envoy.head(0, KEY),
        envoy.range(1, KEY),
    ];
    fill(&mut envoy, FIRST);
    assert_eq!(status(&envoy, leader), 200);
    envoy.address = "192.0.2.7:50000".to_owned();
    let (store, hot) = (envoy.get(0, KEY), envoy.get(0, KEY));
    envoy.close_all();
    assert_eq!(
        [store, hot].map(|client| status(&envoy, client)),
        [200, 200]
    );
    envoy.address = OUTSIDE.to_owned();
    let counted = [
        Metric::HotHits,
        Metric::StoreLookups,
        Metric::FollowersParked,
    ];
    let before = counted.map(|metric| envoy.counter(metric));
    let late = [
        envoy.get(0, KEY),
        envoy.get(1, KEY),
        envoy.conditional(0, KEY),
    ];
    assert_eq!(counted.map(|metric| envoy.counter(metric)), before);
    for client in beside.into_iter().chain(late) {
        assert_eq!(status(&envoy, client), 403, "{client:?}");
    }
    assert_eq!(envoy.fetches.len(), 1);
    assert_eq!(envoy.counter(Metric::AccessRefusedByAllow), 8);
    assert_eq!(envoy.counter(Metric::AccessByAllow), 3);
    let open = envoy.get(0, 9);
    assert_eq!(admission(&envoy, open), Some(StoreRequest::Lead));
    assert_eq!(envoy.counter(Metric::AccessByExcept), 1);
}

#[test]
fn requests_of_the_filter_are_not_those_of_a_client() {
    let mut envoy = fenced();
    envoy.ttl = 1;
    envoy.directives = ", stale-while-revalidate=60";
    let first = envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    live(&mut envoy, 2_000);
    // The refresh in the background comes from no address.
    let stale = envoy.get(0, KEY);
    envoy.deliver_all();
    live(&mut envoy, 100);
    assert_eq!(envoy.fetches.len(), 2, "a refresh");
    assert_eq!(
        [first, stale].map(|client| status(&envoy, client)),
        [200, 200]
    );
    assert_eq!(envoy.counter(Metric::AccessRefusedByAllow), 0);
}

#[test]
fn a_body_that_proves_empty_does_not_lose_its_admission() {
    for mut envoy in [fenced(), signed()] {
        let path = signed_url();
        let client = envoy.open_ended(0, "GET", KEY, &[(":path", &path)]);
        envoy.send_body(client, 0, true);
        assert_eq!(envoy.fetches.len(), 1);
        let path = envoy.fetches[0].headers.get(":path").unwrap();
        assert!(
            path == "/7" || !path.contains("sluice") || path == signed_url(),
            "{path}"
        );
        envoy.answer(FIRST, Answer::Storable);
        envoy.end(FIRST);
        envoy.close_all();
        assert_eq!(status(&envoy, client), 200);
    }
}

#[test]
fn a_protected_response_is_for_its_client_alone_wherever_it_comes_from() {
    let mut envoy = fenced();
    envoy.directives = ", public";
    let leader = envoy.get(0, KEY);
    let followers = [envoy.get(0, KEY), envoy.get(1, KEY)];
    fill(&mut envoy, FIRST);
    let (store, hot) = (envoy.get(0, KEY), envoy.get(0, KEY));
    let passed = envoy.request(0, "POST", 8, &[]);
    let fetch = *envoy.open_fetches().last().unwrap();
    envoy.answer(fetch, Answer::Storable);
    envoy.end(fetch);
    envoy.close_all();
    assert!(envoy.counter(Metric::HotHits) > 0);
    for client in followers.into_iter().chain([leader, store, hot, passed]) {
        let told = cache_control(&envoy, client).unwrap();
        assert!(told.starts_with("private, "), "{told}");
        assert!(!told.contains("public"), "{told}");
    }
}

#[test]
fn a_signature_leaves_the_request_and_its_value_the_log() {
    let mut envoy = signed();
    let url = signed_url();
    let client = get(&mut envoy, &url);
    assert_eq!(admission(&envoy, client), Some(StoreRequest::Lead));
    let key = envoy.property(client, "sluice.signing_key");
    assert_eq!(key.as_deref(), Some("a"));
    let fetched = &envoy.fetches[0].headers;
    assert_eq!(fetched.get(":path"), Some("/7"));
    // The path for the access log, which the hop removes.
    let shown = fetched.get(ORIGINAL_PATH_HEADER);
    assert_eq!(
        shown,
        Some("/7?sluice-key=…&sluice-expires=…&sluice-signature=…")
    );
    fill(&mut envoy, FIRST);
    let again = get(&mut envoy, &url);
    assert_eq!(admission(&envoy, again), Some(StoreRequest::Fresh));
    let without = get(&mut envoy, "/7");
    assert_refused(&envoy, without);
    let twice = get(&mut envoy, &format!("{url}&sluice-key=a"));
    assert_refused(&envoy, twice);
    assert_eq!(envoy.counter(Metric::AccessBySignature), 2);
    assert_eq!(envoy.counter(Metric::AccessRefusedWithoutProof), 1);
    assert_eq!(envoy.counter(Metric::AccessRefusedBySignature), 1);
    envoy.close_all();
    assert_all_over(&mut envoy);
}

#[test]
fn a_link_that_was_verified_is_refused_when_another_key_has_its_name() {
    let mut envoy = signed();
    let url = signed_url();
    let client = get(&mut envoy, &url);
    fill(&mut envoy, FIRST);
    let (again, hot) = (get(&mut envoy, &url), get(&mut envoy, &url));
    envoy.close_all();
    for client in [client, again, hot] {
        assert_eq!(status(&envoy, client), 200);
    }
    envoy.reconfigure(&policy(
        &signed_by("another key, which has 32 bytes too"),
        "",
    ));
    for seat in 0..2 {
        envoy.update_policy(seat);
        let client = envoy.request(seat, "GET", KEY, &[(":path", &url)]);
        assert_refused(&envoy, client);
    }
}

#[test]
fn only_the_cookie_of_the_edge_leaves_the_request() {
    let mut envoy = signed();
    let cookie = format!(
        "sluice-signed={}",
        parameters(GrantedResource::Prefix("/7/*"))
    );
    for (path, cookies, expected) in [
        ("/7/a", cookie.clone(), None),
        ("/7/b", format!("a=1; {cookie}; b=2"), Some("a=1; b=2")),
    ] {
        let client = envoy.request(0, "GET", KEY, &[(":path", path), ("cookie", &cookies)]);
        let fetch = envoy.fetches.last().unwrap();
        assert_eq!(fetch.headers.get("cookie"), expected);
        // A request without further cookies is cached.
        let cached = admission(&envoy, client) == Some(StoreRequest::Lead);
        assert_eq!(cached, expected.is_none());
    }
    let other = envoy.request(0, "GET", KEY, &[(":path", "/7b"), ("cookie", &cookie)]);
    assert_refused(&envoy, other);
}

#[test]
fn a_site_without_signed_urls_keeps_parameters_and_cookies_of_these_names() {
    let mut envoy = fenced();
    let cookie = [(":path", "/7?sluice-key=a"), ("cookie", "sluice-signed=x")];
    envoy.request(0, "GET", KEY, &cookie);
    let fetched = &envoy.fetches[0].headers;
    assert_eq!(fetched.get(":path"), Some("/7?sluice-key=a"));
    assert_eq!(fetched.get("cookie"), Some("sluice-signed=x"));
}

#[test]
fn a_preflight_is_checked_unless_the_edge_answers_it() {
    let asks = [
        ("origin", "https://a.test"),
        ("access-control-request-method", "GET"),
    ];
    let rules = r#"{"allow": ["198.51.100.0/24"]}"#;
    let cors = r#", "website": {"cors": {"allowed_origins": ["https://a.test"]}}"#;
    for (more, expected, fetches) in [("", 403, 0), (cors, 200, 0)] {
        let mut envoy = envoy(rules, more);
        let client = envoy.request(0, "OPTIONS", KEY, &asks);
        let status = status(&envoy, client);
        assert!(
            status == expected || (expected == 200 && status == 204),
            "{status}"
        );
        assert_eq!(envoy.fetches.len(), fetches);
        for method in ["OPTIONS", "POST", "GET"] {
            let client = envoy.request(0, method, KEY, &[("upgrade", "websocket")]);
            assert_refused(&envoy, client);
        }
    }
}

#[test]
fn a_policy_that_gains_rules_applies_to_the_next_request_even_for_hot_copies() {
    let mut envoy = envoy(r#"{"allow": ["192.0.2.0/24"]}"#, "");
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    envoy.get(0, KEY);
    envoy.get(0, KEY);
    envoy.close_all();
    assert!(envoy.counter(Metric::HotHits) > 0);
    let narrower =
        document(r#""hot": {"max_bytes": 100000}, "access": {"allow": ["198.51.100.0/24"]}"#);
    envoy.reconfigure(&narrower);
    for seat in 0..2 {
        envoy.update_policy(seat);
        let client = envoy.get(seat, KEY);
        assert_refused(&envoy, client);
    }
}

/// A redirect tells nothing to a client that may not read the site, and comes in front of a preflight.
#[test]
fn a_redirect_is_decided_behind_access_and_in_front_of_all_else() {
    let cors = r#", "website": {"cors": {"allowed_origins": ["*"]}}"#;
    let redirects = r#", "redirects": [{"from": "/old/*", "to": "/new/*"}]"#;
    let mut envoy = envoy(
        r#"{"allow": ["192.0.2.0/24"]}"#,
        &format!("{cors}{redirects}"),
    );
    envoy.address = OUTSIDE.to_owned();
    let refused = get(&mut envoy, "/old/a");
    envoy.address = "192.0.2.7:50000".to_owned();
    assert_eq!(envoy.clients[refused.0].status(), 403);
    assert_eq!(envoy.clients[refused.0].header("location"), None);
    let moved = get(&mut envoy, "/old/a?b=1");
    let moved = &envoy.clients[moved.0];
    assert_eq!(
        (moved.status(), moved.header("location")),
        (301, Some("/new/a?b=1"))
    );
    assert_eq!(moved.header("cache-control"), Some("private"));
    let preflight = [
        (":path", "/old/a"),
        ("origin", "https://a.test"),
        ("access-control-request-method", "GET"),
    ];
    let preflight = envoy.request(0, "OPTIONS", KEY, &preflight);
    assert_eq!(envoy.clients[preflight.0].status(), 308);
    assert!(envoy.fetches.is_empty());
}
