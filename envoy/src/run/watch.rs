// SPDX-License-Identifier: Apache-2.0
//! The running edge: waits for its end, and stops it in order.

use std::time::Instant;

use rustix::process::Signal;
use signal_hook::consts::{SIGCHLD, SIGUSR1};
use signal_hook::iterator::Signals;

use super::POLL;
use crate::cache::Life;
use crate::demo::Demo;
use crate::log::say;
use crate::net::admin::Admin;
use crate::settings::Settings;
use crate::system::child::{Child, exit_code};

/// Waits until a process ends or a signal arrives, and stops the edge. Gives the exit code.
pub fn watch(
    settings: &Settings,
    envoy: &mut Child,
    life: &Life,
    demo: Option<Demo>,
    signals: &mut Signals,
) -> u8 {
    let mut demo = demo;
    loop {
        if let Some(status) = envoy.exited() {
            say(&format!("Envoy ended: {status}"));
            life.end(status);
            return exit_code(status);
        }
        if let Some(status) = demo.as_mut().and_then(Demo::exited) {
            say(&format!("MinIO ended: {status}"));
            return envoy.stop().map_or(1, |_| 1);
        }
        for signal in signals.wait() {
            match signal {
                SIGUSR1 => envoy.signal(Signal::USR1),
                SIGCHLD => {}
                _ => {
                    life.end_in_order();
                    return stop_in_order(settings, envoy, signals);
                }
            }
        }
    }
}

/// Drains the edge: it answers "not ready", and requests in flight may end, until the drain time is over or a second
/// signal arrives. Gives the exit code.
pub fn stop_in_order(settings: &Settings, envoy: &mut Child, signals: &mut Signals) -> u8 {
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
                "stopping with {} requests in flight",
                active.unwrap_or(0)
            ));
            // NB: not SIGTERM: Envoy would crash where its store is being filled.
            envoy.signal(Signal::KILL);
            return envoy.stop().map_or(1, |_| 0);
        }
        std::thread::sleep(POLL);
    }
    envoy.stop().map_or(1, exit_code)
}
