// SPDX-License-Identifier: Apache-2.0
//! The replicas as one cache: their names, their port and their secret, and a release whose replicas find each other.

use crate::release::{NAME, NAMESPACE, Release, both, failures_during, is_in_cluster};
use crate::sets::least_with;
use serde_json::{Value, json};
use sluice_tests::chart::{manifests, objects};
use sluice_tests::client;
use sluice_tests::eventually;
use sluice_tests::server::requests::Request;
use std::net::SocketAddr;

/// The objects of a release with these changes of the values.
fn objects_with(changes: &Value) -> Vec<Value> {
    objects(&manifests(NAMESPACE, &least_with(changes)).unwrap())
}

/// The object of this kind and name.
fn named<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let mut all = objects.iter();
    let found = all.find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("{kind} {name}"))
}

/// The element of a list with this name.
fn element<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    let mut all = list.as_array().unwrap().iter();
    all.find(|element| element["name"] == name)
}

/// The container of the edge.
fn container(workload: &Value) -> &Value {
    &workload["spec"]["template"]["spec"]["containers"][0]
}

/// The value of a variable of the edge.
fn variable<'a>(workload: &'a Value, name: &str) -> Option<&'a str> {
    element(&container(workload)["env"], name)?["value"].as_str()
}

#[test]
fn the_peers_are_the_pods_of_the_headless_service_up_to_the_most_replicas() {
    for (changes, last) in [
        (json!({}), 9),
        (json!({"replicaCount": 12}), 11),
        (json!({"peers": {"names": 3}}), 2),
        (
            json!({"autoscaling": {"enabled": true, "maxReplicas": 20}}),
            19,
        ),
        (json!({"autoscaling": {"maxReplicas": 20}}), 9),
        (json!({"persistence": {"enabled": true}}), 9),
    ] {
        let mut values = json!({"peers": {"enabled": true, "secretName": "peers"}});
        crate::sets::merge(&mut values, &changes);
        let objects = objects_with(&values);
        let workload = named(&objects, "StatefulSet", NAME);
        let service = named(&objects, "Service", &format!("{NAME}-pods"));
        assert_eq!(workload["spec"]["serviceName"], service["metadata"]["name"]);
        assert_eq!(service["spec"]["clusterIP"], "None");
        assert_eq!(service["spec"]["publishNotReadyAddresses"], false);
        let labels = &workload["spec"]["template"]["metadata"]["labels"];
        for (name, value) in service["spec"]["selector"].as_object().unwrap() {
            assert_eq!(&labels[name], value);
        }
        let peers = format!("{NAME}-{{0..{last}}}.{NAME}-pods.{NAMESPACE}.svc.cluster.local.:8082");
        assert_eq!(
            variable(workload, "SLUICE_PEERS"),
            Some(peers.as_str()),
            "{changes}"
        );
        let kept = workload["spec"]["volumeClaimTemplates"].is_array();
        assert_eq!(kept, changes["persistence"].is_object(), "{changes}");
    }
}

#[test]
fn the_port_for_peers_is_open_to_the_replicas_only_and_in_no_service_for_clients() {
    let values = json!({
        "peers": {"enabled": true, "secretName": "peers", "port": 9000}, "networkPolicy": {"clients": []},
    });
    let objects = objects_with(&values);
    let workload = named(&objects, "StatefulSet", NAME);
    assert_eq!(variable(workload, "SLUICE_PEER_BIND"), Some("::"));
    assert_eq!(variable(workload, "SLUICE_PEER_PORT"), Some("9000"));
    let port = element(&container(workload)["ports"], "peers").unwrap();
    assert_eq!(port["containerPort"], 9000);
    let of_pods = named(&objects, "Service", &format!("{NAME}-pods"));
    assert_eq!(
        element(&of_pods["spec"]["ports"], "peers").unwrap()["port"],
        9000
    );
    let of_clients = named(&objects, "Service", NAME);
    assert_eq!(element(&of_clients["spec"]["ports"], "peers"), None);

    let policy = named(&objects, "NetworkPolicy", NAME);
    let rules = policy["spec"]["ingress"].as_array().unwrap().iter();
    let rules: Vec<_> = rules
        .filter(|rule| {
            rule["ports"]
                .as_array()
                .unwrap()
                .iter()
                .any(|port| port["port"] == "peers")
        })
        .collect();
    let replicas = json!([{"podSelector": policy["spec"]["podSelector"]}]);
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0]["ports"].as_array().unwrap().len(), 1);
    assert_eq!(rules[0]["from"], replicas);
    // The buckets have no addresses that a policy could list.
    assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress"]));
}

#[test]
fn the_secret_of_the_peers_is_a_file_of_one_key_of_the_secret() {
    let peers = json!({"enabled": true, "secretName": "common", "secretKey": "text"});
    let objects = objects_with(&json!({"peers": peers}));
    let check = format!("{NAME}-check");
    for (kind, name) in [("StatefulSet", NAME), ("Job", check.as_str())] {
        let workload = named(&objects, kind, name);
        let volume = element(&workload["spec"]["template"]["spec"]["volumes"], "peers").unwrap();
        let expected =
            json!({"secretName": "common", "items": [{"key": "text", "path": "secret"}]});
        assert_eq!(volume["secret"], expected);
        let mount = element(&container(workload)["volumeMounts"], "peers").unwrap();
        let file = format!("{}/secret", mount["mountPath"].as_str().unwrap());
        assert_eq!(
            variable(workload, "SLUICE_PEER_SECRET_FILE"),
            Some(file.as_str())
        );
        assert_eq!(mount["readOnly"], true);
    }
}

#[test]
fn without_peers_there_is_no_trace_of_them() {
    for changes in [json!({}), json!({"persistence": {"enabled": true}})] {
        let text = manifests(NAMESPACE, &least_with(&changes)).unwrap();
        assert!(!text.to_lowercase().contains("peer"), "{text}");
    }
}

/// Upgrades the release to this many peers, by Helm.
fn upgrade(release: &Release, replicas: usize) {
    let peers = json!({"enabled": true, "secretName": "peers"});
    let upgraded = release.helm(
        "upgrade",
        &json!({"peers": peers, "replicaCount": replicas}),
    );
    assert!(upgraded.status.success(), "{}", both(&upgraded));
}

/// Waits until there are this many replicas, and each has found all of them.
async fn wait_for_members(release: &Release, count: usize) {
    release.settle(count).await;
    let metric = "envoy_cluster_membership_healthy{envoy_cluster_name=\"peers\"}";
    for (name, pod, _) in release.pods() {
        let metrics = SocketAddr::new(pod.ip(), 9901);
        eventually(&format!("{name} has {count} peers"), async || {
            let page = client::get(metrics, "/metrics").await;
            let text = String::from_utf8_lossy(&page.body).into_owned();
            let mut lines = text.lines();
            lines.any(|line| line == format!("{metric} {count}"))
        })
        .await;
    }
}

/// Asks every replica for every object, and returns how often the bucket was asked for one.
async fn fetched_by(release: &Release, targets: &[String]) -> usize {
    let fetched = || {
        let is_whole = |request: &Request| {
            let head = request.method == "HEAD";
            !head && request.target.ends_with(".bin")
        };
        release.bucket.requests().matching(is_whole)
    };
    let former = fetched();
    for (name, pod, _) in release.pods() {
        for target in targets {
            let response = client::get(pod, target).await;
            assert_eq!(response.status, 200, "{name}: {response}");
        }
    }
    fetched() - former
}

/// Makes peers of the replicas of a Deployment, as the documents say.
async fn become_peers(release: &Release) {
    release.kubectl(&["delete", "deployment", NAME, "--cascade=orphan"]);
    upgrade(release, 2);
    let of_release = "app.kubernetes.io/instance=www,app.kubernetes.io/component=edge";
    release.kubectl(&["delete", "replicaset", "-l", of_release]);
    wait_for_members(release, 2).await;
}

#[tokio::test]
#[ignore = "long: make test-chart-all"]
async fn replicas_become_peers_a_third_one_joins_and_no_request_fails_then_or_during_a_rollout() {
    if !is_in_cluster() {
        return;
    }
    // Control: replicas that are not peers fetch each object once each.
    let release = Release::install(&json!({})).await;
    let balancer = release.balancer().await;
    let targets = release.objects(20).await;
    assert_eq!(fetched_by(&release, &targets).await, 2 * targets.len());

    let secret = "the-secret-of-the-peers".to_owned();
    release.create_secret("peers", &[("SLUICE_PEER_SECRET", &secret)]);
    // The load asks for one object only.
    let first = &targets[..1];
    let failures = failures_during("the first peers", balancer.address(), first, async || {
        become_peers(&release).await;
    });
    assert_eq!(failures.await, Vec::<String>::new());
    assert_eq!(fetched_by(&release, &targets[1..]).await, targets.len() - 1);

    let former = release.pods();
    let failures = failures_during("a third peer", balancer.address(), &targets, async || {
        upgrade(&release, 3);
        wait_for_members(&release, 3).await;
    });
    assert_eq!(failures.await, Vec::<String>::new());
    let pods = release.pods();
    assert!(former.iter().all(|pod| pods.contains(pod)), "{pods:?}");
    fetched_by(&release, &targets).await;
    assert_eq!(fetched_by(&release, &targets).await, 0);

    let rollout = "a rollout of peers";
    let failures = failures_during(rollout, balancer.address(), &targets, async || {
        release.roll_out("statefulset").await;
        wait_for_members(&release, 3).await;
    });
    assert_eq!(failures.await, Vec::<String>::new());
    fetched_by(&release, &targets).await;
    assert_eq!(fetched_by(&release, &targets).await, 0);
}
