// SPDX-License-Identifier: Apache-2.0
//! One run of the edge from start to end: checks, starts, watches and stops everything.

mod error;
mod health;
mod watch;

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

pub use error::RunError;
pub use health::HealthCheck;

use crate::cache::{CacheFolder, FreeSpace, Keeper, Life, Shortage};
use crate::demo::Demo;
use crate::log::say;
use crate::net::ca_bundle;
use crate::net::local_socket::LocalSocket;
use crate::render;
use crate::settings::Settings;
use crate::sns::{Sns, Verifier};
use crate::system::child::{Child, exit_code};
use crate::system::machine::Machine;
use crate::system::private;

/// Bound on the time in which Envoy must become ready.
const START_PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
/// Bound on the time for which Envoy's start waits for the check of earlier runs' files. Later files come back while
/// Envoy serves.
const CHECK_PATIENCE: Duration = Duration::from_secs(1);
/// Components of Envoy whose warnings are not news: the cache filter says at every start that it is work in progress,
/// and at every insertion that the store has ended it.
const QUIETER: &str = "misc:error,cache_filter:error";

/// Runs the edge until it is told to stop or ends by itself, and gives the exit code.
///
/// # Errors
/// The edge has not become ready.
pub fn run(settings: &Settings) -> Result<u8, RunError> {
    Machine::raise_open_files();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD])
        .map_err(|error| RunError::Io("signal handlers".into(), error))?;
    let state = &settings.locations.state;
    private::make_folder(state).map_err(RunError::io(state))?;
    check_ports(settings)?;
    check_module(settings)?;
    let mut cache = CacheFolder::open(&settings.cache)?;
    if let Some(notice) = cache.notice() {
        say(notice);
    }
    let shortage = Shortage::default();
    let free_space = FreeSpace::new(settings, cache.entries(), shortage.clone())?;
    // NB: declared before Envoy, so that it is dropped, and MinIO stopped, after it.
    let (origin, demo) = match &settings.origin {
        Some(origin) => (origin.clone(), None),
        None => {
            let demo = Demo::start(settings)?;
            (demo.origin().clone(), Some(demo))
        }
    };
    let mut earlier_runs = cache.earlier_runs();
    let journal = cache.take_journal().map(|journal| journal.serve(state));
    let journal = journal.transpose().map_err(RunError::io(state))?;
    earlier_runs.socket = journal.as_ref().map(|socket| socket.path().to_owned());
    let sns = settings.sns.as_ref().map(|sns| serve_sns(settings, sns));
    let sns = sns.transpose()?;
    let sns = sns.as_ref().map(LocalSocket::path);
    let config = render::render_for_run(settings, &origin, cache.entries(), &earlier_runs, sns)?;
    let config = write_config(settings, &config)?;
    // NB: declared before Envoy, so that it is dropped after it, and sees all files that Envoy stores.
    let keeper = Keeper::start(&settings.cache, &cache, shortage);
    let keeper = keeper.map_err(RunError::io(cache.entries()))?;
    keeper.wait_for_check(CHECK_PATIENCE);
    let mut envoy = start_envoy(settings, &config, demo.as_ref())?;
    let life = Life::begin(cache.early_deaths());
    if let Some(code) = wait_until_ready(settings, &mut envoy, &life, &mut signals)? {
        return Ok(code);
    }
    announce(settings, &origin.to_string());
    let free_space = free_space.map(FreeSpace::watch).transpose();
    let _free_space = free_space.map_err(|error| RunError::Io("a thread".into(), error))?;
    Ok(watch::watch(
        settings,
        &mut envoy,
        &life,
        demo,
        &mut signals,
    ))
}

/// Verifies messages of SNS for the filter, until the socket is dropped.
fn serve_sns(settings: &Settings, sns: &Sns) -> Result<LocalSocket, RunError> {
    let usual = || ca_bundle::find().map(PathBuf::from);
    let roots = settings.ca_file.clone().or_else(usual);
    let roots = roots.ok_or(RunError::NoCaBundle)?;
    let verifier = Verifier::over_https(sns, &roots).map_err(RunError::io(&roots))?;
    let state = &settings.locations.state;
    verifier.serve(state).map_err(RunError::io(state))
}

/// Checks that the filter's module is there.
fn check_module(settings: &Settings) -> Result<(), RunError> {
    let wasm = &settings.locations.wasm;
    if settings.filter && !wasm.is_file() {
        return Err(RunError::Missing("SLUICE_WASM", wasm.clone()));
    }
    Ok(())
}

/// Checks that all ports are free. Envoy itself would share a port with another Envoy, and each would get a part of the
/// requests.
fn check_ports(settings: &Settings) -> Result<(), RunError> {
    let edge = |port| SocketAddr::new(settings.bind, port);
    let tls = settings.tls.as_ref().map(|tls| edge(tls.port));
    let admin = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), settings.admin_port);
    let purge = settings.takes_purges().then_some(settings.purge.address);
    for (name, address) in [
        ("EDGE_PORT", Some(edge(settings.edge_port))),
        ("EDGE_TLS_PORT", tls),
        ("ADMIN_PORT", Some(admin)),
        ("PURGE_PORT", purge),
        ("METRICS_PORT", settings.metrics),
    ] {
        let Some(address) = address else { continue };
        TcpListener::bind(address).map_err(|error| RunError::Port {
            name,
            address,
            error,
        })?;
    }
    Ok(())
}

/// Writes the configuration to a file that only this user can read.
fn write_config(settings: &Settings, config: &str) -> Result<PathBuf, RunError> {
    let name = format!("envoy-{}.yaml", settings.edge_port);
    let path = settings.locations.state.join(name);
    private::write(&path, config).map_err(RunError::io(&path))?;
    Ok(path)
}

fn start_envoy(settings: &Settings, config: &Path, demo: Option<&Demo>) -> Result<Child, RunError> {
    let mut command = Command::new(&settings.locations.envoy);
    command.arg("--config-path").arg(config);
    command.args(["--concurrency", &settings.concurrency.to_string()]);
    // NB: a secret that Envoy does not need.
    command.env_remove("PURGE_TOKEN");
    // Several edges may run on one machine, and none may take over from another.
    command.arg("--disable-hot-restart");
    command.args(["--log-level", "warning", "--component-log-level", QUIETER]);
    // A reader of the access log sees a request at once.
    command.args(["--file-flush-interval-msec", "100"]);
    if let Some(demo) = demo {
        command
            .env_remove("AWS_SESSION_TOKEN")
            .envs(demo.credentials());
    }
    let failed = |error| RunError::Spawn("SLUICE_ENVOY", settings.locations.envoy.clone(), error);
    command.stdout(access_log().map_err(failed)?);
    Child::spawn(&mut command).map_err(failed)
}

/// This process's standard output; where Envoy cannot open that by name (a socket), a pipe to it.
fn access_log() -> io::Result<Stdio> {
    if File::options().append(true).open("/dev/stdout").is_ok() {
        return Ok(Stdio::inherit());
    }
    let (mut reader, writer) = io::pipe()?;
    // The thread ends with Envoy.
    std::thread::spawn(move || io::copy(&mut reader, &mut io::stdout()));
    Ok(writer.into())
}

/// Waits until the edge is ready. `Some`: the edge was told to stop before that, with this exit code.
fn wait_until_ready(
    settings: &Settings,
    envoy: &mut Child,
    life: &Life,
    signals: &mut Signals,
) -> Result<Option<u8>, RunError> {
    let health = HealthCheck::new(settings);
    let start = Instant::now();
    while start.elapsed() < START_PATIENCE {
        if let Some(status) = envoy.exited() {
            life.end(status);
            return Err(RunError::Ended(status));
        }
        if signals
            .pending()
            .any(|signal| matches!(signal, SIGINT | SIGTERM | SIGHUP))
        {
            life.end_in_order();
            // Envoy may have begun to serve since the last look.
            return Ok(Some(if health.passes() {
                watch::stop_in_order(settings, envoy, signals)
            } else {
                envoy.stop().map_or(1, exit_code)
            }));
        }
        if health.passes() {
            return Ok(None);
        }
        std::thread::sleep(POLL);
    }
    Err(RunError::NotReady)
}

fn announce(settings: &Settings, origin: &str) {
    let edge = health::local_address(settings.bind, settings.edge_port);
    say(&format!("http://{edge}/ is ready, in front of {origin}"));
    if let Some(tls) = &settings.tls {
        say(&format!(
            "https://{}/ is ready too",
            health::local_address(settings.bind, tls.port)
        ));
    }
    say(&format!(
        "http://127.0.0.1:{}/ is Envoy's admin interface",
        settings.admin_port
    ));
}
