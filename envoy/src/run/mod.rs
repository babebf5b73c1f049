// SPDX-License-Identifier: Apache-2.0
//! One run of the edge: checks, starts, watches and stops all its parts.

mod access_log_format;
mod bucket_check;
mod configuration;
mod health;
mod instance_metadata;
mod native;
mod operator_servers;
mod restart;
mod running;

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use sluice_core::http::caching::cache_name::{NAME_VARIABLE, VIA_VARIABLE};
use sluice_core::key::secret::{SECRET_VARIABLE, StoreSecret};

pub use access_log_format::check_access_log_format;
pub use bucket_check::check_bucket;
pub use health::{check_health_at, health_check};
pub use restart::keep_running;

use crate::cache::{
    CacheFolder, EntrySecret, FreeSpace, Keeper, MostVariants, ReportDesk, SharedState, Shares,
    Shortage,
};
use crate::demo::Demo;
use crate::log::{say, warn};
use crate::metrics::EdgeStatus;
use crate::net::admin::Admin;
use crate::net::ca_bundle;
use crate::net::local_socket::LocalSocket;
use crate::origin::Origin;
use crate::purge_feed::{self, EnvoyWay};
use crate::reload;
use crate::render::{self, Rendered, Resource};
use crate::settings::{Runtime, Settings, docs};
use crate::sites::Sites;
use crate::sns::{Sns, Verifier};
use crate::system::child::Child;
use crate::system::machine::Machine;
use crate::system::private::{self, at};
use crate::system::service_manager::{self, SOCKET_VARIABLE};
use configuration::Configuration;
use running::RunningEdge;

/// Bound on the time for which Envoy's start waits for the check of earlier runs' files. The remaining files are
/// restored while Envoy serves.
const CHECK_PATIENCE: Duration = Duration::from_secs(1);
/// Notice at the start, if the user has not chosen a policy for an HTTP origin.
const ORIGIN_DECIDES: &str = "a response is cached only if the origin says so; a policy with \
    cache.ttl, such as {\"200\": 1h, default: 1s}, caches other responses too (docs/policy.md)";
/// Components of Envoy whose warnings are not useful. The cache filter warns at every start that it is work in
/// progress, and at every insertion that the store has ended it.
const QUIETER: &str = "misc:error,cache_filter:error";

/// Runs the edge until it is told to stop or ends unexpectedly, and returns the exit code.
///
/// # Errors
/// The edge has not become ready.
pub fn run(settings: &Settings) -> anyhow::Result<u8> {
    for notice in &settings.notices {
        warn(notice);
    }
    Machine::raise_open_files();
    let signals = signals()?;
    let state = &settings.locations.state;
    private::make_folder(state).map_err(at(state))?;
    check_ports(settings)?;
    check_modules(settings)?;
    check_access_log_format(settings)?;
    let mut cache = CacheFolder::open(&settings.cache)?;
    if let Some(notice) = &cache.notice {
        say(notice);
    }
    let shortage = Shortage::default();
    let free_space = FreeSpace::new(settings, &cache.entries, shortage.clone())?;
    // NB: declared in front of Envoy, so that this is dropped, and MinIO stopped, after Envoy.
    let demo = match (&settings.origin, &settings.sites) {
        (None, None) => Some(Demo::start(settings)?),
        _ => None,
    };
    let sites = render::sites(settings, demo.as_ref().map(|demo| &demo.origin))?;
    let mut earlier_runs = cache.earlier_runs();
    let journal = cache.journal.take().map(|journal| journal.serve(state));
    let journal = journal.transpose().map_err(at(state))?;
    earlier_runs.socket = journal.as_ref().map(|socket| socket.path().to_owned());
    let sns = settings.sns.as_ref().map(|sns| serve_sns(settings, sns));
    let sns = sns.transpose()?;
    let sns = sns.as_ref().map(LocalSocket::path);
    let feed = settings.writes_feed.then(|| serve_feed(settings));
    let feed = feed.transpose()?;
    let feed = feed.as_ref().map(LocalSocket::path);
    let run = render::Run {
        cache_dir: &cache.entries,
        purge_log: Some(cache.purge_log.path()),
        earlier_runs: &earlier_runs,
        sns,
        feed,
        secret: StoreSecret::parse(cache.secret.digits()),
    };
    let rendered = Rendered::new(settings, &sites, run, None)?;
    rendered.write().map_err(at(&rendered.folder))?;
    let config = Resource::Bootstrap.path(&rendered.folder);
    // NB: declared in front of Envoy, so that the keeper is dropped after it, and sees all files that Envoy stores.
    let shared = SharedState {
        shares: Shares::new(sites.shares()),
        most_variants: MostVariants::new(rendered.variants_per_url),
        reports: ReportDesk::default(),
    };
    let status = EdgeStatus::new(settings.runtime.name(), rendered.policy_hash);
    let _control_socket = operator_servers::serve(settings, &status, &shared, &cache)?;
    let keeper = Keeper::start(
        &settings.cache,
        &cache,
        shortage,
        shared.clone(),
        CHECK_PATIENCE,
    );
    let _keeper = keeper.map_err(at(&cache.entries))?;
    let mut edge = RunningEdge {
        settings,
        envoy: start_envoy(settings, &sites, &config, &cache.secret, demo.as_ref())?,
        started: Instant::now(),
        deaths: cache.early_deaths(),
        signals,
        wants_reload: false,
    };
    if let Some(code) = edge.wait_until_ready()? {
        return Ok(code);
    }
    let admin = Admin::new(settings.admin_socket());
    if let Some(code) = edge.check(|| reload::check_start(&rendered, &admin))? {
        return Ok(code);
    }
    let mut configuration = Configuration {
        settings,
        demo: demo.as_ref().map(|demo| demo.origin.clone()),
        run,
        rendered,
        shares: shared.shares,
        most_variants: shared.most_variants,
        status,
        watch: None,
        watch_has_told: Arc::default(),
    };
    configuration.watch_files(&settings.files_of_the_user());
    let purge_log = cache.purge_log.clone().keep_short();
    let _purge_log = purge_log.context("a thread")?;
    announce(settings, &sites);
    bucket_check::check_bucket_beside(settings);
    let free_space = free_space.map(FreeSpace::watch).transpose();
    let _free_space = free_space.context("a thread")?;
    Ok(edge.watch(&mut configuration, demo))
}

/// A receiver for the signals that arrive from now on.
fn signals() -> anyhow::Result<Signals> {
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD]);
    signals.context("signal handlers")
}

/// Verifies messages of SNS for the filter until the socket is dropped.
fn serve_sns(settings: &Settings, sns: &Sns) -> anyhow::Result<LocalSocket> {
    let roots = ca_bundle::find(settings.aws_ca_file.as_deref(), "SNS")?;
    let verifier = Verifier::over_https(sns, &roots).map_err(at(&roots))?;
    let state = &settings.locations.state;
    verifier.serve(state).map_err(at(state))
}

/// Writes purges to the purge feed for the filter until the socket is dropped.
fn serve_feed(settings: &Settings) -> anyhow::Result<LocalSocket> {
    let way = EnvoyWay {
        socket: settings.feed_socket(),
    };
    let state = &settings.locations.state;
    purge_feed::serve(way, state).map_err(at(state))
}

/// Checks that the filter's modules exist, and that Envoy can run them.
fn check_modules(settings: &Settings) -> anyhow::Result<()> {
    if !settings.filter {
        return Ok(());
    }
    // With a VM, a part of the native module runs in front of it.
    for runtime in [settings.runtime, Runtime::Native] {
        let module = settings.locations.module(runtime);
        ensure!(
            module.is_file(),
            "{}={}: expected a file that exists",
            runtime.variable(),
            module.display()
        );
    }
    native::check_envoy(&settings.locations.envoy)
}

/// Checks that all ports are free. Envoy would share a port with another Envoy, and each would get a part of the
/// requests.
fn check_ports(settings: &Settings) -> anyhow::Result<()> {
    let edge = |port| SocketAddr::new(settings.bind, port);
    let purge = settings.takes_purges().then_some(settings.purge.address);
    let peers = settings.peers.as_ref().map(|peers| peers.address);
    for (name, address) in [
        ("SLUICE_EDGE_PORT", Some(edge(settings.edge_port))),
        ("SLUICE_EDGE_TLS_PORT", settings.tls_port.map(edge)),
        ("SLUICE_PURGE_PORT", purge),
        ("SLUICE_METRICS_PORT", settings.metrics),
        ("SLUICE_PEER_PORT", peers),
    ] {
        let Some(address) = address else { continue };
        TcpListener::bind(address).map_err(|error| {
            let (ip, port) = (address.ip(), address.port());
            anyhow!("{name}={port}: expected a port that is free on {ip}: {error}")
        })?;
    }
    Ok(())
}

fn start_envoy(
    settings: &Settings,
    sites: &Sites,
    config: &Path,
    secret: &EntrySecret,
    demo: Option<&Demo>,
) -> anyhow::Result<Child> {
    let envoy = &settings.locations.envoy;
    let mut command = Command::new(envoy);
    command.arg("--config-path").arg(config);
    command.args(["--concurrency", &settings.concurrency.to_string()]);
    // NB: these are secrets that Envoy does not need, and the entry point's own channel to the service manager.
    let own = sites.secret_variables();
    for variable in own.chain([SOCKET_VARIABLE]) {
        command.env_remove(variable);
    }
    for variable in docs::secrets_of_the_edge() {
        command.env_remove(variable);
    }
    command.envs(settings.secrets.variables());
    command.env(SECRET_VARIABLE, secret.digits());
    name_edge(&mut command, settings);
    command.envs(instance_metadata::switch(&|name| {
        settings.secrets.variable(name)
    }));
    // Connections keep their certificates for this time after certificates are added or removed: a day.
    command.args(["--drain-time-s", "86400"]);
    // Several edges may run on one machine, and none may replace another.
    command.arg("--disable-hot-restart");
    command.args(["--log-level", "warning", "--component-log-level", QUIETER]);
    command.args(["--log-format", settings.log_format.envoy_pattern()]);
    // Envoy's times are local times, and those of this process are not.
    command.env("TZ", "UTC");
    // The access log shows each request without delay.
    command.args(["--file-flush-interval-msec", "100"]);
    if let Some(demo) = demo {
        command
            .env_remove("AWS_SESSION_TOKEN")
            .envs(demo.credentials());
    }
    let child = access_log().and_then(|log| Child::spawn(command.stdout(log)));
    child.with_context(|| format!("SLUICE_ENVOY={}", envoy.display()))
}

/// Sets the variables that the filter reads from Envoy's environment.
fn name_edge(command: &mut Command, settings: &Settings) {
    match &settings.name {
        Some(name) => command.env(NAME_VARIABLE, name),
        None => command.env_remove(NAME_VARIABLE),
    };
    let via = if settings.tells_via { "on" } else { "off" };
    command.env(VIA_VARIABLE, via);
}

/// The standard output of this process, or a pipe to it, if Envoy cannot open it by name because it is a socket.
fn access_log() -> io::Result<Stdio> {
    if File::options().append(true).open("/dev/stdout").is_ok() {
        return Ok(Stdio::inherit());
    }
    let (mut reader, writer) = io::pipe()?;
    // The thread ends with Envoy.
    std::thread::spawn(move || io::copy(&mut reader, &mut io::stdout()));
    Ok(writer.into())
}

fn announce(settings: &Settings, sites: &Sites) {
    let edge = health::local_address(settings.bind, settings.edge_port);
    let what = match sites.sites.as_slice() {
        [site] => site.origin.to_string(),
        sites => format!("{} sites", sites.len()),
    };
    let ready = format!("http://{edge}/ is ready, in front of {what}");
    say(&ready);
    service_manager::report_ready(&ready);
    if let (Some(Origin::Http(_)), None) = (&settings.origin, &settings.policy) {
        say(ORIGIN_DECIDES);
    }
    if let Some(port) = settings.tls_port {
        let edge = health::local_address(settings.bind, port);
        say(&format!("https://{edge}/ is ready too"));
    }
    let admin = settings.admin_socket();
    say(&format!("{} is Envoy's admin interface", admin.display()));
}
