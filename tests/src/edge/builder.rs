// SPDX-License-Identifier: Apache-2.0
//! An edge before its start: its settings, and the command that starts it.

use super::Edge;
use super::direct::Direct;
use super::folders::Folders;
use super::lasting::lasting;
use super::release::Release;
use super::store::Medium;
use crate::image::container::Container;
use crate::machine::disk::Disk;
use crate::machine::ports::free_port;
use crate::machine::process::Process;
use crate::machine::tool::{entry_point, module_of, repository, runtime, trap_module_of};
use serde_json::Value;
use sluice::settings::{Runtime, docs};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// An edge that is to be started.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    pub(super) environment: BTreeMap<String, String>,
    policy: Option<String>,
    /// Whether the policy is completed so that responses last ([`lasting`]).
    lasting: bool,
    pub(super) release: Release,
    direct: Option<Direct>,
    /// Configuration that Envoy merges into the entry point's.
    more: Option<Value>,
    pub(super) container: Option<Arc<Container>>,
    open_files: Option<usize>,
    disk: Option<u64>,
    pub(super) allowed: Vec<String>,
}

/// Output of an entry point that refused to start.
#[derive(Debug)]
pub struct Refusal {
    /// Its exit code.
    pub code: Option<i32>,
    /// Standard output and standard error.
    pub output: String,
}

impl Builder {
    /// Builds an edge with two workers and a store on disk, on ports and in folders that the harness chooses. It does
    /// not ask the bucket at its start, so that a test can count requests.
    pub fn new() -> Self {
        Self {
            environment: BTreeMap::new(),
            policy: None,
            lasting: false,
            release: Release::Current,
            direct: None,
            more: None,
            container: None,
            open_files: None,
            disk: None,
            allowed: Vec::new(),
        }
        .medium(Medium::Disk)
        .workers(2)
        .env("SLUICE_S3_CHECK", "off")
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.insert(name.to_owned(), value.into());
        self
    }

    /// `SLUICE_CACHE`.
    pub fn medium(self, medium: Medium) -> Self {
        self.env("SLUICE_CACHE", medium.to_string())
    }

    /// `SLUICE_CONCURRENCY`.
    pub fn workers(self, workers: usize) -> Self {
        self.env("SLUICE_CONCURRENCY", workers.to_string())
    }

    /// Keeps responses without caching headers.
    pub(super) fn lasting(self) -> Self {
        Self {
            lasting: true,
            ..self
        }
    }

    /// Leaves the policy unchanged: an HTTP origin decides what is stored.
    pub fn origin_decides(self) -> Self {
        Self {
            lasting: false,
            ..self
        }
    }

    /// The text of a policy document, in place of the one for the kind of origin.
    pub fn policy(self, policy: &str) -> Self {
        Self {
            policy: Some(policy.to_owned()),
            ..self
        }
    }

    /// Sets the runtime of the filter, in place of the value of `RUNTIME` for all tests.
    pub fn runtime(self, runtime: Runtime) -> Self {
        let module = module_of(runtime).display().to_string();
        self.env("SLUICE_RUNTIME", runtime.name())
            .env(runtime.variable(), module)
    }

    /// Selects another release than the one under test.
    pub fn release(self, release: Release) -> Self {
        Self { release, ..self }
    }

    /// Selects another module of the filter.
    pub fn module(self, module: &Path) -> Self {
        self.env(runtime().variable(), module.display().to_string())
    }

    /// Selects a module that a request can trap (`x-trap`).
    pub fn trapping(self) -> Self {
        self.module(&trap_module_of(runtime()))
            .allow_log_of("wasm")
            .allow_log_of("dynamic_modules")
            .allow_log("panicked at")
    }

    /// Lets this component of Envoy log anything. Without the entry point Envoy's lines have another form.
    pub fn allow_log_of(self, component: &str) -> Self {
        self.allow_log(&format!(" {component}: "))
            .allow_log(&format!("[{component}]"))
    }

    /// Starts Envoy itself, without the entry point.
    pub fn direct(self, direct: Direct) -> Self {
        Self {
            direct: Some(direct),
            ..self
        }
    }

    /// Has Envoy merge `more` into the configuration that the entry point writes.
    pub fn more_configuration(self, more: Value) -> Self {
        Self {
            more: Some(more),
            ..self
        }
    }

    /// Starts the entry point of an image, in the image's file system and with its variables. Its policy cannot be a
    /// file.
    pub fn contained(self, container: Arc<Container>) -> Self {
        Self {
            container: Some(container),
            ..self
        }
    }

    /// Adds a listener for the metrics ([`Edge::metrics`]).
    pub fn metrics(self) -> Self {
        self.env("SLUICE_METRICS_PORT", free_port().to_string())
    }

    /// Bounds the number of open files (`ulimit -n`).
    pub fn open_files(self, most: usize) -> Self {
        Self {
            open_files: Some(most),
            ..self
        }
    }

    /// Puts the cache on a separate file system of this many bytes ([`Edge::disk`]).
    pub fn disk(self, bytes: u64) -> Self {
        Self {
            disk: Some(bytes),
            ..self
        }
    }

    /// Allows log lines with this text.
    pub fn allow_log(mut self, text: &str) -> Self {
        self.allowed.push(text.to_owned());
        self
    }

    /// Whether `SLUICE_CACHE` is `memory`.
    fn in_memory(&self) -> bool {
        self.environment
            .get("SLUICE_CACHE")
            .is_some_and(|medium| medium == "memory")
    }

    pub(super) fn command(&self, folders: &Folders, port: u16) -> Command {
        if let Some(container) = &self.container {
            let mut command = container.command(&folders.own.path().join("volume"), &[]);
            // Tests must not listen on all addresses.
            command
                .env("SLUICE_BIND", "127.0.0.1")
                .env("SLUICE_EDGE_PORT", port.to_string())
                .envs(&self.environment);
            return command;
        }
        let program = self.release.entry_point();
        let mut command = match self.open_files {
            Some(most) => {
                let mut limited = Command::new("prlimit");
                limited.arg(format!("--nofile={most}")).arg(program);
                limited
            }
            None => Command::new(program),
        };
        command.env_clear().current_dir(repository());
        for name in ["PATH", "HOME"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.env("SLUICE_ENVOY", self.release.envoy());
        if let Some(more) = &self.more {
            let envoy = wrap(&self.release.envoy(), more, folders.own.path());
            command.env("SLUICE_ENVOY", envoy);
        }
        command.env("SLUICE_WASM", self.release.module());
        if self.release == Release::Current {
            command.env("SLUICE_RUNTIME", runtime().name());
            command.env(Runtime::Native.variable(), module_of(Runtime::Native));
        }
        command.env("SLUICE_STATE", folders.own.path().join("state"));
        command.env("SLUICE_EDGE_PORT", port.to_string());
        command.env("SLUICE_CACHE_DIR", folders.cache());
        let policy = self.policy.as_deref();
        let policy = if self.lasting {
            Some(Cow::Owned(lasting(policy)))
        } else {
            policy.map(Cow::Borrowed)
        };
        if let Some(policy) = policy {
            let path = folders.own.path().join("policy.yaml");
            // Commands may run at the same time as the edge, which must not read half a file.
            if std::fs::read_to_string(&path).ok().as_deref() != Some(policy.as_ref()) {
                std::fs::write(&path, policy.as_ref()).unwrap();
            }
            command.env("SLUICE_POLICY", path);
        }
        command.envs(&self.environment);
        if self.release != Release::Current {
            add_short_names(&mut command);
        }
        let command = match &self.direct {
            Some(direct) => direct.command(&command, folders.own.path()),
            None => command,
        };
        match self.disk {
            Some(bytes) => Disk::mounted(bytes, &folders.cache(), &command),
            None => command,
        }
    }

    /// Starts the edge, and waits until a worker answers `/healthz`.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn start(self) -> Edge {
        for _ in 0..5 {
            let folders = Folders::new(self.in_memory());
            let port = free_port();
            let process = Process::start(self.command(&folders, port), &folders.log());
            let process =
                process.unwrap_or_else(|error| panic!("{}: {error}", entry_point().display()));
            let mut edge = Edge {
                builder: self.clone(),
                port,
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

    /// Starts an edge that is expected to refuse to start.
    pub async fn refused(self) -> Refusal {
        let folders = Folders::new(self.in_memory());
        let mut process =
            Process::start(self.command(&folders, free_port()), &folders.log()).unwrap();
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

/// Writes a script into `folder` that runs `envoy` with more configuration. Returns the script's path.
fn wrap(envoy: &Path, more: &Value, folder: &Path) -> PathBuf {
    let more_file = folder.join("more.json");
    std::fs::write(&more_file, more.to_string()).unwrap();
    let (envoy, more_file) = (envoy.display(), more_file.display());
    let script = folder.join("envoy.sh");
    let text = format!("#!/bin/sh\nexec '{envoy}' \"$@\" --config-yaml \"$(cat '{more_file}')\"\n");
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, Permissions::from_mode(0o700)).unwrap();
    script
}

/// Adds the short names of all settings, because the previous release does not know their names with the prefix.
fn add_short_names(command: &mut Command) {
    let short = command.get_envs().filter_map(|(name, value)| {
        let name = name.to_str()?.strip_prefix(docs::PREFIX)?;
        Some((name.to_owned(), value?.to_owned()))
    });
    let short: Vec<_> = short.collect();
    command.envs(short);
}
