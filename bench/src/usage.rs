// SPDX-License-Identifier: Apache-2.0
//! What processes take of the machine: CPU time and memory of a server, and what others take meanwhile.

use sluice_tests::process;
use std::time::{Duration, Instant};

/// A process and all below it.
fn family(pid: u32) -> Vec<u32> {
    let below = process::descendants(pid).into_keys();
    std::iter::once(pid).chain(below).collect()
}

/// Whether the process runs: what has ended and was not waited for does not.
pub fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
    state.is_some_and(|state| !state.starts_with(['Z', 'X']))
}

/// The CPU time that the processes and all below them have taken so far.
pub fn cpu_time(pids: &[u32]) -> Duration {
    let all = pids.iter().flat_map(|&pid| family(pid));
    all.filter_map(process::cpu_time).sum()
}

/// The most memory that the processes and all below them have had resident, each at its time, in KiB. Pages that
/// they share count for each.
pub fn peak_kib(pids: &[u32]) -> u64 {
    let all = pids.iter().flat_map(|&pid| family(pid));
    all.filter_map(|pid| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    })
    .sum()
}

/// Sees how much of the machine others take.
pub struct Bystander {
    began: Instant,
    busy: f64,
    own: f64,
}

/// Ticks of the kernel's accounts for each second: `USER_HZ`, the same on all that runs Linux here.
const TICKS: f64 = 100.0;

impl Bystander {
    /// From now on.
    pub fn start() -> Self {
        Self {
            began: Instant::now(),
            busy: busy_seconds(),
            own: own_seconds(),
        }
    }

    /// The part of all cores, 0 to 1, that was taken by what this process has not started, or by other machines
    /// (steal).
    pub fn foreign(&self) -> f64 {
        let cores = f64::from(crate::machine::cores());
        let capacity = self.began.elapsed().as_secs_f64() * cores;
        let foreign = (busy_seconds() - self.busy) - (own_seconds() - self.own);
        (foreign / capacity).clamp(0.0, 1.0)
    }
}

/// All CPU time but idling that the machine has seen, in seconds.
fn busy_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let fields: Vec<f64> = line
        .split_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal; guests are in the first two.
    let busy = [0, 1, 2, 5, 6, 7].map(|at| fields.get(at).copied().unwrap_or(0.0));
    busy.iter().sum::<f64>() / TICKS
}

/// That of this process, of all below it, and of those below it that have ended.
fn own_seconds() -> f64 {
    let all = family(std::process::id());
    all.into_iter().filter_map(account).sum()
}

/// The CPU time of a process and of its children that it has waited for.
fn account(pid: u32) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = text.rsplit_once(") ")?.1.split(' ');
    let times = fields.skip(11).take(4);
    let ticks: f64 = times.filter_map(|field| field.parse::<f64>().ok()).sum();
    Some(ticks / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_work_is_not_foreign() {
        let bystander = Bystander::start();
        let own = own_seconds();
        while own_seconds() < own + 0.2 {
            std::hint::black_box(vec![0_u8; 1 << 16]);
        }
        let elapsed = bystander.began.elapsed().as_secs_f64();
        let busy = busy_seconds() - bystander.busy;
        let cores = f64::from(crate::machine::cores());
        // Others may be busy; what they are is what is left.
        assert!(bystander.foreign() <= (busy - 0.15).max(0.0) / (elapsed * cores) + 0.05);
        assert!(peak_kib(&[std::process::id()]) > 1_000);
        assert!(cpu_time(&[std::process::id()]) >= Duration::from_millis(190));
    }
}
