// SPDX-License-Identifier: Apache-2.0
//! A cache in the sidecar of a labelled workload, in front of the workload's application.

use serde_json::{Value, json};
use sluice_tests::client::crowd::stampede;
use sluice_tests::client::{self, Client, Response, request};
use sluice_tests::eventually;
use sluice_tests::machine::tool::repository;
use sluice_tests::mesh::Mesh;
use sluice_tests::mesh::kustomize::{Overlay, ROLE, changed_policy};
use sluice_tests::mesh::pod::{Place, Pod};
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;

/// The application's port, as `overlays/sidecar` has it.
const PORT: u16 = 8080;

struct Workload {
    pod: Pod,
    application: Origin,
}

/// How connections reach the sidecar.
enum Capture {
    /// The sidecar listens on the port, because nothing redirects the pod's connections into the sidecar here.
    None,
    /// The sidecar expects the redirection by iptables, as in a cluster. Without iptables, the test can read the
    /// configuration, but cannot connect.
    Redirect,
}

/// A workload in its own namespace, with or without the label that adds a cache.
async fn workload(namespace: &str, cached: bool, capture: Capture) -> Workload {
    workload_with(namespace, cached, capture, |overlay| overlay).await
}

/// A workload like [`workload`]'s, with a changed overlay.
async fn workload_with(
    namespace: &str,
    cached: bool,
    capture: Capture,
    change: impl FnOnce(Overlay) -> Overlay,
) -> Workload {
    let mesh = Mesh::shared().await;
    let application = Origin::start().ready().await;
    let place = Place::new();
    mesh.cluster
        .kubectl(&["create", "namespace", namespace], "");
    let account = ["create", "serviceaccount", "web", "--namespace", namespace];
    mesh.cluster.kubectl(&account, "");
    mesh.cluster
        .apply(&change(on_this_machine(namespace, &place)).build());
    let object = match capture {
        Capture::None => without_capture(namespace, &place, &application),
        Capture::Redirect => with_capture(namespace, &place),
    };
    mesh.cluster.apply(&object.to_string());
    let pod = Pod::start(mesh, namespace, "web-a", &template(cached), place).await;
    Workload { pod, application }
}

fn template(cached: bool) -> Value {
    let mut metadata = json!({"labels": {"app": "web", "version": "v1"}});
    if cached {
        let path = repository().join("mesh/overlays/sidecar/workload.yaml");
        let patch: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let wanted = &patch["spec"]["template"]["metadata"];
        metadata["annotations"] = wanted["annotations"].clone();
        metadata["labels"]["sluice-cache"] = wanted["labels"]["sluice-cache"].clone();
    }
    metadata["labels"]["sidecar.istio.io/inject"] = "true".into();
    json!({
        "metadata": metadata,
        "spec": {
            "serviceAccountName": "web",
            "containers": [{"name": "web", "image": "web", "ports": [{"containerPort": PORT}]}],
        },
    })
}

/// Returns a Service on another port than the application's, and binds the sidecar's listeners to the pod's address.
fn with_capture(namespace: &str, place: &Place) -> Value {
    let listener = |name: &str, context: &str| {
        json!({
            "applyTo": "LISTENER",
            "match": {"context": context, "listener": {"name": name}},
            "patch": {
                "operation": "MERGE",
                "value": {"address": {"socket_address": {"address": place.address.to_string()}}},
            },
        })
    };
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": PORT}]},
    });
    let addresses = json!({
        "apiVersion": "networking.istio.io/v1alpha3",
        "kind": "EnvoyFilter",
        "metadata": {"name": "test-addresses", "namespace": namespace},
        "spec": {"configPatches": [
            listener("virtualInbound", "SIDECAR_INBOUND"),
            listener("virtualOutbound", "SIDECAR_OUTBOUND"),
        ]},
    });
    json!({"apiVersion": "v1", "kind": "List", "items": [service, addresses]})
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
    let code = json!({"local": {"filename": sluice_tests::machine::tool::module()}});
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
                cache("3/patch/value/filter_chains/0/filters/0/typed_config/http_filters/1"),
            ]),
        )
}

/// Makes the sidecar listen on the port: without a network namespace, nothing redirects the pod's connections into
/// it.
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
    let workload = workload("sidecar", true, Capture::None).await.ready().await;
    let gate = Gate::new();
    workload
        .application
        .on("/page", Reply::ok(5_000).max_age(60).hold(&gate));
    let crowd = tokio::spawn(stampede(workload.pod.at(PORT), 50, "/page"));
    gate.wait_reached(1).await;
    gate.open();
    crowd.await.unwrap().same_object("/page");
    assert_eq!(workload.application.count("/page"), 1);
    eventually("a hit", async || workload.get("/page").await.is_hit()).await;
    assert_eq!(workload.application.count("/page"), 1);
    // A request of one client alone passes the cache.
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

/// Adds a hot tier to the sidecar's policy.
fn with_hot_tier(overlay: Overlay) -> Overlay {
    let policy = changed_policy("overlays/sidecar", |policy| {
        policy["hot"] = json!({"max_bytes": 1 << 20});
    });
    let place = format!("{ROLE}/configuration/value");
    let replace = json!([{"op": "replace", "path": place, "value": policy}]);
    overlay.patch("EnvoyFilter", "sluice-sidecar-roles", &replace)
}

#[tokio::test]
async fn a_sidecar_with_a_hot_tier_serves_copies_until_a_request_changes_the_resource() {
    let workload = workload_with("sidecar-hot", true, Capture::None, with_hot_tier);
    let workload = workload.await.ready().await;
    let page = |version: &str| {
        Reply::text("page ".repeat(1_000))
            .etag(version)
            .max_age(600)
    };
    workload.application.on("/page", page("v1"));
    let mut clients = Vec::new();
    for _ in 0..8 {
        let mut client = Client::connect(workload.pod.at(PORT)).await;
        let hot = client.heat("/page", &[]).await;
        assert_eq!(hot.header("etag"), "\"v1\"", "{hot}");
        clients.push(client);
    }
    let hot = client::send(workload.pod.at(PORT), "HEAD", "/page", &[]).await;
    assert!(hot.is_hot(), "{hot}");
    assert_eq!(workload.application.count("/page"), 1);
    // A request of one client alone passes the cache.
    let own = clients[0]
        .exchange(request("GET", "/page", &[("cookie", "a=b")]))
        .await;
    assert!(!own.is_hot() && !own.is_hit(), "{own}");
    workload.application.on("/page", page("v2"));
    let changed = client::send(workload.pod.at(PORT), "POST", "/page", &[]).await;
    assert_eq!(changed.status, 200, "{changed}");
    for client in &mut clients {
        eventually("the changed page", async || {
            client.get("/page").await.header("etag") == "\"v2\""
        })
        .await;
        let hot = client.heat("/page", &[]).await;
        assert_eq!(hot.header("etag"), "\"v2\"", "{hot}");
    }
}

#[tokio::test]
async fn a_workload_without_the_label_has_none() {
    let workload = workload("no-sidecar-cache", false, Capture::None)
        .await
        .ready()
        .await;
    workload
        .application
        .on("/page", Reply::ok(5_000).max_age(60));
    for asked in 1..=3 {
        let answer = workload.get("/page").await;
        assert_eq!(answer.cache_status(), "", "{answer}");
        assert_eq!(workload.application.count("/page"), asked);
    }
}

/// The connection managers for the application's port in the listener for all captured connections.
fn captured(configuration: &Value) -> Vec<&Value> {
    let dump = configuration["configs"].as_array().unwrap().iter();
    let listeners = dump
        .filter_map(|part| part["dynamic_listeners"].as_array())
        .flatten();
    let inbound = listeners.filter(|listener| listener["name"] == "virtualInbound");
    let chains = inbound
        .filter_map(|listener| listener["active_state"]["listener"]["filter_chains"].as_array());
    let chains = chains
        .flatten()
        .filter(|chain| chain["filter_chain_match"]["destination_port"] == PORT);
    chains
        .map(|chain| &chain["filters"].as_array().unwrap().last().unwrap()["typed_config"])
        .collect()
}

#[tokio::test]
async fn where_connections_are_captured_the_cache_is_before_the_same_port_only() {
    let workload = workload("captured", true, Capture::Redirect).await;
    eventually("the sidecar's listeners", async || {
        let up = Client::try_connect(workload.pod.admin()).await.is_ok();
        up && !captured(&workload.pod.configuration().await).is_empty()
    })
    .await;
    let configuration = workload.pod.configuration().await;
    for manager in captured(&configuration) {
        let filters = manager["http_filters"].as_array().unwrap();
        let names: Vec<_> = filters
            .iter()
            .map(|filter| filter["name"].as_str().unwrap())
            .collect();
        assert_eq!(
            names[names.len() - 3..],
            ["sluice.edge", "cache", "envoy.filters.http.router"]
        );
        let hosts = &manager["route_config"]["virtual_hosts"];
        assert_eq!(
            hosts[0]["routes"][0]["route"]["cluster"], "origin",
            "{hosts}"
        );
    }
    let mentions = configuration["configs"]
        .to_string()
        .matches("\"inbound|8080||\"")
        .count();
    assert!(mentions >= 2, "the cluster, and the hop's way to it");
}

/// A route that a user's `EnvoyFilter` adds works as without the cache, whatever the cache has.
#[tokio::test]
async fn another_route_of_the_port_is_none_of_the_caches() {
    const NAMESPACE: &str = "sidecar-routes";
    let workload = workload(NAMESPACE, true, Capture::None).await.ready().await;
    for path in ["/teapot", "/page"] {
        workload.application.on(path, Reply::ok(5_000).max_age(600));
        eventually("a hit", async || workload.get(path).await.is_hit()).await;
    }
    let teapot = json!({
        "apiVersion": "networking.istio.io/v1alpha3",
        "kind": "EnvoyFilter",
        "metadata": {"name": "teapot", "namespace": NAMESPACE},
        "spec": {"configPatches": [{
            "applyTo": "HTTP_ROUTE",
            "match": {
                "context": "SIDECAR_INBOUND",
                "routeConfiguration": {"name": format!("inbound|{PORT}||")},
            },
            "patch": {
                "operation": "INSERT_FIRST",
                "value": {
                    "name": "teapot",
                    "match": {"path": "/teapot"},
                    "direct_response": {"status": 418, "body": {"inline_string": "short and stout"}},
                },
            },
        }]},
    });
    Mesh::shared().await.cluster.apply(&teapot.to_string());
    eventually("the route", async || {
        workload.get("/teapot").await.status == 418
    })
    .await;
    for method in ["GET", "HEAD", "POST"] {
        let told = client::send(workload.pod.at(PORT), method, "/teapot", &[]).await;
        assert_eq!((told.status, told.cache_status()), (418, ""), "{told}");
    }
    assert!(workload.get("/page").await.is_hit());
}
