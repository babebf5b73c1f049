// SPDX-License-Identifier: Apache-2.0
//! A pod with the test as its kubelet: created through the API server, injected by istiod, and run here. Its agent
//! with Envoy runs in a folder that stands for the container's file system.

mod container;
mod place;

pub use place::Place;

use super::Mesh;
use crate::client::{self, Client, Response};
use crate::machine::process::{self, Process};
use crate::{PATIENCE, eventually};
use container::{container, launch, mount};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The port on which a worker answers probes.
pub const HEALTH_PORT: u16 = 8082;

/// A running pod. Dropping it ends it.
pub struct Pod {
    mesh: &'static Mesh,
    namespace: String,
    name: String,
    // Declared before the folder, so that it ends first.
    agent: Process,
    place: Place,
    object: Value,
}

impl Pod {
    /// Creates the pod of `template`, and runs it.
    ///
    /// # Panics
    /// When istiod does not inject it, or it does not become ready.
    pub async fn start(
        mesh: &'static Mesh,
        namespace: &str,
        name: &str,
        template: &Value,
        place: Place,
    ) -> Self {
        let pod = create(mesh, namespace, name, template, &place);
        let root = "configmap/istio-ca-root-cert";
        eventually("the mesh's root certificate", async || {
            mesh.cluster
                .run(&["--namespace", namespace, "get", root], "")
                .status
                .success()
        })
        .await;
        mount(mesh, &pod, place.folder.path());
        let agent = launch(mesh, &pod, &place);
        Self {
            mesh,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            agent,
            place,
            object: pod,
        }
    }

    /// Ends the pod's container and starts another one, with the former one's volumes.
    pub async fn restart(&mut self) {
        self.restart_after(|_| ()).await;
    }

    /// Restarts the container, with `meanwhile` for the cache's volume in between.
    pub async fn restart_after(&mut self, meanwhile: impl FnOnce(&Path)) {
        self.terminate().await;
        meanwhile(&self.place.cache());
        self.agent = launch(self.mesh, &self.object, &self.place);
        self.ready().await;
    }

    /// Restarts the container with a proxy of another version of Istio.
    pub async fn upgrade(&mut self, istio_version: &str) {
        self.place.istio_version = Some(istio_version.to_owned());
        self.restart().await;
    }

    /// Waits until a worker reports that it is ready, and reports it to the API server, as the kubelet does.
    ///
    /// # Panics
    /// When it does not become so.
    pub async fn ready(&self) {
        let health = self.at(HEALTH_PORT);
        let up = async {
            while !client::is_healthy(health, "/healthz").await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let up = tokio::time::timeout(PATIENCE, up).await;
        assert!(
            up.is_ok(),
            "{} does not become ready:\n{}",
            self.name,
            self.log()
        );
        self.say_ready(true);
    }

    /// Reports to the API server whether the pod is ready: a pod that is not ready is not an endpoint of its service.
    pub fn say_ready(&self, ready: bool) {
        let status = if ready { "True" } else { "False" };
        let conditions = json!({"conditions": [{"type": "Ready", "status": status}]});
        patch_status(self.mesh, &self.namespace, &self.name, &conditions);
    }

    /// Waits until one of its ports accepts connections.
    ///
    /// # Panics
    /// When it does not.
    pub async fn accepts(&self, port: u16) {
        let up = async {
            while Client::try_connect(self.at(port)).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let up = tokio::time::timeout(PATIENCE, up).await;
        assert!(
            up.is_ok(),
            "{} takes no connections:\n{}",
            self.name,
            self.log()
        );
    }

    /// Address of one of its ports.
    #[must_use]
    pub const fn at(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.place.address, port)
    }

    /// Envoy's admin interface, on the loopback address of the pod's family.
    #[must_use]
    pub const fn admin(&self) -> SocketAddr {
        let address = match self.place.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        };
        SocketAddr::new(address, self.place.admin_port)
    }

    /// Log of agent and Envoy.
    #[must_use]
    pub fn log(&self) -> String {
        self.agent.log()
    }

    /// Asks the agent to end, as the kubelet does, and returns its exit status.
    pub async fn terminate(&mut self) -> std::process::ExitStatus {
        self.agent.signal(libc::SIGTERM);
        self.agent.ended().await
    }

    /// Asks the agent to end, without waiting.
    pub fn begin_termination(&self) {
        self.agent.signal(libc::SIGTERM);
    }

    /// Ends the pod at once, without notice, as when its machine is lost.
    pub fn lose(&mut self) {
        self.agent.stop(Duration::ZERO);
    }

    /// Removes the pod from the API server, after it has ended.
    pub fn forget(&self) {
        let object = format!("pod/{}", self.name);
        let arguments = ["--namespace", &self.namespace, "delete", &object];
        let at_once = ["--force", "--grace-period=0"];
        self.mesh
            .cluster
            .kubectl(&[&arguments[..], &at_once[..]].concat(), "");
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.place.address
    }

    /// The process id of its Envoy.
    #[must_use]
    pub fn envoy_pid(&self) -> Option<u32> {
        let family = process::descendants(self.agent.pid());
        family
            .into_keys()
            .find(|&pid| process::name_of(pid).contains("envoy"))
    }

    /// One of Envoy's statistics; 0 if there is none of that name.
    ///
    /// # Panics
    /// When it cannot be asked.
    pub async fn statistic(&self, name: &str) -> u64 {
        let answer = client::get(
            self.admin(),
            &format!("/stats?filter={}", name.replace('|', ".")),
        )
        .await;
        let text = String::from_utf8_lossy(&answer.body);
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.map_or(0, |value| value.trim().parse().unwrap())
    }

    /// Configuration of Envoy.
    ///
    /// # Panics
    /// When it cannot be asked.
    pub async fn configuration(&self) -> Value {
        let answer: Response = client::get(self.admin(), "/config_dump?include_eds").await;
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// The volume of the cache.
    #[must_use]
    pub fn cache(&self) -> PathBuf {
        self.place.cache()
    }

    /// Its namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }
}

impl Drop for Pod {
    /// No other code would notice how the pod ends.
    fn drop(&mut self) {
        self.lose();
    }
}

/// The pod as the API server has it after injection, and with an address.
fn create(mesh: &Mesh, namespace: &str, name: &str, template: &Value, place: &Place) -> Value {
    let mut pod = template.clone();
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = name.into();
    pod["metadata"]["namespace"] = namespace.into();
    pod["spec"]["nodeName"] = "node".into();
    mesh.cluster
        .kubectl(&["create", "-f", "-"], &pod.to_string());
    let address = place.address.to_string();
    let status = json!({
        "phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "hostIP": address,
        "conditions": [{"type": "Ready", "status": "False"}],
    });
    patch_status(mesh, namespace, name, &status);
    let pod = mesh.cluster.object(namespace, &format!("pod/{name}"));
    assert_ne!(
        container(&pod)["image"],
        "auto",
        "not injected: {}",
        mesh.istiod.log()
    );
    pod
}

fn patch_status(mesh: &Mesh, namespace: &str, name: &str, status: &Value) {
    let object = format!("pod/{name}");
    let patch = json!({ "status": status }).to_string();
    let arguments = [
        "--namespace",
        namespace,
        "patch",
        &object,
        "--subresource=status",
        "-p",
        &patch,
    ];
    mesh.cluster.kubectl(&arguments, "");
}
