// SPDX-License-Identifier: Apache-2.0
//! istiod as it is, with its certificate authority and its injector.

use super::cluster::Cluster;
use crate::client;
use crate::eventually;
use crate::machine::ports::{free_port, loopback};
use crate::machine::process::{self, Process};
use crate::machine::tool::tool;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The namespace of Istio's own.
pub const ROOT_NAMESPACE: &str = "istio-system";

/// A running istiod.
pub struct Istiod {
    // Ends before its folder goes.
    process: Process,
    ports: Ports,
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

/// One of the files that Istio has beside its binaries.
///
/// # Panics
/// When it is not there.
#[must_use]
pub fn file(name: &str) -> PathBuf {
    tool("SLUICE_ISTIO", &format!("files/{name}"))
}

fn text(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap()
}

impl Istiod {
    /// Installs Istio and Kubernetes' Gateway API into the cluster.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn start(cluster: &Cluster) -> Self {
        for definitions in ["crd-all.gen.yaml", "gateway-api.yaml"] {
            cluster.apply(&text(definitions));
        }
        let established = ["wait", "--for=condition=Established", "crd", "--all"];
        cluster.kubectl(&established, "");
        cluster.kubectl(&["create", "namespace", ROOT_NAMESPACE], "");
        let folder = TempDir::with_prefix("sluice-istiod-").unwrap();
        let ports = Ports {
            http: free_port(),
            webhooks: free_port(),
            plain: free_port(),
            secure: free_port(),
            monitoring: free_port(),
        };
        configure(folder.path(), ports);
        let process = launch(folder.path(), &cluster.kubeconfig(), ports);
        process::end_with_this_process(&process, folder.path());
        let istiod = Self {
            process,
            ports,
            _folder: folder,
        };
        eventually("istiod", async || istiod.is_ready().await).await;
        istiod.register_injector(cluster).await;
        istiod
    }

    async fn is_ready(&self) -> bool {
        client::is_healthy(loopback(self.ports.http), "/ready").await
    }

    /// Where agents connect.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        loopback(self.ports.secure)
    }

    /// Where it shows its metrics.
    #[must_use]
    pub const fn monitoring(&self) -> SocketAddr {
        loopback(self.ports.monitoring)
    }

    /// What it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Has the API server send new pods to the injector, as Istio's chart does.
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
        let webhook = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "istio-sidecar-injector"},
            "webhooks": [{
                "name": "object.sidecar-injector.istio.io",
                "clientConfig": {
                    "url": format!("https://{}/inject", loopback(self.ports.webhooks)),
                    "caBundle": base64(root.as_str().unwrap().as_bytes()),
                },
                "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
                "objectSelector": {"matchLabels": {"sidecar.istio.io/inject": "true"}},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "failurePolicy": "Fail",
            }],
        });
        cluster.apply(&webhook.to_string());
    }
}

/// The mesh's configuration and the injector's, where istiod expects them below its working directory.
fn configure(folder: &Path, ports: Ports) {
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
    let values: Value = serde_yaml_ng::from_str(&text("values.yaml")).unwrap();
    write(
        "var/lib/istio/inject/values",
        values["_internal_defaults_do_not_set"].to_string(),
    );
    let injector = json!({
        "policy": "enabled",
        "templates": {
            "gateway": text("gateway-injection-template.yaml"),
            "sidecar": text("injection-template.yaml"),
        },
        "defaultTemplates": ["sidecar"],
    });
    write("var/lib/istio/inject/config", injector.to_string());
}

fn launch(folder: &Path, kubeconfig: &Path, ports: Ports) -> Process {
    let mut command = Command::new(tool("SLUICE_ISTIO", "pilot-discovery"));
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
    Process::start_ending_by(libc::SIGKILL, command, &folder.join("istiod.log")).unwrap()
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
