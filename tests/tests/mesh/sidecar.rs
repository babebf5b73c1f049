// SPDX-License-Identifier: Apache-2.0
//! A cache in the sidecar of a labelled workload, before its application.

use serde_json::{Value, json};
use sluice_tests::client::{self, Response};
use sluice_tests::crowd::stampede;
use sluice_tests::eventually;
use sluice_tests::gate::Gate;
use sluice_tests::mesh::Mesh;
use sluice_tests::mesh::kustomize::Overlay;
use sluice_tests::mesh::pod::{Place, Pod};
use sluice_tests::origin::{Origin, Reply};

/// The application's port, as `overlays/sidecar` has it.
const PORT: u16 = 8080;

struct Workload {
    pod: Pod,
    application: Origin,
}

/// A workload of a namespace of its own, with or without the label that brings a cache.
async fn workload(namespace: &str, cached: bool) -> Workload {
    let mesh = Mesh::shared().await;
    let application = Origin::start().ready().await;
    let place = Place::new();
    mesh.cluster
        .kubectl(&["create", "namespace", namespace], "");
    let account = ["create", "serviceaccount", "web", "--namespace", namespace];
    mesh.cluster.kubectl(&account, "");
    mesh.cluster
        .apply(&on_this_machine(namespace, &place).build());
    mesh.cluster
        .apply(&without_capture(namespace, &place, &application).to_string());
    let mut metadata = json!({"labels": {"app": "web", "version": "v1"}});
    if cached {
        let text = std::fs::read_to_string(
            sluice_tests::edge::repository().join("mesh/overlays/sidecar/workload.yaml"),
        );
        let patch: Value = serde_yaml_ng::from_str(&text.unwrap()).unwrap();
        let wanted = &patch["spec"]["template"]["metadata"];
        metadata["annotations"] = wanted["annotations"].clone();
        metadata["labels"]["sluice-cache"] = wanted["labels"]["sluice-cache"].clone();
    }
    metadata["labels"]["sidecar.istio.io/inject"] = "true".into();
    let template = json!({
        "metadata": metadata,
        "spec": {
            "serviceAccountName": "web",
            "containers": [{"name": "web", "image": "web", "ports": [{"containerPort": PORT}]}],
        },
    });
    let pod = Pod::start(mesh, namespace, "web-a", &template, place).await;
    Workload { pod, application }
}

impl Workload {
    async fn get(&self, path: &str) -> Response {
        client::get(self.pod.at(PORT), path).await
    }

    async fn ready(self) -> Self {
        self.application
            .on("/ready", Reply::ok(100).header("cache-control", "no-store"));
        self.pod.accepts(PORT).await;
        eventually("the sidecar", async || {
            self.get("/ready").await.status == 200
        })
        .await;
        self
    }
}

fn on_this_machine(namespace: &str, place: &Place) -> Overlay {
    let code = json!({"local": {"filename": sluice_tests::edge::module()}});
    let role = |number: usize| {
        let path =
            format!("/spec/configPatches/{number}/patch/value/typed_config/config/vm_config/code");
        json!({"op": "replace", "path": path, "value": code})
    };
    let cache = |path: &str| {
        let path = format!("/spec/configPatches/{path}/typed_config/typed_config/cache_path");
        json!({"op": "replace", "path": path, "value": place.cache()})
    };
    Overlay::on("overlays/sidecar")
        .namespace(namespace)
        .patch(
            "EnvoyFilter",
            "sluice-sidecar-roles",
            &json!([role(0), role(1)]),
        )
        .patch(
            "EnvoyFilter",
            "sluice-sidecar-edge",
            &json!([
                cache("1/patch/value"),
                cache("2/patch/value/filter_chains/0/filters/0/typed_config/http_filters/1"),
            ]),
        )
}

/// Without a network namespace nothing leads the pod's connections into its sidecar: it listens itself.
fn without_capture(namespace: &str, place: &Place, application: &Origin) -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "Sidecar",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "workloadSelector": {"labels": {"app": "web"}},
            "ingress": [{
                "port": {"number": PORT, "protocol": "HTTP", "name": "http"},
                "bind": place.address.to_string(),
                "captureMode": "NONE",
                "defaultEndpoint": application.address().to_string(),
            }],
            "egress": [{"hosts": ["./*"]}],
        },
    })
}

#[tokio::test]
async fn a_labelled_workload_has_a_cache_before_its_application() {
    let workload = workload("sidecar", true).await.ready().await;
    let gate = Gate::new();
    workload
        .application
        .on("/page", Reply::ok(5_000).hold(&gate));
    let crowd = tokio::spawn(stampede(workload.pod.at(PORT), 50, "/page"));
    gate.wait_reached(1).await;
    gate.open();
    crowd.await.unwrap().same_object("/page");
    assert_eq!(workload.application.count("/page"), 1);
    eventually("a hit", async || workload.get("/page").await.is_hit()).await;
    assert_eq!(workload.application.count("/page"), 1);
    // What is somebody's own passes.
    for asked in 1..=2 {
        let answer =
            client::send(workload.pod.at(PORT), "GET", "/page", &[("cookie", "a=b")]).await;
        assert_eq!(answer.status, 200, "{answer}");
        assert_eq!(workload.application.count("/page"), 1 + asked);
    }
    assert_eq!(
        workload
            .pod
            .statistic("wasmcustom.sluice_host_errors")
            .await,
        0
    );
}

#[tokio::test]
async fn a_workload_without_the_label_has_none() {
    let workload = workload("no-sidecar-cache", false).await.ready().await;
    workload.application.on("/page", Reply::ok(5_000));
    for asked in 1..=3 {
        let answer = workload.get("/page").await;
        assert_eq!(answer.cache_status(), "", "{answer}");
        assert_eq!(workload.application.count("/page"), asked);
    }
}
