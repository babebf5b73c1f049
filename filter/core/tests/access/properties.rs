// SPDX-License-Identifier: Apache-2.0
//! Properties of the decision for requests in any spelling.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::json;
use sluice_core::access::decision::{AccessCheck, AccessDecision};
use sluice_core::access::grant::{Grant, GrantedResource};
use sluice_core::access::verified_links::VerifiedLinks;
use sluice_core::key::{Target, canonicalize};
use sluice_fake::sites::Rng;

use super::support::{
    ADDRESS, KEY, NOW, OTHER_KEY, Sent, get, grant, grant_prefix, parameters, policy, signed,
};

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

/// A signed URL, perhaps with times, a network, a prefix, the wrong key, or one byte that is changed.
fn link(rng: &mut Rng) -> String {
    let path = ["/a", "/p/a", "/p/b?v=1"][rng.below(3)];
    let grant = Grant {
        resource: match rng.below(3) {
            0 => GrantedResource::Prefix("/p/*"),
            _ => GrantedResource::Url(path),
        },
        not_before: [None, Some(NOW + 100)][rng.below(2)],
        from: [None, Some("192.0.2.0/24")][rng.below(2)],
        ..grant("")
    };
    let key = [KEY, KEY, OTHER_KEY][rng.below(3)];
    let separator = if path.contains('?') { '&' } else { '?' };
    let mut link = format!("{path}{separator}{}", parameters(&grant, key)).into_bytes();
    if rng.below(3) == 0 {
        let place = rng.below(link.len());
        link[place] = rng.pick(b"/ab01&%");
    }
    String::from_utf8(link).unwrap()
}

#[test]
fn links_that_were_verified_change_no_decision() {
    let rules = json!({ "any_of": [signed()] });
    let open = json!({ "any_of": [signed()], "except": ["/p/b"] });
    let one_key =
        json!({ "any_of": [{ "signed": { "keys": { "b": signed()["signed"]["keys"]["b"] } } }] });
    // Each reload has another number.
    let policies = [rules.clone(), one_key, open, rules].map(|access| policy(access, json!({})));
    let mut rng = Rng::new(13);
    let links: Vec<_> = (0..60).map(|_| link(&mut rng)).collect();
    let mut known = VerifiedLinks::default();
    let mut found = 0;
    let (mut admitted, mut refused) = (HashSet::new(), HashSet::new());
    for _ in 0..TRIES / 250 {
        let number = rng.below(policies.len());
        let sent = Sent {
            method: rng.pick(&["GET", "HEAD", "POST"]),
            host: rng.pick(&["edge.test", "EDGE.test:80", "other.test"]),
            address: rng.pick(&[ADDRESS, "198.51.100.1", ""]),
            now: rng.pick(&[NOW, NOW + 50, NOW + 120, NOW + 121]),
            ..get(&links[rng.below(links.len())])
        };
        let expected = sent.decide(&policies[number]);
        found += usize::from(sent.is_known(number as u32, &known));
        let decision = sent.decide_with(&policies[number], number as u32, &mut known);
        let path = String::from_utf8_lossy(sent.path);
        assert_eq!(decision, expected, "{number} {} {path}", sent.method);
        match decision {
            AccessDecision::Refused(refusal) => refused.insert(refusal.name()),
            AccessDecision::Admitted { check, .. } => admitted.insert(format!("{check:?}")),
            AccessDecision::Asks(_) => unreachable!(),
        };
    }
    let reasons = [
        "malformed",
        "unknown_key",
        "wrong_signature",
        "expired",
        "not_yet_valid",
        "other_address",
        "other_path",
        "no_proof",
    ];
    for reason in reasons {
        assert!(refused.contains(reason), "{reason}");
    }
    assert_eq!(admitted.len(), 2);
    assert!(found > 50, "{found}");
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
