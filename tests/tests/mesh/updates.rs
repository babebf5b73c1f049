// SPDX-License-Identifier: Apache-2.0
//! A mistake in an applied manifest changes nothing for clients, and is reported where an operator looks.

use serde_json::{Value, json};
use sluice_tests::client::crowd::{Crowd, Flight};
use sluice_tests::client::load::{Load, Plan};
use sluice_tests::client::{self, Client, request};
use sluice_tests::eventually;
use sluice_tests::mesh::gateway::{Gateway, HTTP_PORT};
use sluice_tests::mesh::kustomize::{GATEWAYS_ROLES, Overlay};
use sluice_tests::mesh::pod::HEALTH_PORT;
use sluice_tests::server::gate::Gate;
use std::path::PathBuf;
use std::time::Instant;
use tempfile::TempDir;

/// The overlay with a module URL on which no server listens.
fn without_a_module(overlay: Overlay) -> Overlay {
    let nowhere = json!({"remote": {"http_uri": {
        "uri": "http://127.0.0.1:1/none.wasm", "timeout": "1s", "cluster": "_",
    }}});
    overlay.code(&GATEWAYS_ROLES, &nowhere)
}

fn replace(path: &str, value: &Value) -> Value {
    json!([{"op": "replace", "path": path, "value": value}])
}

/// Checks that the gateway fetches and serves an object. The check is the same before and after a change.
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
    let good = gateway.overlay.clone();
    let misspelt = json!({"origin": {"kind": "bucket"}, "hot": {"max_byte": 5}});
    gateway.apply(&good.clone().policy(&misspelt).build());
    eventually("the refusal", async || {
        gateway.pod.log().contains("policy refused: hot.max_byte: ")
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
    // A corrected policy is accepted again.
    let other = good.policy(&json!({
        "origin": {"kind": "bucket"},
        "rules": [{"match": ["*"], "headers": {"X-Policy": "second"}}],
    }));
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
    let bad = without_a_module(gateway.overlay.clone());
    gateway.apply(&bad.build());
    // The agent logs the reason, and Envoy counts that it has refused the agent's replacement.
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
    let gateway = gateway.with(without_a_module).start_unready().await;
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
    // A request that is sent nevertheless reaches no origin.
    gateway.bucket.put_stamped("a.bin", 1, 2_000).await;
    let answer = gateway.get("/a.bin").await;
    assert_eq!(answer.status, 500, "{answer}");
    assert_eq!(gateway.fetches("a.bin"), 0);
}

#[tokio::test]
async fn a_proxy_of_an_untested_istio_is_never_ready() {
    let gateway = Gateway::builder("untested-istio").await;
    let mut gateway = gateway.istio_version("1.29.4").start_unready().await;
    gateway.pod.accepts(HTTP_PORT).await;
    gateway.bucket.put_stamped("a.bin", 1, 2_000).await;
    // No listener answers probes. A request that is sent nevertheless takes Istio's own route, unsigned, so the
    // bucket refuses it.
    let probe = Client::try_connect(gateway.pod.at(HEALTH_PORT)).await;
    assert!(probe.is_err(), "a listener for probes");
    for asked in 1..=2 {
        let host = gateway.host();
        let refused = gateway.send("GET", "/a.bin", &[("host", &host)]).await;
        assert_eq!(refused.status, 403, "{refused}");
        assert_eq!(refused.cache_status(), "", "{refused}");
        assert_eq!(gateway.fetches("a.bin"), asked);
    }
    let configuration = gateway.pod.configuration().await.to_string();
    for part in [
        "sluice.edge",
        "sluice.probe",
        "\"sluice_background\"",
        "\"guard\"",
    ] {
        assert!(!configuration.contains(part), "{part}: {configuration}");
    }
    // The same pod gets a proxy of a tested release.
    gateway.pod.upgrade("1.31.0-alpha.1").await;
    serves(&gateway, "after").await;
}

#[tokio::test]
async fn a_listener_that_envoy_refuses_leaves_the_former_one_in_force() {
    let gateway = Gateway::builder("refused-listener").await.start().await;
    serves(&gateway, "before").await;
    let regex = "/spec/configPatches/0/patch/value/typed_config/rules/policies/canonical/permissions/0/\
                 and_rules/rules/1/header/string_match/safe_regex/regex";
    let bad =
        gateway
            .overlay
            .clone()
            .patch("EnvoyFilter", "sluice-guard", &replace(regex, &json!("(")));
    gateway.apply(&bad.build());
    // Envoy counts the refusal and logs its reason, and istiod counts it as well.
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

/// A copy of the module, in another file and with another digest.
fn another_module(folder: &TempDir) -> PathBuf {
    let mut module = std::fs::read(sluice_tests::machine::tool::module()).unwrap();
    // An empty custom section: its id, its size, and its name after the length of the name.
    module.extend_from_slice(b"\x00\x08\x07another");
    let path = folder.path().join("another.wasm");
    std::fs::write(&path, module).unwrap();
    path
}

/// A policy that adds its name to responses. Followers wait for a long time under it.
fn named_policy(name: &str) -> Value {
    json!({
        "origin": {"kind": "bucket"},
        "cache": {"ttl": {"200": "1h"}},
        "coalesce": {"max_wait": "600s"},
        "rules": [{"match": ["*"], "headers": {"X-Policy": name}}],
    })
}

/// A gateway under load, with all objects in its store.
struct UnderLoad {
    gateway: Gateway,
    load: Load,
    targets: Vec<String>,
    start: Instant,
}

/// Number of clients that wait for the first client of one object.
const FOLLOWERS: usize = 19;

impl UnderLoad {
    async fn begin() -> Self {
        let gateway = Gateway::builder("changes").await;
        let gateway = gateway
            .with(|overlay| overlay.policy(&named_policy("first")))
            .start()
            .await;
        let targets: Vec<_> = (0..20).map(|number| format!("/object-{number}")).collect();
        for target in &targets {
            gateway.bucket.put_stamped(&target[1..], 1, 2_000).await;
            gateway.hit(target).await;
        }
        let load = Load::start(Plan {
            rate: 200,
            addresses: vec![gateway.http()],
            targets: targets.clone(),
            keeps_connections: true,
        });
        Self {
            gateway,
            load,
            targets,
            start: Instant::now(),
        }
    }

    async fn statistic(&self, name: &str) -> usize {
        let name = format!("wasmcustom.sluice_{name}");
        usize::try_from(self.gateway.pod.statistic(&name).await).unwrap()
    }

    /// Applies a change while a client leads at the gate and other clients follow it.
    async fn change(&self, name: &str, change: &Overlay, gate: &Gate) -> (Client, Flight) {
        let path = format!("/held-by-{name}");
        self.gateway.bucket.put_stamped(&path[1..], 1, 20_000).await;
        let mut leader = Client::connect(self.gateway.http()).await;
        leader.send(request("GET", &path, &[])).await.unwrap();
        gate.wait_reached(1).await;
        let crowd = Crowd::connect(self.gateway.http(), FOLLOWERS).await;
        let crowd = crowd.fire(&path);
        eventually("followers", async || {
            self.statistic("parked_now").await == FOLLOWERS
        })
        .await;
        self.gateway.apply(&change.build());
        eventually("the change", async || {
            let answer = self.gateway.get(&self.targets[0]).await;
            answer.header("x-policy") == name
        })
        .await;
        (leader, crowd)
    }

    /// Waits until both roles of each worker run the same module, and returns the number of requests adopted so far.
    async fn roles_agree(&self) -> usize {
        let (mut asked, mut adopted) = (0, 0);
        eventually("one module", async || {
            adopted = self.statistic("origin_adopted").await;
            for _ in 0..20 {
                asked += 1;
                let missing = self.gateway.get(&format!("/missing-{asked}")).await;
                assert_eq!(missing.status, 404, "{missing}");
            }
            self.statistic("origin_adopted").await == adopted
        })
        .await;
        adopted
    }

    /// Checks that no request has failed, and that every object is still in the store.
    async fn nothing_is_lost(&self, what: &str) {
        self.load.more(200).await;
        let seen = self.load.since(self.start);
        println!("change of the {what}: {seen}");
        assert_eq!(seen.failures, Vec::<String>::new());
        for target in &self.targets {
            assert!(self.gateway.get(target).await.is_hit(), "{target}");
            assert_eq!(self.gateway.fetches(&target[1..]), 1, "{target}");
        }
        assert_eq!(self.statistic("parked_now").await, 0);
    }
}

#[tokio::test]
async fn a_policy_and_a_module_change_under_load_and_no_request_fails() {
    let edge = UnderLoad::begin().await;
    let gateway = &edge.gateway;
    let policy = |name: &str| gateway.overlay.clone().policy(&named_policy(name));
    let gate = gateway.bucket.proxy().hold("/held-by-policy");
    let (mut leader, crowd) = edge.change("policy", &policy("policy"), &gate).await;
    gate.open();
    let _ = leader.response().await.unwrap().stamp("/held-by-policy");
    crowd.land().await.same_object("/held-by-policy");
    assert_eq!(gateway.fetches("held-by-policy"), 1);
    edge.nothing_is_lost("policy").await;

    let folder = TempDir::new().unwrap();
    let another = json!({"local": {"filename": another_module(&folder)}});
    let module = policy("module").code(&GATEWAYS_ROLES, &another);
    let gate = gateway.bucket.proxy().hold("/held-by-module");
    let (leader, crowd) = edge.change("module", &module, &gate).await;
    let before = edge.roles_agree().await;
    // The former module's followers lead in turn, and the new module adopts their requests.
    leader.reset();
    gate.wait_reached(2).await;
    gate.open();
    crowd.land().await.same_object("/held-by-module");
    let adopted = edge.statistic("origin_adopted").await - before;
    assert_eq!(adopted, FOLLOWERS);
    gateway.hit("/held-by-module").await;
    edge.nothing_is_lost("module").await;
}
