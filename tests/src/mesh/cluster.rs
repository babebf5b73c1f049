// SPDX-License-Identifier: Apache-2.0
//! A Kubernetes API server with its etcd, and `kubectl`. Tests do the work of controllers and nodes, unless they
//! start them too ([`kubernetes`](crate::kubernetes)).

use crate::eventually;
use crate::machine::ports::{free_port, loopback};
use crate::machine::process::{self, Process};
use crate::machine::tool::tool;
use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const TOKEN: &str = "the-token-of-the-administrator";

/// A running API server.
pub struct Cluster {
    // Declared before the folder, so that they end first.
    api_server: Process,
    _etcd: Process,
    folder: TempDir,
}

impl Cluster {
    /// Starts an API server.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn start() -> Self {
        let folder = TempDir::with_prefix("sluice-cluster-").unwrap();
        let (etcd, store) = etcd(folder.path());
        let port = free_port();
        let api_server = api_server(folder.path(), &store, port);
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig(port)).unwrap();
        // NB: the API server ends first, because it takes long to end without its store.
        process::end_with_this_process(&etcd, folder.path());
        process::end_with_this_process(&api_server, folder.path());
        let cluster = Self {
            api_server,
            _etcd: etcd,
            folder,
        };
        eventually("a Kubernetes API server", async || {
            cluster
                .run(&["get", "--raw", "/readyz"], "")
                .status
                .success()
        })
        .await;
        cluster
    }

    /// The file that tells clients how to reach it.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Log of the API server so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.api_server.log()
    }

    /// Runs `kubectl` with this input.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = kubectl();
        command
            .arg("--kubeconfig")
            .arg(self.kubeconfig())
            .arg("--cache-dir")
            .arg(self.folder.path().join("discovery"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // It may end before it has read the whole input; its exit status says so.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().unwrap()
    }

    /// Starts one of the programs of a cluster that run beside its API server, with these arguments. It ends when it
    /// is dropped.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start_beside(&self, program: &str, arguments: &[&str]) -> Process {
        let mut command = Command::new(tool("SLUICE_KUBERNETES", program));
        command
            .env_clear()
            .args(arguments)
            .arg("--kubeconfig")
            .arg(self.kubeconfig());
        let log = self.folder.path().join(format!("{program}.log"));
        Process::start_ending_by(libc::SIGKILL, command, &log).unwrap()
    }

    /// Output of `kubectl`.
    ///
    /// # Panics
    /// When it fails.
    pub fn kubectl(&self, arguments: &[&str], input: &str) -> String {
        let output = self.run(arguments, input);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Applies manifests.
    pub fn apply(&self, manifests: &str) {
        self.kubectl(
            &["apply", "--server-side", "--force-conflicts", "-f", "-"],
            manifests,
        );
    }

    /// Applies a JSON patch to an object, which `name` names with its kind.
    pub fn patch(&self, namespace: &str, name: &str, patch: &str) {
        let words = [
            "--namespace",
            namespace,
            "patch",
            name,
            "--type",
            "json",
            "-p",
            patch,
        ];
        self.kubectl(&words, "");
    }

    /// The current state of an object.
    ///
    /// # Panics
    /// When it is not there.
    #[must_use]
    pub fn object(&self, namespace: &str, name: &str) -> Value {
        let text = self.kubectl(&["--namespace", namespace, "get", name, "-o", "json"], "");
        serde_json::from_str(&text).unwrap()
    }
}

/// `kubectl` without a cluster.
#[must_use]
pub fn kubectl() -> Command {
    let mut command = Command::new(tool("SLUICE_KUBERNETES", "kubectl"));
    command.env_clear();
    command
}

/// A running etcd and its URL.
fn etcd(folder: &Path) -> (Process, String) {
    let [clients, peers] =
        [free_port(), free_port()].map(|port| format!("http://{}", loopback(port)));
    let mut command = Command::new(tool("SLUICE_ETCD", "etcd"));
    command
        .env_clear()
        .arg("--data-dir")
        .arg(folder.join("etcd"));
    command.args([
        "--listen-client-urls",
        &clients,
        "--advertise-client-urls",
        &clients,
    ]);
    command.args([
        "--listen-peer-urls",
        &peers,
        "--initial-advertise-peer-urls",
        &peers,
    ]);
    command.args(["--initial-cluster", &format!("default={peers}")]);
    // Its data is needed for the test only.
    command.arg("--unsafe-no-fsync");
    let process =
        Process::start_ending_by(libc::SIGKILL, command, &folder.join("etcd.log")).unwrap();
    (process, clients)
}

fn api_server(folder: &Path, etcd: &str, port: u16) -> Process {
    let key = rcgen::KeyPair::generate().unwrap();
    let [signing, verifying] = ["accounts.key", "accounts.pub"].map(|name| folder.join(name));
    std::fs::write(&signing, key.serialize_pem()).unwrap();
    std::fs::write(&verifying, key.public_key_pem()).unwrap();
    let tokens = folder.join("tokens.csv");
    std::fs::write(
        &tokens,
        format!("{TOKEN},administrator,administrator,system:masters\n"),
    )
    .unwrap();
    let mut command = Command::new(tool("SLUICE_KUBERNETES", "kube-apiserver"));
    command
        .env_clear()
        .arg(format!("--etcd-servers={etcd}"))
        .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
        .arg(format!("--secure-port={port}"))
        .arg(format!(
            "--cert-dir={}",
            folder.join("certificates").display()
        ))
        .arg(format!("--token-auth-file={}", tokens.display()))
        .arg(format!(
            "--service-account-key-file={}",
            verifying.display()
        ))
        .arg(format!(
            "--service-account-signing-key-file={}",
            signing.display()
        ))
        .args([
            "--service-account-issuer=https://kubernetes.default.svc",
            "--authorization-mode=RBAC",
            // The controller that creates its accounts does not run here.
            "--disable-admission-plugins=ServiceAccount",
            "--service-cluster-ip-range=10.0.0.0/24",
        ]);
    Process::start_ending_by(libc::SIGKILL, command, &folder.join("api-server.log")).unwrap()
}

fn kubeconfig(port: u16) -> String {
    format!(
        "apiVersion: v1
kind: Config
clusters: [{{name: test, cluster: {{server: \"https://{}\", insecure-skip-tls-verify: true}}}}]
users: [{{name: test, user: {{token: {TOKEN}}}}}]
contexts: [{{name: test, context: {{cluster: test, user: test}}}}]
current-context: test
",
        loopback(port)
    )
}
