// SPDX-License-Identifier: Apache-2.0
//! The edge from start to end: checks, starts, watches and stops everything.

mod error;
mod watch;

use std::fs::File;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::ca_bundle;
use crate::cache_folder::CacheFolder;
use crate::child::{Child, exit_code};
use crate::demo::Demo;
use crate::early_deaths::Life;
use crate::free_space::FreeSpace;
use crate::health;
use crate::http;
use crate::journal;
use crate::keeper;
use crate::local_socket::LocalSocket;
use crate::machine::Machine;
use crate::private;
use crate::render;
use crate::settings::Settings;
use crate::shortage::Shortage;
use crate::sns::{self, Https, Sns, Verifier};
pub use error::RunError;

const START_PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
/// So long Envoy's start waits for the files of earlier runs; what has not been checked by then comes back while it serves.
const CHECK_PATIENCE: Duration = Duration::from_secs(1);
/// Components of Envoy whose warnings are no news: that its cache filter is work in progress, at every start, and that
/// the store has ended an insertion, at every one.
const QUIETER: &str = "misc:error,cache_filter:error";

/// Runs the edge until it is told to stop or ends by itself; gives the exit code.
pub fn run(settings: &Settings) -> Result<u8, RunError> {
    Machine::raise_open_files();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD])
        .map_err(|error| RunError::Io("signal handlers".into(), error))?;
    let state = &settings.locations.state;
    private::make_folder(state).map_err(|error| RunError::Io(state.clone(), error))?;
    check_ports(settings)?;
    if settings.filter && !settings.locations.wasm.is_file() {
        return Err(RunError::Missing(
            "SLUICE_WASM",
            settings.locations.wasm.clone(),
        ));
    }
    let mut cache = CacheFolder::open(&settings.cache).map_err(RunError::CacheFolder)?;
    if let Some(notice) = cache.notice() {
        say(notice);
    }
    let shortage = Shortage::default();
    let free_space = FreeSpace::of(settings, cache.entries(), shortage.clone())?;
    // NB: declared before Envoy, so that it is dropped, and MinIO stopped, after it.
    let (origin, demo) = match &settings.origin {
        Some(origin) => (origin.clone(), None),
        None => {
            let demo = Demo::start(settings).map_err(RunError::Demo)?;
            (demo.origin().clone(), Some(demo))
        }
    };
    let mut past = cache.past();
    let journal = cache.take_journal().map(|journal| {
        journal::serve(journal, state).map_err(|error| RunError::Io(state.clone(), error))
    });
    let journal = journal.transpose()?;
    past.socket = journal.as_ref().map(|socket| socket.path().to_owned());
    let sns = settings.sns.as_ref().map(|sns| serve_sns(settings, sns));
    let sns = sns.transpose()?;
    let sns = sns.as_ref().map(LocalSocket::path);
    let config = render::render_after(settings, &origin, cache.entries(), &past, sns)
        .map_err(RunError::Render)?;
    let config = write_config(settings, &config)?;
    // NB: declared before Envoy, so that it is dropped after it, and knows all that has been stored.
    let keeper = keeper::start(settings, &cache, shortage);
    let keeper = keeper.map_err(|error| RunError::Io(cache.entries().to_owned(), error))?;
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
    let service = Https::new(&roots, sns.proxy.as_ref())
        .map_err(|error| RunError::Io(roots.clone(), error))?;
    let verifier = Verifier::new(sns.topics.clone(), Box::new(service));
    let state = &settings.locations.state;
    sns::serve(verifier, state).map_err(|error| RunError::Io(state.clone(), error))
}

/// Tells the user something; standard output belongs to the access log.
pub fn say(line: &str) {
    // Nobody to tell that nobody listens.
    let _ = writeln!(io::stderr(), "sluice: {line}");
}

/// Envoy itself would share a port with another Envoy, and each would get some of the requests.
fn check_ports(settings: &Settings) -> Result<(), RunError> {
    let listeners = [
        ("EDGE_PORT", Some(settings.edge_port)),
        ("EDGE_TLS_PORT", settings.tls.as_ref().map(|tls| tls.port)),
    ];
    let listeners = listeners
        .into_iter()
        .filter_map(|(name, port)| Some((name, settings.bind, port?)));
    let admin = (
        "ADMIN_PORT",
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        settings.admin_port,
    );
    let purge = &settings.purge;
    let purge = settings
        .takes_purges()
        .then_some(("PURGE_PORT", purge.bind, purge.port));
    let metrics = settings.metrics;
    let metrics = metrics.map(|metrics| ("METRICS_PORT", metrics.bind, metrics.port));
    for (name, ip, port) in listeners.chain([admin]).chain(purge).chain(metrics) {
        let address = SocketAddr::new(ip, port);
        TcpListener::bind(address).map_err(|error| RunError::Port {
            name,
            address,
            error,
        })?;
    }
    Ok(())
}

/// Writes the configuration where only this user reads it.
fn write_config(settings: &Settings, config: &str) -> Result<PathBuf, RunError> {
    let path = settings
        .locations
        .state
        .join(format!("envoy-{}.yaml", settings.edge_port));
    private::write(&path, config).map_err(|error| RunError::Io(path.clone(), error))?;
    Ok(path)
}

fn start_envoy(settings: &Settings, config: &Path, demo: Option<&Demo>) -> Result<Child, RunError> {
    let mut command = Command::new(&settings.locations.envoy);
    command.arg("--config-path").arg(config);
    command.args(["--concurrency", &settings.concurrency.to_string()]);
    // It has no use for it.
    command.env_remove("PURGE_TOKEN");
    // Several edges run on one machine, and none takes over from another.
    command.arg("--disable-hot-restart");
    command.args(["--log-level", "warning", "--component-log-level", QUIETER]);
    // Whoever watches the access log sees a request at once.
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

/// This process's standard output, or a pipe to it where it is nothing that Envoy can open by name (a socket).
fn access_log() -> io::Result<Stdio> {
    if File::options().append(true).open("/dev/stdout").is_ok() {
        return Ok(Stdio::inherit());
    }
    let (mut reader, writer) = io::pipe()?;
    // Ends with Envoy.
    std::thread::spawn(move || io::copy(&mut reader, &mut io::stdout()));
    Ok(writer.into())
}

/// `Some`: asked to stop before it was ready.
fn wait_until_ready(
    settings: &Settings,
    envoy: &mut Child,
    life: &Life,
    signals: &mut Signals,
) -> Result<Option<u8>, RunError> {
    let client = http::client();
    let start = Instant::now();
    while start.elapsed() < START_PATIENCE {
        if let Some(status) = envoy.exited() {
            life.ended(status);
            return Err(RunError::Ended(status));
        }
        if signals
            .pending()
            .any(|signal| matches!(signal, SIGINT | SIGTERM | SIGHUP))
        {
            life.ended_in_order();
            // It may serve already, before that has been noticed here.
            let serves = health::is_ready(&client, settings);
            return Ok(Some(if serves {
                watch::stop_in_order(settings, envoy, signals)
            } else {
                envoy.stop().map_or(1, exit_code)
            }));
        }
        if health::is_ready(&client, settings) {
            return Ok(None);
        }
        std::thread::sleep(POLL);
    }
    Err(RunError::NotReady)
}

fn announce(settings: &Settings, origin: &str) {
    let edge = health::local_address(settings.bind, settings.edge_port);
    say(&format!("http://{edge}/ is ready, before {origin}"));
    if let Some(tls) = &settings.tls {
        say(&format!(
            "https://{}/ too",
            health::local_address(settings.bind, tls.port)
        ));
    }
    say(&format!(
        "http://127.0.0.1:{}/ is Envoy's admin interface",
        settings.admin_port
    ));
}
