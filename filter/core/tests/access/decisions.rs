// SPDX-License-Identifier: Apache-2.0
//! The decision about a request, case by case.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use serde_json::json;
use sluice_core::access::decision::AccessRefusal::*;
use sluice_core::access::decision::{AccessCheck, AccessDecision, AccessRefusal};
use sluice_core::access::grant::{Grant, GrantedResource};
use sluice_core::access::secrets::AccessSecrets;
use sluice_core::access::signing_key::{SHORTEST_KEY, SigningKey, SigningKeys};
use sluice_core::access::users::PasswordUsers;
use sluice_core::key::secret::StoreSecret;

use super::support::{
    ADDRESS, KEY, NOW, OTHER_KEY, SECRET, Sent, get, grant, grant_prefix, parameters, policy,
    signed,
};

fn admitted(check: AccessCheck) -> AccessDecision {
    AccessDecision::Admitted { check, name: None }
}

fn by_key(key: &str) -> AccessDecision {
    AccessDecision::Admitted {
        check: AccessCheck::Signed,
        name: Some(key.to_owned()),
    }
}

const fn refused(refusal: AccessRefusal) -> AccessDecision {
    AccessDecision::Refused(refusal)
}

#[test]
fn all_must_come_from_an_allowed_network_except_to_open_paths() {
    let rules = json!({ "allow": ["192.0.2.0/24", "2001:db8::/32"], "except": ["/public/*"] });
    let policy = policy(rules, json!({}));
    for (address, path, decision) in [
        ("192.0.2.7", "/a", admitted(AccessCheck::Allow)),
        ("2001:db8::7", "/a", admitted(AccessCheck::Allow)),
        ("::ffff:192.0.2.7", "/a", admitted(AccessCheck::Allow)),
        ("198.51.100.1", "/a", refused(Address)),
        ("", "/a", refused(Address)),
        ("198.51.100.1", "/public/a", admitted(AccessCheck::Except)),
        ("198.51.100.1", "/public/../a", refused(Address)),
        ("198.51.100.1", "/%70ublic/a", admitted(AccessCheck::Except)),
        (
            "198.51.100.1",
            "/a/../public/x",
            admitted(AccessCheck::Except),
        ),
        ("198.51.100.1", "/public/%2e%2e/a", refused(Address)),
        ("198.51.100.1", "/a?/public/x", refused(Address)),
        ("198.51.100.1", "/%zz", refused(Address)),
    ] {
        let sent = Sent {
            address,
            ..get(path)
        };
        assert_eq!(sent.decide(&policy), decision, "{address} {path}");
    }
}

#[test]
fn one_scheme_is_enough_and_an_address_needs_no_signature() {
    let office = json!({ "address": ["198.51.100.0/24"] });
    let policy = policy(json!({ "any_of": [office, signed()] }), json!({}));
    let signed = format!("/a?{}", parameters(&grant("/a"), KEY));
    assert_eq!(get(&signed).decide(&policy), by_key("a"));
    assert_eq!(get("/a").decide(&policy), refused(NoProof));
    for path in ["/a", signed.as_str(), "/a?sluice-key=a"] {
        let sent = Sent {
            address: "198.51.100.9",
            ..get(path)
        };
        let decision = match path {
            "/a?sluice-key=a" => refused(Malformed),
            _ => admitted(AccessCheck::Address),
        };
        assert_eq!(sent.decide(&policy), decision, "{path}");
    }
}

#[test]
fn a_signature_is_worth_nothing_outside_of_the_allowed_networks() {
    let rules = json!({ "allow": ["198.51.100.0/24"], "any_of": [signed()] });
    let policy = policy(rules, json!({}));
    let signed = format!("/a?{}", parameters(&grant("/a"), KEY));
    assert_eq!(get(&signed).decide(&policy), refused(Address));
    let inside = Sent {
        address: "198.51.100.9",
        ..get(&signed)
    };
    assert_eq!(inside.decide(&policy), by_key("a"));
}

#[test]
fn a_signature_opens_its_url_in_every_spelling_and_no_other() {
    let policy = policy(json!({ "any_of": [signed()] }), json!({}));
    let proof = parameters(&grant("/a/b?v=1"), KEY);
    for (url, decision) in [
        ("/a/b?v=1&", by_key("a")),
        ("/x/../a/./b?v=1&", by_key("a")),
        ("/%61/b?v=1&", by_key("a")),
        ("/a/b?v=2&", refused(WrongSignature)),
        ("/a/b?", refused(WrongSignature)),
        ("/a/b?v=1&w=2&", refused(WrongSignature)),
        ("/a/c?v=1&", refused(WrongSignature)),
        ("/a/b/?v=1&", refused(WrongSignature)),
        ("/A/b?v=1&", refused(WrongSignature)),
        ("/a%2Fb?v=1&", refused(WrongSignature)),
    ] {
        let url = format!("{url}{proof}");
        assert_eq!(get(&url).decide(&policy), decision, "{url}");
    }
    // The parameters may be anywhere in the query.
    let url = format!("/a/b?{proof}&v=1");
    assert_eq!(get(&url).decide(&policy), by_key("a"));
}

#[test]
fn a_signature_covers_the_query_as_the_key_has_it() {
    let query = json!({ "query": { "mode": "drop", "allow": ["v"] } });
    let policy = policy(json!({ "any_of": [signed()] }), json!({ "key": query }));
    let proof = parameters(&grant("/a?v=1"), KEY);
    for (query, decision) in [
        ("v=1&", by_key("a")),
        ("utm=x&v=1&", by_key("a")),
        ("v=2&", refused(WrongSignature)),
    ] {
        let url = format!("/a?{query}{proof}");
        assert_eq!(get(&url).decide(&policy), decision, "{url}");
    }
}

#[test]
fn a_signature_is_for_its_host_and_for_get_and_head() {
    let policy = policy(json!({ "any_of": [signed()] }), json!({}));
    let url = format!("/a?{}", parameters(&grant("/a"), KEY));
    for (method, host, decision) in [
        ("GET", "edge.test", by_key("a")),
        ("HEAD", "EDGE.test:8080", by_key("a")),
        ("POST", "edge.test", refused(WrongSignature)),
        ("OPTIONS", "edge.test", refused(WrongSignature)),
        ("GET", "other.test", refused(WrongSignature)),
    ] {
        let sent = Sent {
            method,
            host,
            ..get(&url)
        };
        assert_eq!(sent.decide(&policy), decision, "{method} {host}");
    }
}

#[test]
fn a_prefix_opens_what_is_below_it_with_any_query() {
    let policy = policy(json!({ "any_of": [signed()] }), json!({}));
    let proof = parameters(&grant_prefix("/a/*"), KEY);
    let cookie = format!("theme=dark; sluice-signed={proof}; x=y");
    for (path, decision) in [
        ("/a/b", by_key("a")),
        ("/a/b/c?q=1", by_key("a")),
        ("/a/", by_key("a")),
        ("/x/../a/b", by_key("a")),
        ("/a", refused(OtherPath)),
        ("/ab", refused(OtherPath)),
        ("/a/../b", refused(OtherPath)),
        ("/a/%2e%2e/b", refused(OtherPath)),
        ("/b/a/c", refused(OtherPath)),
    ] {
        let sent = Sent {
            cookie: &cookie,
            ..get(path)
        };
        assert_eq!(sent.decide(&policy), decision, "{path}");
        let separator = if path.contains('?') { '&' } else { '?' };
        let url = format!("{path}{separator}{proof}");
        assert_eq!(get(&url).decide(&policy), decision, "{url}");
    }
}

#[test]
fn a_cookie_is_for_a_prefix_and_one_valid_cookie_is_enough() {
    let policy = policy(json!({ "any_of": [signed()] }), json!({}));
    let of_url = format!("sluice-signed={}", parameters(&grant("/a"), KEY));
    let sent = Sent {
        cookie: &of_url,
        ..get("/a")
    };
    assert_eq!(sent.decide(&policy), refused(Malformed));
    let other = parameters(&grant_prefix("/b/*"), KEY);
    let right = parameters(&grant_prefix("/a/*"), KEY);
    let both = format!("sluice-signed={other}; sluice-signed={right}");
    let sent = Sent {
        cookie: &both,
        ..get("/a/x")
    };
    assert_eq!(sent.decide(&policy), by_key("a"));
}

#[test]
fn a_signature_has_a_beginning_an_end_and_a_network_with_a_minute_of_skew() {
    let policy = policy(json!({ "any_of": [signed()] }), json!({}));
    let decide = |grant: Grant<'_>| {
        let url = format!("/a?{}", parameters(&grant, KEY));
        get(&url).decide(&policy)
    };
    let grant = grant("/a");
    for (expires, decision) in [
        (NOW, by_key("a")),
        (NOW - 60, by_key("a")),
        (NOW - 61, refused(Expired)),
        (0, refused(Expired)),
        (u64::MAX, by_key("a")),
    ] {
        assert_eq!(decide(Grant { expires, ..grant }), decision, "{expires}");
    }
    for (time, decision) in [
        (0, by_key("a")),
        (NOW + 60, by_key("a")),
        (NOW + 61, refused(NotYetValid)),
    ] {
        let not_before = Some(time);
        assert_eq!(
            decide(Grant {
                not_before,
                ..grant
            }),
            decision,
            "{time}"
        );
    }
    for (from, decision) in [
        ("192.0.2.0/24", by_key("a")),
        ("192.0.2.7", by_key("a")),
        ("198.51.100.0/24", refused(OtherAddress)),
        ("2001:db8::/32", refused(OtherAddress)),
        ("192.0.2.7/24", refused(Malformed)),
    ] {
        let from = Some(from);
        assert_eq!(decide(Grant { from, ..grant }), decision, "{from:?}");
    }
}

#[test]
fn every_key_of_the_site_signs_and_each_under_its_own_name() {
    let policy = policy(json!({ "any_of": [signed()] }), json!({}));
    for (name, key, decision) in [
        ("a", KEY, by_key("a")),
        ("b", OTHER_KEY, by_key("b")),
        ("a", OTHER_KEY, refused(WrongSignature)),
        ("b", KEY, refused(WrongSignature)),
        ("c", KEY, refused(UnknownKey)),
    ] {
        let grant = Grant {
            key: name,
            ..grant("/a")
        };
        let url = format!("/a?{}", parameters(&grant, key));
        assert_eq!(get(&url).decide(&policy), decision, "{name}");
    }
}

#[test]
fn any_other_parameter_of_this_name_any_repetition_and_any_gap_is_refused() {
    let policy = policy(json!({ "any_of": [signed()] }), json!({}));
    let right = parameters(&grant("/a"), KEY);
    let expires = format!("sluice-expires={}", NOW + 60);
    let mut wrong = vec![
        format!("{right}&sluice-key=a"),
        format!("{right}&sluice-other=1"),
        format!("{right}&sluice-"),
        format!("{right}&Sluice-Expires=1"),
        format!("{right}&sluice%2Dexpires=1"),
        format!("{right}&%73luice-expires=1"),
        right.replace("sluice-key", "sluice%2dkey"),
        right.replace("sluice-key", "SLUICE-KEY"),
        right.replace(&expires, &format!("sluice-expires=0{}", NOW + 60)),
        right.replace(&expires, &format!("sluice-expires=+{}", NOW + 60)),
        right.replace(&expires, "sluice-expires="),
        right.replace(&expires, "sluice-expires"),
        format!("{right}&sluice-prefix=/a"),
        format!("{right}&sluice-prefix=a/*"),
        format!("{right}&sluice-not-before=soon"),
        right[..right.len() - 1].to_owned(),
        format!("{right}0"),
        "sluice-key=a".to_owned(),
    ];
    let (front, signature) = right.rsplit_once('=').unwrap();
    wrong.push(format!("{front}={}", signature.to_uppercase()));
    for name in ["sluice-key", "sluice-expires", "sluice-signature"] {
        let parts = right.split('&').filter(|part| !part.starts_with(name));
        wrong.push(parts.collect::<Vec<_>>().join("&"));
    }
    for query in wrong {
        let url = format!("/a?{query}");
        assert_eq!(get(&url).decide(&policy), refused(Malformed), "{url}");
    }
    // A client may escape the value of a parameter.
    let escaped = right.replace("sluice-key=a", "sluice-key=%61");
    assert_eq!(get(&format!("/a?{escaped}")).decide(&policy), by_key("a"));
}

#[test]
fn a_bucket_is_signed_by_the_path_of_the_client() {
    let mut policy = policy(json!({ "any_of": [signed()] }), json!({}));
    let origin = json!({
        "origin": { "kind": "bucket", "bucket": "site", "authority": "s3.test:9000" },
        "key": { "index_document": "index.html", "strip_prefix": "/static" },
    });
    let access = policy.access.take();
    let mut policy = crate::support::documents::parse(&origin);
    policy.access = access;
    let url = format!(
        "/static/a%20b/?{}",
        parameters(&grant("/static/a%20b/"), KEY)
    );
    assert_eq!(get(&url).decide(&policy), by_key("a"));
    let url = format!("/static/a b/?{}", parameters(&grant("/static/a%20b/"), KEY));
    assert_eq!(get(&url).decide(&policy), refused(WrongSignature));
}

#[test]
fn a_key_is_long_and_was_sealed_by_this_edge() {
    assert!(SigningKey::new(&[b'k'; SHORTEST_KEY - 1]).is_none());
    assert!(SigningKey::new(&[b'k'; SHORTEST_KEY]).is_some());
    let policy = policy(json!({ "any_of": [signed()] }), json!({}));
    assert!(SigningKeys::open(&policy, &SECRET).is_ok());
    let error = SigningKeys::open(&policy, &StoreSecret::new([1, 3])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "access.any_of.signed.keys.a: expected a key that this edge has sealed"
    );
    let plain = json!({ "signed": { "keys": { "a": { "env": "A" } } } });
    let policy = super::support::policy(json!({ "any_of": [plain] }), json!({}));
    assert!(SigningKeys::open(&policy, &SECRET).is_err());
}

#[test]
fn the_signed_text_is_that_of_the_documentation() {
    let grant = Grant {
        method: "HEAD",
        host: "edge.test",
        resource: GrantedResource::Url("/a?v=1"),
        not_before: Some(7),
        expires: 1_800_000_000,
        from: Some("192.0.2.0/24"),
        key: "2026a",
    };
    let text = "15:sluice-signed-1,3:GET,9:edge.test,3:url,6:/a?v=1,1:7,10:1800000000,\
                12:192.0.2.0/24,5:2026a,";
    assert_eq!(grant.to_text(), text);
}

#[test]
fn a_password_admits_beside_the_other_schemes_and_its_user_is_named() {
    let sealed = PasswordUsers::seal(&SECRET, "", "ada:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n");
    let basic = json!({ "basic": { "users": { "sealed": sealed.to_string() } } });
    let office = json!({ "address": ["198.51.100.0/24"] });
    let policy = policy(
        json!({ "any_of": [basic, office, signed()], "except": ["/p/*"] }),
        json!({}),
    );
    let ada = AccessDecision::Admitted {
        check: AccessCheck::Basic,
        name: Some("ada".to_owned()),
    };
    let link = format!("/a?{}", parameters(&grant("/a"), KEY));
    // `ada:secret` and `ada:wrong`
    let (right, wrong) = (Some("Basic YWRhOnNlY3JldA=="), Some("Basic YWRhOndyb25n"));
    for (path, authorization, address, decision) in [
        ("/a", right, ADDRESS, ada),
        ("/a", wrong, ADDRESS, refused(WrongPassword)),
        ("/a", None, ADDRESS, refused(NoProof)),
        (
            "/a",
            Some("Bearer YWRhOnNlY3JldA=="),
            ADDRESS,
            refused(NoProof),
        ),
        ("/a", wrong, "198.51.100.1", admitted(AccessCheck::Address)),
        ("/p/a", wrong, ADDRESS, admitted(AccessCheck::Except)),
        (&link, wrong, ADDRESS, by_key("a")),
    ] {
        let sent = Sent {
            authorization,
            address,
            ..get(path)
        };
        assert_eq!(sent.decide(&policy), decision, "{path} {authorization:?}");
    }
    let other = StoreSecret::new([1, 3]);
    assert!(PasswordUsers::open(&policy, &other).is_err());
}

#[test]
fn only_the_verification_of_a_token_admits_a_request_with_one() {
    let jwt = json!({ "issuer": "https://id.test", "audiences": ["docs"], "jwks": { "installed": "00" } });
    let office = json!({ "address": ["198.51.100.0/24"] });
    let rules = json!({ "any_of": [{ "jwt": jwt }, office], "except": ["/public/*"] });
    let policy = policy(rules, json!({}));
    let token = "eyJhbGciOiJFUzI1NiJ9.e30.c2ln";
    let bearer = format!("Bearer {token}");
    let cookie = format!("token={token}");
    for (authorization, cookie, address, path, decision) in [
        (None, "", ADDRESS, "/a", refused(NoProof)),
        (
            Some(bearer.as_str()),
            "",
            ADDRESS,
            "/a",
            AccessDecision::Asks(NoProof),
        ),
        (
            None,
            cookie.as_str(),
            ADDRESS,
            "/a",
            AccessDecision::Asks(NoProof),
        ),
        (Some("Bearer a.b.c"), "", ADDRESS, "/a", refused(WrongToken)),
        (
            Some("Bearer a.b.c"),
            "",
            ADDRESS,
            "/public/a",
            admitted(AccessCheck::Except),
        ),
        (
            Some("Bearer a.b.c"),
            "",
            "198.51.100.1",
            "/a",
            admitted(AccessCheck::Address),
        ),
        // What costs nothing comes first.
        (
            Some(bearer.as_str()),
            "",
            "198.51.100.1",
            "/a",
            admitted(AccessCheck::Address),
        ),
    ] {
        let sent = Sent {
            authorization,
            cookie,
            address,
            ..get(path)
        };
        assert_eq!(
            sent.decide(&policy),
            decision,
            "{authorization:?} {cookie} {address} {path}"
        );
    }
}

#[test]
fn a_policy_whose_keys_are_not_installed_verifies_no_token() {
    let jwt = json!({ "issuer": "https://id.test", "audiences": ["docs"], "jwks": "keys.json" });
    let policy = policy(json!({ "any_of": [{ "jwt": jwt }] }), json!({}));
    let error = AccessSecrets::open(&policy, &SECRET).unwrap_err();
    let expected =
        "access.any_of.jwt: expected a standalone edge: in a mesh, RequestAuthentication of Istio";
    assert!(error.to_string().starts_with(expected), "{error}");
}
