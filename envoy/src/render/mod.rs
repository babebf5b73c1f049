// SPDX-License-Identifier: Apache-2.0
//! Envoy's configuration: the template `envoy.yaml.j2`, filled in from the settings and the policy.
//!
//! `policy_document` completes the filter's policy. `origin` and `compression` work out the values of their parts of
//! the template; all other values are here.

mod compression;
mod origin;
mod policy_document;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::anyhow;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context};
use serde_json::json;

use crate::cache::EarlierRuns;
use crate::origin::Origin;
use crate::settings::{Settings, Tracing};
use compression::compressions;
use policy_document::PolicyDocument;

const TEMPLATE: &str = include_str!("../../envoy.yaml.j2");
/// What the filter reports of each request, where it applies.
const ACCOUNT: &[&str] = &[
    "result",
    "key",
    "role",
    "wait_ms",
    "origin_ms",
    "attempts",
    "bucket_error",
];

/// Renders the configuration for `settings` and `origin`, with the cache's entries in `cache_dir`.
///
/// # Errors
/// The policy cannot be used, or there are no CA certificates to verify the origin with.
pub fn render(settings: &Settings, origin: &Origin, cache_dir: &Path) -> anyhow::Result<String> {
    render_for_run(settings, origin, cache_dir, &EarlierRuns::default(), None)
}

/// As [`render`], with what the filter must know of earlier runs, and the socket at which messages of SNS are verified.
///
/// # Errors
/// As [`render`].
pub fn render_for_run(
    settings: &Settings,
    origin: &Origin,
    cache_dir: &Path,
    earlier_runs: &EarlierRuns,
    sns: Option<&Path>,
) -> anyhow::Result<String> {
    let mut policy = PolicyDocument::load(settings, origin)?;
    policy.add_earlier_runs(earlier_runs)?;
    if sns.is_some() {
        policy.fill(&json!({"purge": {"sns": true}}))?;
    }
    let mut environment = Environment::new();
    // NB: every value comes out as JSON, which is YAML, so that none can break out of its place in the template.
    environment.set_auto_escape_callback(|_| AutoEscape::Json);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    let takes_purges = policy.policy.edge.purge.token.is_some() || settings.sns.is_some();
    let purge = (settings.filter && takes_purges).then_some(settings.purge.address);
    let context = context! {
        edge => edge(settings),
        cache => context! {
            dir => cache_dir,
            max_bytes => settings.cache.max_bytes,
            max_entries => settings.cache.max_entries,
            threads => settings.concurrency.clamp(2, 16),
        },
        origin => origin::origin(settings, origin, &policy.policy)?,
        compressions => compressions(settings, origin, &policy.policy),
        filter => settings.filter,
        wasm => settings.locations.wasm,
        policy => indented(&policy.json),
        purge => purge.map(listener),
        metrics => settings.metrics.map(listener),
        tracing => settings.tracing.as_ref().map(tracing),
        access_log => settings.access_log,
        account => if settings.filter { ACCOUNT } else { &[] },
        few_stats => settings.few_stats,
        journal => earlier_runs.socket,
        sns => sns,
    };
    environment
        .render_named_str("envoy.yaml.j2", TEMPLATE, context)
        .map_err(|error| anyhow!("envoy.yaml.j2: {error:#}"))
}

/// The values of the bootstrap and of the listeners for clients.
fn edge(settings: &Settings) -> Value {
    let plain = context! { name => "edge", port => settings.edge_port, tls => () };
    let tls = settings.tls.as_ref().map(|tls| {
        let certificate = context! { chain => tls.cert, key => tls.key };
        context! { name => "edge_tls", port => tls.port, tls => certificate }
    });
    context! {
        bind => settings.bind.to_string(),
        listeners => std::iter::once(plain).chain(tls).collect::<Vec<_>>(),
        admin => settings.admin_socket(),
        health_path => settings.health_path,
        trusted_hops => settings.clients.trusted_hops,
        rate_limit => settings.clients.rate_limit,
        stream_idle => seconds(settings.stream_idle),
        connections => settings.machine.connections,
        heap_bytes => settings.machine.heap_bytes,
    }
}

fn listener(address: SocketAddr) -> Value {
    context! { bind => address.ip().to_string(), port => address.port() }
}

fn tracing(tracing: &Tracing) -> Value {
    let collector = &tracing.collector;
    context! {
        host => collector.host,
        port => collector.port,
        authority => collector.authority(),
        is_ip => collector.ip().is_some(),
        service => tracing.service,
        // The percentage of requests.
        percent => tracing.ratio * 100.0,
    }
}

/// A duration as Envoy's configuration writes it.
fn seconds(duration: Duration) -> String {
    format!("{}s", duration.as_secs_f64())
}

/// The policy over several lines, each indented as the template indents the first.
fn indented(policy: &serde_json::Value) -> Value {
    const INDENT: &str = "\n          ";
    Value::from_safe_string(format!("{policy:#}").replace('\n', INDENT))
}
