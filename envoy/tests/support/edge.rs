// SPDX-License-Identifier: Apache-2.0
//! The entry point as a process, started as a user or a container starts it.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{envoy, eventually, free_port, modules, native_module};

/// A process of the entry point, killed when this is dropped.
pub struct Edge {
    /// The listener's port.
    pub port: u16,
    /// The admin interface's Unix socket.
    pub admin: PathBuf,
    process: Child,
    log: PathBuf,
    /// The variables of the edge. Their folder has the edge's state, module and log.
    variables: Variables,
}

/// The variables of an edge in front of `origin`, with the stand-in `module` for the filter.
pub struct Variables {
    folder: TempDir,
    variables: BTreeMap<String, String>,
    arguments: &'static [&'static str],
    open_files: Option<u32>,
}

impl Variables {
    /// The variables that every edge needs, with unused ports.
    pub fn new(origin: &str, module: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let variables = [
            ("SLUICE_ORIGIN", origin.to_owned()),
            ("SLUICE_EDGE_PORT", free_port().to_string()),
            ("SLUICE_CONCURRENCY", "1".to_owned()),
            ("SLUICE_ENVOY", text(envoy())),
            ("SLUICE_WASM", text(modules::write(folder.path(), module))),
            ("SLUICE_NATIVE", text(native_module())),
            ("SLUICE_STATE", text(folder.path().join("state"))),
        ];
        let variables = variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        Self {
            folder,
            variables,
            arguments: &[],
            open_files: None,
        }
    }

    /// Limits the number of open files (`ulimit -n`).
    pub fn open_files(mut self, most: u32) -> Self {
        self.open_files = Some(most);
        self
    }

    /// Makes the edge start again after a fault.
    pub fn restarting(mut self) -> Self {
        self.arguments = &["--restart"];
        self
    }

    /// Sets one more variable.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The value of a variable.
    pub fn value(&self, name: &str) -> &str {
        self.variables.get(name).map_or("", String::as_str)
    }

    /// The folder, which lasts as long as the edge.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The command that would start the edge.
    pub fn command(&self) -> Command {
        let program = env!("CARGO_BIN_EXE_sluice");
        let mut command = match self.open_files {
            Some(most) => {
                let mut limited = Command::new("/usr/bin/prlimit");
                limited.arg(format!("--nofile={most}")).arg(program);
                limited
            }
            None => Command::new(program),
        };
        command
            .env_clear()
            .envs(&self.variables)
            .stdin(Stdio::null());
        command
    }

    /// Starts the edge, and waits until it reports that it is ready.
    pub fn start(self) -> Edge {
        let mut edge = self.launch();
        edge.wait_until_ready();
        edge
    }

    /// Starts the edge.
    pub fn launch(self) -> Edge {
        let log = self.folder.path().join("log");
        let output = File::create(&log).unwrap();
        let process = self
            .command()
            .args(self.arguments)
            .stderr(output.try_clone().unwrap())
            .stdout(output)
            .spawn()
            .unwrap();
        let port = self.value("SLUICE_EDGE_PORT").parse().unwrap();
        let admin = Path::new(&self.value("SLUICE_STATE")).join(format!("admin-{port}.sock"));
        Edge {
            port,
            admin,
            process,
            log,
            variables: self,
        }
    }

    /// Starts an edge that must refuse to start. Returns its exit code and its messages.
    pub fn refused(&self) -> (Option<i32>, String) {
        let output = self.command().args(self.arguments).output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "",
            "standard output is for the access log"
        );
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    }
}

impl Edge {
    /// Waits until the edge reports that it is ready.
    pub fn wait_until_ready(&mut self) {
        eventually("ready", || {
            assert!(self.process.try_wait().unwrap().is_none(), "{}", self.log());
            self.log().contains("is ready")
        });
    }

    /// All messages and log lines of the edge.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The edge's folder.
    pub fn folder(&self) -> &Path {
        self.variables.folder()
    }

    /// The command that has started the edge.
    pub fn command(&self) -> Command {
        self.variables.command()
    }

    /// Sends a signal to the entry point.
    pub fn signal(&self, signal: Signal) {
        send(self.process.id(), signal);
    }

    /// Sends a signal to the edge's Envoy.
    pub fn signal_envoy(&self, signal: Signal) {
        send(self.envoy(), signal);
    }

    /// The process id of the edge's Envoy.
    pub fn envoy(&self) -> u32 {
        self.child().unwrap()
    }

    /// Whether the edge has an Envoy now.
    pub fn has_envoy(&self) -> bool {
        self.child().is_some()
    }

    /// The last process in the chain of child processes.
    fn child(&self) -> Option<u32> {
        std::iter::successors(child_of(self.process.id()), |&id| child_of(id)).last()
    }

    /// Waits for the end of the edge. Returns its exit code, or 128 plus the number of the signal that ended it.
    pub fn end(&mut self) -> i32 {
        let mut ended: Option<ExitStatus> = None;
        eventually("the end of the edge", || {
            ended = self.process.try_wait().unwrap();
            ended.is_some()
        });
        ended.map_or(-1, |status| {
            status
                .code()
                .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
        })
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        // NB: Envoy ends with the entry point.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            println!("-- the edge's log:\n{}", self.log());
        }
    }
}

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

fn child_of(id: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

/// Whether the process is running.
pub fn runs(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}
