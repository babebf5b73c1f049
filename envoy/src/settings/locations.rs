// SPDX-License-Identifier: Apache-2.0
//! The files and folders of the edge: its parts, and the folder that it writes to.

use std::path::{Path, PathBuf};

use super::Runtime;
use super::environment::Environment;

/// Bound on the length of a Unix socket's path, in bytes (`sun_path` without its end).
const LONGEST_SOCKET: usize = 107;

/// The paths of the edge's parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locations {
    /// The Envoy binary.
    pub envoy: PathBuf,
    /// The Wasm module.
    pub wasm: PathBuf,
    /// The native module.
    pub native: PathBuf,
    /// The MinIO binary of the demo.
    pub minio: Option<PathBuf>,
    /// The folder that the edge writes to.
    pub state: PathBuf,
}

impl Locations {
    /// Reads `SLUICE_…`.
    pub fn read(env: &mut Environment<'_>) -> Option<Self> {
        let wasm = read_wasm(env);
        let native = read_module(env, "SLUICE_NATIVE", "sluice.so");
        let state = read_state(env);
        Some(Self {
            envoy: env.text("SLUICE_ENVOY")?.into(),
            wasm: wasm?,
            native: native?,
            minio: env.set("SLUICE_MINIO").map(PathBuf::from),
            state: state?,
        })
    }

    /// The module for a `runtime`.
    pub fn module(&self, runtime: Runtime) -> &Path {
        match runtime {
            Runtime::Wasm => &self.wasm,
            Runtime::Native => &self.native,
        }
    }

    /// The Unix socket for the native module's own connections, for the edge on this port.
    pub fn workers_socket(&self, edge_port: u16) -> PathBuf {
        self.state.join(format!("wrk-{edge_port}.sock"))
    }

    /// The Unix socket for the slicer's own connections, for the edge on this port.
    pub fn slice_carriers_socket(&self, edge_port: u16) -> PathBuf {
        self.state.join(format!("slc-{edge_port}.sock"))
    }

    /// The Unix socket at which a worker reports the health of the edge on this port.
    pub fn health_socket(&self, edge_port: u16) -> PathBuf {
        self.state.join(format!("up-{edge_port}.sock"))
    }

    /// The Unix socket at which the filter answers questions of the entry point, for the edge on this port.
    pub fn filter_control_socket(&self, edge_port: u16) -> PathBuf {
        self.state.join(format!("ask-{edge_port}.sock"))
    }

    /// The Unix socket at which Envoy passes on requests for the purge feed, for the edge on this port.
    pub fn feed_socket(&self, edge_port: u16) -> PathBuf {
        self.state.join(format!("fed-{edge_port}.sock"))
    }

    /// The Unix socket at which the entry point answers the operator's commands, for the edge on this port.
    pub fn control_socket(&self, edge_port: u16) -> PathBuf {
        control_socket(&self.state, edge_port)
    }

    /// The Unix socket of the admin interface, for the edge on this port.
    pub fn admin_socket(&self, edge_port: u16) -> PathBuf {
        admin_socket(&self.state, edge_port)
    }
}

/// Reads the path of the control socket of the edge with these settings. No other setting is needed for it.
pub fn read_control_socket(env: &mut Environment<'_>) -> Option<PathBuf> {
    let (state, edge_port) = (read_state(env), env.port("SLUICE_EDGE_PORT"));
    Some(control_socket(&state?, edge_port?))
}

fn control_socket(state: &Path, edge_port: u16) -> PathBuf {
    state.join(format!("ctl-{edge_port}.sock"))
}

fn admin_socket(state: &Path, edge_port: u16) -> PathBuf {
    state.join(format!("admin-{edge_port}.sock"))
}

/// Reads `SLUICE_WASM`. The default is the module beside the entry point.
pub fn read_wasm(env: &mut Environment<'_>) -> Option<PathBuf> {
    read_module(env, "SLUICE_WASM", "sluice.wasm")
}

fn read_module(env: &mut Environment<'_>, variable: &'static str, name: &str) -> Option<PathBuf> {
    let beside = || Some(std::env::current_exe().ok()?.with_file_name(name));
    let module = env.set(variable).map(PathBuf::from).or_else(beside);
    std::path::absolute(module?).ok()
}

/// Reads `SLUICE_STATE`. The path must leave room for the name of a socket.
fn read_state(env: &mut Environment<'_>) -> Option<PathBuf> {
    let text = env.text("SLUICE_STATE")?;
    let state = std::path::absolute(&text).ok()?;
    let length = |path: &Path| path.as_os_str().len();
    let longest = LONGEST_SOCKET - (length(&admin_socket(&state, u16::MAX)) - length(&state));
    if length(&state) > longest {
        let accepted = format!(
            "a folder whose absolute path has at most {longest} bytes, as the admin interface's socket is in it; {} has {}",
            state.display(),
            length(&state)
        );
        env.refuse("SLUICE_STATE", Some(text), accepted);
        return None;
    }
    Some(state)
}
