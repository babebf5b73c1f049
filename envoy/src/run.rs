// SPDX-License-Identifier: Apache-2.0
//! The edge from start to end: checks, starts, watches and stops everything.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::admin::Admin;
use crate::cache_folder::{CacheFolder, CacheFolderError};
use crate::child::{Child, exit_code};
use crate::demo::{Demo, DemoError};
use crate::health;
use crate::http;
use crate::machine::Machine;
use crate::render::{self, RenderError};
use crate::settings::Settings;

/// Why the edge did not start, or did not go on.
#[derive(Debug)]
pub enum RunError {
    /// Somebody else listens there.
    Port {
        /// The variable that says which port.
        name: &'static str,
        /// Where the edge wanted to listen.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// A file operation failed.
    Io(PathBuf, io::Error),
    /// A program did not start.
    Spawn(&'static str, PathBuf, io::Error),
    /// Something is missing.
    Missing(&'static str, PathBuf),
    /// The cache's folder is not to be had.
    CacheFolder(CacheFolderError),
    /// The embedded demo did not start.
    Demo(DemoError),
    /// There is no configuration.
    Render(RenderError),
    /// Envoy has ended before it was ready.
    Ended(ExitStatus),
    /// Envoy has not become ready.
    NotReady,
}

impl fmt::Display for RunError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port {
                name,
                address,
                error,
            } => {
                write!(
                    out,
                    "{name}={}: expected a port that is free on {}: {error}",
                    address.port(),
                    address.ip()
                )
            }
            Self::Io(path, error) => write!(out, "{}: {error}", path.display()),
            Self::Spawn(name, path, error) => write!(out, "{name}={}: {error}", path.display()),
            Self::Missing(name, path) => write!(
                out,
                "{name}={}: expected a file that exists",
                path.display()
            ),
            Self::CacheFolder(error) => error.fmt(out),
            Self::Demo(error) => error.fmt(out),
            Self::Render(error) => error.fmt(out),
            Self::Ended(status) => write!(
                out,
                "Envoy ended before it was ready ({status}); its reason is above"
            ),
            Self::NotReady => write!(
                out,
                "Envoy was not ready after {} s",
                START_PATIENCE.as_secs()
            ),
        }
    }
}

impl std::error::Error for RunError {}

const START_PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// Runs the edge until it is told to stop or ends by itself; gives the exit code.
pub fn run(settings: &Settings) -> Result<u8, RunError> {
    Machine::raise_open_files();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD])
        .map_err(|error| RunError::Io("signal handlers".into(), error))?;
    make_state_folder(&settings.locations.state)?;
    check_ports(settings)?;
    if settings.filter && !settings.locations.wasm.is_file() {
        return Err(RunError::Missing(
            "SLUICE_WASM",
            settings.locations.wasm.clone(),
        ));
    }
    let cache =
        CacheFolder::open(&settings.cache, settings.store).map_err(RunError::CacheFolder)?;
    if let Some(notice) = cache.notice() {
        say(notice);
    }
    // NB: declared before Envoy, so that it is dropped, and MinIO stopped, after it.
    let demo = match settings.origin {
        Some(_) => None,
        None => Some(Demo::start(settings).map_err(RunError::Demo)?),
    };
    let origin = settings
        .origin
        .as_ref()
        .or_else(|| demo.as_ref().map(Demo::origin));
    let Some(origin) = origin else {
        return Err(RunError::NotReady);
    };
    let config = render::render(settings, origin, cache.entries()).map_err(RunError::Render)?;
    let config = write_config(settings, &config)?;
    let mut envoy = start_envoy(settings, &config, demo.as_ref())?;
    if let Some(code) = wait_until_ready(settings, &mut envoy, &mut signals)? {
        return Ok(code);
    }
    announce(settings, &origin.to_string());
    Ok(watch(settings, &mut envoy, demo, &mut signals))
}

/// Tells the user something; standard output belongs to the access log.
pub fn say(line: &str) {
    // Nobody to tell that nobody listens.
    let _ = writeln!(io::stderr(), "sluice: {line}");
}

fn make_state_folder(path: &Path) -> Result<(), RunError> {
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path);
    made.map_err(|error| RunError::Io(path.to_owned(), error))
}

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
    for (name, ip, port) in listeners.chain([admin]) {
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
    let write = || {
        let mut file = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)?;
        file.write_all(config.as_bytes())
    };
    write().map_err(|error| RunError::Io(path.clone(), error))?;
    Ok(path)
}

fn start_envoy(settings: &Settings, config: &Path, demo: Option<&Demo>) -> Result<Child, RunError> {
    let mut command = Command::new(&settings.locations.envoy);
    command.arg("--config-path").arg(config);
    command.args(["--concurrency", &settings.concurrency.to_string()]);
    // Several edges run on one machine, and none takes over from another.
    command.arg("--disable-hot-restart");
    // Work in progress is what Envoy calls its cache filters, at every start.
    command.args([
        "--log-level",
        "warning",
        "--component-log-level",
        "misc:error",
    ]);
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
    signals: &mut Signals,
) -> Result<Option<u8>, RunError> {
    let client = http::client();
    let start = Instant::now();
    while start.elapsed() < START_PATIENCE {
        if let Some(status) = envoy.exited() {
            return Err(RunError::Ended(status));
        }
        if signals
            .pending()
            .any(|signal| matches!(signal, SIGINT | SIGTERM | SIGHUP))
        {
            return Ok(Some(envoy.stop().map_or(1, exit_code)));
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

/// Waits for the end of a process or for a signal, and ends in good order.
fn watch(settings: &Settings, envoy: &mut Child, demo: Option<Demo>, signals: &mut Signals) -> u8 {
    let mut demo = demo;
    loop {
        for signal in signals.wait() {
            match signal {
                SIGUSR1 => envoy.signal(Signal::USR1),
                SIGCHLD => {
                    if let Some(status) = envoy.exited() {
                        say(&format!("Envoy ended: {status}"));
                        return exit_code(status);
                    }
                    if let Some(status) = demo.as_mut().and_then(Demo::exited) {
                        say(&format!("MinIO ended: {status}"));
                        return envoy.stop().map_or(1, |_| 1);
                    }
                }
                _ => {
                    return stop_in_order(settings, envoy, signals);
                }
            }
        }
    }
}

/// Answers "not ready" and lets requests under way end; gives up on them after a while or at a second signal.
fn stop_in_order(settings: &Settings, envoy: &mut Child, signals: &mut Signals) -> u8 {
    let admin = Admin::new(settings.admin_port);
    admin.fail_health_checks();
    let start = Instant::now();
    while envoy.exited().is_none() {
        let active = admin.active_requests();
        if active == Some(0) {
            break;
        }
        if start.elapsed() >= settings.drain || signals.pending().any(|signal| signal != SIGCHLD) {
            say(&format!(
                "not waiting any longer for {} requests",
                active.unwrap_or(0)
            ));
            // NB: told to end in order, Envoy crashes when requests of the v2 cache are under way.
            envoy.signal(Signal::KILL);
            return envoy.stop().map_or(1, |_| 0);
        }
        std::thread::sleep(POLL);
    }
    envoy.stop().map_or(1, exit_code)
}
