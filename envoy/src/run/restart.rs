// SPDX-License-Identifier: Apache-2.0
//! Starts the edge again after a fault, if no supervisor does so. Each start is a new process, so that no state of
//! the failed edge remains. In a container the orchestrator starts the edge again, and elsewhere systemd can.

use std::process::{Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use super::running::{POLL, tells_to_stop};
use crate::log::warn;
use crate::system::child::{Child, exit_code};
use crate::system::service_manager;

/// Runs this program without arguments, and again each time that it has ended with a fault. Returns its last exit
/// code.
///
/// # Errors
/// The program cannot be started.
pub fn keep_running() -> anyhow::Result<u8> {
    let mut signals = super::signals()?;
    let program = std::env::current_exe().context("the path of this program")?;
    let mut backoff = Backoff::default();
    let mut is_first = true;
    loop {
        let start = Instant::now();
        let edge = Child::spawn(&mut Command::new(&program));
        let edge = edge.with_context(|| program.display().to_string())?;
        let (status, was_told) = wait_for_end(edge, &mut signals);
        let code = exit_code(status);
        let is_refused_start = is_first && code == 1;
        if was_told || status.success() || is_refused_start {
            return Ok(code);
        }
        is_first = false;
        let pause = backoff.after(start.elapsed());
        let seconds = pause.as_secs_f32();
        let told = format!("the edge has ended ({status}); it is started again in {seconds} s");
        warn(&told);
        service_manager::report_status(&told);
        if is_told_within(pause, &mut signals) {
            return Ok(0);
        }
    }
}

/// Waits until the edge has ended, and passes signals on to it. Returns its status, and whether it was told to stop.
fn wait_for_end(mut edge: Child, signals: &mut Signals) -> (ExitStatus, bool) {
    let mut was_told = false;
    loop {
        if let Some(status) = edge.exited() {
            return (status, was_told);
        }
        for signal in signals.wait() {
            was_told |= tells_to_stop(signal);
            match signal {
                SIGINT | SIGTERM => edge.signal(Signal::TERM),
                SIGUSR1 => edge.signal(Signal::USR1),
                SIGHUP => edge.signal(Signal::HUP),
                _ => {}
            }
        }
    }
}

/// Waits for `pause`, or until a signal tells the edge to stop. Returns whether such a signal has arrived.
fn is_told_within(pause: Duration, signals: &mut Signals) -> bool {
    let start = Instant::now();
    while start.elapsed() < pause {
        if signals.pending().any(tells_to_stop) {
            return true;
        }
        sleep(POLL);
    }
    false
}

/// The pauses between the end of the edge and its next start.
struct Backoff {
    next: Duration,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(30);
    /// After the edge has lived for this time, the next pause is the first one again.
    const LONG_LIFE: Duration = Duration::from_secs(60);

    /// The pause after an edge has `lived` for this time.
    fn after(&mut self, lived: Duration) -> Duration {
        if lived >= Self::LONG_LIFE {
            self.next = Self::FIRST;
        }
        let pause = self.next;
        self.next = (pause * 2).min(Self::LONGEST);
        pause
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: Self::FIRST }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_half_a_minute_and_begin_anew_after_a_minute_of_life() {
        let mut backoff = Backoff::default();
        let pauses: Vec<_> = (0..11)
            .map(|_| backoff.after(Duration::from_secs(59)).as_millis())
            .collect();
        let expected = [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600];
        assert_eq!(pauses[..9], expected);
        assert_eq!(pauses[9..], [30_000, 30_000]);
        assert_eq!(backoff.after(Duration::from_secs(60)), Backoff::FIRST);
    }
}
