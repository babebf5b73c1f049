// SPDX-License-Identifier: Apache-2.0
//! Purge calls: the accepted forms, the URLs that they cover, and the time of their answer.

#![allow(clippy::unwrap_used, clippy::panic)]

use sluice_core::key::Target;
use sluice_core::key::secret::StoreSecret;
use sluice_core::policy::Policy;
use sluice_core::policy::purge::{Kind, Scope};
use sluice_core::purge::{Awaited, FeedOutcome, PendingPurges, PurgeReceipt};
use sluice_core::purge::{
    Caller, Effect, Notification, OrderError, PurgeOrder, PurgeSubject, tags_named, tags_of, url_of,
};
use sluice_core::sites::Sites;
use sluice_core::workers::WorkerId;

const SECRET: StoreSecret = StoreSecret::new([1, 2]);
const JOURNAL: Awaited = Awaited {
    journal: true,
    feed: false,
};

fn indexed_bucket() -> Policy {
    let document = r#"{
        "origin": {"kind": "bucket", "bucket": "site", "prefix": "a b", "authority": "s3.test:9000"},
        "key": {"index_document": "index.html", "query": {"allow": ["v"]}}
    }"#;
    Policy::parse(document.as_bytes()).unwrap()
}

/// The scope of the URL that a client requests.
fn scope_of(policy: &Policy, authority: &str, path: &str) -> Scope {
    let target = Target {
        scheme: Some("http"),
        authority: authority.as_bytes(),
        path: path.as_bytes(),
    };
    let canonical = sluice_core::key::canonicalize(policy, &target).unwrap();
    Scope::of_url(url_of(policy, canonical.cache_key()), &SECRET)
}

fn parse(policy: &Policy, body: &[u8]) -> Result<PurgeOrder, OrderError> {
    let sites = Sites::of_one(policy.clone());
    PurgeOrder::parse(Caller::of_edge(&sites, &SECRET), body)
}

fn notification(policy: &Policy, body: &[u8]) -> Result<Notification, OrderError> {
    let sites = Sites::of_one(policy.clone());
    Notification::parse(&Caller::of_edge(&sites, &SECRET), body)
}

fn changed_objects(policy: &Policy, body: &[u8]) -> Result<Vec<String>, OrderError> {
    notification(policy, body).map(|notification| notification.urls)
}

/// The names and effects of events that purge nothing.
fn ignored(body: &str) -> Vec<(String, Effect)> {
    let notification = notification(&indexed_bucket(), body.as_bytes()).unwrap();
    assert_eq!(notification.urls, Vec::<String>::new(), "{body}");
    let ignored = notification.ignored.into_iter();
    ignored.map(|event| (event.name, event.effect)).collect()
}

fn scopes(policy: &Policy, body: &str) -> (Vec<Scope>, Kind) {
    match parse(policy, body.as_bytes()) {
        Ok(PurgeOrder {
            what: PurgeSubject::Scopes(scopes),
            kind,
        }) => (scopes, kind),
        other => panic!("{body}: {other:?}"),
    }
}

/// Notifications of S3 for these keys.
fn created(keys: &[&str]) -> Vec<u8> {
    let record = |key: &&str| {
        format!(
            r#"{{"eventName": "ObjectCreated:Put", "s3": {{"bucket": {{"name": "site"}}, "object": {{"key": "{key}"}}}}}}"#
        )
    };
    let records: Vec<_> = keys.iter().map(record).collect();
    format!(r#"{{"Records": [{}]}}"#, records.join(",")).into_bytes()
}

#[test]
fn a_changed_object_purges_the_listings_of_the_directories_above_it() {
    let listed = crate::support::bucket_policy(
        "key: {index_document: index.html}\nwebsite: {listing: {prefixes: [/pub/*]}}",
    );
    let urls = changed_objects(&listed, &created(&["pub/a/b.txt", "other/x"])).unwrap();
    let expected = [
        "/site/pub/a/b.txt",
        "/site/pub/a/index.html",
        "/site/pub/index.html",
        "/site/other/x",
    ];
    assert_eq!(urls, expected);
}

#[test]
fn a_url_means_what_a_client_would_get_for_it() {
    let http = crate::support::http();
    let shop = scope_of(&http, "shop.test", "/a%20b?x=1");
    for text in [
        "http://shop.test/a%20b?x=1",
        "http://SHOP.test:80/./a%20b?x=1",
        "https://shop.test:443/a%20b?x=1",
    ] {
        let body = format!(r#"{{"url": "{text}"}}"#);
        assert_eq!(scopes(&http, &body), (vec![shop.clone()], Kind::Hard));
    }
    let other = scopes(&http, r#"{"url": "http://shop.test/a%20b"}"#);
    assert_ne!(other.0, [shop]);
}

#[test]
fn an_object_of_a_bucket_is_one_url_whatever_its_host_and_query() {
    let bucket = indexed_bucket();
    let index = scope_of(&bucket, "edge.test", "/docs/?v=7");
    for text in [
        "/docs/",
        "/docs/index.html?v=1",
        "https://www.test/docs/index.html",
        "http://edge.test/docs/",
    ] {
        let body = format!(r#"{{"soft": true, "url": "{text}"}}"#);
        assert_eq!(scopes(&bucket, &body), (vec![index.clone()], Kind::Soft));
    }
}

#[test]
fn a_prefix_is_spelled_as_the_urls_that_it_covers() {
    let body = r#"{"prefix": "https://Shop.test/css/../a%7Eb"}"#;
    let expected = vec![Scope::Prefix("shop.test/a~b".into())];
    assert_eq!(scopes(&crate::support::http(), body).0, expected);
    let bucket = indexed_bucket();
    for (text, expected) in [
        ("/", "/site/a%20b/"),
        ("/docs/", "/site/a%20b/docs/"),
        ("http://any.test/do c", "/site/a%20b/do%20c"),
    ] {
        let body = format!(r#"{{"prefix": "{}"}}"#, text.replace(' ', "%20"));
        let expected = vec![Scope::Prefix(expected.into())];
        assert_eq!(scopes(&bucket, &body).0, expected, "{text}");
    }
}

#[test]
fn surrogate_keys_and_everything_are_taken() {
    let everything = scopes(
        &crate::support::http(),
        r#"{"everything": true, "soft": false}"#,
    );
    assert_eq!(everything, (vec![Scope::Everything], Kind::Hard));
    let body = br#"{"surrogate_keys": ["red", "blue", "red"]}"#;
    let order = parse(&crate::support::http(), body).unwrap();
    let tags = tags_named(&["blue", "red"], &SECRET).unwrap();
    assert_eq!(tags.len(), 4);
    let site = String::new();
    assert_eq!(order.what, PurgeSubject::Tags { site, tags });
}

/// CloudFront's documents say that case makes no difference in its tags. In other fields it does.
#[test]
fn a_surrogate_key_names_the_tags_of_cloudfront_in_any_case_and_others_as_they_are_written() {
    let finds = |named: &str, field: &str, value: &str| {
        let indexed = tags_of(&[(field, value)], &SECRET).unwrap();
        let named = tags_named(&[named], &SECRET).unwrap();
        indexed.iter().any(|tag| named.contains(tag))
    };
    let cloudfront = "x-amz-meta-cache-tag";
    for (named, field, value, expected) in [
        (
            "category:tv",
            cloudfront,
            "product:1, category:tv,brand:x",
            true,
        ),
        ("Category:TV", cloudfront, "category:tv", true),
        ("category:tv", cloudfront, "CATEGORY:tv", true),
        ("category", cloudfront, "category:tv", false),
        ("red", "x-amz-meta-surrogate-key", "red blue", true),
        ("Red", "surrogate-key", "red", false),
        ("red", "cache-tag", "Red", false),
    ] {
        assert_eq!(
            finds(named, field, value),
            expected,
            "{named} in {field}: {value}"
        );
    }
}

#[test]
fn a_wrong_call_is_told_the_field_the_value_and_what_is_accepted() {
    let long = format!(r#"{{"prefix": "http://a.test/{}"}}"#, "x".repeat(3_000));
    let unknown = format!(r#"{{"{}": 1}}"#, "x".repeat(3_000));
    for (body, parts) in [
        ("", &["the body: ", "expected a JSON object"][..]),
        ("[]", &["the body: []", "expected a JSON object"]),
        ("{}", &["the body: {}", "expected one of url, prefix"]),
        (r#"{"soft": true}"#, &["expected one of url, prefix"]),
        (r#"{"urls": []}"#, &["urls: unknown field", "url, prefix"]),
        (r#"{"url": 5}"#, &["url: 5: expected a URL"]),
        (
            r#"{"url": "/x"}"#,
            &[r#"url: "/x": expected a URL"#, "https://HOST/PATH"],
        ),
        (r#"{"url": "ftp://a/x"}"#, &[r#"url: "ftp://a/x""#]),
        (r#"{"url": "http://a b/x"}"#, &["url: ", "expected a URL"]),
        (r#"{"url": "http://a/../x"}"#, &["url: ", "expected a URL"]),
        (r#"{"url": "http://a/x#y"}"#, &["url: ", "expected a URL"]),
        (
            r#"{"prefix": "http://a/x?y"}"#,
            &["prefix: ", "expected a URL"],
        ),
        (&unknown, &["x…: unknown field: expected url"]),
        (&long, &["prefix: ", "…: expected at most 2048 bytes"]),
        (
            r#"{"everything": false}"#,
            &["everything: false: expected true"],
        ),
        (
            r#"{"everything": true, "url": "http://a/"}"#,
            &["one too many"],
        ),
        (
            r#"{"everything": true, "soft": 1}"#,
            &["soft: 1: expected true or false"],
        ),
        (
            r#"{"surrogate_keys": []}"#,
            &["surrogate_keys: []: expected a list"],
        ),
        (
            r#"{"surrogate_keys": ["a b"]}"#,
            &["surrogate_keys: ", "without spaces"],
        ),
        (r#"{"surrogate_keys": "a"}"#, &[r#"surrogate_keys: "a""#]),
    ] {
        let error = parse(&crate::support::http(), body.as_bytes()).unwrap_err();
        let error = error.to_string();
        assert!(
            parts.iter().all(|part| error.contains(part)),
            "{body}: {error}"
        );
        assert!(error.len() < 500);
    }
}

fn event(bucket: &str, key: &str) -> String {
    format!(
        r#"{{"EventName": "s3:ObjectCreated:Put", "Key": "x", "Records": [
            {{"eventName": "s3:ObjectCreated:Put",
              "s3": {{"bucket": {{"name": "{bucket}"}}, "object": {{"key": "{key}", "size": 5}}}}}}
        ]}}"#
    )
}

#[test]
fn a_notification_names_the_urls_of_its_objects() {
    let policy = indexed_bucket();
    for (bucket, key, path) in [
        ("site", "a+b/docs/index.html", Some("/docs/")),
        ("site", "a%20b%2Fx%2By.txt", Some("/x%2By.txt")),
        ("site", "a+b/%C3%A9", Some("/%C3%A9?v=2")),
        ("site", "a+bc/x", None),
        ("site", "x", None),
        ("other", "a+b/x", None),
    ] {
        let changed = changed_objects(&policy, event(bucket, key).as_bytes()).unwrap();
        let changed: Vec<_> = changed
            .iter()
            .map(|url| Scope::of_url(url, &SECRET))
            .collect();
        let expected: Vec<_> = path
            .map(|path| scope_of(&policy, "edge.test", path))
            .into_iter()
            .collect();
        assert_eq!(changed, expected, "{bucket}/{key}");
    }
}

#[test]
fn a_bucket_with_a_host_of_its_own_is_found_too() {
    let document = r#"{"origin": {"kind": "bucket", "bucket": "site", "addressing": "virtual_host",
                                  "authority": "site.s3.test"}}"#;
    let policy = Policy::parse(document.as_bytes()).unwrap();
    let changed = changed_objects(&policy, event("site", "a/b.css").as_bytes()).unwrap();
    assert_eq!(changed, ["/a/b.css"]);
    let other = changed_objects(&policy, event("s", "a/b.css").as_bytes()).unwrap();
    assert_eq!(other, Vec::<String>::new());
}

#[test]
fn both_readings_of_a_key_that_may_be_encoded_are_purged() {
    let policy = indexed_bucket();
    for (key, paths) in [
        ("a b/x%2By+z", &["/x+y z", "/x%2By+z", "/x+y+z"][..]),
        ("a b/100%41.png", &["/100%41.png", "/100A.png"]),
        ("a b/a+b.png", &["/a b.png", "/a+b.png"]),
    ] {
        let changed = changed_objects(&policy, event("site", key).as_bytes()).unwrap();
        let mut expected: Vec<String> = paths
            .iter()
            .map(|path| {
                let escaped = path
                    .replace('%', "%25")
                    .replace('+', "%2B")
                    .replace(' ', "%20");
                format!("/site/a%20b{escaped}")
            })
            .collect();
        expected.sort();
        assert_eq!(changed, expected, "{key}");
    }
}

#[test]
fn events_come_in_the_shapes_that_senders_have() {
    let record = r#"{"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": "site"},
        "object": {"key": "a b/x"}}}"#;
    let records = format!(r#"{{"Records": [{record}]}}"#);
    let bridge = r#"{"version": "0", "detail-type": "Object Deleted", "source": "aws.s3",
        "detail": {"bucket": {"name": "site"}, "object": {"key": "a b/x"}}}"#;
    let r2 = r#"{"account": "3f4b", "action": "PutObject", "bucket": "site",
        "object": {"key": "a b/x", "size": 65536, "eTag": "c846"}, "eventTime": "2024-05-24T19:36:44.379Z"}"#;
    let envelope = |inner: &str| {
        let message = serde_json::Value::from(inner);
        format!(
            r#"{{"Type": "Notification", "TopicArn": "arn:aws:sns:x:1:y", "Message": {message}}}"#
        )
    };
    let cloud = |data: &str| {
        format!(
            r#"{{"specversion": "1.0", "type": "com.amazonaws.s3.ObjectCreated:Put", "data": {data}}}"#
        )
    };
    let unnamed = record.replace(r#""eventName": "ObjectCreated:Put","#, "");
    for body in [
        record.to_owned(),
        records.clone(),
        // Ceph has no `s3:` in front, but MinIO has, and a version of Ceph encodes nothing.
        records.replace("ObjectCreated:Put", "s3:ObjectRemoved:Delete"),
        records.replace("ObjectCreated:Put", "ObjectSynced:Create"),
        bridge.to_owned(),
        r2.to_owned(),
        format!("[{r2}]"),
        envelope(&records),
        envelope(bridge),
        cloud(record),
        cloud(&records),
        cloud(&unnamed),
        cloud(&serde_json::Value::from(record).to_string()),
        envelope(&cloud(record)),
    ] {
        let changed = changed_objects(&indexed_bucket(), body.as_bytes());
        assert_eq!(changed, Ok(vec!["/site/a%20b/x".to_owned()]), "{body}");
    }
}

#[test]
fn events_that_change_no_object_purge_nothing() {
    let named = |name: &str| event("site", "a b/x").replace("s3:ObjectCreated:Put", name);
    let bridge = r#"{"detail-type": "Object Tags Added", "source": "aws.s3",
        "detail": {"bucket": {"name": "site"}, "object": {"key": "a b/x"}}}"#;
    let cloud = r#"{"specversion": "1.0", "type": "com.example.other", "data": 7}"#;
    let text = r#"{"Type": "Notification", "Message": "hello"}"#;
    for (body, name, effect) in [
        (
            named("s3:ObjectAccessed:Get"),
            "s3:ObjectAccessed:Get",
            Effect::Read,
        ),
        (
            named("s3:ObjectAccessed:Head"),
            "s3:ObjectAccessed:Head",
            Effect::Read,
        ),
        (
            named("s3:ObjectTagging:Put"),
            "s3:ObjectTagging:Put",
            Effect::Unchanged,
        ),
        (
            named("s3:ObjectFuture:X"),
            "s3:ObjectFuture:X",
            Effect::Unknown,
        ),
        (
            event("other", "a b/x"),
            "s3:ObjectCreated:Put",
            Effect::Changed,
        ),
        (
            r#"{"Event": "s3:TestEvent"}"#.into(),
            "s3:TestEvent",
            Effect::Unchanged,
        ),
        ("{}".into(), "of an unknown shape", Effect::Unknown),
        (bridge.into(), "Object Tags Added", Effect::Unchanged),
        (cloud.into(), "com.example.other", Effect::Unknown),
        (text.into(), "Notification", Effect::Unknown),
        (
            r#"{"Type": "SubscriptionConfirmation"}"#.into(),
            "SubscriptionConfirmation",
            Effect::Unknown,
        ),
    ] {
        assert_eq!(ignored(&body), [(name.to_owned(), effect)], "{body}");
    }
    let long = format!(r#"{{"Type": "{}"}}"#, "é".repeat(1_000));
    assert_eq!(ignored(&long), [("é".repeat(64), Effect::Unknown)]);
    let deep = (0..6).fold("{}".to_owned(), |inner, _| format!("[{inner}]"));
    assert!(notification(&indexed_bucket(), deep.as_bytes()).is_err());
}

#[test]
fn a_test_event_is_about_nothing_and_a_broken_one_is_refused() {
    let policy = indexed_bucket();
    for body in [r#"{"Event": "s3:TestEvent"}"#, r#"{"Records": null}"#, "{}"] {
        assert_eq!(changed_objects(&policy, body.as_bytes()), Ok(vec![]));
    }
    for (body, field) in [
        ("", "the body"),
        ("[]", "the body"),
        (r#"{"Records": 5}"#, "Records"),
        ("5", "the body"),
        (r#"{"Records": ["x"]}"#, "Records[0]"),
        (r#"{"Records": [{}]}"#, "Records[0].s3.bucket.name"),
        (
            r#"{"Records": [{"s3": {"bucket": {"name": "b"}}}]}"#,
            "Records[0].s3.object.key",
        ),
        (
            r#"{"detail-type": "Object Created", "detail": {"bucket": "b"}}"#,
            "detail.bucket.name",
        ),
        (r#"{"action": "PutObject", "bucket": "b"}"#, "object.key"),
        (r#"{"specversion": "1.0"}"#, "type"),
    ] {
        let error = changed_objects(&policy, body.as_bytes()).unwrap_err();
        assert!(error.to_string().starts_with(field), "{error}");
    }
}

#[test]
fn a_call_waits_for_every_worker_and_the_journal() {
    let mut desk = PendingPurges::default();
    let others = vec![WorkerId(2), WorkerId(3)];
    let call = desk.open(77, 9, others, JOURNAL, 0).unwrap();
    desk.acknowledge(call, WorkerId(2));
    desk.acknowledge(call, WorkerId(3));
    assert_eq!(desk.take_done(10), []);
    desk.journaled(call, true);
    let receipt = PurgeReceipt {
        context: 77,
        number: 9,
        workers: 3,
        missing: vec![],
        recorded: true,
        feed: None,
    };
    assert_eq!(desk.take_done(10), [receipt]);
    assert!(desk.is_empty());
}

#[test]
fn a_call_tells_who_is_missing_in_the_end() {
    let mut desk = PendingPurges::default();
    let call = desk
        .open(77, 9, vec![WorkerId(2), WorkerId(3)], Awaited::default(), 0)
        .unwrap();
    desk.acknowledge(call, WorkerId(3));
    desk.acknowledge(call, WorkerId(4));
    assert_eq!(desk.take_done(1_999), []);
    let [receipt] = desk.take_done(2_000).try_into().unwrap();
    assert_eq!((receipt.workers, receipt.recorded), (2, true));
    assert_eq!(receipt.missing, [WorkerId(2)]);
    desk.acknowledge(call, WorkerId(2));
    assert_eq!(desk.take_done(3_000), [], "too late");
}

#[test]
fn a_slow_journal_is_waited_for_longer_than_a_silent_worker() {
    let mut desk = PendingPurges::default();
    let open = |desk: &mut PendingPurges| desk.open(77, 9, vec![WorkerId(2)], JOURNAL, 0).unwrap();
    let call = open(&mut desk);
    assert_eq!(desk.take_done(9_999), []);
    desk.journaled(call, true);
    let [receipt] = desk.take_done(9_999).try_into().unwrap();
    assert_eq!((receipt.workers, receipt.recorded), (1, true));
    open(&mut desk);
    assert_eq!(desk.take_done(9_999), []);
    let [receipt] = desk.take_done(10_000).try_into().unwrap();
    assert!(!receipt.recorded);
}

#[test]
fn calls_under_way_are_bounded() {
    let mut desk = PendingPurges::default();
    let open = |desk: &mut PendingPurges| desk.open(1, 1, vec![WorkerId(2)], Awaited::default(), 0);
    assert_eq!((0..1_000).filter_map(|_| open(&mut desk)).count(), 256);
    assert!(!desk.has_room());
}

#[test]
fn an_event_of_the_folder_of_the_edges_does_nothing() {
    let policy = indexed_bucket();
    for key in [
        "a b/.sluice/purges",
        "a+b%2F.sluice%2Fpurges",
        "a b/.sluice%2Fpurges",
    ] {
        let body = format!(
            r#"{{"Records": [{{"eventName": "ObjectCreated:Put", "s3": {{"bucket": {{"name": "site"}},
               "object": {{"key": "{key}"}}}}}}]}}"#
        );
        let read = notification(&policy, body.as_bytes()).unwrap();
        assert_eq!(read, Notification::default(), "{key}");
    }
}

#[test]
fn a_call_waits_for_the_feed_and_tells_its_number_or_why_there_is_none() {
    let mut desk = PendingPurges::default();
    let feed = Awaited {
        feed: true,
        journal: false,
    };
    let open = |desk: &mut PendingPurges| desk.open(77, 9, Vec::new(), feed, 0).unwrap();
    let call = open(&mut desk);
    assert_eq!(desk.take_done(9_999), []);
    let written = FeedOutcome::Written {
        number: 122,
        by: "2026-11-25T07:31:06Z".to_owned(),
    };
    desk.fed(call, written.clone());
    let [receipt] = desk.take_done(9_999).try_into().unwrap();
    assert_eq!(receipt.feed, Some(written));
    open(&mut desk);
    let [receipt] = desk.take_done(10_000).try_into().unwrap();
    assert_eq!(receipt.feed, Some(FeedOutcome::unanswered()));
}
