// SPDX-License-Identifier: Apache-2.0
//! Properties of the decision for requests in any spelling.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::json;
use sluice_core::access::decision::{AccessCheck, AccessDecision};
use sluice_core::access::grant::{Grant, GrantedResource};
use sluice_core::key::{Target, canonicalize};
use sluice_fake::sites::Rng;

use super::support::{KEY, Sent, get, grant_prefix, parameters, policy, signed};

/// Number of the requests of each property.
const TRIES: u32 = 1_000_000;

/// Pieces of paths that parsers read differently.
const PIECES: [&str; 20] = [
    "/", "/", "/", "..", ".", "//", "/../", "/./", "%2e", "%2E%2e", "%70", "p", "/p/", "/p/",
    "%2f", "%5c", "..;", "a", "?", "%",
];

fn path(rng: &mut Rng) -> String {
    let mut path = String::from("/");
    for _ in 0..rng.below(8) {
        path.push_str(rng.pick(&PIECES));
    }
    path
}

fn canonical(policy: &sluice_core::policy::Policy, path: &str) -> Option<String> {
    let target = Target {
        scheme: Some("http"),
        authority: b"edge.test",
        path: path.as_bytes(),
    };
    let target = canonicalize(policy, &target).ok()?;
    Some(target.origin_path().split('?').next().unwrap().to_owned())
}

#[test]
fn a_path_is_open_if_and_only_if_the_edge_serves_an_open_path_for_it() {
    let rules = json!({ "allow": ["198.51.100.0/24"], "except": ["/p/*"] });
    let policies = [
        policy(rules.clone(), json!({})),
        policy(rules, json!({ "key": { "merge_slashes": true } })),
    ];
    let mut rng = Rng::new(7);
    let (mut open, mut closed) = (0, 0);
    for number in 0..TRIES {
        let policy = &policies[number as usize % 2];
        let path = path(&mut rng);
        let admitted = get(&path).decide(policy);
        let admitted = matches!(
            admitted,
            AccessDecision::Admitted {
                check: AccessCheck::Except,
                ..
            }
        );
        match canonical(policy, &path) {
            Some(served) => assert_eq!(admitted, served.starts_with("/p/"), "{path} {served}"),
            None => continue,
        }
        *(if admitted { &mut open } else { &mut closed }) += 1;
    }
    assert!(open > TRIES / 20 && closed > TRIES / 20, "{open} {closed}");
}

#[test]
fn a_prefix_opens_nothing_that_the_edge_serves_outside_of_it() {
    let policy = policy(json!({ "any_of": [signed()] }), json!({}));
    let cookie = format!("sluice-signed={}", parameters(&grant_prefix("/p/*"), KEY));
    let mut rng = Rng::new(11);
    for _ in 0..TRIES / 400 {
        let path = path(&mut rng);
        let sent = Sent {
            cookie: &cookie,
            ..get(&path)
        };
        let admitted = matches!(sent.decide(&policy), AccessDecision::Admitted { .. });
        if let Some(served) = canonical(&policy, &path) {
            assert_eq!(admitted, served.starts_with("/p/"), "{path} {served}");
        }
    }
}

/// Reads the fields of a signed text again.
fn fields(mut text: &str) -> Vec<&str> {
    let mut fields = Vec::new();
    while !text.is_empty() {
        let (length, rest) = text.split_once(':').unwrap();
        let (field, rest) = rest.split_at(length.parse().unwrap());
        fields.push(field);
        text = rest.strip_prefix(',').unwrap();
    }
    fields
}

proptest! {
    /// A text that can be read again is the text of one grant only.
    #[test]
    fn two_grants_never_have_one_text(
        method in "[A-Z:,0-9]{0,4}", host in "[a-z:,0-9]{0,6}", resource in "[/*a:,0-9]{0,8}",
        is_prefix: bool, not_before: Option<u64>, expires: u64,
        from in proptest::option::of("[0-9.:/,]{1,8}"), key in "[a-z:,0-9]{0,6}",
    ) {
        let grant = Grant {
            method: &method,
            host: &host,
            resource: match is_prefix {
                true => GrantedResource::Prefix(&resource),
                false => GrantedResource::Url(&resource),
            },
            not_before,
            expires,
            from: from.as_deref(),
            key: &key,
        };
        let kind = if is_prefix { "prefix" } else { "url" };
        let not_before = not_before.map(|time| time.to_string()).unwrap_or_default();
        let expires = expires.to_string();
        let expected = [
            "sluice-signed-1", &method, &host, kind, &resource, &not_before, &expires,
            from.as_deref().unwrap_or_default(), &key,
        ];
        let text = grant.to_text();
        prop_assert_eq!(fields(&text), expected);
    }
}
