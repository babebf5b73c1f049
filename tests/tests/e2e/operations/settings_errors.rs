// SPDX-License-Identifier: Apache-2.0
//! Wrong settings stop the start with a message that has the name, the value, and the accepted values.

use sluice_tests::edge::{Builder, Edge};
use sluice_tests::origin::Origin;

#[tokio::test]
async fn a_wrong_value_is_named_with_its_variable() {
    let wrong: [(&str, &str); 21] = [
        ("SLUICE_ORIGIN", "ftp://x"),
        ("SLUICE_ORIGIN", "s3://"),
        ("SLUICE_ORIGIN", "s3://UPPER/x"),
        ("SLUICE_ORIGIN", "s3://site/../other"),
        ("SLUICE_ORIGIN", "http://127.0.0.1:99999"),
        ("SLUICE_EDGE_PORT", "0"),
        ("SLUICE_EDGE_PORT", "eighty"),
        ("SLUICE_METRICS_PORT", "70000"),
        ("SLUICE_BIND", "everywhere"),
        ("SLUICE_CACHE", "ram"),
        ("SLUICE_CACHE_MAX_BYTES", "lots"),
        ("SLUICE_CACHE_MAX_BYTES", "-1"),
        ("SLUICE_CACHE_MAX_ENTRIES", "0"),
        ("SLUICE_CACHE_MAX_OBJECT_BYTES", "2TiB"),
        ("SLUICE_CONCURRENCY", "0"),
        ("SLUICE_CONCURRENCY", "many"),
        ("SLUICE_POLICY", "/no/such/policy.yaml"),
        ("SLUICE_HEALTH_PATH", "healthz"),
        ("AWS_REGION", "mars one"),
        ("SLUICE_SNS_TOPICS", "my-topic"),
        ("SLUICE_SNS_PROXY", "https://127.0.0.1:3128"),
    ];
    let origin = Origin::start().ready().await;
    for (name, value) in wrong {
        let refusal = Edge::http(&origin).env(name, value).refused().await;
        assert_ne!(refusal.code, Some(0), "{name}={value}");
        assert!(
            refusal.output.contains(name),
            "{name}={value}: {}",
            refusal.output
        );
        assert!(
            refusal.output.contains(value.trim_end_matches("TiB")),
            "{name}={value}: {}",
            refusal.output
        );
        assert!(
            !refusal.output.contains("panicked"),
            "{name}={value}: {}",
            refusal.output
        );
    }
}

#[tokio::test]
async fn all_wrong_values_are_named_at_once() {
    let refusal = Builder::new()
        .env("SLUICE_ORIGIN", "x")
        .env("SLUICE_CACHE", "y")
        .env("SLUICE_CONCURRENCY", "z")
        .refused()
        .await;
    for name in ["SLUICE_ORIGIN", "SLUICE_CACHE", "SLUICE_CONCURRENCY"] {
        assert!(refusal.output.contains(name), "{}", refusal.output);
    }
}

#[tokio::test]
async fn half_of_the_credentials_is_refused_without_showing_it() {
    let half = Builder::new()
        .env("SLUICE_ORIGIN", "s3://site")
        .env("AWS_SECRET_ACCESS_KEY", "very-secret");
    let refusal = half.refused().await;
    assert!(
        refusal.output.contains("AWS_ACCESS_KEY_ID"),
        "{}",
        refusal.output
    );
    assert!(
        !refusal.output.contains("very-secret"),
        "{}",
        refusal.output
    );
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let origin = Origin::start().ready().await;
    let taken = origin.address().port().to_string();
    for name in ["SLUICE_EDGE_PORT", "SLUICE_METRICS_PORT"] {
        let refusal = Edge::http(&origin).env(name, &taken).refused().await;
        assert_ne!(refusal.code, Some(0));
        assert!(
            refusal.output.contains(name) && refusal.output.contains(&taken),
            "{}",
            refusal.output
        );
    }
}

#[tokio::test]
async fn a_wrong_policy_stops_the_start_with_the_fields_path() {
    let wrong = [
        ("origin: {kind: http}\ncache: {tll: {}}\n", "cache.tll"),
        (
            "origin: {kind: http}\ncoalesce: {max_wait: 5}\n",
            "coalesce.max_wait",
        ),
        (
            "origin: {kind: http}\ncoalesce: {max_wait: soon}\n",
            "coalesce.max_wait",
        ),
        (
            "origin: {kind: http}\ncache: {ttl: {\"700\": 1s}}\n",
            "cache.ttl",
        ),
        (
            "origin: {kind: http}\nkey: {query: {mode: keep, allow: [a]}}\n",
            "key.query",
        ),
        ("origin: {kind: bucket}\n", "origin.kind"),
        ("origin: [\n", "policy.yaml"),
    ];
    let origin = Origin::start().ready().await;
    for (policy, path) in wrong {
        let refusal = Edge::http(&origin).policy(policy).refused().await;
        assert_ne!(refusal.code, Some(0), "{policy}");
        assert!(
            refusal.output.contains(path),
            "{policy}: {}",
            refusal.output
        );
    }
}
