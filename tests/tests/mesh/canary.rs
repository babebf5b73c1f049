// SPDX-License-Identifier: Apache-2.0
//! A canary is a pod behind the gateway's Service whose module and policy are others.

use serde_json::{Value, json};
use sluice_tests::client;
use sluice_tests::eventually;
use sluice_tests::mesh::gateway::{Gateway, HTTP_PORT};
use sluice_tests::mesh::pod::{HEALTH_PORT, Place, Pod};

const NAMESPACE: &str = "canary";

/// A policy whose responses have this word.
fn policy(word: &str) -> Value {
    json!({"origin": {"kind": "bucket"}, "rules": [{"match": ["*"], "headers": {"X-Policy": word}}]})
}

/// Binds the listeners of the canary's pod to its address, because here a pod must not bind all addresses.
fn addresses(gateway: &Gateway, address: &str) -> [Value; 2] {
    let selector = json!({"labels": {"istio": NAMESPACE, "sluice-track": "canary"}});
    let mut health = gateway
        .mesh()
        .cluster
        .object(NAMESPACE, "envoyfilter/sluice-health");
    health["metadata"] = json!({"name": "test-health", "namespace": NAMESPACE});
    health["spec"]["workloadSelector"] = selector.clone();
    let listener = &mut health["spec"]["configPatches"][0]["patch"]["value"];
    listener["address"]["socket_address"] = json!({"address": address, "port_value": HEALTH_PORT});
    let listener = |port: u16| {
        json!({
            "applyTo": "LISTENER",
            "match": {"context": "GATEWAY", "listener": {"portNumber": port}},
            "patch": {"operation": "MERGE", "value": {"address": {"socket_address": {"address": address}}}},
        })
    };
    let listeners = json!({
        "apiVersion": "networking.istio.io/v1alpha3",
        "kind": "EnvoyFilter",
        "metadata": {"name": "test-addresses", "namespace": NAMESPACE},
        "spec": {"workloadSelector": selector, "configPatches": [listener(HTTP_PORT), listener(8443)]},
    });
    [health, listeners]
}

#[tokio::test]
async fn a_policy_of_the_canary_reaches_the_canary_alone() {
    let stable = json!([
        {"op": "add", "path": "/spec/workloadSelector/labels/sluice-track", "value": "stable"},
    ]);
    let gateway = Gateway::builder(NAMESPACE).await;
    let gateway = gateway.with(|overlay| {
        let overlay = overlay.patch("EnvoyFilter", "sluice-health", &stable);
        overlay.policy(&policy("stable"))
    });
    let gateway = gateway.start().await;
    let place = Place::new();
    for object in addresses(&gateway, &place.address.to_string()) {
        gateway.apply(&object.to_string());
    }
    let canary = gateway.overlay.clone().component("canary");
    gateway.apply(&canary.clone().policy(&policy("canary")).build());
    let deployment = gateway
        .mesh()
        .cluster
        .object(NAMESPACE, "deployment/sluice-gateway-canary");
    let template = &deployment["spec"]["template"];
    let mesh = gateway.mesh();
    let pod = Pod::start(mesh, NAMESPACE, "sluice-gateway-canary-a", template, place).await;
    pod.ready().await;

    gateway.bucket.put_stamped("a", 1, 1000).await;
    let word = async |address| {
        let response = client::get(address, "/a").await;
        let word = response.header("x-policy").to_owned();
        let _ = response.stamp("/a");
        word
    };
    assert_eq!(word(gateway.http()).await, "stable");
    assert_eq!(word(pod.at(HTTP_PORT)).await, "canary");

    // A policy that the filter refuses is refused by the canary alone.
    let misspelt = json!({"origin": {"kind": "bucket"}, "hot": {"max_byte": 5}});
    gateway.apply(&canary.policy(&misspelt).build());
    let refusal = "policy refused: hot.max_byte: ";
    eventually("the refusal", async || pod.log().contains(refusal)).await;
    assert_eq!(word(gateway.http()).await, "stable");
    assert!(!gateway.pod.log().contains(refusal));
}
