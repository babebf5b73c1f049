// SPDX-License-Identifier: Apache-2.0
//! The section `access`: the accepted rules, and the errors.

use serde_json::{Value, json};

use crate::policy::{AccessPolicy, Policy};

fn parse(access: &Value) -> Result<AccessPolicy, String> {
    let document = json!({ "origin": { "kind": "http" }, "access": access });
    let policy = Policy::parse(document.to_string().as_bytes());
    policy
        .map(|policy| policy.access.unwrap())
        .map_err(|error| error.to_string())
}

#[test]
fn a_policy_without_the_section_admits_everyone() {
    let policy = Policy::parse(br#"{"origin": {"kind": "http"}}"#).unwrap();
    assert_eq!(policy.access, None);
}

#[test]
fn rules_are_read() {
    let access = parse(&json!({
        "allow": ["10.0.0.0/8", "2001:db8::/32"],
        "any_of": [
            { "address": ["192.0.2.0/24"] },
            { "signed": { "keys": { "2026a": { "env": "SIGN_A" }, "2026b": { "file": "/run/b" } } } },
        ],
        "except": ["/favicon.ico", "/public/*", "/%7Eme/*"],
    }))
    .unwrap();
    assert_eq!((access.allow.len(), access.any_of.len()), (2, 2));
    assert_eq!(access.signed().unwrap().keys.len(), 2);
    for (path, open) in [
        ("/favicon.ico", true),
        ("/favicon.ico2", false),
        ("/public/", true),
        ("/public", false),
        ("/x/public/a", false),
        ("/~me/a", true),
    ] {
        assert_eq!(access.is_open(path), open, "{path}");
    }
}

#[test]
fn each_scheme_with_credentials_has_a_challenge() {
    let challenges = |basic: Value| {
        let schemes = json!([{ "address": ["::1"] }, { "basic": basic }]);
        let access = parse(&json!({ "any_of": schemes })).unwrap();
        access.challenges(false).collect::<Vec<_>>()
    };
    let file = challenges(json!({ "users": "u" }));
    assert_eq!(file, [r#"Basic realm="Restricted", charset="UTF-8""#]);
    let named = challenges(json!({ "users": { "sealed": "00" }, "realm": "Docs" }));
    assert_eq!(named, [r#"Basic realm="Docs", charset="UTF-8""#]);
}

#[test]
fn tokens_are_verified_under_the_rules_of_their_site_alone() {
    let rules = json!({ "issuer": "https://id.test", "audiences": ["docs"], "jwks": { "installed": "00" } });
    let jwt = |more: Value| {
        let mut jwt = rules.clone();
        for (name, value) in more.as_object().unwrap() {
            jwt[name] = value.clone();
        }
        let access = parse(&json!({ "any_of": [{ "jwt": jwt }] })).unwrap();
        access.jwt().unwrap().clone()
    };
    let plain = jwt(json!({}));
    let name = plain.cluster("a").unwrap();
    assert_eq!(jwt(json!({})).cluster("a").unwrap(), name);
    assert_ne!(plain.cluster("b").unwrap(), name);
    for other in [
        json!({ "issuer": "https://id.test/" }),
        json!({ "audiences": ["docs", "more"] }),
        json!({ "audiences": ["do", "cs"] }),
        json!({ "jwks": { "installed": "01" } }),
    ] {
        assert_ne!(jwt(other.clone()).cluster("a").unwrap(), name, "{other}");
    }
    let file = jwt(json!({ "jwks": "keys.json" }));
    assert_eq!(file.cluster("a"), None);
    assert_ne!(file.hash_of_keys("{}"), file.hash_of_keys("[]"));
    let url = jwt(json!({ "jwks": "https://id.test/keys" }));
    let slow = jwt(json!({ "jwks": "https://id.test/keys", "refresh": "5m" }));
    assert_ne!(url.hash_of_keys(""), slow.hash_of_keys(""));
}

#[test]
fn a_client_without_a_valid_token_is_told_so() {
    let jwt = json!({ "issuer": "https://id.test", "audiences": ["docs"], "jwks": "k", "cookie": "session" });
    let access = parse(&json!({ "any_of": [{ "jwt": jwt }] })).unwrap();
    let challenges = |has_token| access.challenges(has_token).collect::<Vec<_>>();
    assert_eq!(challenges(false), [r#"Bearer realm="Restricted""#]);
    let invalid = r#"Bearer realm="Restricted", error="invalid_token""#;
    assert_eq!(challenges(true), [invalid]);
    assert!(access.takes_authorization() && access.takes_cookie(b"session"));
    assert!(!access.takes_cookie(b"session2"));
}

#[test]
fn a_server_that_is_asked_is_named_by_its_url_and_site() {
    let server = |forward: Value| {
        let access = parse(&json!({ "any_of": [{ "forward": forward }] })).unwrap();
        access.forward().unwrap().clone()
    };
    let plain = server(json!({ "url": "http://Auth.test:4180" }));
    assert_eq!(
        (plain.url.authority.as_str(), plain.url.path.as_str()),
        ("auth.test:4180", "/")
    );
    let other = server(json!({ "url": "https://auth.test/check?x=1", "cookie": "_oauth2_proxy*" }));
    assert!(other.url.is_secure && !plain.url.is_secure);
    assert_eq!(other.url.path, "/check?x=1");
    for (name, is_taken) in [
        ("_oauth2_proxy", true),
        ("_oauth2_proxy_1", true),
        ("theme", false),
    ] {
        assert_eq!(other.has_cookie(name.as_bytes()), is_taken, "{name}");
        assert!(!plain.has_cookie(name.as_bytes()));
    }
    let names = [plain.cluster("a"), plain.cluster("b"), other.cluster("a")];
    assert!(names[0] != names[1] && names[0] != names[2]);
    assert_eq!(names[0], plain.clone().cluster("a"));
}

#[test]
fn a_bucket_gets_no_copied_header() {
    let forward = json!({ "forward": { "url": "http://a", "copy": ["x-user"] } });
    let origin = json!({ "kind": "bucket", "bucket": "site", "authority": "s3.test" });
    let document = json!({ "origin": origin, "access": { "any_of": [forward] } });
    let error = Policy::parse(document.to_string().as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "access.any_of[0].forward.copy: expected no header: a bucket's objects do not depend on headers"
    );
}

#[test]
fn a_wrong_rule_is_refused_with_its_field_and_what_is_accepted() {
    let keys = |keys: Value| json!({ "any_of": [{ "signed": { "keys": keys } }] });
    let forward = |forward: Value| json!({ "any_of": [{ "forward": forward }] });
    let jwt = |field: &str, value: Value| {
        let mut jwt =
            json!({ "issuer": "https://id.test", "audiences": ["docs"], "jwks": "keys.json" });
        jwt[field] = value;
        json!({ "any_of": [{ "jwt": jwt }] })
    };
    for (access, error) in [
        (json!({}), "access: expected allow or any_of"),
        (
            json!({ "except": ["/a"] }),
            "access: expected allow or any_of",
        ),
        (
            json!({ "allow": [] }),
            "access.allow: an empty list: expected at least one entry",
        ),
        (json!({ "any_of": [] }), "access.any_of: an empty list"),
        (
            json!({ "allow": ["::1"], "except": [] }),
            "access.except: an empty list",
        ),
        (
            json!({ "any_of": [{ "address": [] }] }),
            "access.any_of[0].address: an empty list",
        ),
        (
            json!({ "allow": ["office"] }),
            "access.allow[0]: \"office\": expected an address, or a network",
        ),
        (
            json!({ "any_of": [{ "ldap": {} }] }),
            "access.any_of[0].ldap: unknown scheme, expected address, signed",
        ),
        (
            json!({ "any_of": [{ "address": ["::1"], "signed": {} }] }),
            "access.any_of[0]: expected an object with one field: address, signed",
        ),
        (
            json!({ "any_of": [{ "address": ["::1"] }, { "address": ["::2"] }] }),
            "access.any_of[1].address: expected each scheme once",
        ),
        (
            json!({ "allow": ["::1"], "deny": [] }),
            "access.deny: unknown field, expected allow, any_of or except",
        ),
        (
            json!({ "allow": ["::1"], "except": ["a"] }),
            "access.except[0]: \"a\": expected a path",
        ),
        (
            json!({ "any_of": [{ "basic": {} }] }),
            "access.any_of[0].basic.users: required, but missing",
        ),
        (
            json!({ "any_of": [{ "basic": { "users": { "ada": "secret" } } }] }),
            "access.any_of[0].basic.users: expected the path of a file",
        ),
        (
            json!({ "any_of": [{ "basic": { "users": "u", "realm": "a\"b" } }] }),
            "access.any_of[0].basic.realm: \"a\"b\": expected at most 64 printable",
        ),
        (
            forward(json!({})),
            "access.any_of[0].forward.url: required, but missing",
        ),
        (
            forward(json!({ "url": "oauth2-proxy:4180" })),
            "access.any_of[0].forward.url: \"oauth2-proxy:4180\": expected a URL such as http://",
        ),
        (
            forward(json!({ "url": "http://a", "login": ["/oauth2/*"] })),
            "access.any_of[0].forward.login: unknown field: the pages for the login are a second site",
        ),
        (
            forward(json!({ "url": "http://a", "copy": ["x-user", "Cookie"] })),
            "access.any_of[0].forward.copy[1]: \"cookie\": expected another header than authorization,",
        ),
        (
            forward(json!({ "url": "http://a", "copy": ["X-Forwarded-Host"] })),
            "access.any_of[0].forward.copy[0]: \"x-forwarded-host\": expected another header",
        ),
        (
            forward(json!({ "url": "http://a", "timeout": "0s" })),
            "access.any_of[0].forward.timeout: \"0s\": expected at least 1ms",
        ),
        (
            forward(json!({ "url": "http://a", "cookie": "a b" })),
            "access.any_of[0].forward.cookie: \"a b\": expected the name of a cookie",
        ),
        (
            jwt("audiences", json!([])),
            "access.any_of[0].jwt.audiences: an empty list",
        ),
        (
            jwt("audiences", json!(null)),
            "access.any_of[0].jwt.audiences: ",
        ),
        (
            jwt("issuer", json!("-")),
            "access.any_of[0].jwt.issuer: \"-\": expected 2 to 512 visible ASCII characters",
        ),
        (
            jwt("jwks", json!("ftp://id.test/keys")),
            "access.any_of[0].jwt.jwks: \"ftp://id.test/keys\": expected the path of a file, or a URL such as https",
        ),
        (
            jwt("cookie", json!("session*")),
            "access.any_of[0].jwt.cookie: \"session*\": expected the name of a cookie without *",
        ),
        (
            jwt("refresh", json!("10ms")),
            "access.any_of[0].jwt.refresh: \"10ms\": expected at least 1s",
        ),
        (
            json!({ "any_of": [{ "jwt": {} }] }),
            "access.any_of[0].jwt.issuer: required, but missing",
        ),
        (
            keys(json!({})),
            "access.any_of[0].signed.keys: expected at least one key",
        ),
        (
            keys(json!({ "a b": { "env": "A" } })),
            "access.any_of[0].signed.keys.a b: expected a name of at most 64",
        ),
        (
            keys(json!({ "a": { "var": "A" } })),
            "access.any_of[0].signed.keys.a.var: unknown field, expected env or file",
        ),
    ] {
        let found = parse(&access).unwrap_err();
        assert!(found.starts_with(error), "{access}: {found}");
    }
}

#[test]
fn an_error_about_a_key_does_not_show_the_key() {
    const KEY: &str = "6d794b65794973546869734c6f6e67/+";
    for source in [
        json!(KEY),
        json!({ "env": KEY }),
        json!({ "sealed": KEY }),
        json!([KEY]),
        json!({ "env": [KEY] }),
    ] {
        let access = json!({ "any_of": [{ "signed": { "keys": { "a": source } } }] });
        let error = parse(&access).unwrap_err();
        assert!(
            error.starts_with("access.any_of[0].signed.keys.a"),
            "{error}"
        );
        assert!(!error.contains(KEY), "{error}");
    }
}
