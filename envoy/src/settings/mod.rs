// SPDX-License-Identifier: Apache-2.0
//! The settings: all values that a user can set, read from the environment and validated together.
//!
//! The page `docs/settings.md` is the list of all settings; `docs` reads the default values from it. Each other file
//! has one group of settings: its type, and how it is read. To add a setting, add a row to the page and a field to the
//! type of its group.

mod access;
mod cache;
pub mod docs;
mod environment;
mod http3;
mod https;
mod listeners;
mod locations;
mod memory;
mod observability;
mod origin;
mod peers;
mod policy;
mod problem;
mod proxy_protocol;
mod purge;
mod runtime;
mod secrets;
mod sites;
#[cfg(test)]
mod tests;
mod tracing;

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use cache::{Cache, HotTier, Medium, Reserve, Slices};
use environment::Environment;
pub use environment::names::OTHER_NAMES;
pub use http3::Http3;
pub use https::Https;
pub use listeners::{Clients, TlsListener};
pub use locations::Locations;
use memory::Memory;
pub use observability::{AccessLog, AccessLogFormat, FORMAT_VARIABLE};
use origin::credentials;
pub use origin::credentials::ACCESS_KEY_ID;
use origin::failover;
pub use peers::Peers;
pub use policy::PolicyChoice;
pub use problem::{SettingProblem, SettingProblems};
pub use proxy_protocol::ProxyProtocol;
pub use purge::{FEED_WRITE, PurgeListener};
pub use runtime::Runtime;
pub use secrets::FileSecrets;
use sluice_core::http::caching::cache_name::{CacheName, NAME_VARIABLE, VIA_VARIABLE};
pub use sluice_core::size::Size;
pub use tracing::Tracing;

use crate::log::LogFormat;
use crate::origin::Origin;
pub use crate::sites::{BUCKET, HTTP, READY_MADE};
use crate::sites::{
    Credentials, EXPECTED_KEEPALIVE, EXPECTED_PATIENCE, Failover, Servers, SiteAccess, Sites,
    keepalive, maintenance_page, patience,
};
use crate::sns::Sns;
use crate::system::machine::Machine;

/// A valid set of settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The origin; `None` is the embedded demo, or there are `sites`.
    pub origin: Option<Origin>,
    /// The sites of the file that `SLUICE_SITES` names; `None`: the edge has one site, in front of `origin`.
    pub sites: Option<Sites>,
    /// The source of the credentials for the bucket of `origin`.
    pub credentials: Credentials,
    /// The secrets from files that Envoy needs.
    pub secrets: FileSecrets,
    /// The file that `SLUICE_SITES` names.
    pub sites_file: Option<PathBuf>,
    /// Time for which an idle connection to the origin is kept; `None`: the default for the kind of origin.
    pub keepalive: Option<Duration>,
    /// The servers of an HTTP `origin` beside the first one, and their health checks.
    pub servers: Servers,
    /// The second origin behind `origin`; `None`: there is none, or the edge has the sites of a file.
    pub failover: Option<Failover>,
    /// Time without a response after which a GET is sent to `origin` a second time; `None`: it is not.
    pub hedge_after: Option<Duration>,
    /// Number of retries of a request to the bucket.
    pub bucket_retries: u32,
    /// Whether the bucket is checked when the edge is ready.
    pub checks_bucket: bool,
    /// The edge's name in headers; `None`: the usual name.
    pub name: Option<String>,
    /// Whether the edge sends `Via` to HTTP origins.
    pub tells_via: bool,
    /// The address of the listeners for clients.
    pub bind: IpAddr,
    /// The cleartext listener's port.
    pub edge_port: u16,
    /// The TLS listener of the one site in front of `origin`.
    pub tls: Option<TlsListener>,
    /// HTTPS for the clients of the one site in front of `origin`.
    pub https: Https,
    /// The TLS listener's port; `None`: no site has a certificate.
    pub tls_port: Option<u16>,
    /// HTTP/3 for clients.
    pub http3: Http3,
    /// The trust in clients' addresses, and limits on clients' requests.
    pub clients: Clients,
    /// The PROXY protocol on the listeners for clients; `None`: it is not read.
    pub proxy_protocol: Option<ProxyProtocol>,
    /// The listener for purges.
    pub purge: PurgeListener,
    /// The topics of Amazon SNS from which notifications are accepted.
    pub sns: Option<Sns>,
    /// Whether purges at this edge are written to the purge feed.
    pub writes_feed: bool,
    /// The edges that are one cache together with this one; `None`: it is one alone.
    pub peers: Option<Peers>,
    /// The address at which the entry point serves the metrics.
    pub metrics: Option<SocketAddr>,
    /// Whether Envoy exports only the statistics that the recording rules, the alerts and the dashboard use. The
    /// filter's statistics are always exported.
    pub few_stats: bool,
    /// Whether the metrics of named sites have the names as labels.
    pub stats_of_sites: bool,
    /// The form of the log on standard error.
    pub log_format: LogFormat,
    /// The access log.
    pub access_log: AccessLog,
    /// The number of its last requests that each worker keeps.
    pub decisions: u32,
    /// The collector of traces, if requests are traced.
    pub tracing: Option<Tracing>,
    /// The path of the health check, which a worker answers.
    pub health_path: String,
    /// Whether the edge reads the user's files again when one is replaced.
    pub watches: bool,
    /// Least time for which the edge still serves after it was told to stop.
    pub min_drain: Duration,
    /// Bound on the time for requests in flight to end afterwards.
    pub drain: Duration,
    /// The cache on files.
    pub cache: Cache,
    /// Slices of objects that are larger than the cache stores as a whole.
    pub slices: Slices,
    /// The hot tier.
    pub hot: HotTier,
    /// The policy; `None` is the built-in one for the kind of origin.
    pub policy: Option<PolicyChoice>,
    /// The rules for the clients of the one site in front of `origin`; `None`: every client is answered.
    pub access: Option<SiteAccess>,
    /// The file that `SLUICE_ACCESS` names.
    pub access_file: Option<PathBuf>,
    /// The runtime of the filter.
    pub runtime: Runtime,
    /// The number of Envoy's workers.
    pub concurrency: u32,
    /// The CA certificates for servers that are not AWS's; `None` is the system's bundle.
    pub ca_file: Option<PathBuf>,
    /// The CA certificates for buckets and SNS; `None` is the system's bundle.
    pub aws_ca_file: Option<PathBuf>,
    /// The paths of the edge's parts.
    pub locations: Locations,
    /// Bound on Envoy's heap, in bytes.
    pub heap_bytes: u64,
    /// The limits of the machine.
    pub machine: Machine,
    /// The notices for the user, one on each line. A notice does not stop the edge.
    pub notices: Vec<String>,
    /// The notes for a user who checks the settings, one on each line.
    pub notes: Vec<String>,
    /// Whether the filter is used. No variable sets this. Without the filter the edge has a bare cache filter, with
    /// which tests and benchmarks compare.
    pub filter: bool,
    /// Time without a byte in either direction after which a client's request ends. No variable sets this.
    pub stream_idle: Duration,
    /// Time without a byte from the origin after which a request to it ends. No variable sets this.
    pub origin_idle: Duration,
}

/// The filter's Wasm module, from the process's environment. No other setting is needed for it.
///
/// # Errors
/// `SLUICE_WASM` is not valid.
pub fn module() -> anyhow::Result<PathBuf> {
    let lookup = |name: &str| std::env::var_os(name);
    let mut env = Environment::new(&lookup);
    let module = locations::read_wasm(&mut env);
    env.finish(module)
}

/// The control socket of the edge with the settings in the process's environment. No other setting is needed for it.
///
/// # Errors
/// `SLUICE_STATE` or `SLUICE_EDGE_PORT` is not valid.
pub fn control_socket() -> anyhow::Result<PathBuf> {
    let lookup = |name: &str| std::env::var_os(name);
    let mut env = Environment::new(&lookup);
    let socket = locations::read_control_socket(&mut env);
    env.finish(socket)
}

/// The form of the log, from the process's environment; text, if the setting is not valid. The errors of all settings
/// are lines of this form.
pub fn log_format() -> LogFormat {
    let lookup = |name: &str| std::env::var_os(name);
    observability::read_log_format(&mut Environment::new(&lookup)).unwrap_or(LogFormat::Text)
}

impl Settings {
    /// Reads the process's environment.
    ///
    /// # Errors
    /// Every setting that is missing or wrong.
    pub fn from_env() -> anyhow::Result<Self> {
        let lookup = |name: &str| std::env::var_os(name);
        let mut env = Environment::new(&lookup);
        let settings = Self::read(&mut env, Machine::detect());
        env.check_names(std::env::vars_os());
        Self::finish(env, settings)
    }

    /// Reads an environment in which `lookup` finds the variables.
    ///
    /// # Errors
    /// Every setting that is missing or wrong.
    pub fn from_lookup(lookup: &dyn Fn(&str) -> Option<OsString>) -> anyhow::Result<Self> {
        Self::on_machine(Machine::detect(), lookup)
    }

    /// Reads such an environment for a known `machine`.
    ///
    /// # Errors
    /// Every setting that is missing or wrong.
    pub fn on_machine(
        machine: Machine,
        lookup: &dyn Fn(&str) -> Option<OsString>,
    ) -> anyhow::Result<Self> {
        let mut env = Environment::new(lookup);
        let settings = Self::read(&mut env, machine);
        Self::finish(env, settings)
    }

    fn finish(env: Environment<'_>, settings: Option<Self>) -> anyhow::Result<Self> {
        let (notices, notes) = (env.notices(), env.notes());
        let settings = env.finish(settings)?;
        Ok(Self {
            notices,
            notes,
            ..settings
        })
    }

    fn read(env: &mut Environment<'_>, machine: Machine) -> Option<Self> {
        // NB: every setting is read before the first `?`, so that one start reports all problems.
        let clients = Clients::read(env);
        let proxy_protocol = ProxyProtocol::read(env);
        let purge = PurgeListener::read(env);
        let sites = sites::read(env, clients.as_ref(), purge.as_ref());
        let has_sites = env.set("SLUICE_SITES").is_some();
        let (origin, tls, policy) = match has_sites {
            true => (None, None, None),
            false => (
                origin::read(env),
                TlsListener::read(env),
                PolicyChoice::read(env),
            ),
        };
        let access = match has_sites {
            true => None,
            false => access::read(env, origin.as_ref()),
        };
        let https = match has_sites {
            true => Some(Https::default()),
            false => Https::read(env, clients.as_ref()),
        };
        let mut secrets = FileSecrets::default();
        let is_bucket = matches!(origin, Some(Origin::Bucket(_)));
        let credentials = credentials::read(env, &mut secrets, is_bucket);
        let failover = match has_sites {
            true => None,
            false => failover::read(env, &mut secrets, origin.as_ref(), &credentials),
        };
        let keepalive = env.parse("SLUICE_ORIGIN_KEEPALIVE", EXPECTED_KEEPALIVE, keepalive);
        let servers = origin::read_servers(env, origin.as_ref());
        let hedge_after = env.parse("SLUICE_HEDGE_AFTER", EXPECTED_PATIENCE, patience);
        let bucket_retries = env.number("SLUICE_S3_RETRIES", 0..=10, "a number of retries");
        let checks_bucket = env.switch("SLUICE_S3_CHECK");
        let tells_via = env.switch(VIA_VARIABLE);
        let name = read_cache_name(env);
        let bind = env.address("SLUICE_BIND");
        let edge_port = env.port("SLUICE_EDGE_PORT");
        let sns = purge::read_sns(env);
        let metrics = env.socket_address("SLUICE_METRICS_BIND", "SLUICE_METRICS_PORT");
        let few_stats = env.choice("SLUICE_STATS", &[("few", true), ("all", false)]);
        let stats_of_sites = env.switch("SLUICE_STATS_SITES");
        let log_format = observability::read_log_format(env);
        let access_log = AccessLog::read(env);
        let decisions = env.number("SLUICE_DECISIONS", 0..=65_536, "a number of requests");
        let tracing = Tracing::read(env, &mut secrets);
        let peers = Peers::read(env, &mut secrets);
        let of_site = sites.as_ref().is_some_and(Sites::take_purges);
        let purge_listens = purge.filter(|purge| purge.token.is_some() || of_site || sns.is_some());
        let writes_feed = purge::read_feed_write(env, purge_listens.is_some());
        let tls_port = match &sites {
            Some(sites) => listeners::read_tls_port(env, sites),
            None => tls.as_ref().map(|tls| tls.port),
        };
        let has_proxy_protocol = matches!(proxy_protocol, Some(Some(_)));
        let http3 = Http3::read(env, tls_port, has_proxy_protocol);
        let purge_port = purge_listens.map(|purge| purge.address.port());
        let metrics_port = metrics.map(|address| address.port());
        let peer_port = peers.iter().flatten().next();
        let peer_port = peer_port.map(|peers| peers.address.port());
        let ports = [edge_port, tls_port, purge_port, metrics_port, peer_port];
        listeners::check_ports(env, ports);
        let own = access::OwnAddresses {
            bind,
            ports: [edge_port, tls_port],
            sites: sites.as_ref().map_or(&[], |sites| &sites.sites),
        };
        own.check(env, access.as_ref());
        let health_path = listeners::read_health_path(env);
        let watches = env.switch("SLUICE_WATCH");
        let [min_drain, drain] = ["SLUICE_MIN_DRAIN_SECONDS", "SLUICE_DRAIN_SECONDS"]
            .map(|name| env.number(name, 0..=3600, "a number of seconds"));
        let locations = Locations::read(env);
        let cache = Cache::read(env, locations.as_ref());
        let slices = Slices::read(env, cache.as_ref());
        let runtime = env.choice("SLUICE_RUNTIME", Runtime::CHOICES);
        let memory = Memory::read(env, machine, cache.as_ref(), runtime);
        let ca_file = env.file("SSL_CERT_FILE");
        let aws_ca_file = env.file("AWS_CA_BUNDLE").or_else(|| ca_file.clone());
        let memory = memory?;
        let (cache, slices) = (cache?, slices?);
        slices.check_room(env, &cache, memory.concurrency);
        Some(Self {
            credentials: match origin {
                // The demo's key.
                None => credentials::environment(false),
                Some(_) => credentials,
            },
            origin,
            secrets,
            sites_file: env.set("SLUICE_SITES").map(PathBuf::from),
            sites,
            keepalive,
            failover,
            hedge_after,
            servers,
            bucket_retries: bucket_retries?,
            checks_bucket: checks_bucket?,
            bind: bind?,
            edge_port: edge_port?,
            tls,
            https: https?,
            tls_port,
            http3: http3?,
            clients: clients?,
            proxy_protocol: proxy_protocol?,
            purge: purge?,
            sns,
            writes_feed: writes_feed?,
            peers: peers?,
            metrics,
            few_stats: few_stats?,
            stats_of_sites: stats_of_sites?,
            log_format: log_format?,
            access_log: access_log?,
            decisions: decisions?,
            tracing,
            health_path: health_path?,
            watches: watches?,
            min_drain: Duration::from_secs(min_drain?),
            drain: Duration::from_secs(drain?),
            policy,
            access,
            access_file: env.set("SLUICE_ACCESS").map(PathBuf::from),
            runtime: runtime?,
            concurrency: memory.concurrency,
            ca_file,
            aws_ca_file,
            locations: locations?,
            heap_bytes: memory.heap_bytes,
            machine,
            notices: Vec::new(),
            notes: Vec::new(),
            name: name?,
            tells_via: tells_via?,
            cache,
            slices,
            hot: memory.hot,
            filter: true,
            stream_idle: Duration::from_secs(300),
            origin_idle: Duration::from_secs(60),
        })
    }

    /// The Unix socket of Envoy's admin interface. Edges that share a state folder have separate sockets.
    pub fn admin_socket(&self) -> PathBuf {
        self.locations.admin_socket(self.edge_port)
    }

    /// The Unix socket at which a worker reports the health of the edge.
    pub fn health_socket(&self) -> PathBuf {
        self.locations.health_socket(self.edge_port)
    }

    /// The Unix socket at which the filter answers questions of the entry point.
    pub fn filter_control_socket(&self) -> PathBuf {
        self.locations.filter_control_socket(self.edge_port)
    }

    /// The Unix socket at which the entry point answers the operator's commands.
    pub fn control_socket(&self) -> PathBuf {
        self.locations.control_socket(self.edge_port)
    }

    /// The Unix socket at which Envoy passes on requests for the purge feed.
    pub fn feed_socket(&self) -> PathBuf {
        self.locations.feed_socket(self.edge_port)
    }

    /// The Unix socket of the native module's own connections.
    pub fn workers_socket(&self) -> PathBuf {
        self.locations.workers_socket(self.edge_port)
    }

    /// The Unix socket of the slicer's own connections.
    pub fn slice_carriers_socket(&self) -> PathBuf {
        self.locations.slice_carriers_socket(self.edge_port)
    }

    /// The folder of Envoy's configuration. Edges that share a state folder have separate folders.
    pub fn files(&self) -> PathBuf {
        let name = format!("envoy-{}", self.edge_port);
        self.locations.state.join(name)
    }

    /// The user's files that a reload reads again: those of the sites, the policies, the access rules and the
    /// maintenance pages, and the keys of signed URLs. Envoy itself watches certificates and credentials.
    pub fn files_of_the_user(&self) -> Vec<PathBuf> {
        let base = self.sites_file.as_deref().and_then(Path::parent);
        let sites = self.sites.iter().flat_map(|sites| &sites.sites);
        let of_sites = sites.map(|site| site.policy_name.as_str());
        let named = of_sites.chain(self.policy.iter().map(|policy| policy.name.as_str()));
        let paths = named.map(|name| base.map_or_else(|| name.into(), |base| base.join(name)));
        let of_sites = self.sites.iter().flat_map(|sites| &sites.sites);
        let of_sites = of_sites.filter_map(|site| site.access.as_ref());
        let rules = of_sites.chain(&self.access);
        let keys = rules.flat_map(SiteAccess::files).cloned();
        let named = self.sites_file.iter().chain(&self.access_file).cloned();
        let of_sites = self.sites.iter().flat_map(|sites| &sites.sites);
        let of_sites = of_sites.filter_map(|site| maintenance_page::file(&site.policy));
        let of_policy = self
            .policy
            .iter()
            .filter_map(PolicyChoice::maintenance_page);
        let files = paths
            .chain(named)
            .chain(keys)
            .chain(of_sites)
            .chain(of_policy);
        let files = files.filter(|path| path.is_file());
        files
            .filter_map(|path| std::path::absolute(path).ok())
            .collect()
    }

    /// Whether there is a listener for purges.
    pub fn takes_purges(&self) -> bool {
        let of_site = self.sites.as_ref().is_some_and(Sites::take_purges);
        self.purge.token.is_some() || of_site || self.sns.is_some()
    }
}

/// Reads the name of the cache. `None`: it is not valid.
fn read_cache_name(env: &mut Environment<'_>) -> Option<Option<String>> {
    let Some(name) = env.set(NAME_VARIABLE) else {
        return Some(None);
    };
    env.parse(NAME_VARIABLE, CacheName::ACCEPTED, CacheName::parse)?;
    Some(Some(name))
}
