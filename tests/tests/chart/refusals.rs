// SPDX-License-Identifier: Apache-2.0
//! Wrong values are refused, and the message names the value.

use crate::sets::{least, least_with};
use serde_json::{Value, json};
use sluice_tests::chart::manifests;

/// A wrong value: its name, the changes of the least values, and the words of the refusal.
type Refusal = (&'static str, Value, &'static [&'static str]);

/// The values that the schema refuses.
fn refusals_of_the_schema() -> Vec<Refusal> {
    vec![
        (
            "a typo",
            json!({"cache": {"sise": "1Gi"}}),
            &["/cache", "'sise' not allowed"],
        ),
        (
            "an unknown value",
            json!({"replicas": 2}),
            &["'replicas' not allowed"],
        ),
        (
            "a typo in a site",
            json!({"sites": [{"name": "a", "origin": "s3://b", "orgin": "c"}]}),
            &["/sites/0", "'orgin' not allowed"],
        ),
        (
            "a wrong origin",
            json!({"sites": [{"name": "a", "origin": "b"}]}),
            &["/sites/0/origin"],
        ),
        (
            "an unknown setting",
            json!({"settings": {"SLUICE_HOT-BYTES": "1MiB"}}),
            &["/settings", "'SLUICE_HOT-BYTES' not allowed"],
        ),
        (
            "a setting of the chart",
            json!({"settings": {"SLUICE_BIND": "::1"}}),
            &["/settings", "'SLUICE_BIND' not allowed"],
        ),
        (
            "HTTP/3 by another word",
            json!({"http3": "on"}),
            &["/http3"],
        ),
        (
            "a token in the settings",
            json!({"settings": {"SLUICE_PURGE_TOKEN": "hush"}}),
            &["/settings", "'SLUICE_PURGE_TOKEN' not allowed"],
        ),
        (
            "secret headers in the settings",
            json!({"settings": {"OTEL_EXPORTER_OTLP_HEADERS": "a=b"}}),
            &["/settings", "'OTEL_EXPORTER_OTLP_HEADERS' not allowed"],
        ),
        (
            "a key as a value",
            json!({"extraEnv": [{"name": "WWW_KEY", "value": "hush"}]}),
            &["/extraEnv/0", "'value' not allowed"],
        ),
        (
            "a token as a value",
            json!({"extraEnv": [{"name": "WWW_TOKEN", "value": "hush"}]}),
            &["/extraEnv/0", "'value' not allowed"],
        ),
        (
            "a secret as a value",
            json!({"extraEnv": [{"name": "WWW_SECRET", "value": "hush"}]}),
            &["/extraEnv/0", "'value' not allowed"],
        ),
        (
            "a password as a value",
            json!({"extraEnv": [{"name": "WWW_PASSWORD", "value": "hush"}]}),
            &["/extraEnv/0", "'value' not allowed"],
        ),
        (
            "a typo in the feed",
            json!({"purge": {"feed": {"evry": "2s"}}}),
            &["/purge/feed", "'evry' not allowed"],
        ),
        (
            "a typo in the peers",
            json!({"peers": {"enabld": true}}),
            &["/peers", "'enabld' not allowed"],
        ),
        (
            "the secret of the peers as a value",
            json!({"peers": {"enabled": true, "secret": "hush"}}),
            &["/peers", "'secret' not allowed"],
        ),
        (
            "the secret of the peers in the settings",
            json!({"settings": {"SLUICE_PEER_SECRET": "hush"}}),
            &["/settings", "'SLUICE_PEER_SECRET' not allowed"],
        ),
        (
            "the names of the peers in the settings",
            json!({"settings": {"SLUICE_PEERS": "a:1,b:1"}}),
            &["/settings", "'SLUICE_PEERS' not allowed"],
        ),
        (
            "one name for the peers",
            json!({"peers": {"names": 1}}),
            &["/peers/names"],
        ),
        (
            "a domain that ends in a dot",
            json!({"peers": {"clusterDomain": "cluster.local."}}),
            &["/peers/clusterDomain"],
        ),
        (
            "no memory limit",
            json!({"resources": {"limits": {"memory": null}}}),
            &["/resources/limits", "'memory'"],
        ),
        (
            "a wrong size",
            json!({"cache": {"size": "10GB"}}),
            &["/cache/size", "10GB"],
        ),
        (
            "a role without its account",
            json!({"webIdentity": {"roleArn": "edge"}}),
            &["/webIdentity/roleArn"],
        ),
    ]
}

/// The values that do not fit each other.
fn refusals_of_the_templates() -> Vec<Refusal> {
    vec![
        (
            "a setting in the environment",
            json!({"extraEnv": [{"name": "SLUICE_VIA", "value": "off"}]}),
            &["extraEnv: \"SLUICE_VIA\"", "in settings"],
        ),
        (
            "a volume that the cache fills",
            json!({"cache": {"volumeSize": "11Gi"}}),
            &["cache.volumeSize: \"11Gi\"", "1.15 times"],
        ),
        (
            "too little memory for the cache",
            json!({"cache": {"medium": "memory"}}),
            &["resources.limits.memory: \"1Gi\"", "at least 13568Mi"],
        ),
        (
            "a volume for a cache in memory",
            json!({"cache": {"medium": "memory"}, "persistence": {"enabled": true}}),
            &["persistence.enabled"],
        ),
        (
            "peers without a secret",
            json!({"peers": {"enabled": true}}),
            &[
                "peers.secretName: \"\"",
                "kubectl create secret generic peers",
            ],
        ),
        (
            "more peers than names",
            json!({"peers": {"enabled": true, "secretName": "peers"}, "replicaCount": 257}),
            &["at most 256 replicas", "replicaCount is 257"],
        ),
        (
            "more peers than names by autoscaling",
            json!({
                "peers": {"enabled": true, "secretName": "peers"}, "autoscaling": {"enabled": true, "maxReplicas": 300},
            }),
            &["autoscaling.maxReplicas is 300"],
        ),
        (
            "purges of peers without the feed",
            json!({"peers": {"enabled": true, "secretName": "peers"}, "purge": {"secretName": "purge"}}),
            &["purge.feed: {}"],
        ),
        (
            "purges with two replicas",
            json!({"purge": {"secretName": "purge"}}),
            &["purge.feed: {}", "expected purge.feed.every, such as 2s"],
        ),
        (
            "purges with autoscaling",
            json!({"purge": {"secretName": "purge"}, "replicaCount": 1, "autoscaling": {"enabled": true}}),
            &["purge.feed: {}"],
        ),
        (
            "a site's purges with two replicas",
            json!({"sites": [{"name": "a", "origin": "s3://b", "purge_token": "TOKEN"}]}),
            &["purge.feed: {}"],
        ),
        (
            "a feed at another place",
            json!({"edge": {"purge": {"feed": {"every": "2s"}}}}),
            &["edge.purge.feed", "in purge.feed"],
        ),
        (
            "a policy in place of the sites",
            json!({"policies": {"sites.yaml": {}}}),
            &["policies: \"sites.yaml\""],
        ),
        (
            "HTTP/3 without a certificate",
            json!({"http3": true}),
            &["http3: true", "a site with tls"],
        ),
        (
            "no image",
            json!({"image": {"repository": ""}}),
            &["image.repository", "registry.example.com"],
        ),
        (
            "no site",
            json!({"sites": []}),
            &["sites: []", "at least one"],
        ),
        (
            "an ingress without a host",
            json!({"ingress": {"enabled": true}}),
            &["ingress.hosts"],
        ),
        (
            "a route without a gateway",
            json!({"httpRoute": {"enabled": true}}),
            &["httpRoute.parentRefs"],
        ),
    ]
}

#[test]
fn every_wrong_value_is_refused_by_its_name() {
    manifests("edges", &least()).unwrap();
    for (name, changes, words) in [refusals_of_the_schema(), refusals_of_the_templates()].concat() {
        let error = manifests("edges", &least_with(&changes)).expect_err(name);
        for word in words {
            assert!(error.contains(word), "{name}: {word}: {error}");
        }
    }
}
