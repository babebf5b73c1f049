// SPDX-License-Identifier: Apache-2.0
//! The real istiod, with its certificate authority and its injector.

use super::cluster::Cluster;
use super::release::Release;
use crate::client;
use crate::eventually;
use crate::machine::ports::{free_port, loopback};
use crate::machine::process::{self, Process};
use crate::machine::tool::folder;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// The namespace of Istio itself.
pub const ROOT_NAMESPACE: &str = "istio-system";

/// A running istiod.
pub struct Istiod {
    // Declared before the folder, so that it ends first.
    process: Process,
    ports: Ports,
    release: Release,
    revision: Option<&'static str>,
    _folder: TempDir,
}

#[derive(Clone, Copy)]
struct Ports {
    http: u16,
    webhooks: u16,
    plain: u16,
    secure: u16,
    monitoring: u16,
}

/// Creates the resource types of Istio, of Kubernetes' Gateway API and of the Prometheus operator in the cluster, and
/// Istio's namespace.
pub fn define(cluster: &Cluster) {
    let operator = folder("SLUICE_DEFINITIONS").join("definitions.yaml");
    cluster.apply(&std::fs::read_to_string(operator).unwrap());
    for definitions in ["crd-all.gen.yaml", "gateway-api.yaml"] {
        cluster.apply(&Release::Current.file(definitions));
    }
    let established = ["wait", "--for=condition=Established", "crd", "--all"];
    cluster.kubectl(&established, "");
    cluster.kubectl(&["create", "namespace", ROOT_NAMESPACE], "");
}

impl Istiod {
    /// Starts a control plane of the cluster: the default one, or one of a revision.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn start(
        cluster: &Cluster,
        release: Release,
        revision: Option<&'static str>,
    ) -> Self {
        let folder = TempDir::with_prefix("sluice-istiod-").unwrap();
        let ports = Ports {
            http: free_port(),
            webhooks: free_port(),
            plain: free_port(),
            secure: free_port(),
            monitoring: free_port(),
        };
        configure(folder.path(), ports, release);
        let command = command(
            folder.path(),
            &cluster.kubeconfig(),
            ports,
            release,
            revision,
        );
        let log = folder.path().join("istiod.log");
        let process = Process::start_ending_by(libc::SIGKILL, command, &log).unwrap();
        process::end_with_this_process(&process, folder.path());
        let istiod = Self {
            process,
            ports,
            release,
            revision,
            _folder: folder,
        };
        eventually("istiod", async || istiod.is_ready().await).await;
        istiod.register_injector(cluster).await;
        istiod
    }

    async fn is_ready(&self) -> bool {
        client::is_healthy(loopback(self.ports.http), "/ready").await
    }

    /// Its release.
    #[must_use]
    pub const fn release(&self) -> Release {
        self.release
    }

    /// Its revision; `None` for the default one.
    #[must_use]
    pub const fn revision(&self) -> Option<&'static str> {
        self.revision
    }

    /// Whether the pod has its configuration from this istiod.
    ///
    /// # Panics
    /// When it cannot be asked.
    pub async fn configures(&self, namespace: &str, pod: &str) -> bool {
        let answer = client::get(loopback(self.ports.http), "/debug/syncz").await;
        let proxies: Value = serde_json::from_slice(&answer.body).unwrap();
        let wanted = format!("{pod}.{namespace}");
        proxies
            .as_array()
            .into_iter()
            .flatten()
            .any(|proxy| proxy["proxy"] == wanted.as_str())
    }

    /// Address for agents.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        loopback(self.ports.secure)
    }

    /// Address of its metrics.
    #[must_use]
    pub const fn monitoring(&self) -> SocketAddr {
        loopback(self.ports.monitoring)
    }

    /// Log so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Makes the API server send new pods to the injector, as Istio's chart does.
    async fn register_injector(&self, cluster: &Cluster) {
        let root = "configmap/istio-ca-root-cert";
        eventually("istiod's certificate authority", async || {
            cluster
                .run(&["--namespace", "default", "get", root], "")
                .status
                .success()
        })
        .await;
        let root = cluster.object("default", root)["data"]["root-cert.pem"].clone();
        let client = json!({
            "url": format!("https://{}/inject", loopback(self.ports.webhooks)),
            "caBundle": base64(root.as_str().unwrap().as_bytes()),
        });
        let webhooks = selectors(self.revision).map(|(name, selectors)| {
            let mut webhook = json!({
                "name": format!("{name}.sidecar-injector.istio.io"),
                "clientConfig": client,
                "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "failurePolicy": "Fail",
            });
            for (selector, expressions) in selectors {
                webhook[selector] = json!({"matchExpressions": expressions});
            }
            webhook
        });
        let suffix = self
            .revision
            .map_or_else(String::new, |name| format!("-{name}"));
        let webhook = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": format!("istio-sidecar-injector{suffix}")},
            "webhooks": webhooks,
        });
        cluster.apply(&webhook.to_string());
    }
}

/// The selectors of an injector's pods, as in Istio's chart: by the namespace's label, or by the pod's label if the
/// namespace has none.
fn selectors(revision: Option<&str>) -> [(&'static str, [(&'static str, Value); 2]); 2] {
    const REVISION: &str = "istio.io/rev";
    let is = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
    let absent = |key: &str| json!({"key": key, "operator": "DoesNotExist"});
    let inject = "sidecar.istio.io/inject";
    let may = json!({"key": inject, "operator": "NotIn", "values": ["false"]});
    let no_namespace = json!([absent(REVISION), absent("istio-injection")]);
    let (by_namespace, by_pod) = match revision {
        Some(name) => (
            json!([is(REVISION, name), absent("istio-injection")]),
            json!([may, is(REVISION, name)]),
        ),
        None => (
            json!([is("istio-injection", "enabled")]),
            json!([is(inject, "true"), absent(REVISION)]),
        ),
    };
    let webhook = |namespaces, pods| [("namespaceSelector", namespaces), ("objectSelector", pods)];
    [
        ("namespace", webhook(by_namespace, json!([may]))),
        ("object", webhook(no_namespace, by_pod)),
    ]
}

/// Writes the configurations of the mesh and of the injector to the places where istiod expects them, below its
/// working directory.
fn configure(folder: &Path, ports: Ports, release: Release) {
    let write = |path: &str, text: String| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let mesh = json!({
        "rootNamespace": ROOT_NAMESPACE,
        "trustDomain": "cluster.local",
        "defaultConfig": {"discoveryAddress": loopback(ports.secure).to_string()},
    });
    write("etc/istio/config/mesh", mesh.to_string());
    let values: Value = serde_saphyr::from_str(&release.file("values.yaml")).unwrap();
    write(
        "var/lib/istio/inject/values",
        values["_internal_defaults_do_not_set"].to_string(),
    );
    let injector = json!({
        "policy": "enabled",
        "templates": {
            "gateway": release.file("gateway-injection-template.yaml"),
            "sidecar": release.file("injection-template.yaml"),
        },
        "defaultTemplates": ["sidecar"],
    });
    write("var/lib/istio/inject/config", injector.to_string());
}

fn command(
    folder: &Path,
    kubeconfig: &Path,
    ports: Ports,
    release: Release,
    revision: Option<&str>,
) -> Command {
    let mut command = Command::new(release.binary("pilot-discovery"));
    command.arg("discovery").arg("--kubeconfig").arg(kubeconfig);
    for (flag, port) in [
        ("--httpAddr", ports.http),
        ("--httpsAddr", ports.webhooks),
        ("--grpcAddr", ports.plain),
        ("--secureGRPCAddr", ports.secure),
        ("--monitoringAddr", ports.monitoring),
    ] {
        command.arg(format!("{flag}={}", loopback(port)));
    }
    command
        .env_clear()
        .env("HOME", folder)
        .env("POD_NAME", "istiod")
        .env("POD_NAMESPACE", ROOT_NAMESPACE)
        .env("CLUSTER_ID", "Kubernetes")
        // The Envoy of these tests lacks two filters of Istio's own build.
        .env("PILOT_ENABLE_METADATA_EXCHANGE", "false")
        .env("PILOT_ENABLE_ALPN_FILTER", "false")
        .current_dir(folder);
    if let Some(revision) = revision {
        command.env("REVISION", revision);
    }
    command
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |chunk: &[u8]| {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let digit = |place: usize| {
            let six_bits = (bits >> (18 - 6 * place)) & 63;
            if place <= chunk.len() {
                char::from(ALPHABET[six_bits as usize])
            } else {
                '='
            }
        };
        [digit(0), digit(1), digit(2), digit(3)]
    };
    bytes.chunks(3).flat_map(group).collect()
}
