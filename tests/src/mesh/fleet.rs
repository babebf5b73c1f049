// SPDX-License-Identifier: Apache-2.0
//! The fleet of `mesh/`: gateways for clients, and caches behind them, each the owner of a part of the keys.
//!
//! Pods of one tier share their manifests, as in a cluster, but run on one machine: values of one pod (addresses) are
//! patched in by the pod's label. The tests do the work of Kubernetes when pods start and end, in its order.

use super::Mesh;
use super::gateway::{DOMAIN, HTTP_PORT, HTTPS_PORT, endpoint, minio, secrets};
use super::kustomize::{GATEWAYS_ROLES, Overlay, TIER_ONES_ROLES};
use super::pod::{HEALTH_PORT, Place, Pod};
use super::tls_front::TlsFront;
use crate::bucket::{Bucket, REGION};
use crate::client::{self, Client, Response, request};
use crate::edge::tls::Certificate;
use crate::eventually;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The label that distinguishes a pod from the others of its tier.
const LABEL: &str = "test.sluice/pod";
/// The response header in which a cache names itself, in these tests.
const OWNER: &str = "x-test-cache";

/// A fleet that can be started.
#[must_use]
pub struct Builder {
    name: String,
    gateways: usize,
    caches: usize,
    tier_one: Overlay,
    tier_two: Overlay,
    bucket: Bucket,
    front: TlsFront,
}

/// A running fleet. Dropping it ends it.
pub struct Fleet {
    /// Tier one.
    pub gateways: Vec<Pod>,
    /// Tier two.
    pub caches: Vec<Pod>,
    /// The bucket behind it.
    pub bucket: Bucket,
    /// The manifests of tier one.
    pub tier_one: Overlay,
    /// The manifests of tier two.
    pub tier_two: Overlay,
    /// The namespace of tier one; the namespace of tier two is derived from it.
    name: String,
    mesh: &'static Mesh,
    started: usize,
    _front: TlsFront,
}

/// The namespace of a fleet's caches.
fn caches_of(name: &str) -> String {
    format!("{name}-caches")
}

impl Fleet {
    /// Builds a fleet of two gateways and three caches, in separate namespaces.
    pub async fn builder(name: &str) -> Builder {
        let bucket = minio().await.bucket().await;
        let host = format!("{}.{DOMAIN}", bucket.name());
        let front = TlsFront::start(&host, bucket.proxy().address());
        let caches = caches_of(name);
        let code = json!({"local": {"filename": crate::machine::tool::module()}});
        let nobody = json!([{"op": "add", "path": format!("/spec/workloadSelector/labels/{}", LABEL.replace('/', "~1")), "value": "none"}]);
        let tier = |base: &str, namespace: &str| {
            Overlay::on(base)
                .namespace(namespace)
                .setting("GATEWAY", namespace)
                .setting("FLEET", name)
                .setting("TIER_ONE_NAMESPACE", name)
                .setting("TIER_TWO_HOST", host_of(name))
                .setting("BUCKET", bucket.name())
                .setting("REGION", REGION)
                .setting("BUCKET_HOST", &host)
                .setting("BUCKET_AUTHORITY", &host)
                .patch("EnvoyFilter", "sluice-health", &nobody)
        };
        let tier_one = tier("base", name)
            .component("tier-one")
            .code(&TIER_ONES_ROLES, &code);
        let tier_two = tier("overlays/s3", &caches)
            .component("bucket-key")
            .component("tier-two")
            .code(&GATEWAYS_ROLES, &code)
            // Below the pod's own folder, in which its Envoy runs.
            .store("cache_path", "cache");
        Builder {
            name: name.to_owned(),
            gateways: 2,
            caches: 3,
            tier_one,
            tier_two: endpoint(tier_two, &front),
            bucket,
            front,
        }
    }

    /// Address for HTTP of a gateway.
    #[must_use]
    pub fn http(&self, gateway: usize) -> SocketAddr {
        self.gateways[gateway].at(HTTP_PORT)
    }

    /// Address at which a cache accepts the gateways' connections.
    #[must_use]
    pub fn of_cache(&self, cache: usize) -> SocketAddr {
        self.caches[cache].at(HTTPS_PORT)
    }

    /// Sends a GET through the first gateway.
    pub async fn get(&self, target: &str) -> Response {
        client::get(self.http(0), target).await
    }

    /// Asks until the owner's store has `target`, and returns the hit. Until then requests wait for each other and
    /// share the response.
    pub async fn hit(&self, target: &str) -> Response {
        client::until_hit(self.http(0), target).await
    }

    /// Number of requests for the object that have reached the bucket.
    #[must_use]
    pub fn fetches(&self, key: &str) -> usize {
        self.bucket.requests().count(&format!("/{key}"))
    }

    /// Number of the caches' requests that have reached the bucket.
    #[must_use]
    pub fn all_fetches(&self) -> usize {
        let requests = self.bucket.requests();
        requests.matching(|request| request.method == "GET" || request.method == "HEAD")
    }

    /// The cache that owns each of the targets, according to a gateway. The requests leave no entry in a cache.
    ///
    /// # Panics
    /// When a target has no owner.
    pub async fn owners(&self, gateway: usize, targets: &[String]) -> BTreeMap<String, String> {
        let mut client = Client::connect(self.http(gateway)).await;
        let mut owners = BTreeMap::new();
        for target in targets {
            // A bucket's cache answers this without the bucket.
            let answer = client.exchange(request("DELETE", target, &[])).await;
            assert_eq!(answer.status, 405, "{target}: {answer}");
            owners.insert(target.clone(), owner_of(&answer).to_owned());
        }
        owners
    }

    /// Starts another cache, which is empty, and waits until the gateways know it.
    pub async fn add_cache(&mut self) {
        self.add_cache_in(Place::new()).await;
    }

    /// Starts another cache in a prepared place.
    pub async fn add_cache_in(&mut self, place: Place) {
        let cache = self.start_cache(place).await;
        cache.ready().await;
        self.known(&cache, true).await;
        self.caches.push(cache);
    }

    /// Removes a cache from its service, and waits until no gateway sends it new requests.
    pub async fn withdraw(&self, cache: usize) {
        let cache = &self.caches[cache];
        cache.say_ready(false);
        self.known(cache, false).await;
    }

    /// Adds the cache to its service again.
    pub async fn restore(&self, cache: usize) {
        let cache = &self.caches[cache];
        cache.ready().await;
        self.known(cache, true).await;
    }

    /// Ends a cache as Kubernetes does: it is removed from the service, then gets SIGTERM. Returns its pod, which has
    /// ended.
    ///
    /// # Panics
    /// When it does not end in order.
    pub async fn retire(&mut self, cache: usize) -> Pod {
        self.withdraw(cache).await;
        let mut pod = self.caches.remove(cache);
        let ended = pod.terminate().await;
        assert!(ended.success(), "{ended}: {}", pod.log());
        pod.forget();
        pod
    }

    /// Waits until the gateways have the cache among the endpoints of their cluster, or until they do not.
    pub async fn known(&self, cache: &Pod, known: bool) {
        let line = format!("::{}:{HTTPS_PORT}::", cache.address());
        for gateway in &self.gateways {
            eventually(&format!("{} known: {known}", cache.name()), async || {
                let clusters = client::get(gateway.admin(), "/clusters").await;
                String::from_utf8_lossy(&clusters.body).contains(&line) == known
            })
            .await;
        }
    }

    /// Applies further manifests.
    pub fn apply(&self, manifests: &str) {
        self.mesh.cluster.apply(manifests);
    }

    /// Applies a JSON patch to the filter of tier one.
    pub fn patch_gateways(&self, patch: &str) {
        let cluster = self.mesh.cluster;
        cluster.patch(&self.name, "envoyfilter/sluice-front", patch);
    }

    /// Applies a JSON patch to the filter of tier two.
    pub fn patch_caches(&self, patch: &str) {
        let cluster = self.mesh.cluster;
        cluster.patch(&caches_of(&self.name), "envoyfilter/sluice-edge", patch);
    }

    async fn start_cache(&mut self, place: Place) -> Pod {
        self.started += 1;
        let name = format!("cache-{}", self.started);
        let namespace = caches_of(&self.name);
        start_pod(self.mesh, &namespace, &name, place).await
    }
}

/// Name of the cache that has answered.
///
/// # Panics
/// When no cache has.
#[must_use]
pub fn owner_of(response: &Response) -> &str {
    let owner = response.headers.get(OWNER);
    owner.unwrap_or_else(|| panic!("no cache has answered: {response}"))
}

impl Builder {
    /// Changes the manifests of tier one.
    pub fn tier_one(self, change: impl FnOnce(Overlay) -> Overlay) -> Self {
        Self {
            tier_one: change(self.tier_one),
            ..self
        }
    }

    /// Changes the manifests of tier two.
    pub fn tier_two(self, change: impl FnOnce(Overlay) -> Overlay) -> Self {
        Self {
            tier_two: change(self.tier_two),
            ..self
        }
    }

    /// Sets the number of gateways and caches.
    pub fn of(self, gateways: usize, caches: usize) -> Self {
        Self {
            gateways,
            caches,
            ..self
        }
    }

    /// Applies the manifests, starts the pods, and waits until all know each other.
    pub async fn start(self) -> Fleet {
        let mesh = Mesh::shared().await;
        let caches = caches_of(&self.name);
        mesh.cluster.apply(&self.tier_two.build());
        mesh.cluster.apply(&self.tier_one.build());
        mesh.cluster.apply(&service(&self.name).to_string());
        let certificate = Certificate::new();
        for namespace in [&self.name, &caches] {
            secrets(mesh, namespace, &self.bucket, &certificate);
        }
        let mut fleet = Fleet {
            gateways: Vec::new(),
            caches: Vec::new(),
            bucket: self.bucket,
            tier_one: self.tier_one,
            tier_two: self.tier_two,
            name: self.name,
            mesh,
            started: 0,
            _front: self.front,
        };
        for _ in 0..self.caches {
            let cache = fleet.start_cache(Place::new()).await;
            fleet.caches.push(cache);
        }
        for number in 1..=self.gateways {
            let name = format!("gateway-{number}");
            let gateway = start_pod(mesh, &fleet.name, &name, Place::new()).await;
            fleet.gateways.push(gateway);
        }
        for pod in fleet.gateways.iter().chain(&fleet.caches) {
            pod.ready().await;
        }
        for cache in &fleet.caches {
            fleet.known(cache, true).await;
        }
        fleet
    }
}

/// The host of the caches' service.
fn host_of(name: &str) -> String {
    format!("sluice-caches.{}.svc.cluster.local", caches_of(name))
}

/// The caches' service, whose endpoints are the ready pods. Kubernetes itself does not accept a loopback address as
/// an endpoint.
fn service(name: &str) -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "ServiceEntry",
        "metadata": {"name": "caches", "namespace": caches_of(name)},
        "spec": {
            "hosts": [host_of(name)],
            "location": "MESH_INTERNAL",
            "resolution": "STATIC",
            "ports": [{"number": 443, "targetPort": HTTPS_PORT, "name": "https", "protocol": "HTTPS"}],
            "workloadSelector": {"labels": {"istio": caches_of(name)}},
        },
    })
}

async fn start_pod(mesh: &'static Mesh, namespace: &str, name: &str, place: Place) -> Pod {
    let address = place.address.to_string();
    mesh.cluster
        .apply(&addresses(namespace, name, &address).to_string());
    mesh.cluster
        .apply(&health(mesh, namespace, name, &address).to_string());
    let deployment = mesh.cluster.object(namespace, "deployment/sluice-gateway");
    let mut template = deployment["spec"]["template"].clone();
    template["metadata"]["labels"][LABEL] = name.into();
    drain_sooner(&mut template);
    Pod::start(mesh, namespace, name, &template, place).await
}

/// Shortens the wait for idle connections, which a test of a single gateway covers.
fn drain_sooner(template: &mut Value) {
    let configuration = &mut template["metadata"]["annotations"]["proxy.istio.io/config"];
    let text = configuration.as_str().unwrap();
    let sooner = text.replace("MINIMUM_DRAIN_DURATION: 5s", "MINIMUM_DRAIN_DURATION: 1s");
    assert_ne!(sooner, text);
    *configuration = sooner.into();
}

/// Binds the listeners of a pod to its address, and makes it name itself.
fn addresses(namespace: &str, name: &str, address: &str) -> Value {
    let listener = |port: u16| {
        json!({
            "applyTo": "LISTENER",
            "match": {"context": "GATEWAY", "listener": {"portNumber": port}},
            "patch": {"operation": "MERGE", "value": {"address": {"socket_address": {"address": address}}}},
        })
    };
    let name_itself = json!({
        "applyTo": "HTTP_FILTER",
        "match": {
            "context": "GATEWAY",
            "listener": {"filterChain": {"filter": {"name": "envoy.filters.network.http_connection_manager"}}},
        },
        "patch": {"operation": "INSERT_FIRST", "value": {
            "name": "name_itself",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation",
                "mutations": {"response_mutations": [
                    {"append": {"header": {"key": OWNER, "value": name}, "append_action": "ADD_IF_ABSENT"}},
                ]},
            },
        }},
    });
    json!({
        "apiVersion": "networking.istio.io/v1alpha3",
        "kind": "EnvoyFilter",
        "metadata": {"name": format!("test-{name}"), "namespace": namespace},
        "spec": {
            "workloadSelector": {"labels": {LABEL: name}},
            "configPatches": [listener(HTTP_PORT), listener(HTTPS_PORT), name_itself],
        },
    })
}

/// The listener for probes, at the address of a pod.
fn health(mesh: &Mesh, namespace: &str, name: &str, address: &str) -> Value {
    let mut filter = mesh.cluster.object(namespace, "envoyfilter/sluice-health");
    filter["metadata"] = json!({"name": format!("test-health-{name}"), "namespace": namespace});
    filter["spec"]["workloadSelector"]["labels"][LABEL] = name.into();
    let listener = &mut filter["spec"]["configPatches"][0]["patch"]["value"];
    listener["address"]["socket_address"] = json!({"address": address, "port_value": HEALTH_PORT});
    filter
}
