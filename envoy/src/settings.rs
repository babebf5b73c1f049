// SPDX-License-Identifier: Apache-2.0
//! All that a user can set, read from the environment and validated as a whole.

mod reader;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::path::PathBuf;

use crate::policy_document::PolicyChoice;
use std::time::Duration;

use sluice_core::policy::purge::TokenHash;

pub use crate::environment::{Problem, SettingsError};
use crate::machine::Machine;
use crate::origin::{Endpoint, Origin};
use crate::reserve::Reserve;
use crate::sns::Sns;

/// A valid set of settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What stands behind the edge; `None` is the embedded demo.
    pub origin: Option<Origin>,
    /// Whether requests to the bucket are signed with the credentials in the environment, rather than with those
    /// of a role.
    pub static_credentials: bool,
    /// The listeners' address.
    pub bind: IpAddr,
    /// The cleartext listener's port.
    pub edge_port: u16,
    /// The TLS listener.
    pub tls: Option<Tls>,
    /// The listener for purges.
    pub purge: Purge,
    /// The topics of Amazon SNS from which notifications are taken.
    pub sns: Option<Sns>,
    /// The port of Envoy's admin interface, on loopback.
    pub admin_port: u16,
    /// The listener for whoever scrapes the metrics, if there is one.
    pub metrics: Option<Metrics>,
    /// Which of Envoy's statistics there are.
    pub stats: Stats,
    /// How requests are logged.
    pub access_log: AccessLog,
    /// Where traces go, if requests are traced.
    pub tracing: Option<Tracing>,
    /// Where a worker answers whether it is ready.
    pub health_path: String,
    /// How long requests under way may take to end when the edge stops.
    pub drain: Duration,
    /// Where the cache is, and how large it may get.
    pub cache: Cache,
    /// The copies before it.
    pub hot: Hot,
    /// The policy; `None` is the built-in one for the kind of origin.
    pub policy: Option<PolicyChoice>,
    /// Envoy's workers.
    pub concurrency: u32,
    /// The CA certificates for an `https` origin; `None` is the system's bundle.
    pub ca_file: Option<PathBuf>,
    /// Where the edge finds its parts.
    pub locations: Locations,
    /// What the machine can take.
    pub machine: Machine,
    /// Whether the Wasm filter is in place. No variable sets this: without it there is a bare cache filter,
    /// which tests and benchmarks compare with.
    pub filter: bool,
    /// After how long without a byte in either direction a client's request ends. No variable sets this.
    pub stream_idle: Duration,
    /// After how long without a byte from the origin a request to it ends. No variable sets this.
    pub origin_idle: Duration,
}

/// The TLS listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Its port.
    pub port: u16,
    /// The certificate chain.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// The listener for purges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purge {
    /// The hash of the token that opens it; the token itself is not kept.
    pub token: Option<TokenHash>,
    /// Its address.
    pub bind: IpAddr,
    /// Its port.
    pub port: u16,
}

/// The listener that has the metrics and nothing else of the admin interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Its address.
    pub bind: IpAddr,
    /// Its port.
    pub port: u16,
}

/// Which of Envoy's statistics there are; the filter's own are always there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stats {
    /// Those that the rules, the alerts and the dashboard use.
    Few,
    /// All.
    All,
}

/// How requests are logged, on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessLog {
    /// A line to be read.
    Text,
    /// A JSON object in a line.
    Json,
    /// Not at all.
    Off,
}

/// Where traces go, by OpenTelemetry's protocol over HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracing {
    /// The collector.
    pub collector: Endpoint,
    /// The edge's name in traces.
    pub service: String,
    /// How much of the requests is traced, 0 to 1.
    pub ratio: f64,
}

/// Where the cache is, and how large it may get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// What the files are on.
    pub medium: Medium,
    /// The cache's folder, or for [`Medium::Memory`] the tmpfs that it is made on.
    pub dir: PathBuf,
    /// Bound on all entries together.
    pub max_bytes: u64,
    /// Bound on their number.
    pub max_entries: u64,
    /// Bound on one object.
    pub max_object_bytes: u64,
    /// What stays free beside it.
    pub reserve: Reserve,
}

/// Copies of small objects in each worker's own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hot {
    /// Bound on all copies of one worker; 0: there are none.
    pub max_bytes: u64,
    /// Bound on one object.
    pub max_object_bytes: u64,
}

impl Settings {
    /// Whether there is a listener for purges.
    pub fn takes_purges(&self) -> bool {
        self.purge.token.is_some() || self.sns.is_some()
    }
}

impl Cache {
    /// What the entries may take of the machine's memory.
    fn memory_bytes(&self) -> u64 {
        match self.medium {
            Medium::Disk => 0,
            Medium::Memory => self.max_bytes,
        }
    }
}

/// What the cache's files are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A folder that outlives the edge.
    Disk,
    /// A folder on a tmpfs that ends with the edge.
    Memory,
}

/// Where the edge finds its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locations {
    /// The Envoy binary.
    pub envoy: PathBuf,
    /// The Wasm module.
    pub wasm: PathBuf,
    /// The MinIO binary of the demo.
    pub minio: Option<PathBuf>,
    /// The folder for what the edge writes.
    pub state: PathBuf,
}
