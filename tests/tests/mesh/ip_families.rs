// SPDX-License-Identifier: Apache-2.0
//! A gateway on a cluster that has only IPv6.

use serde_json::{Value, json};
use sluice_tests::client;
use sluice_tests::machine::network;
use sluice_tests::machine::tool::repository;
use sluice_tests::mesh::Mesh;
use sluice_tests::mesh::gateway::Gateway;
use sluice_tests::mesh::pod::{HEALTH_PORT, Place};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::Command;

/// Returns the address of the probes' listener in the manifests. Other tests bind this listener to their pod's
/// address, so that nothing listens outside this machine.
fn probes_address() -> Value {
    let path = repository().join("mesh/base/health.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let filter: Value = serde_yaml_ng::from_str(&text).unwrap();
    filter["spec"]["configPatches"][0]["patch"]["value"]["address"].clone()
}

/// Adds an interface beside loopback to this process's network, as a pod has one. The agent derives the pod's address
/// families from the addresses of its interfaces.
fn add_interface(address: Ipv6Addr) {
    let script = format!(
        "ip link add pod type veth peer name node && ip link set node up && ip link set pod up && \
         ip address add {address}/128 dev pod nodad"
    );
    let added = Command::new("sh").args(["-c", &script]).status().unwrap();
    assert!(added.success(), "{script}: {added}");
}

#[tokio::test]
async fn a_pod_whose_only_address_is_of_ipv6_becomes_ready_and_serves() {
    if !network::is_own(&[]) {
        return;
    }
    let address: Ipv6Addr = "2001:db8::1".parse().unwrap();
    add_interface(address);
    let path = "/spec/configPatches/0/patch/value/address";
    let everywhere = json!([{"op": "replace", "path": path, "value": probes_address()}]);
    let gateway = Gateway::builder_in(Mesh::shared().await, "ipv6", Place::at(address.into()))
        .await
        .with(|overlay| overlay.patch("EnvoyFilter", "sluice-health", &everywhere))
        .start()
        .await;
    // A probe over either address family reaches the same listener.
    for address in [address.into(), Ipv4Addr::LOCALHOST.into()] {
        let probe = SocketAddr::new(address, HEALTH_PORT);
        assert!(client::is_healthy(probe, "/healthz").await, "{probe}");
    }
    gateway.bucket.put_stamped("a.bin", 1, 20_000).await;
    let answer = gateway.get("/a.bin").await;
    assert_eq!(answer.status, 200, "{}", gateway.pod.log());
    gateway.hit("/a.bin").await;
    assert_eq!(gateway.fetches("a.bin"), 1);
}
