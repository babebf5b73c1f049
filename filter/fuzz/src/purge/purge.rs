// SPDX-License-Identifier: Apache-2.0
//! Fuzzes bodies of purge calls and S3 notifications. Each is refused with a message, or covers the objects that it
//! names.
//!
//! Input: the policy's number, the end of a URL up to the first newline, the body.
#![no_main]
// A fuzz target reports what it finds by a panic.
#![allow(clippy::expect_used)]

use libfuzzer_sys::fuzz_target;
use sluice_core::key::secret::StoreSecret;
use sluice_core::key::{Target, canonicalize};
use sluice_core::policy::purge::{Record, Scope};
use sluice_core::policy::{Origin, Policy};
use sluice_core::purge::{
    Caller, MAX_PREFIX_BYTES, Notification, PurgeOrder, PurgeSubject, Purges, url_of,
};
use sluice_core::sites::Sites;
use sluice_fuzz::policy;

const SECRET: StoreSecret = StoreSecret::new([1, 2]);
const POLICIES: [&str; 4] = [
    r#"{"origin": {"kind": "bucket", "bucket": "site", "authority": "s3.test:9000"}}"#,
    r#"{"origin": {"kind": "bucket", "bucket": "site", "prefix": "a b/c", "authority": "site.s3.test",
        "addressing": "virtual_host"}, "key": {"index_document": "index.html"}}"#,
    r#"{"origin": {"kind": "http"}}"#,
    r#"{"origin": {"kind": "http", "authority": "origin.test"},
        "key": {"host": false, "merge_slashes": true, "query": {"mode": "sort"}}}"#,
];
/// Longer than any message needs to be, even for a long body.
const MAX_MESSAGE_BYTES: usize = 2_000;

fuzz_target!(|input: &[u8]| {
    let Some((number, rest)) = input.split_first() else {
        return;
    };
    let policy = policy(&POLICIES, *number);
    let mut parts = rest.splitn(2, |byte| *byte == b'\n');
    let end = parts.next().unwrap_or_default();
    let body = parts.next().unwrap_or_default();
    let sites = Sites::of_one(policy.clone());
    let caller = Caller::of_edge(&sites, &SECRET);
    match PurgeOrder::parse(caller, body) {
        Ok(order) => check_order(&order),
        Err(error) => check_message(&error.to_string()),
    }
    match Notification::parse(&caller, body) {
        Ok(notification) => notification
            .urls
            .iter()
            .for_each(|url| check_object(policy, url)),
        Err(error) => check_message(&error.to_string()),
    }
    if let (Ok(end), Ok(beginning)) = (std::str::from_utf8(end), std::str::from_utf8(body)) {
        check_prefix(policy, beginning, end);
    }
});

fn check_message(message: &str) {
    assert!(!message.is_empty() && message.len() < MAX_MESSAGE_BYTES);
}

/// Checks that any valid order can be sent to other workers and written into the journal.
fn check_order(order: &PurgeOrder) {
    let scopes = match &order.what {
        PurgeSubject::Scopes(scopes) => scopes,
        PurgeSubject::Tags { tags, .. } => return assert!(!tags.is_empty()),
    };
    assert_eq!(scopes.len(), 1);
    for scope in scopes {
        let record = Record {
            number: 1,
            kind: order.kind,
            scope: scope.clone(),
        };
        assert_eq!(Record::parse(&record.to_string()), Some(record));
        assert!(!matches!(scope, Scope::Prefix(prefix) if prefix.len() > MAX_PREFIX_BYTES));
    }
}

/// Checks that the URL of a changed object is below the edge's prefix, and is the URL under which clients get the
/// object, if they do.
fn check_object(policy: &Policy, url: &str) {
    let Origin::Bucket(bucket) = &policy.origin else {
        return assert!(url.is_empty(), "an HTTP origin has no objects");
    };
    assert!(url.bytes().all(|byte| byte.is_ascii_graphic()), "{url:?}");
    let below = url
        .strip_prefix(&bucket.path_prefix)
        .expect("below the prefix");
    let target = Target {
        scheme: None,
        authority: b"edge.test",
        path: below.as_bytes(),
    };
    // Clients cannot request an object whose key has empty or dot segments.
    let mut segments = below.split('/').skip(1);
    if let Ok(canonical) = canonicalize(policy, &target)
        && segments.all(|segment| !matches!(segment, "" | "." | ".."))
    {
        assert_eq!(url_of(policy, canonical.cache_key()), url);
    }
}

/// Checks that a URL that begins with a purged prefix is purged, and that a URL that is purged alone is purged, too.
fn check_prefix(policy: &Policy, beginning: &str, end: &str) {
    // A dot may remove the segment in front of it, and a prefix must not end within an escape.
    if end.contains(['.', '%', '?', '\\']) || parts(beginning).is_none() {
        return;
    }
    let url = format!("{beginning}{end}");
    let Some(asked) = asked_for(policy, &url) else {
        return;
    };
    let order = |name: &str, text: &str| {
        let body = serde_json::json!({ name: text }).to_string();
        let sites = Sites::of_one(policy.clone());
        PurgeOrder::parse(Caller::of_edge(&sites, &SECRET), body.as_bytes()).ok()
    };
    if let Some(order) = order("prefix", beginning) {
        let hard = purged(&order).generations(&asked, &SECRET).hard;
        assert_eq!(hard, 1, "{order:?} does not cover {asked:?}");
    }
    if let Some(order) = order("url", &url) {
        let scopes = vec![Scope::of_url(&asked, &SECRET)];
        assert_eq!(order.what, PurgeSubject::Scopes(scopes));
    }
}

/// The purges after an order.
fn purged(order: &PurgeOrder) -> Purges {
    let mut purges = Purges::default();
    if let PurgeSubject::Scopes(scopes) = &order.what {
        for (number, scope) in (1..).zip(scopes.clone()) {
            purges.apply(&Record {
                number,
                kind: order.kind,
                scope,
            });
        }
    }
    purges
}

/// Scheme, authority and path of a URL, or of one that is a path.
fn parts(url: &str) -> Option<(&str, &str, &str)> {
    for (scheme, start) in [("http", "http://"), ("https", "https://")] {
        if let Some(rest) = url.strip_prefix(start) {
            let (authority, path) = rest.split_at_checked(rest.find('/')?)?;
            return Some((scheme, authority, path));
        }
    }
    url.starts_with('/').then_some(("http", "edge.test", url))
}

/// The URL that a client requests, in the form that purges use.
fn asked_for(policy: &Policy, url: &str) -> Option<String> {
    let (scheme, authority, path) = parts(url)?;
    let target = Target {
        scheme: Some(scheme),
        authority: authority.as_bytes(),
        path: path.as_bytes(),
    };
    let canonical = canonicalize(policy, &target).ok()?;
    Some(url_of(policy, canonical.cache_key()).to_owned())
}
