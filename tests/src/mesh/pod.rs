// SPDX-License-Identifier: Apache-2.0
//! A pod whose kubelet is the test: created through the API server, injected by istiod, and run here: its agent with
//! Envoy, in a folder that stands for the container's file system.

use super::istiod::{self, ROOT_NAMESPACE};
use super::{Mesh, pod_address};
use crate::client::{self, Client, Response, request};
use crate::machine::ports::{free_port, loopback};
use crate::machine::process::{self, Process};
use crate::machine::tool::{self, tool};
use crate::{PATIENCE, eventually};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const CONTAINER: &str = "istio-proxy";
/// The port on which a worker answers probes.
pub const HEALTH_PORT: u16 = 8082;

/// What must be known of a pod before it is there, as manifests name it.
pub struct Place {
    /// Its address.
    pub address: Ipv4Addr,
    /// Whether the agent gets a folder for modules that it fetches.
    pub fetches: bool,
    folder: TempDir,
    admin_port: u16,
}

impl Place {
    /// A place for one.
    ///
    /// # Panics
    /// When no folder is to be had.
    #[must_use]
    pub fn new() -> Self {
        let folder = TempDir::with_prefix("sluice-pod-").unwrap();
        let place = Self {
            address: pod_address(),
            fetches: false,
            folder,
            admin_port: free_port(),
        };
        std::fs::create_dir(place.cache()).unwrap();
        place
    }

    /// A place for one with the volume of a pod that has ended.
    ///
    /// # Panics
    /// When the volume cannot be moved.
    #[must_use]
    pub fn with_volume_of(pod: Pod) -> Self {
        let place = Self::new();
        std::fs::remove_dir(place.cache()).unwrap();
        std::fs::rename(pod.place.cache(), place.cache()).unwrap();
        place
    }

    /// The folder for the cache.
    #[must_use]
    pub fn cache(&self) -> std::path::PathBuf {
        self.folder.path().join("cache")
    }
}

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}

/// A running pod. Dropping it ends it.
pub struct Pod {
    mesh: &'static Mesh,
    namespace: String,
    name: String,
    // Ends before its folder goes.
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

    /// Ends its container and starts another one, with the volumes of the former.
    pub async fn restart(&mut self) {
        self.terminate().await;
        self.agent = launch(self.mesh, &self.object, &self.place);
        self.ready().await;
    }

    /// Waits until a worker says that it is ready, and tells the API server, as the kubelet does.
    ///
    /// # Panics
    /// When it does not become so.
    pub async fn ready(&self) {
        let health = self.at(HEALTH_PORT);
        let up = async {
            while !is_healthy(health).await {
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

    /// Tells the API server whether it takes requests: what does not is no endpoint of its service.
    pub fn say_ready(&self, ready: bool) {
        let status = if ready { "True" } else { "False" };
        let conditions = json!({"conditions": [{"type": "Ready", "status": status}]});
        patch_status(self.mesh, &self.namespace, &self.name, &conditions);
    }

    /// Waits until one of its ports takes connections.
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

    /// One of its ports.
    #[must_use]
    pub const fn at(&self, port: u16) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(self.place.address), port)
    }

    /// Envoy's admin interface.
    #[must_use]
    pub const fn admin(&self) -> SocketAddr {
        loopback(self.place.admin_port)
    }

    /// What agent and Envoy have logged.
    #[must_use]
    pub fn log(&self) -> String {
        self.agent.log()
    }

    /// Asks the agent to end, as the kubelet does, and says how it ended.
    pub async fn terminate(&mut self) -> std::process::ExitStatus {
        self.agent.signal(libc::SIGTERM);
        self.agent.ended().await
    }

    /// The same without waiting.
    pub fn begin_termination(&self) {
        self.agent.signal(libc::SIGTERM);
    }

    /// Ends it at once, with no word to anybody: its machine is lost.
    pub fn lose(&mut self) {
        self.agent.stop(Duration::ZERO);
    }

    /// Takes it out of the API server, once it has ended.
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
    pub const fn address(&self) -> Ipv4Addr {
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

    /// One of Envoy's statistics; 0 when there is none of that name.
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

    /// What Envoy is configured with.
    ///
    /// # Panics
    /// When it cannot be asked.
    pub async fn configuration(&self) -> Value {
        let answer: Response = client::get(self.admin(), "/config_dump?include_eds").await;
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// Its namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }
}

impl Drop for Pod {
    /// Nobody is left who would notice how it ends.
    fn drop(&mut self) {
        self.lose();
    }
}

async fn is_healthy(address: SocketAddr) -> bool {
    let Ok(mut client) = Client::try_connect(address).await else {
        return false;
    };
    let answer = client.try_exchange(request("GET", "/healthz", &[])).await;
    answer.is_ok_and(|answer| answer.status == 200)
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

fn container(pod: &Value) -> &Value {
    // A native sidecar is an init container.
    let lists = ["containers", "initContainers"].map(|list| pod["spec"][list].as_array());
    lists
        .into_iter()
        .flatten()
        .flatten()
        .find(|container| container["name"] == CONTAINER)
        .expect("a proxy")
}

/// The volumes that the agent reads.
fn mount(mesh: &Mesh, pod: &Value, folder: &Path) {
    let write = |path: &str, text: &str| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let namespace = pod["metadata"]["namespace"].as_str().unwrap();
    let account = pod["spec"]["serviceAccountName"]
        .as_str()
        .unwrap_or("default");
    let token = [
        "--namespace",
        namespace,
        "create",
        "token",
        account,
        "--audience",
        "istio-ca",
    ];
    write(
        "var/run/secrets/tokens/istio-token",
        mesh.cluster.kubectl(&token, "").trim(),
    );
    let root = mesh
        .cluster
        .object(namespace, "configmap/istio-ca-root-cert");
    write(
        "var/run/secrets/istio/root-cert.pem",
        root["data"]["root-cert.pem"].as_str().unwrap(),
    );
    for field in ["labels", "annotations"] {
        let pairs = pod["metadata"][field].as_object().into_iter().flatten();
        let lines: Vec<_> = pairs
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        write(&format!("etc/istio/pod/{field}"), &lines.join("\n"));
    }
    // As in the image, but that nothing listens outside this machine.
    let template = std::fs::read_to_string(istiod::file("envoy_bootstrap.json")).unwrap();
    write(
        "bootstrap.json",
        &template.replace("{{ .wildcard }}", "{{ .localhost }}"),
    );
    for path in [
        "etc/istio/proxy",
        "var/lib/istio/data",
        "var/run/secrets/workload-spiffe-uds",
    ] {
        std::fs::create_dir_all(folder.join(path)).unwrap();
    }
}

fn launch(mesh: &Mesh, pod: &Value, place: &Place) -> Process {
    let mut variables = environment(mesh, pod);
    here(mesh, place, &mut variables);
    let expand = |argument: &Value| {
        variables.iter().fold(
            argument.as_str().unwrap().to_owned(),
            |text, (name, value)| text.replace(&format!("$({name})"), value),
        )
    };
    let folder = place.folder.path();
    let mut command = agent(place.fetches);
    command.args(
        container(pod)["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(expand),
    );
    command
        .env_clear()
        .envs(&variables)
        .env("HOME", folder)
        .current_dir(folder);
    Process::start(command, &folder.join("pod.log")).unwrap()
}

/// The agent's command. It keeps what it fetches below a fixed folder of its container's, so a file system of that
/// name is mounted for it alone, which takes root.
fn agent(fetches: bool) -> Command {
    const DATA: &str =
        "mount -t tmpfs tmpfs /var/lib && mkdir -p /var/lib/istio/data && exec \"$0\" \"$@\"";
    let agent = tool("SLUICE_ISTIO", "pilot-agent");
    if !fetches {
        return Command::new(agent);
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", DATA]).arg(agent);
    command
}

/// The container's environment, as the kubelet would make it.
fn environment(mesh: &Mesh, pod: &Value) -> BTreeMap<String, String> {
    let variables = container(pod)["env"].as_array().unwrap().iter();
    let resolve = |variable: &Value| {
        let name = variable["name"].as_str().unwrap().to_owned();
        let source = &variable["valueFrom"];
        if source.is_null() {
            // The API server leaves out an empty value.
            let value = variable["value"].as_str().unwrap_or_default();
            return Some((name, value.to_owned()));
        }
        let value = if let Some(path) = source["fieldRef"]["fieldPath"].as_str() {
            let value = pod.pointer(&format!("/{}", path.replace('.', "/")))?;
            value.as_str()?.to_owned()
        } else if let Some(resource) = source["resourceFieldRef"]["resource"].as_str() {
            if resource.ends_with("cpu") {
                "2"
            } else {
                "1073741824"
            }
            .to_owned()
        } else {
            secret(mesh, pod, &source["secretKeyRef"])
        };
        Some((name, value))
    };
    variables.filter_map(resolve).collect()
}

fn secret(mesh: &Mesh, pod: &Value, reference: &Value) -> String {
    let namespace = pod["metadata"]["namespace"].as_str().unwrap();
    let object = format!("secret/{}", reference["name"].as_str().unwrap());
    let field = format!(
        "go-template={{{{index .data {} | base64decode}}}}",
        reference["key"]
    );
    mesh.cluster.kubectl(
        &["--namespace", namespace, "get", &object, "-o", &field],
        "",
    )
}

/// What is elsewhere on this machine than in a cluster.
fn here(mesh: &Mesh, place: &Place, variables: &mut BTreeMap<String, String>) {
    let mut proxy: Value = serde_json::from_str(variables["PROXY_CONFIG"].trim()).unwrap();
    proxy["proxyAdminPort"] = place.admin_port.into();
    // The agent's own listener would be on all addresses of the machine: a port that is taken keeps it from that.
    proxy["statusPort"] = mesh.istiod.address().port().into();
    proxy["binaryPath"] = tool::envoy().display().to_string().into();
    proxy["proxyBootstrapTemplatePath"] = place
        .folder
        .path()
        .join("bootstrap.json")
        .display()
        .to_string()
        .into();
    let istiod = mesh.istiod.address().to_string();
    for (name, value) in [
        ("PROXY_CONFIG", proxy.to_string()),
        ("CA_ADDR", istiod),
        ("ISTIOD_SAN", format!("istiod.{ROOT_NAMESPACE}.svc")),
        ("ENVOY_STATUS_PORT", free_port().to_string()),
        ("ENVOY_PROMETHEUS_PORT", free_port().to_string()),
    ] {
        variables.insert(name.to_owned(), value);
    }
}
