// SPDX-License-Identifier: Apache-2.0
//! Sluice's own entry point, started as a user starts it: settings in the environment, one process in front.

pub mod builder;
mod commands;
pub mod direct;
mod folders;
mod lasting;
pub mod log;
pub mod purger;
mod release;
mod statistics;
pub mod store;
pub mod tls;

pub use builder::Builder;
pub use commands::CommandOutput;
pub use release::Release;
pub use statistics::ADMIN_PAGES;

use crate::bucket::{Bucket, REGION};
use crate::client::{self, Response};
use crate::machine::disk::Disk;
use crate::machine::ports::loopback;
use crate::machine::process::{self, Process};
use crate::origin::Origin;
use crate::{PATIENCE, eventually};
use folders::Folders;
use serde_json::Value;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The size of a record of the cache's manifest, in bytes.
pub const MANIFEST_RECORD: u64 = 32;

/// A running edge. If the edge has died or logged a forbidden line, dropping it fails the test. Dropping ends the
/// edge.
pub struct Edge {
    port: u16,
    process: Option<Process>,
    // Declared after the process, so that they are removed later.
    folders: Folders,
    builder: Builder,
}

impl Edge {
    /// Builds an edge in front of an HTTP origin. It keeps responses without caching headers for a while, unless the
    /// test changes that ([`Builder::origin_decides`]).
    pub fn http(origin: &Origin) -> Builder {
        Builder::new().env("SLUICE_ORIGIN", origin.url()).lasting()
    }

    /// Builds an edge in front of a private bucket.
    pub fn bucket(bucket: &Bucket) -> Builder {
        Builder::new()
            .env("SLUICE_ORIGIN", format!("s3://{}", bucket.name()))
            .env("SLUICE_S3_ENDPOINT", bucket.endpoint())
            .env("AWS_REGION", REGION)
            .env("AWS_ACCESS_KEY_ID", &bucket.server().access_key)
            .env("AWS_SECRET_ACCESS_KEY", &bucket.server().secret_key)
    }

    /// Builds an edge in front of a bucket whose endpoint is a scripted origin. The test sees the requests that S3
    /// would receive, and their signatures.
    pub fn scripted_bucket(origin: &Origin) -> Builder {
        Builder::new()
            .env("SLUICE_ORIGIN", "s3://site")
            .env("SLUICE_S3_ENDPOINT", origin.url())
            .env("AWS_REGION", REGION)
            .env("AWS_ACCESS_KEY_ID", "AKIDSCRIPTED")
            .env("AWS_SECRET_ACCESS_KEY", "scripted-secret-value")
    }

    fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("a running edge")
    }

    /// Waits until the edge is healthy; false if it ended before.
    async fn came_up(&mut self) -> bool {
        let address = self.address();
        let up = async {
            loop {
                if self.process().exited().is_some() {
                    return false;
                }
                if client::is_healthy(address, "/healthz").await {
                    return true;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let up = tokio::time::timeout(PATIENCE, up).await;
        up.unwrap_or_else(|_| panic!("the edge does not become healthy:\n{}", self.log()))
    }

    /// Address of the listener for clients.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        loopback(self.port)
    }

    /// Unix socket of the admin interface.
    #[must_use]
    pub fn admin(&self) -> PathBuf {
        let contained = self.builder.container.is_some();
        let state = self
            .folder()
            .join(if contained { "volume" } else { "state" });
        state.join(format!("admin-{}.sock", self.port))
    }

    /// Address of the listener for the metrics.
    ///
    /// # Panics
    /// When there is none ([`Builder::metrics`]).
    #[must_use]
    pub fn metrics(&self) -> SocketAddr {
        let port = self.builder.environment.get("SLUICE_METRICS_PORT");
        loopback(port.and_then(|port| port.parse().ok()).expect("a port"))
    }

    /// The temporary folder that holds its cache (`cache`), its state (`state`), policy and log.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folders.own.path()
    }

    /// The separate file system of its cache.
    #[must_use]
    pub fn disk(&self) -> Disk {
        Disk::of(self.pid(), &self.folders.cache())
    }

    /// Replaces the policy of an edge whose listeners are in a file.
    pub fn update_policy(&self, change: &dyn Fn(&mut Value)) {
        direct::update_policy(self.folder(), change);
    }

    /// Replaces the policy of an edge with [`Builder::policy`], and has the entry point reload it.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn reload_policy(&self, text: &str) {
        let part = self.folder().join("policy.yaml.part");
        std::fs::write(&part, text).unwrap();
        std::fs::rename(part, self.folder().join("policy.yaml")).unwrap();
        let process = self.process.as_ref();
        process.expect("a running edge").signal(libc::SIGHUP);
    }

    /// Sends a GET on a new connection.
    pub async fn get(&self, target: &str) -> Response {
        client::get(self.address(), target).await
    }

    /// Sends a request on a new connection.
    pub async fn send(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Response {
        client::send(self.address(), method, target, headers).await
    }

    /// The log so far.
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

    /// Process id of the process that was started. It is the parent of Envoy, or Envoy itself.
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
    /// When Envoy does not run.
    #[must_use]
    pub fn resident_kib(&self) -> u64 {
        process::resident_kib(self.envoy_pid()).expect("a running Envoy")
    }

    /// Waits until the store has written this many bytes of a fill that is under way. While it writes, it stores no
    /// other response for the key, even if the fill is aborted soon after.
    pub async fn wait_for_written(&self, bytes: usize) {
        let (envoy, cache) = (self.envoy_pid(), self.folders.cache());
        eventually(
            &format!("{bytes} bytes of a fill on the disk"),
            async || {
                let unnamed = process::unnamed_files(envoy, &cache);
                unnamed.into_iter().any(|length| length >= bytes as u64)
            },
        )
        .await;
    }

    /// Sends a signal to the entry point.
    pub fn signal(&mut self, signal: i32) {
        self.process().signal(signal);
    }

    /// Whether the entry point still runs.
    pub fn alive(&mut self) -> bool {
        self.process().exited().is_none()
    }

    /// Ends the edge in order, and starts it again with the same settings and folders, on the same ports.
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

    /// Kills the edge with its Envoy, without a warning, lets `meanwhile` change the folder of its cache, and starts
    /// it again as [`Edge::restart`] does.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn crash(&mut self, meanwhile: impl FnOnce(&Path)) {
        self.check();
        self.end_by(self.pid(), libc::SIGKILL).await;
        meanwhile(&self.folders.cache());
        self.start_again().await;
    }

    /// Starts the edge again with the same settings and folders, on the same ports.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn start_again(&mut self) {
        let command = self.builder.command(&self.folders, self.port);
        self.process = Some(Process::start(command, &self.folders.log()).unwrap());
        assert!(
            self.came_up().await,
            "the edge does not start again:\n{}",
            self.log()
        );
    }

    /// Starts the edge again with another value of a variable, after it has ended.
    pub async fn start_again_with(&mut self, name: &str, value: &str) {
        let environment = &mut self.builder.environment;
        environment.insert(name.to_owned(), value.to_owned());
        self.start_again().await;
    }

    /// Starts the edge again as another release, after it has ended.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn start_again_as(&mut self, release: Release) {
        self.builder.release = release;
        self.start_again().await;
    }

    /// Waits until the cache's manifest has this many files, so that a crash does not lose them. A file may have several
    /// records.
    pub async fn wait_for_manifest(&self, files: u64) {
        let manifest = self.folders.cache().join("manifest");
        eventually("files in the manifest", async || {
            let records = std::fs::read(&manifest).unwrap_or_default();
            let numbers = records.chunks_exact(MANIFEST_RECORD as usize);
            let numbers: HashSet<_> = numbers.map(|record| record[..8].to_owned()).collect();
            numbers.len() as u64 >= files
        })
        .await;
    }

    /// Ends the edge with SIGTERM, and returns its exit code and log.
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

    /// Waits until the edge has ended, after a signal; returns its exit code and log.
    pub async fn ended(mut self) -> (Option<i32>, String) {
        let mut process = self.process.take().expect("a running edge");
        let status = process.ended().await;
        (status.code(), process.log())
    }

    /// The command `sluice healthcheck` with this edge's settings.
    #[must_use]
    pub fn healthcheck_command(&self) -> Command {
        self.entry_point("healthcheck")
    }

    /// The command `sluice` with this argument and this edge's settings.
    #[must_use]
    pub fn entry_point(&self, argument: &str) -> Command {
        let mut command = self.builder.command(&self.folders, self.port);
        command.arg(argument);
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

    /// Asserts that the edge runs and has logged no forbidden line.
    ///
    /// # Panics
    /// When it has.
    pub fn check(&mut self) {
        let log = self.log();
        let mut critical = log::critical(&log, &self.builder.allowed);
        critical.truncate(10);
        let critical = critical.join("\n");
        assert!(critical.is_empty(), "the edge has logged:\n{critical}");
        let status = self.process().exited();
        assert!(
            status.is_none(),
            "the edge has ended by itself ({status:?}):\n{}",
            log::tail(&log, 60)
        );
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("-- the edge's log:\n{}", log::tail(&self.log(), 80));
        } else if self.process.is_some() {
            self.check();
        }
    }
}
