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
        access.challenges().collect::<Vec<_>>()
    };
    let file = challenges(json!({ "users": "u" }));
    assert_eq!(file, [r#"Basic realm="Restricted", charset="UTF-8""#]);
    let named = challenges(json!({ "users": { "sealed": "00" }, "realm": "Docs" }));
    assert_eq!(named, [r#"Basic realm="Docs", charset="UTF-8""#]);
}

#[test]
fn a_wrong_rule_is_refused_with_its_field_and_what_is_accepted() {
    let keys = |keys: Value| json!({ "any_of": [{ "signed": { "keys": keys } }] });
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
            "access.any_of[0].basic.realm: \"a\\\"b\": expected at most 64 printable",
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
