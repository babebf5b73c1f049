// SPDX-License-Identifier: Apache-2.0
//! A mistake in what is applied changes nothing for clients, and is seen where an operator looks.

use serde_json::{Value, json};
use sluice_tests::client;
use sluice_tests::eventually;
use sluice_tests::mesh::gateway::{Gateway, ROLES, roles};
use sluice_tests::mesh::pod::HEALTH_PORT;

/// Where the policy and the module of EDGE are in the EnvoyFilter of the roles.
const EDGE: &str = "/spec/configPatches/0/patch/value/typed_config/config";

/// The roles' module from where nobody listens.
fn nowhere() -> Value {
    roles(
        &json!({"remote": {"http_uri": {"uri": "http://127.0.0.1:1/none.wasm", "timeout": "1s", "cluster": "_"}}}),
        ROLES,
    )
}

fn replace(path: &str, value: &Value) -> Value {
    json!([{"op": "replace", "path": path, "value": value}])
}

/// What the gateway does before and after: the same.
async fn serves(gateway: &Gateway, key: &str) {
    let path = format!("/{key}");
    gateway.bucket.put_stamped(key, 1, 2_000).await;
    let _ = gateway.get(&path).await.stamp(&path);
    gateway.hit(&path).await;
    assert_eq!(gateway.fetches(key), 1, "{key}");
}

#[tokio::test]
async fn a_policy_that_the_filter_refuses_leaves_the_former_one_in_force() {
    let gateway = Gateway::builder("refused-policy").await.start().await;
    serves(&gateway, "before").await;
    let path = format!("{EDGE}/configuration/value");
    let good = gateway.overlay.clone();
    let bad = good.clone().patch(
        "EnvoyFilter",
        "sluice-roles",
        &replace(&path, &json!("{\"nonsense\": 1}")),
    );
    gateway.apply(&bad.build());
    eventually("the refusal", async || {
        gateway.pod.log().contains("policy refused: ")
    })
    .await;
    eventually("the count of it", async || {
        gateway
            .pod
            .statistic("extension_config_discovery.http_filter.sluice.edge.config_fail")
            .await
            > 0
    })
    .await;
    serves(&gateway, "while").await;
    assert!(gateway.get("/before").await.is_hit(), "the cache is gone");
    // What is right again is taken again.
    let other = good.policy(
        r#"{"origin": {"kind": "bucket"}, "store": {"version": "v1"}, "rules":
        [{"match": ["*"], "headers": {"X-Policy": "second"}}]}"#,
    );
    gateway.apply(&other.build());
    eventually("the next policy", async || {
        gateway.get("/before").await.header("x-policy") == "second"
    })
    .await;
    serves(&gateway, "after").await;
}

#[tokio::test]
async fn a_module_that_is_none_leaves_the_former_one_in_force() {
    let gateway = Gateway::builder("refused-module").await.start().await;
    serves(&gateway, "before").await;
    let bad = gateway
        .overlay
        .clone()
        .patch("EnvoyFilter", "sluice-roles", &nowhere());
    gateway.apply(&bad.build());
    // The agent says why, and Envoy counts that it has refused what came in its place.
    eventually("the refusal", async || {
        gateway
            .pod
            .log()
            .contains("error in converting the wasm config to local")
    })
    .await;
    eventually("the count of it", async || {
        gateway
            .pod
            .statistic("extension_config_discovery.http_filter.sluice.edge.update_rejected")
            .await
            > 0
    })
    .await;
    serves(&gateway, "while").await;
    assert!(gateway.get("/before").await.is_hit(), "the cache is gone");
}

#[tokio::test]
async fn a_pod_without_the_module_is_never_ready() {
    let gateway = Gateway::builder("no-module").await;
    let gateway = gateway
        .with(|overlay| overlay.patch("EnvoyFilter", "sluice-roles", &nowhere()))
        .start_unready()
        .await;
    eventually("the refusal", async || {
        gateway
            .pod
            .log()
            .contains("error in converting the wasm config to local")
    })
    .await;
    gateway.pod.accepts(HEALTH_PORT).await;
    let answer = client::get(gateway.pod.at(HEALTH_PORT), "/healthz").await;
    assert_eq!(answer.status, 500, "{answer}");
    // What comes all the same goes nowhere.
    gateway.bucket.put_stamped("a.bin", 1, 2_000).await;
    let answer = gateway.get("/a.bin").await;
    assert_eq!(answer.status, 500, "{answer}");
    assert_eq!(gateway.fetches("a.bin"), 0);
}

#[tokio::test]
async fn a_listener_that_envoy_refuses_leaves_the_former_one_in_force() {
    let gateway = Gateway::builder("refused-listener").await.start().await;
    serves(&gateway, "before").await;
    let regex = "/spec/configPatches/2/patch/value/typed_config/rules/policies/canonical/permissions/0/\
                 and_rules/rules/1/header/string_match/safe_regex/regex";
    let bad =
        gateway
            .overlay
            .clone()
            .patch("EnvoyFilter", "sluice-edge", &replace(regex, &json!("(")));
    gateway.apply(&bad.build());
    // Envoy counts it, its log says why, and istiod counts it as well.
    eventually("the refusal", async || {
        gateway
            .pod
            .statistic("listener_manager.lds.update_rejected")
            .await
            > 0
    })
    .await;
    eventually("istiod's count", async || {
        let metrics = client::get(gateway.mesh().istiod.monitoring(), "/metrics").await;
        let text = String::from_utf8_lossy(&metrics.body).into_owned();
        text.lines()
            .any(|line| line.starts_with("pilot_total_xds_rejects") && line.contains("lds"))
    })
    .await;
    assert!(
        gateway.pod.log().contains("missing )"),
        "{}",
        gateway.pod.log()
    );
    serves(&gateway, "while").await;
    gateway.apply(&gateway.overlay.build());
    serves(&gateway, "after").await;
}
