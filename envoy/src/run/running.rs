// SPDX-License-Identifier: Apache-2.0
//! The running edge: waits until the edge is ready, then for its end, and stops it in order.

use std::ffi::c_int;
use std::os::unix::process::ExitStatusExt as _;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use super::configuration::Configuration;
use super::health_check;
use crate::cache::EarlyDeaths;
use crate::demo::Demo;
use crate::log::{say, warn};
use crate::net::admin::Admin;
use crate::settings::Settings;
use crate::system::child::{Child, exit_code};
use crate::system::service_manager;

/// Bound on the time in which Envoy must become ready.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// Bound on the time in which a dying Envoy ends. An Envoy that does not answer for longer is still alive.
const END_PATIENCE: Duration = Duration::from_millis(500);
/// Bound on the time in which the last bytes of responses over HTTP/3 reach their clients. Envoy itself sends them, and
/// again if they are lost, unlike those of TCP, which the kernel has.
const LAST_PACKETS: Duration = Duration::from_secs(5);
/// The time between two polls.
pub const POLL: Duration = Duration::from_millis(20);

/// An edge whose Envoy has been started.
pub struct RunningEdge<'a> {
    /// The settings with which it was started.
    pub settings: &'a Settings,
    /// Envoy.
    pub envoy: Child,
    /// The time at which Envoy was started.
    pub started: Instant,
    /// The count of Envoy's early deaths with this cache.
    pub deaths: EarlyDeaths,
    /// The signals that arrive at this process.
    pub signals: Signals,
    /// Whether SIGHUP has arrived, and the configuration has not been reloaded since.
    pub wants_reload: bool,
}

impl RunningEdge<'_> {
    /// Waits until the edge is ready. `Some`: the edge was told to stop first, or Envoy has crashed, with this exit
    /// code.
    ///
    /// # Errors
    /// Envoy has refused to start, or has not become ready in time.
    pub fn wait_until_ready(&mut self) -> anyhow::Result<Option<u8>> {
        let ready = health_check(self.settings);
        while self.started.elapsed() < START_PATIENCE {
            if let Some(status) = self.envoy.exited() {
                self.deaths.note_end(status, self.started.elapsed());
                let told =
                    format!("Envoy ended before it was ready ({status}); its reason is above");
                ensure!(status.signal().is_some(), told);
                warn(&told);
                return Ok(Some(exit_code(status)));
            }
            if self.is_told_to_stop() {
                self.deaths.forget();
                // Envoy may have started to serve since the last poll.
                return Ok(Some(if ready() {
                    self.stop_in_order()
                } else {
                    self.envoy.stop().map_or(1, exit_code)
                }));
            }
            if ready() {
                return Ok(None);
            }
            sleep(POLL);
        }
        bail!("Envoy was not ready after {} s", START_PATIENCE.as_secs())
    }

    /// Checks Envoy with a call. `Some`: the call failed because Envoy was about to end, with this exit code.
    ///
    /// # Errors
    /// The check has failed, and Envoy is alive.
    pub fn check(
        &mut self,
        check: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<Option<u8>> {
        let Err(error) = check() else {
            return Ok(None);
        };
        let failed = Instant::now();
        while failed.elapsed() < END_PATIENCE {
            if let Some(code) = self.end() {
                return Ok(Some(code));
            }
            sleep(POLL);
        }
        Err(error)
    }

    /// Envoy's exit code, if Envoy has ended.
    fn end(&mut self) -> Option<u8> {
        let status = self.envoy.exited()?;
        warn(&format!("Envoy ended: {status}"));
        self.deaths.note_end(status, self.started.elapsed());
        Some(exit_code(status))
    }

    /// Waits until a process ends or a signal arrives, and stops the edge. Returns the exit code.
    pub fn watch(&mut self, configuration: &mut Configuration<'_>, mut demo: Option<Demo>) -> u8 {
        loop {
            if std::mem::take(&mut self.wants_reload) {
                configuration.reload();
            }
            if let Some(code) = self.end() {
                return code;
            }
            if let Some(status) = demo.as_mut().and_then(|demo| demo.minio.exited()) {
                warn(&format!("MinIO ended: {status}"));
                let _ = self.envoy.stop();
                return exit_code(status).max(1);
            }
            for signal in self.signals.wait() {
                match signal {
                    SIGUSR1 => self.envoy.signal(Signal::USR1),
                    SIGHUP => self.wants_reload = true,
                    SIGINT | SIGTERM => {
                        self.deaths.forget();
                        return self.stop_in_order();
                    }
                    _ => {}
                }
            }
        }
    }

    /// Whether a signal tells the edge to stop. Notes SIGHUP for later.
    fn is_told_to_stop(&mut self) -> bool {
        let mut is_told = false;
        for signal in self.signals.pending() {
            self.wants_reload |= signal == SIGHUP;
            is_told |= tells_to_stop(signal);
        }
        is_told
    }

    /// Whether clients over HTTP/3 are connected.
    fn has_http3_clients(&self, admin: &Admin) -> bool {
        self.settings.http3.listens() && admin.http3_connections() != Some(0)
    }

    /// Drains the edge: it answers "not ready" and still serves for the least drain time. Then requests in flight may
    /// end, until the drain time is over or the edge is told to stop once more. Returns the exit code.
    fn stop_in_order(&mut self) -> u8 {
        service_manager::report_stopping("draining: requests under way may finish");
        let Settings {
            min_drain, drain, ..
        } = *self.settings;
        let admin = Admin::new(self.settings.admin_socket());
        admin.fail_health_checks();
        let start = Instant::now();
        let mut last_request = start;
        while self.envoy.exited().is_none() {
            let active = admin.active_requests();
            let still_serves = start.elapsed() < min_drain;
            if still_serves || active != Some(0) {
                last_request = Instant::now();
            } else if last_request.elapsed() >= LAST_PACKETS || !self.has_http3_clients(&admin) {
                break;
            }
            let is_late = start.elapsed() >= min_drain.saturating_add(drain);
            let is_told = self.is_told_to_stop();
            if std::mem::take(&mut self.wants_reload) {
                say("SIGHUP is ignored: the edge is stopping");
            }
            if is_late || is_told {
                let active = active.unwrap_or(0);
                say(&format!("stopping with {active} requests in flight"));
                // NB: not SIGTERM, because Envoy would crash while its store is being filled.
                self.envoy.signal(Signal::KILL);
                return self.envoy.stop().map_or(1, |_| 0);
            }
            sleep(POLL);
        }
        self.envoy.stop().map_or(1, exit_code)
    }
}

/// Whether a signal tells the edge to stop.
pub fn tells_to_stop(signal: c_int) -> bool {
    matches!(signal, SIGINT | SIGTERM)
}
