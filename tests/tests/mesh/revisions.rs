// SPDX-License-Identifier: Apache-2.0
//! Two control planes of one cluster, from two releases of Istio: each controls the gateways of one revision.

use serde_json::{Value, json};
use sluice_tests::eventually;
use sluice_tests::mesh::Mesh;
use sluice_tests::mesh::gateway::Gateway;
use sluice_tests::mesh::pod::Place;

/// Starts a gateway of a revision, with the revision's name.
async fn gateway(mesh: &'static Mesh, revision: &str) -> Gateway {
    Gateway::builder_in(mesh, revision, Place::new())
        .await
        .with(|overlay| overlay.component("revision").setting("REVISION", revision))
        .start()
        .await
}

/// The pod of `template` as the API server admits it.
fn admitted(mesh: &Mesh, namespace: &str, template: &Value) -> Value {
    let mut pod = template.clone();
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = "tried".into();
    let create = [
        "create",
        "--namespace",
        namespace,
        "--dry-run=server",
        "-o",
        "json",
        "-f",
        "-",
    ];
    let text = mesh.cluster.kubectl(&create, &pod.to_string());
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
#[ignore = "a second release of Istio: make test-mesh-all"]
async fn each_revision_injects_and_configures_its_own_gateway() {
    let meshes = Mesh::revisions().await;
    for (mesh, other) in [(&meshes[0], &meshes[1]), (&meshes[1], &meshes[0])] {
        let revision = mesh.istiod.revision().unwrap();
        let gateway = gateway(mesh, revision).await;
        let (namespace, name) = (gateway.pod.namespace(), gateway.pod.name());
        let pod = mesh.cluster.object(namespace, &format!("pod/{name}"));
        assert_eq!(pod["metadata"]["annotations"]["istio.io/rev"], revision);
        let configures = async || mesh.istiod.configures(namespace, name).await;
        eventually("the revision's own istiod", configures).await;
        assert!(!other.istiod.configures(namespace, name).await);

        gateway.bucket.put_stamped("a.bin", 1, 20_000).await;
        let _ = gateway.get("/a.bin").await.stamp("/a.bin");
        gateway.hit("/a.bin").await;
        assert_eq!(gateway.fetches("a.bin"), 1);
    }
}

#[tokio::test]
#[ignore = "a second release of Istio: make test-mesh-all"]
async fn without_a_revision_no_control_plane_but_the_default_injects() {
    let [mesh, _] = Mesh::revisions().await;
    mesh.cluster.kubectl(&["create", "namespace", "none"], "");
    let pod = |labels: Value| {
        let containers = json!([{"name": "istio-proxy", "image": "auto"}]);
        let metadata = json!({
            "labels": labels,
            "annotations": {"inject.istio.io/templates": "gateway"},
        });
        json!({"metadata": metadata, "spec": {"serviceAccountName": "gateway", "containers": containers}})
    };
    let image = |labels: Value| {
        let pod = admitted(mesh, "none", &pod(labels));
        pod["spec"]["containers"][0]["image"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let inject = "sidecar.istio.io/inject";
    assert_eq!(image(json!({inject: "true"})), "auto");
    let of_revision = json!({inject: "true", "istio.io/rev": "canary"});
    assert_ne!(image(of_revision), "auto");
}
