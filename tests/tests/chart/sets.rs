// SPDX-License-Identifier: Apache-2.0
//! The sets of values of the tests: the least ones, and those with one more feature each.

use serde_json::{Value, json};

/// The fewest values with which the chart is installed.
pub fn least() -> Value {
    json!({
        "image": {"repository": "registry.example.com/sluice/edge"},
        "sites": [{"name": "www", "origin": "s3://my-bucket"}],
    })
}

/// The least values with these changes. An object of the changes is merged into the object of the same name.
pub fn least_with(changes: &Value) -> Value {
    let mut values = least();
    merge(&mut values, changes);
    values
}

/// Makes these changes. An object of the changes is merged into the object of the same name.
pub fn merge(into: &mut Value, changes: &Value) {
    match (into, changes) {
        (Value::Object(into), Value::Object(changes)) => {
            for (name, change) in changes {
                merge(into.entry(name.clone()).or_insert(Value::Null), change);
            }
        }
        (into, changes) => *into = changes.clone(),
    }
}

/// The origin and the variables of the credentials of a private bucket.
fn private_site() -> Value {
    json!({
        "name": "www",
        "hosts": ["www.example.com"],
        "origin": "s3://my-bucket/site",
        "endpoint": "https://minio.example.com",
        "credentials": {"access_key_id": "WWW_KEY", "secret_access_key": "WWW_SECRET"},
        "access": {"any_of": [{"signed": {"keys": {"a": {"env": "SIGN_A"}}}}]},
        "policy": "www.yaml",
    })
}

/// Every set that must be valid, by its name.
pub fn sets() -> Vec<(&'static str, Value)> {
    let [peer, bare] = [json!({"namespaceSelector": {}}), json!({})];
    let sets = [
        ("least", bare),
        (
            "private site",
            json!({
                "sites": [private_site()], "policies": {"www.yaml": {"cache": {"ttl": {"200": "1h"}}}},
                "secretEnv": ["bucket", "signing"], "edge": {"limits": {"waiters_per_key": 1000}},
                "image": {"digest": format!("sha256:{}", "0".repeat(64)), "pullSecrets": ["registry"]},
            }),
        ),
        ("restart on change", json!({"reload": "restart"})),
        (
            "web identity",
            json!({"webIdentity": {"roleArn": "arn:aws:iam::111122223333:role/edge"}}),
        ),
        (
            "role of the service account",
            json!({"serviceAccount": {"annotations": {
                "eks.amazonaws.com/role-arn": "arn:aws:iam::111122223333:role/edge",
            }}}),
        ),
        (
            "role of the node",
            json!({"instanceMetadata": true, "serviceAccount": {"create": false}}),
        ),
        (
            "certificate authorities",
            json!({"certificateAuthorities": {"configMap": "authorities"}}),
        ),
        (
            "purges",
            json!({"replicaCount": 1, "purge": {"secretName": "purge"}, "networkPolicy": {"purges": [peer]}}),
        ),
        (
            "purges of many replicas",
            json!({
                "purge": {"secretName": "purge", "feed": {"every": "5s", "max_age": "10m"}},
                "edge": {"purge": {"on_created": {}}}, "autoscaling": {"enabled": true},
            }),
        ),
        (
            "settings",
            json!({
                "settings": {"SLUICE_ACCESS_LOG": "json", "SLUICE_HOT_BYTES": "16MiB", "SLUICE_TRUSTED_HOPS": "1"},
                "extraEnv": [{"name": "HTTP_PROXY", "value": "http://proxy.example.com"}],
            }),
        ),
        (
            "native",
            json!({"runtime": "native", "workers": 1, "bind": "0.0.0.0"}),
        ),
        (
            "memory",
            json!({"cache": {"medium": "memory", "size": "1Gi"}, "resources": {"limits": {"memory": "3Gi"}}}),
        ),
        (
            "volume",
            json!({
                "persistence": {"enabled": true, "storageClass": "fast", "annotations": {"example.com/a": "b"}},
                "cache": {"volumeSize": "20Gi"},
            }),
        ),
        (
            "volume with purges",
            json!({"persistence": {"enabled": true}, "replicaCount": 1, "purge": {"secretName": "purge"}}),
        ),
        (
            "autoscaling",
            json!({"autoscaling": {"enabled": true}, "persistence": {"enabled": true}}),
        ),
        (
            "peers",
            json!({"peers": {"enabled": true, "secretName": "peers"}}),
        ),
        (
            "peers with volumes and purges",
            json!({
                "peers": {"enabled": true, "secretName": "peers", "secretKey": "text", "port": 9000, "names": 20},
                "persistence": {"enabled": true}, "autoscaling": {"enabled": true, "maxReplicas": 30},
                "purge": {"secretName": "purge", "feed": {"every": "2s"}}, "bind": "0.0.0.0",
            }),
        ),
        (
            "peers in memory",
            json!({
                "peers": {"enabled": true, "secretName": "peers", "clusterDomain": "example.org"},
                "cache": {"medium": "memory", "size": "1Gi"}, "resources": {"limits": {"memory": "3Gi"}},
            }),
        ),
        (
            "load balancer",
            json!({"service": {
                "type": "LoadBalancer", "externalTrafficPolicy": "Local", "trafficDistribution": "PreferSameZone",
                "loadBalancerClass": "example.com/class", "loadBalancerSourceRanges": ["10.0.0.0/8"],
                "annotations": {"example.com/a": "b"},
            }}),
        ),
        (
            "ingress",
            json!({"ingress": {
                "enabled": true, "className": "nginx", "annotations": {"example.com/a": "b"},
                "hosts": [{"host": "www.example.com"}, {"host": "example.com", "path": "/www"}],
                "tls": [{"hosts": ["www.example.com"], "secretName": "www-tls"}],
            }}),
        ),
        (
            "HTTP route",
            json!({"httpRoute": {
                "enabled": true, "annotations": {"example.com/a": "b"}, "hostnames": ["www.example.com"],
                "parentRefs": [{"name": "gateway", "namespace": "gateways"}],
                "filters": [{"type": "ResponseHeaderModifier", "responseHeaderModifier": {"remove": ["server"]}}],
            }}),
        ),
        (
            "limited network",
            json!({"networkPolicy": {"clients": [{"podSelector": {}}], "metrics": [{"podSelector": {}}]}}),
        ),
        (
            "nothing beside the edge",
            json!({
                "networkPolicy": {"enabled": false}, "podDisruptionBudget": {"enabled": false},
                "check": {"enabled": false},
            }),
        ),
        (
            "observability",
            json!({
                "podMonitor": {"enabled": true, "interval": "30s", "labels": {"release": "prometheus"}},
                "prometheusRule": {"enabled": true, "runbooks": "https://wiki.example.com/alerts#"},
                "dashboard": {"enabled": true, "annotations": {"grafana_folder": "Edge"}},
            }),
        ),
        (
            "placement",
            json!({
                "priorityClassName": "system-cluster-critical", "nodeSelector": {"disk": "ssd"}, "podLabels": {"team": "web"},
                "podAnnotations": {"example.com/a": "b"}, "commonLabels": {"example.com/c": "d"},
                "tolerations": [{"key": "edge", "operator": "Exists"}], "topologySpreadConstraints": [],
                "affinity": {"nodeAffinity": {}}, "fullnameOverride": "edge",
                "extraVolumes": [{"name": "more", "emptyDir": {}}],
                "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
            }),
        ),
        (
            "identities that the cluster assigns",
            json!({"podSecurityContext": {"runAsUser": null, "runAsGroup": null, "fsGroup": null}}),
        ),
        (
            "more objects",
            json!({"extraObjects": [{
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-more"},
            }]}),
        ),
    ];
    let sets = sets.into_iter();
    sets.map(|(name, changes)| (name, least_with(&changes)))
        .collect()
}
