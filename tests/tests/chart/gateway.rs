// SPDX-License-Identifier: Apache-2.0
//! A release behind the gateway of another project.

use crate::release::{NAMESPACE, Release, failures_during, is_in_cluster, until};
use serde_json::json;
use sluice_tests::client;
use sluice_tests::kubernetes::envoy_gateway::{self, EnvoyGateway, GATEWAY};

#[tokio::test]
#[ignore = "long: make test-chart-all"]
async fn envoy_gateway_routes_to_the_edge_and_no_request_fails_during_a_rollout() {
    if !is_in_cluster() {
        return;
    }
    let route =
        json!({"enabled": true, "parentRefs": [{"name": GATEWAY}], "hostnames": ["edge.test"]});
    let release =
        Release::plan(&json!({"httpRoute": route, "settings": {"SLUICE_TRUSTED_HOPS": "1"}})).await;
    envoy_gateway::define(&release.cluster, NAMESPACE);
    let targets = release.objects(20).await;
    release.begin();
    let gateway = EnvoyGateway::start(&release.cluster, NAMESPACE).await;
    until(gateway.address(), &targets[0], |response| {
        response.status == 200
    })
    .await;
    let hit = client::until_hit(gateway.address(), &targets[0]).await;
    assert_eq!(hit.header("x-edition"), "first");

    // Control: another host has no route.
    let other = client::send(
        gateway.address(),
        "GET",
        &targets[0],
        &[("host", "other.test")],
    )
    .await;
    assert_eq!(other.status, 404);

    let failures = failures_during("a rollout", gateway.address(), &targets, async || {
        release.roll_out("deployment").await;
    });
    assert_eq!(failures.await, Vec::<String>::new(), "{}", gateway.log());
}
