// SPDX-License-Identifier: Apache-2.0
//! Wrong values are refused, and the message names the value.

use crate::sets::{least, least_with};
use serde_json::{Value, json};
use sluice_tests::chart::manifests;
use test_case::test_case;

/// Checks that the least values with these changes are refused with all of these words.
fn assert_refused(changes: &Value, words: &[&str]) {
    let error = manifests("edges", &least_with(changes)).expect_err("a refusal");
    for word in words {
        assert!(error.contains(word), "{word}: {error}");
    }
}

#[test_case(&json!({"cache": {"sise": "1Gi"}}), &["/cache", "'sise' not allowed"]; "a_typo")]
#[test_case(&json!({"replicas": 2}), &["'replicas' not allowed"]; "an_unknown_value")]
#[test_case(&json!({"sites": [{"name": "a", "origin": "s3://b", "orgin": "c"}]}), &["/sites/0", "'orgin' not allowed"]; "a_typo_in_a_site")]
#[test_case(&json!({"sites": [{"name": "a", "origin": "b"}]}), &["/sites/0/origin"]; "a_wrong_origin")]
#[test_case(&json!({"settings": {"SLUICE_HOT_BITES": "1MiB"}}), &["/settings", "'SLUICE_HOT_BITES' not allowed"]; "an_unknown_setting")]
#[test_case(&json!({"settings": {"SLUICE_BIND": "::1"}}), &["/settings", "'SLUICE_BIND' not allowed"]; "a_setting_of_the_chart")]
#[test_case(&json!({"settings": {"SLUICE_PURGE_TOKEN": "hush"}}), &["/settings", "'SLUICE_PURGE_TOKEN' not allowed"]; "a_token_in_the_settings")]
#[test_case(&json!({"settings": {"OTEL_EXPORTER_OTLP_HEADERS": "a=b"}}), &["/settings", "'OTEL_EXPORTER_OTLP_HEADERS' not allowed"]; "secret_headers_in_the_settings")]
#[test_case(&json!({"extraEnv": [{"name": "WWW_KEY", "value": "hush"}]}), &["/extraEnv/0", "'value' not allowed"]; "a_key_as_a_value")]
#[test_case(&json!({"extraEnv": [{"name": "WWW_TOKEN", "value": "hush"}]}), &["/extraEnv/0", "'value' not allowed"]; "a_token_as_a_value")]
#[test_case(&json!({"extraEnv": [{"name": "WWW_SECRET", "value": "hush"}]}), &["/extraEnv/0", "'value' not allowed"]; "a_secret_as_a_value")]
#[test_case(&json!({"extraEnv": [{"name": "SLUICE_VIA", "value": "off"}]}), &["extraEnv: \"SLUICE_VIA\"", "in settings"]; "a_setting_in_the_environment")]
#[test_case(&json!({"resources": {"limits": {"memory": null}}}), &["/resources/limits", "'memory'"]; "no_memory_limit")]
#[test_case(&json!({"cache": {"size": "10GB"}}), &["/cache/size", "10GB"]; "a_wrong_size")]
#[test_case(&json!({"cache": {"volumeSize": "11Gi"}}), &["cache.volumeSize: \"11Gi\"", "1.15 times"]; "a_volume_that_the_cache_fills")]
#[test_case(&json!({"cache": {"medium": "memory"}}), &["resources.limits.memory: \"1Gi\"", "at least 13568Mi"]; "too_little_memory_for_the_cache")]
#[test_case(&json!({"cache": {"medium": "memory"}, "persistence": {"enabled": true}}), &["persistence.enabled"]; "a_volume_for_a_cache_in_memory")]
#[test_case(&json!({"purge": {"secretName": "purge"}}), &["replicaCount", "a purge reaches only one replica"]; "purges_with_two_replicas")]
#[test_case(&json!({"purge": {"secretName": "purge"}, "replicaCount": 1, "autoscaling": {"enabled": true}}), &["a purge reaches only one replica"]; "purges_with_autoscaling")]
#[test_case(&json!({"sites": [{"name": "a", "origin": "s3://b", "purge_token": "TOKEN"}]}), &["a purge reaches only one replica"]; "a_sites_purges_with_two_replicas")]
#[test_case(&json!({"policies": {"sites.yaml": {}}}), &["policies: \"sites.yaml\""]; "a_policy_in_place_of_the_sites")]
#[test_case(&json!({"image": {"repository": ""}}), &["image.repository", "registry.example.com"]; "no_image")]
#[test_case(&json!({"sites": []}), &["sites: []", "at least one"]; "no_site")]
#[test_case(&json!({"ingress": {"enabled": true}}), &["ingress.hosts"]; "an_ingress_without_a_host")]
#[test_case(&json!({"httpRoute": {"enabled": true}}), &["httpRoute.parentRefs"]; "a_route_without_a_gateway")]
#[test_case(&json!({"webIdentity": {"roleArn": "edge"}}), &["/webIdentity/roleArn"]; "a_role_without_its_account")]
fn a_wrong_value_is_refused_by_its_name(changes: &Value, words: &[&str]) {
    assert!(manifests("edges", &least()).is_ok());
    assert_refused(changes, words);
}
