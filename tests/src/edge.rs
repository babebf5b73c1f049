// SPDX-License-Identifier: Apache-2.0
//! Sluice's own entry point, started as a user starts it: settings in the environment, one process in front.

use crate::client::{self, Client, Response, request};
use crate::container::Container;
use crate::direct::{self, Direct};
use crate::disk::Disk;
use crate::matrix::{Cell, Medium, Store};
use crate::minio::{Bucket, REGION};
use crate::origin::Origin;
use crate::ports::{free_port, loopback};
use crate::process::{self, Process};
use crate::tool::built;
use crate::{PATIENCE, eventually};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tempfile::TempDir;

/// The top of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_owned)
        .unwrap_or_default()
}

/// The entry point: `SLUICE_BIN`, else built once beside this test binary.
///
/// # Panics
/// When it does not build.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(given) = std::env::var_os("SLUICE_BIN") {
            return PathBuf::from(given);
        }
        // …/TARGET/PROFILE/deps/e2e-HASH
        let test = std::env::current_exe().unwrap();
        let profile = test.ancestors().nth(2).unwrap();
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build
            .args(["build", "--quiet", "-p", "sluice", "--bin", "sluice"])
            .current_dir(repository());
        build.env("CARGO_TARGET_DIR", profile.parent().unwrap());
        if profile.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().unwrap().success(), "cargo build -p sluice");
        profile.join("sluice")
    })
}

/// The filter's module: `SLUICE_WASM`, else where the Makefile has put it.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn module() -> PathBuf {
    built("module", "SLUICE_WASM", ".sluice/wasm/sluice.wasm", "wasm")
}

/// The module that traps on demand: `SLUICE_TRAP_WASM`, else where the Makefile has put it.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn trap_module() -> PathBuf {
    built(
        "module",
        "SLUICE_TRAP_WASM",
        ".sluice/wasm/sluice-trap.wasm",
        "trap",
    )
}

/// Lines that no edge may log, whatever clients and origins do.
const CRITICAL: [&str; 10] = [
    "panicked at",
    "Caught Segmentation fault",
    "Caught Aborted",
    "ENVOY_BUG",
    "ENVOY_NOTIFICATION",
    "assert failure",
    "[critical]",
    "Wasm VM failed",
    "wasm trap",
    "Uncaught RuntimeError",
];

/// An edge that is to be started.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    environment: BTreeMap<String, String>,
    policy: Option<String>,
    direct: Option<Direct>,
    container: Option<Arc<Container>>,
    open_files: Option<usize>,
    disk: Option<u64>,
    allowed: Vec<String>,
}

/// A running edge. Dropping it ends it, and fails the test when it has died or logged what it must not.
pub struct Edge {
    port: u16,
    admin: u16,
    process: Option<Process>,
    // End after the process.
    folders: Folders,
    builder: Builder,
}

/// What one edge writes to.
struct Folders {
    own: TempDir,
    /// The tmpfs of a store in memory.
    memory: Option<TempDir>,
}

impl Folders {
    fn new(in_memory: bool) -> Self {
        let own = TempDir::with_prefix("sluice-edge-").unwrap();
        let memory =
            in_memory.then(|| TempDir::with_prefix_in("sluice-edge-", "/dev/shm").unwrap());
        Self { own, memory }
    }

    /// `CACHE_DIR`.
    fn cache(&self) -> PathBuf {
        let memory = self.memory.as_ref().map(|dir| dir.path().to_owned());
        memory.unwrap_or_else(|| self.own.path().join("cache"))
    }

    fn log(&self) -> PathBuf {
        self.own.path().join("edge.log")
    }
}

/// How the entry point refused to start.
#[derive(Debug)]
pub struct Refusal {
    /// Its exit code.
    pub code: Option<i32>,
    /// All that it wrote.
    pub output: String,
}

impl Builder {
    /// An edge with these settings only, and whatever the harness must choose (ports, folders).
    pub fn new() -> Self {
        Self {
            environment: BTreeMap::new(),
            policy: None,
            direct: None,
            container: None,
            open_files: None,
            disk: None,
            allowed: Vec::new(),
        }
        .store(Store::V1_DISK)
        .workers(2)
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.insert(name.to_owned(), value.into());
        self
    }

    /// `CACHE`.
    pub fn medium(self, medium: Medium) -> Self {
        self.env("CACHE", medium.to_string())
    }

    /// The medium of this store.
    pub fn store(self, store: Store) -> Self {
        self.medium(store.medium)
    }

    /// `CONCURRENCY`.
    pub fn workers(self, workers: usize) -> Self {
        self.env("CONCURRENCY", workers.to_string())
    }

    /// `CACHE` and `CONCURRENCY`.
    pub fn cell(self, cell: Cell) -> Self {
        self.store(cell.store).workers(cell.workers)
    }

    /// The text of a policy document, in place of the one for the kind of origin.
    pub fn policy(self, policy: &str) -> Self {
        Self {
            policy: Some(policy.to_owned()),
            ..self
        }
    }

    /// Envoy itself, without the entry point.
    pub fn direct(self, direct: Direct) -> Self {
        Self {
            direct: Some(direct),
            ..self
        }
    }

    /// The entry point of an image, in the image's file system and with its variables; its policy can be no file.
    pub fn contained(self, container: Arc<Container>) -> Self {
        Self {
            container: Some(container),
            ..self
        }
    }

    /// No more files than these may be open (`ulimit -n`).
    pub fn open_files(self, most: usize) -> Self {
        Self {
            open_files: Some(most),
            ..self
        }
    }

    /// Its cache is on a file system of its own, of so many bytes ([`Edge::disk`]).
    pub fn disk(self, bytes: u64) -> Self {
        Self {
            disk: Some(bytes),
            ..self
        }
    }

    /// Log lines with this text are expected.
    pub fn allow_log(mut self, text: &str) -> Self {
        self.allowed.push(text.to_owned());
        self
    }

    /// Whether `CACHE` is `memory`.
    fn in_memory(&self) -> bool {
        self.environment
            .get("CACHE")
            .is_some_and(|medium| medium == "memory")
    }

    fn command(&self, folders: &Folders, port: u16, admin: u16) -> Command {
        if let Some(container) = &self.container {
            let mut command = container.command(&folders.own.path().join("volume"), &[]);
            // Tests do not listen on all addresses.
            command
                .env("BIND", "127.0.0.1")
                .env("EDGE_PORT", port.to_string())
                .env("ADMIN_PORT", admin.to_string())
                .envs(&self.environment);
            return command;
        }
        let mut command = match self.open_files {
            Some(most) => {
                let mut limited = Command::new("prlimit");
                limited.arg(format!("--nofile={most}")).arg(binary());
                limited
            }
            None => Command::new(binary()),
        };
        command.env_clear().current_dir(repository());
        for name in ["PATH", "HOME"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.env("SLUICE_ENVOY", crate::bare::envoy());
        command.env("SLUICE_WASM", module());
        command.env("SLUICE_STATE", folders.own.path().join("state"));
        command
            .env("EDGE_PORT", port.to_string())
            .env("ADMIN_PORT", admin.to_string());
        command.env("CACHE_DIR", folders.cache());
        if let Some(policy) = &self.policy {
            let path = folders.own.path().join("policy.yaml");
            std::fs::write(&path, policy).unwrap();
            command.env("POLICY", path);
        }
        command.envs(&self.environment);
        let command = match &self.direct {
            Some(direct) => direct.command(&command, folders.own.path()),
            None => command,
        };
        match self.disk {
            Some(bytes) => Disk::mounted(bytes, &folders.cache(), &command),
            None => command,
        }
    }

    /// Starts it and waits until a worker answers `/healthz`.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn start(self) -> Edge {
        for _ in 0..5 {
            let folders = Folders::new(self.in_memory());
            let (port, admin) = (free_port(), free_port());
            let process = Process::start(self.command(&folders, port, admin), &folders.log());
            let process = process.unwrap_or_else(|error| panic!("{}: {error}", binary().display()));
            let mut edge = Edge {
                builder: self.clone(),
                port,
                admin,
                process: Some(process),
                folders,
            };
            if edge.came_up().await {
                return edge;
            }
            let log = edge.log();
            edge.process = None;
            assert!(log.contains("in use"), "the edge does not start:\n{log}");
        }
        panic!("five times a port was taken");
    }

    /// Starts it where it is expected to refuse.
    pub async fn refused(self) -> Refusal {
        let folders = Folders::new(self.in_memory());
        let mut process = Process::start(
            self.command(&folders, free_port(), free_port()),
            &folders.log(),
        )
        .unwrap();
        Refusal {
            code: process.ended().await.code(),
            output: process.log(),
        }
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Edge {
    /// An edge before a plain HTTP origin.
    pub fn http(origin: &Origin) -> Builder {
        Builder::new().env("ORIGIN", origin.url())
    }

    /// An edge before a private bucket.
    pub fn bucket(bucket: &Bucket) -> Builder {
        Builder::new()
            .env("ORIGIN", format!("s3://{}", bucket.name()))
            .env("S3_ENDPOINT", bucket.endpoint())
            .env("AWS_REGION", REGION)
            .env("AWS_ACCESS_KEY_ID", &bucket.minio().access_key)
            .env("AWS_SECRET_ACCESS_KEY", &bucket.minio().secret_key)
    }

    /// An edge before a bucket whose endpoint is a scripted origin: what would reach S3, and how it was signed, is seen.
    pub fn scripted_bucket(origin: &Origin) -> Builder {
        Builder::new()
            .env("ORIGIN", "s3://site")
            .env("S3_ENDPOINT", origin.url())
            .env("AWS_REGION", REGION)
            .env("AWS_ACCESS_KEY_ID", "AKIDSCRIPTED")
            .env("AWS_SECRET_ACCESS_KEY", "scripted-secret-value")
    }

    fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("a running edge")
    }

    /// Until healthy; false when it ended before.
    async fn came_up(&mut self) -> bool {
        let address = self.address();
        let up = async {
            loop {
                if self.process().exited().is_some() {
                    return false;
                }
                if let Ok(mut client) = Client::try_connect(address).await {
                    let health = client.try_exchange(request("GET", "/healthz", &[])).await;
                    if health.is_ok_and(|response| response.status == 200) {
                        return true;
                    }
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let up = tokio::time::timeout(PATIENCE, up).await;
        up.unwrap_or_else(|_| panic!("the edge does not become healthy:\n{}", self.log()))
    }

    /// The listener's address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        loopback(self.port)
    }

    /// The admin's address.
    #[must_use]
    pub const fn admin(&self) -> SocketAddr {
        loopback(self.admin)
    }

    /// The temporary folder that holds its cache (`cache`), its state (`state`), policy and log.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folders.own.path()
    }

    /// The file system of its own that its cache is on.
    #[must_use]
    pub fn disk(&self) -> Disk {
        Disk::of(self.pid(), &self.folders.cache())
    }

    /// Swaps the policy of an edge whose listeners are in a file.
    pub fn update_policy(&self, change: &dyn Fn(&mut Value)) {
        direct::update_policy(self.folder(), change);
    }

    /// GET on a connection of its own.
    pub async fn get(&self, target: &str) -> Response {
        client::get(self.address(), target).await
    }

    /// Any request on a connection of its own.
    pub async fn send(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Response {
        client::send(self.address(), method, target, headers).await
    }

    /// What it has written so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.as_ref().map(Process::log).unwrap_or_default()
    }

    /// Waits until its log has this text.
    pub async fn wait_for_log(&self, text: &str) {
        eventually(&format!("{text:?} in the log"), async || {
            self.log().contains(text)
        })
        .await;
    }

    /// The log lines with this text.
    #[must_use]
    pub fn log_lines(&self, text: &str) -> Vec<String> {
        self.log()
            .lines()
            .filter(|line| line.contains(text))
            .map(str::to_owned)
            .collect()
    }

    /// The id of the process that was started, of which its Envoy is a child, or which is Envoy itself.
    ///
    /// # Panics
    /// When it does not run.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("a running edge").pid()
    }

    /// The process id of its Envoy.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn envoy_pid(&self) -> u32 {
        let pid = self.pid();
        let mut family: Vec<_> = process::descendants(pid).into_keys().collect();
        family.push(pid);
        family
            .into_iter()
            .find(|&pid| process::name_of(pid).contains("envoy"))
            .expect("an Envoy process")
    }

    /// The resident memory of its Envoy, in KiB.
    ///
    /// # Panics
    /// When there is no Envoy.
    #[must_use]
    pub fn resident_kib(&self) -> u64 {
        process::resident_kib(self.envoy_pid()).expect("a running Envoy")
    }

    /// Sends a signal to the entry point.
    pub fn signal(&mut self, signal: i32) {
        self.process().signal(signal);
    }

    /// Whether the entry point still runs.
    pub fn alive(&mut self) -> bool {
        self.process().exited().is_none()
    }

    /// Ends it in order, and starts it again with the same settings and folders, on the same ports.
    ///
    /// # Panics
    /// When it does not end or does not come up.
    pub async fn restart(&mut self) {
        self.check();
        self.end_by(self.pid(), libc::SIGTERM).await;
        self.start_again().await;
    }

    /// Sends a signal to one of its processes, and waits until the entry point and Envoy have ended.
    ///
    /// # Panics
    /// When they do not end.
    pub async fn end_by(&mut self, pid: u32, signal: i32) {
        let envoy = self.envoy_pid();
        process::send(pid, signal);
        self.process().ended().await;
        eventually("the end of Envoy", async || {
            process::name_of(envoy).is_empty()
        })
        .await;
    }

    /// Kills it with its Envoy, without a warning, lets `meanwhile` do what it likes to its cache's folder, and starts it
    /// again as [`Edge::restart`] does.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn crash(&mut self, meanwhile: impl FnOnce(&Path)) {
        self.check();
        self.end_by(self.pid(), libc::SIGKILL).await;
        meanwhile(&self.folders.cache());
        self.start_again().await;
    }

    /// Starts it again with the same settings and folders, on the same ports.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn start_again(&mut self) {
        let command = self.builder.command(&self.folders, self.port, self.admin);
        self.process = Some(Process::start(command, &self.folders.log()).unwrap());
        assert!(
            self.came_up().await,
            "the edge does not start again:\n{}",
            self.log()
        );
    }

    /// Ends it with SIGTERM and gives its exit code and log.
    ///
    /// # Panics
    /// When it does not end.
    pub fn stop(mut self) -> (Option<i32>, String) {
        self.check();
        let mut process = self.process.take().expect("a running edge");
        let status = process.stop(PATIENCE);
        let log = process.log();
        (
            status
                .unwrap_or_else(|| panic!("the edge does not end on SIGTERM:\n{log}"))
                .code(),
            log,
        )
    }

    /// Waits until it has ended, after a signal; gives its exit code and log.
    pub async fn ended(mut self) -> (Option<i32>, String) {
        let mut process = self.process.take().expect("a running edge");
        let status = process.ended().await;
        (status.code(), process.log())
    }

    /// `sluice healthcheck` with this edge's settings.
    #[must_use]
    pub fn healthcheck_command(&self) -> Command {
        let mut command = self.builder.command(&self.folders, self.port, self.admin);
        command.arg("healthcheck");
        command
    }

    /// The exit code of `sluice healthcheck`.
    ///
    /// # Panics
    /// When it cannot be run.
    #[must_use]
    pub fn healthcheck(&self) -> Option<i32> {
        self.healthcheck_command().status().unwrap().code()
    }

    /// An answer of the admin interface.
    pub async fn admin_get(&self, target: &str) -> Response {
        client::get(self.admin(), target).await
    }

    /// All stats whose name contains `part`.
    ///
    /// # Panics
    /// When the admin does not answer with JSON.
    pub async fn stats(&self, part: &str) -> BTreeMap<String, u64> {
        let filter = part.replace('.', "\\.");
        let response = self
            .admin_get(&format!("/stats?format=json&filter={filter}"))
            .await;
        let document: serde_json::Value = serde_json::from_slice(&response.body)
            .unwrap_or_else(|error| panic!("stats: {error}: {response}"));
        let stats = document["stats"].as_array().cloned().unwrap_or_default();
        let number = |stat: &serde_json::Value| {
            Some((stat["name"].as_str()?.to_owned(), stat["value"].as_u64()?))
        };
        stats.iter().filter_map(number).collect()
    }

    /// A counter or gauge by its whole name; the filter's own may be given without Envoy's prefix for Wasm.
    /// 0 when there is none yet.
    pub async fn counter(&self, name: &str) -> u64 {
        let stats = self.stats(name).await;
        let own = format!("wasmcustom.{name}");
        stats
            .get(name)
            .or_else(|| stats.get(&own))
            .copied()
            .unwrap_or(0)
    }

    /// Waits until a counter or gauge is at least `least`.
    pub async fn wait_for_counter(&self, name: &str, least: u64) {
        self.wait_for_counter_until(&format!("{name} >= {least}"), name, |value| value >= least)
            .await;
    }

    /// Waits until a counter or gauge has this value; gauges follow at the filter's next tick.
    pub async fn wait_for_value(&self, name: &str, wanted: u64) {
        self.wait_for_counter_until(&format!("{name} = {wanted}"), name, |value| value == wanted)
            .await;
    }

    /// Waits until a counter or gauge satisfies `test`.
    ///
    /// # Panics
    /// When it does not within [`PATIENCE`].
    pub async fn wait_for_counter_until(&self, what: &str, name: &str, test: impl Fn(u64) -> bool) {
        let met = async {
            while !test(self.counter(name).await) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, met).await.is_err() {
            panic!(
                "{what}: not within {PATIENCE:?}; {:#?}",
                self.stats("sluice").await
            );
        }
    }

    /// Asserts that it runs and has logged nothing that it must not.
    ///
    /// # Panics
    /// When it has.
    pub fn check(&mut self) {
        let log = self.log();
        let allowed = |line: &&str| {
            !self
                .builder
                .allowed
                .iter()
                .any(|text| line.contains(text.as_str()))
        };
        let critical: Vec<_> = log
            .lines()
            .filter(|line| CRITICAL.iter().any(|text| line.contains(text)))
            .filter(allowed)
            .take(10)
            .collect();
        assert!(
            critical.is_empty(),
            "the edge has logged:\n{}",
            critical.join("\n")
        );
        let status = self.process().exited();
        assert!(
            status.is_none(),
            "the edge has ended by itself ({status:?}):\n{}",
            tail(&log, 60)
        );
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("-- the edge's log:\n{}", tail(&self.log(), 80));
        } else if self.process.is_some() {
            self.check();
        }
    }
}

/// The last lines of a log.
#[must_use]
pub fn tail(log: &str, lines: usize) -> String {
    let all: Vec<_> = log.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
