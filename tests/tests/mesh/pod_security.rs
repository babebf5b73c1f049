// SPDX-License-Identifier: Apache-2.0
//! Permissions of a gateway's pod, and the resources that the pod requests.

use serde_json::Value;
use sluice_tests::mesh::gateway::Gateway;

#[tokio::test]
async fn the_namespace_admits_the_gateways_pod_and_none_that_may_do_more() {
    let gateway = Gateway::builder("restricted").await.start().await;
    let cluster = gateway.mesh().cluster;
    let deployment = cluster.object("restricted", "deployment/sluice-gateway");
    let mut pod = deployment["spec"]["template"].clone();
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = "more".into();
    let create = [
        "create",
        "--namespace",
        "restricted",
        "--dry-run=server",
        "-f",
        "-",
    ];
    assert!(cluster.run(&create, &pod.to_string()).status.success());
    pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = true.into();
    let refused = cluster.run(&create, &pod.to_string());
    assert!(!refused.status.success());
    let says = String::from_utf8_lossy(&refused.stderr);
    assert!(says.contains("violates PodSecurity \"restricted"), "{says}");

    // Each worker has a CPU.
    let annotations = &deployment["spec"]["template"]["metadata"]["annotations"];
    let proxy = annotations["proxy.istio.io/config"].as_str().unwrap();
    let proxy: Value = serde_yaml_ng::from_str(proxy).unwrap();
    let requests = &pod["spec"]["containers"][0]["resources"]["requests"];
    assert_eq!(
        proxy["concurrency"].to_string(),
        requests["cpu"].as_str().unwrap()
    );
}
