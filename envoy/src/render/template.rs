// SPDX-License-Identifier: Apache-2.0
//! The templates, and the values that fill them in.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context};

use super::access_log::{self, ACCOUNT};
use super::certificates::NamedCertificate;
use super::checker::Checker;
use super::compression::UsualCompression;
use super::feed_route::feed_route;
use super::filter::FilterConfiguration;
use super::header_bounds::header_bounds;
use super::resource::Resource;
use super::server::{Former, Server};
use super::{Run, seconds};
use crate::cache;
use crate::net::ca_bundle;
use crate::settings::{AccessLog, Peers, ProxyProtocol, Runtime, Settings, Tracing};
use crate::sites::Sites;

/// Templates by name.
macro_rules! templates {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../templates/", $name)))),*]
    };
}

const TEMPLATES: [(&str, &str); 33] = templates![
    "access_log.yaml.j2",
    "attempts.yaml.j2",
    "background.yaml.j2",
    "certificate.yaml.j2",
    "checker.yaml.j2",
    "clients.yaml.j2",
    "clusters.yaml.j2",
    "compressors.yaml.j2",
    "control.yaml.j2",
    "envoy.yaml.j2",
    "filters.yaml.j2",
    "hop.yaml.j2",
    "hop_parts.yaml.j2",
    "hop_route.yaml.j2",
    "hop_routes.yaml.j2",
    "listeners.yaml.j2",
    "health.yaml.j2",
    "pair.yaml.j2",
    "parts.yaml.j2",
    "peers.yaml.j2",
    "purge.yaml.j2",
    "purge_feed.yaml.j2",
    "purge_log.yaml.j2",
    "role.yaml.j2",
    "routes.yaml.j2",
    "server.yaml.j2",
    "servers.yaml.j2",
    "site_servers.yaml.j2",
    "slices.yaml.j2",
    "tracing.yaml.j2",
    "verifier.yaml.j2",
    "verifier_cluster.yaml.j2",
    "workers.yaml.j2",
];

/// The host for a request of HTTP/1.0 without a host, if the edge has named sites. No site has this host.
const NO_HOST: &str = "host.invalid";

/// The templates with the values of one edge.
pub struct Templates {
    environment: Environment<'static>,
    values: Value,
    /// The servers of the sites' origins.
    pub servers: Vec<Server>,
    /// The servers that are asked about clients.
    pub checkers: Vec<Checker>,
    /// The certificates of the edge.
    pub certificates: Vec<NamedCertificate>,
    /// Whether there is a listener for purges.
    pub takes_purges: bool,
    /// Whether the filter is in place.
    pub has_filter: bool,
    /// Whether the edge has peers.
    pub has_peers: bool,
    /// Bound on the variants of a URL in the cache.
    pub variants_per_url: usize,
    /// The hash of the filter's policies.
    pub policy_hash: u64,
    folder: Option<PathBuf>,
}

impl Templates {
    /// The templates for these settings and sites. With `folder`, Envoy watches the files there and reads changed
    /// ones again.
    ///
    /// # Errors
    /// A policy cannot be used, or there are no CA certificates to verify an origin with.
    pub fn new(
        settings: &Settings,
        sites: &Sites,
        run: Run<'_>,
        folder: Option<&Path>,
        former: Option<Former<'_>>,
    ) -> anyhow::Result<Self> {
        let certificates = NamedCertificate::all(sites);
        let mut filter = FilterConfiguration::new(settings, sites, &certificates, run)?;
        let usual = UsualCompression::new()?;
        let files = settings.files();
        let servers = sites.sites.iter().zip(&filter.policies);
        let servers = servers.map(|(site, document)| {
            let policy = &document.policy;
            Server::new(settings, site, policy, &usual, &files, former)
        });
        let servers = servers.collect::<anyhow::Result<Vec<_>>>()?;
        filter.name_servers(&servers);
        let feed_route = feed_route(settings, &filter, &servers)?;
        let checkers = sites.sites.iter();
        let checkers = checkers.map(|site| Checker::all(settings, site));
        let checkers = checkers.collect::<anyhow::Result<Vec<_>>>()?;
        let checkers: Vec<_> = checkers.into_iter().flatten().collect();
        let takes_purges = settings.filter && (filter.has_purge_token || settings.sns.is_some());
        let purge = takes_purges.then_some(settings.purge.address);
        let of_certificates = certificates.iter();
        let of_certificates = of_certificates.map(|each| of_certificate(each, folder));
        let of_tracing = settings.tracing.as_ref();
        let of_tracing = of_tracing.map(|it| tracing(it, settings.ca_file.as_deref()));
        let of_tracing = of_tracing.transpose()?;
        let named_sites = sites.sites.iter().any(|site| !site.name.is_empty());
        let account = ACCOUNT.iter().filter(|_| settings.filter);
        let account = account.map(|(name, _)| *name).collect::<Vec<_>>();
        let values = context! {
            edge => edge(settings, sites),
            bounds => header_bounds(settings.clients.header_kib),
            cache => context! {
                dir => run.cache_dir,
                envoys_max_bytes => cache::envoys_bound(settings.cache.max_bytes),
                max_entries => settings.cache.max_entries,
                threads => settings.concurrency.clamp(2, 16),
            },
            named_sites => named_sites,
            usual_compressions => usual.shared(settings),
            certificates => of_certificates.collect::<Vec<_>>(),
            files => folder.map(|folder| context! {
                clusters => Resource::Clusters.path(folder),
                routes => Resource::Routes.path(folder),
                listeners => Resource::Listeners.path(folder),
                edge => Resource::Edge.path(folder),
                purge => Resource::Purge.path(folder),
                peer => Resource::Peer.path(folder),
                front => Resource::Front.path(folder),
            }),
            discovered => false,
            filter => settings.filter,
            slices => settings.filter && filter.has_slices,
            runtime => settings.runtime.name(),
            filter_type => settings.runtime.filter_type(),
            module => settings.locations.module(settings.runtime),
            native_module => settings.locations.module(Runtime::Native),
            policy => indented(&filter.json),
            purge => purge.map(listener),
            peers => settings.peers.as_ref().filter(|_| settings.filter).map(peers),
            reports_health => settings.metrics.is_some() || settings.proxy_protocol.is_some(),
            tracing => of_tracing,
            access_log => access_log::values(
                &settings.access_log,
                named_sites,
                settings.tracing.is_some(),
                settings.filter,
            ),
            account => account,
            log_format => settings.log_format.name(),
            purge_log_file => run.purge_log,
            few_stats => settings.few_stats,
            journal => run.earlier_runs.socket,
            sns => run.sns,
            feed => run.feed,
            feed_route => feed_route.filter(|_| settings.filter && run.feed.is_some()),
        };
        Ok(Self {
            environment: environment()?,
            values,
            servers,
            checkers,
            certificates,
            takes_purges,
            has_filter: settings.filter,
            has_peers: settings.filter && settings.peers.is_some(),
            variants_per_url: filter.variants_per_url,
            policy_hash: filter.hash,
            folder: folder.map(Path::to_owned),
        })
    }

    /// Fills in the template of this name.
    ///
    /// # Errors
    /// The template uses a value that does not exist.
    pub fn render(&self, name: &str) -> anyhow::Result<String> {
        self.render_with(name, context! {})
    }

    /// Fills in the template of a certificate.
    ///
    /// # Errors
    /// The template uses a value that does not exist.
    pub fn render_certificate(&self, certificate: &NamedCertificate) -> anyhow::Result<String> {
        let certificate = of_certificate(certificate, self.folder.as_deref());
        let values = context! { certificate => certificate };
        self.render_with("certificate.yaml.j2", values)
    }

    /// Fills in the template of the filter's configuration for a role.
    ///
    /// # Errors
    /// The template uses a value that does not exist.
    pub fn render_role(&self, role: &str) -> anyhow::Result<String> {
        self.render_with("role.yaml.j2", context! { role => role })
    }

    fn render_with(&self, name: &str, more: Value) -> anyhow::Result<String> {
        let template = self.environment.get_template(name)?;
        let sites = self.servers.iter().map(|server| &server.values);
        let has_second_origins = self.servers.iter().any(|server| server.has_second_origin);
        let checkers = self.checkers.iter().map(|checker| &checker.values);
        let sites = context! {
            sites => sites.collect::<Vec<_>>(),
            has_second_origins => has_second_origins,
            checkers => checkers.collect::<Vec<_>>(),
        };
        let values = context! { ..more, ..sites, ..self.values.clone() };
        let rendered = template.render(values);
        // The reason is the last error of the chain, if a template includes another one.
        rendered.map_err(|error| anyhow::Error::new(error).context(name.to_owned()))
    }
}

/// The access log's part of Envoy's configuration as a separate bootstrap, with which Envoy can check the log.
///
/// # Errors
/// The template uses a value that does not exist.
pub fn access_log_bootstrap(log: &AccessLog) -> anyhow::Result<String> {
    let access_log = access_log::values(log, false, false, true);
    let values = context! { access_log, only_own_answers => false, hides_slices => false };
    let environment = environment()?;
    let log = environment.get_template("access_log.yaml.j2")?;
    Ok(format!("admin:\n{}", log.render(values)?))
}

fn of_certificate(certificate: &NamedCertificate, folder: Option<&Path>) -> Value {
    context! {
        name => certificate.resource(),
        chain => certificate.files.chain,
        key => certificate.files.key,
        folder => certificate.folder(),
        file => folder.map(|folder| Resource::of(certificate).path(folder)),
    }
}

fn environment() -> anyhow::Result<Environment<'static>> {
    let mut environment = Environment::new();
    // NB: every value is written as JSON, which is YAML, so that a value cannot escape from its place in a
    // template.
    environment.set_auto_escape_callback(|_| AutoEscape::Json);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    for (name, text) in TEMPLATES {
        environment.add_template(name, text).context(name)?;
    }
    Ok(environment)
}

/// The values of the bootstrap and of the listeners for clients.
fn edge(settings: &Settings, sites: &Sites) -> Value {
    let plain =
        context! { name => "edge", port => settings.edge_port, tls => false, quic => false };
    let tls = |name: &str, port: u16, quic: bool| {
        context! { name => name, port => port, tls => true, quic => quic }
    };
    let quic_port = settings.tls_port.filter(|_| settings.http3.listens());
    let quic = quic_port.map(|port| tls("edge_quic", port, true));
    let tls = settings.tls_port.map(|port| tls("edge_tls", port, false));
    let default_host = match sites.sites.as_slice() {
        [site] if site.name.is_empty() => site.origin.endpoint().authority(),
        _ => NO_HOST.to_owned(),
    };
    context! {
        bind => settings.bind.to_string(),
        listeners => std::iter::once(plain).chain(tls).chain(quic).collect::<Vec<_>>(),
        alt_svc => settings.http3.alt_svc(),
        http3 => settings.http3.listens(),
        default_host => default_host,
        admin => settings.admin_socket(),
        workers => settings.workers_socket(),
        slice_carriers => settings.slice_carriers_socket(),
        health => settings.health_socket(),
        control => settings.filter_control_socket(),
        health_path => settings.health_path,
        trusted_hops => settings.clients.trusted_hops,
        proxy_protocol => settings.proxy_protocol.as_ref().map(proxy_protocol),
        rate_limit => settings.clients.rate_limit,
        stream_idle => seconds(settings.stream_idle),
        connections => settings.machine.connections,
        heap_bytes => settings.heap_bytes,
    }
}

fn proxy_protocol(protocol: &ProxyProtocol) -> Value {
    let from = protocol.from.iter();
    let from = from.map(|(address, length)| context! { address => address, length => length });
    context! { is_required => protocol.is_required, from => from.collect::<Vec<_>>() }
}

fn listener(address: SocketAddr) -> Value {
    context! { bind => address.ip().to_string(), port => address.port() }
}

/// The values of the listener for peers, and of the way to them.
fn peers(peers: &Peers) -> Value {
    let names = peers.names.iter();
    let names = names.map(|name| context! { host => name.host, port => name.port });
    context! {
        bind => peers.address.ip().to_string(),
        port => peers.address.port(),
        names => names.collect::<Vec<_>>(),
    }
}

/// The values of traces and of their collector, with the CA certificates that the user has chosen.
fn tracing(tracing: &Tracing, ca_file: Option<&Path>) -> anyhow::Result<Value> {
    let server = &tracing.collector.server;
    let ca_file = || ca_bundle::find(ca_file, "the collector of traces");
    let headers = tracing.headers.iter();
    let headers =
        headers.map(|header| context! { name => header.name, variable => header.variable });
    let attributes = tracing.attributes.iter();
    let attributes = attributes.map(|(name, value)| context! { name => name, value => value });
    Ok(context! {
        host => server.host,
        port => server.port,
        is_ip => server.ip().is_some(),
        tls => server.tls,
        ca_file => server.tls.then(ca_file).transpose()?,
        uri => tracing.collector.to_string(),
        headers => headers.collect::<Vec<_>>(),
        service => tracing.service,
        attributes => attributes.collect::<Vec<_>>(),
        // The percentage of requests.
        percent => tracing.ratio * 100.0,
    })
}

/// The filter's configuration on several lines, each indented as the template indents the first.
fn indented(json: &serde_json::Value) -> Value {
    const INDENT: &str = "\n      ";
    Value::from_safe_string(format!("{json:#}").replace('\n', INDENT))
}
