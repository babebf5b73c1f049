// SPDX-License-Identifier: Apache-2.0
//! Turns settings into Envoy's configuration.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};
use serde::Serialize;
use serde_json::Value;
use sluice_core::http::accept_encoding::Coding;
use sluice_core::link::{COMPRESS_TYPED, COMPRESS_UNTYPED};
use sluice_core::policy::CompressionPolicy;
use sluice_core::policy::{self, BucketOrigin, Policy, QueryRule};
use sluice_core::site::media_type::NONE;

use crate::ca_bundle;
use crate::journal::Past;
use crate::origin::{Bucket, Origin};
use crate::policy_document::{PolicyDocument, PolicyDocumentError};
use crate::settings::{AccessLog, Metrics, Settings, Stats, Tracing};

const TEMPLATE: &str = include_str!("../envoy.yaml.j2");

/// Why there is no configuration.
#[derive(Debug)]
pub enum RenderError {
    /// The policy is not usable.
    Policy(PolicyDocumentError),
    /// An `https` origin, and nothing to verify it with.
    NoCaBundle,
    /// The template and the code disagree.
    Template(minijinja::Error),
}

impl fmt::Display for RenderError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(error) => error.fmt(out),
            Self::NoCaBundle => write!(
                out,
                "SSL_CERT_FILE: must name the CA certificates that verify an https origin, as none of {} exists",
                ca_bundle::USUAL_PATHS.join(", ")
            ),
            Self::Template(error) => write!(out, "envoy.yaml.j2: {error:#}"),
        }
    }
}

impl std::error::Error for RenderError {}

/// Envoy's configuration for `settings` before `origin`, with the cache's entries in `cache_dir`.
pub fn render(
    settings: &Settings,
    origin: &Origin,
    cache_dir: &Path,
) -> Result<String, RenderError> {
    render_after(settings, origin, cache_dir, &Past::default(), None)
}

/// The same, where something is known of former processes, and messages of SNS are verified at the socket `sns`.
pub fn render_after(
    settings: &Settings,
    origin: &Origin,
    cache_dir: &Path,
    past: &Past,
    sns: Option<&Path>,
) -> Result<String, RenderError> {
    let mut policy = PolicyDocument::load(settings, origin).map_err(RenderError::Policy)?;
    policy.remember(past).map_err(RenderError::Policy)?;
    if sns.is_some() {
        policy.take_sns().map_err(RenderError::Policy)?;
    }
    let mut environment = Environment::new();
    // NB: every value in the template comes out as JSON, which is YAML: none can break out of its place.
    environment.set_auto_escape_callback(|_| AutoEscape::Json);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    let context = context! {
        edge => Edge::new(settings),
        cache => CacheView::new(settings, cache_dir),
        origin => OriginView::new(settings, origin, &policy.policy)?,
        compressions => compressions(settings, origin, &policy.policy),
        filter => settings.filter,
        wasm => settings.locations.wasm,
        policy => indented(&policy.json),
        purge => PurgeView::new(settings, &policy.policy),
        metrics => settings.metrics.map(MetricsView::from),
        tracing => settings.tracing.as_ref().map(TracingView::new),
        access_log => access_log(settings.access_log),
        account => if settings.filter { ACCOUNT } else { &[] },
        few_stats => settings.stats == Stats::Few,
        journal => past.socket.as_ref().map(|path| path.display().to_string()),
        sns => sns.map(|path| path.display().to_string()),
    };
    environment
        .render_named_str("envoy.yaml.j2", TEMPLATE, context)
        .map_err(RenderError::Template)
}

/// What listeners and the bootstrap need.
#[derive(Serialize)]
struct Edge {
    bind: String,
    /// Name, port and certificate of each listener.
    listeners: Vec<Listener>,
    admin_port: u16,
    health_path: String,
    stream_idle: String,
    connections: u64,
    heap_bytes: u64,
}

#[derive(Serialize)]
struct Listener {
    name: &'static str,
    port: u16,
    tls: Option<Certificate>,
}

#[derive(Serialize)]
struct Certificate {
    chain: String,
    key: String,
}

impl Edge {
    fn new(settings: &Settings) -> Self {
        let plain = Listener {
            name: "edge",
            port: settings.edge_port,
            tls: None,
        };
        let tls = settings.tls.as_ref().map(|tls| Listener {
            name: "edge_tls",
            port: tls.port,
            tls: Some(Certificate {
                chain: tls.cert.display().to_string(),
                key: tls.key.display().to_string(),
            }),
        });
        Self {
            bind: settings.bind.to_string(),
            listeners: std::iter::once(plain).chain(tls).collect(),
            admin_port: settings.admin_port,
            health_path: settings.health_path.clone(),
            stream_idle: seconds(settings.stream_idle),
            connections: settings.machine.connections,
            heap_bytes: settings.machine.heap_bytes,
        }
    }
}

/// The listener for purges.
#[derive(Serialize)]
struct PurgeView {
    bind: String,
    port: u16,
}

impl PurgeView {
    fn new(settings: &Settings, policy: &Policy) -> Option<Self> {
        let taken = policy.purge.token.is_some() || settings.sns.is_some();
        (settings.filter && taken).then(|| Self {
            bind: settings.purge.bind.to_string(),
            port: settings.purge.port,
        })
    }
}

/// The listener for metrics.
#[derive(Serialize)]
struct MetricsView {
    bind: String,
    port: u16,
}

impl From<Metrics> for MetricsView {
    fn from(metrics: Metrics) -> Self {
        Self {
            bind: metrics.bind.to_string(),
            port: metrics.port,
        }
    }
}

/// Where traces go.
#[derive(Serialize)]
struct TracingView {
    host: String,
    port: u16,
    authority: String,
    is_ip: bool,
    service: String,
    /// Of the requests.
    percent: f64,
}

impl TracingView {
    fn new(tracing: &Tracing) -> Self {
        let collector = &tracing.collector;
        Self {
            host: collector.host.clone(),
            port: collector.port,
            authority: collector.authority(),
            is_ip: collector.ip().is_some(),
            service: tracing.service.clone(),
            percent: tracing.ratio * 100.0,
        }
    }
}

/// What the filter tells of each request, as far as it is so.
const ACCOUNT: &[&str] = &["result", "key", "role", "wait_ms", "origin_ms", "attempts"];

/// The template's word for how requests are logged.
const fn access_log(log: AccessLog) -> &'static str {
    match log {
        AccessLog::Text => "text",
        AccessLog::Json => "json",
        AccessLog::Off => "off",
    }
}

/// What the cache filter needs.
#[derive(Serialize)]
struct CacheView {
    dir: String,
    max_bytes: u64,
    max_entries: u64,
    threads: u32,
}

impl CacheView {
    fn new(settings: &Settings, dir: &Path) -> Self {
        Self {
            dir: dir.display().to_string(),
            max_bytes: settings.cache.max_bytes,
            max_entries: settings.cache.max_entries,
            threads: settings.concurrency.clamp(2, 16),
        }
    }
}

/// What the filter adds to a path towards the store. Envoy refuses a client's `#`.
const QUALIFIERS: &str = "(?:#[^#]*)?";

/// What the cluster and the guards need.
#[derive(Serialize)]
struct OriginView {
    host: String,
    port: u16,
    authority: String,
    is_ip: bool,
    tls: bool,
    ca_file: Option<String>,
    idle: String,
    bucket: Option<BucketView>,
}

#[derive(Serialize)]
struct BucketView {
    region: String,
    static_credentials: bool,
    /// What a canonical path looks like.
    path_regex: String,
    /// What it must not look like all the same.
    forbidden_regex: &'static str,
}

impl BucketView {
    fn new(bucket: &Bucket, settings: &Settings, paths: &BucketOrigin, query: &QueryRule) -> Self {
        // NB: the prefix is percent-encoded, so only its dots mean something in an expression.
        let start = paths.path_prefix.replace('.', r"\.");
        let query = match query {
            QueryRule::Drop { allow } if allow.is_empty() => "",
            QueryRule::Drop { .. } | QueryRule::Keep { .. } | QueryRule::Sort { .. } => {
                r"(?:\?[^#]*)?"
            }
        };
        Self {
            region: bucket.region.clone(),
            static_credentials: settings.static_credentials,
            path_regex: format!(
                "{start}/(?:[A-Za-z0-9._~/-]|%[0-9A-F][0-9A-F])*{query}{QUALIFIERS}"
            ),
            forbidden_regex: r"[^?#]*(?:/\.\.?(?:[/?#].*)?|%(?:00|2E|2F).*)",
        }
    }
}

impl OriginView {
    fn new(settings: &Settings, origin: &Origin, policy: &Policy) -> Result<Self, RenderError> {
        let endpoint = origin.endpoint();
        let ca_file = match (endpoint.tls, &settings.ca_file) {
            (false, _) => None,
            (true, Some(file)) => Some(file.display().to_string()),
            (true, None) => Some(ca_bundle::find().ok_or(RenderError::NoCaBundle)?.to_owned()),
        };
        let bucket = match (origin, &policy.origin) {
            (Origin::Bucket(bucket), policy::Origin::Bucket(paths)) => {
                Some(BucketView::new(bucket, settings, paths, &policy.key.query))
            }
            (Origin::Bucket(_) | Origin::Http(_), _) => None,
        };
        Ok(Self {
            host: endpoint.host.clone(),
            port: endpoint.port,
            authority: endpoint.authority(),
            is_ip: endpoint.ip().is_some(),
            tls: endpoint.tls,
            ca_file,
            idle: seconds(settings.origin_idle),
            bucket,
        })
    }
}

/// Compressors for the responses of which the filter says so in the same word.
#[derive(Serialize)]
struct Compression {
    wanted: &'static str,
    min_bytes: u64,
    content_types: Vec<String>,
    compressors: Vec<Compressor>,
}

/// One of Envoy's compressors.
#[derive(Serialize)]
struct Compressor {
    name: String,
    coding: &'static str,
}

impl Compression {
    fn new(policy: &CompressionPolicy, wanted: &'static str, suffix: &str) -> Self {
        let compressor = |coding: &Coding| Compressor {
            name: format!("compress_{}{suffix}", coding.token()),
            coding: coding.token(),
        };
        Self {
            wanted,
            // Envoy's field has 32 bits, and no stored object is larger.
            min_bytes: policy.min_bytes.min(u64::from(u32::MAX)),
            content_types: policy.content_types.clone(),
            compressors: policy.codings.iter().map(compressor).collect(),
        }
    }
}

/// The compressors that the policy wants on the way into the cache. Without the filter nothing asks for them.
fn compressions(settings: &Settings, origin: &Origin, policy: &Policy) -> Vec<Compression> {
    if !(settings.filter && policy.compression.enabled) {
        return Vec::new();
    }
    let typed = Compression::new(&policy.compression, COMPRESS_TYPED, "");
    let mut untyped = Compression::new(&policy.compression, COMPRESS_UNTYPED, "_untyped");
    untyped.content_types.extend(NONE.map(str::to_owned));
    // The filter gives media types to objects only.
    match origin {
        Origin::Bucket(_) => vec![typed, untyped],
        Origin::Http(_) => vec![typed],
    }
}

/// A duration as Envoy's configuration writes it.
fn seconds(duration: Duration) -> String {
    format!("{}s", duration.as_secs_f64())
}

/// The policy over several lines, each of them as deep as the template puts the first.
fn indented(policy: &Value) -> minijinja::Value {
    const INDENT: &str = "\n          ";
    minijinja::Value::from_safe_string(format!("{policy:#}").replace('\n', INDENT))
}
