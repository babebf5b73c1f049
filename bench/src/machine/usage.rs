// SPDX-License-Identifier: Apache-2.0
//! CPU time and memory of a server's processes, and CPU time of other processes meanwhile.

use sluice_tests::machine::process;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A process and all of its descendants.
fn family(pid: u32) -> Vec<u32> {
    let below = process::descendants(pid).into_keys();
    std::iter::once(pid).chain(below).collect()
}

/// Whether the process runs. A process that has ended and was not waited for does not.
pub fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
    state.is_some_and(|state| !state.starts_with(['Z', 'X']))
}

/// CPU time of the processes and all of their descendants so far.
pub fn cpu_time(pids: &[u32]) -> Duration {
    let all = pids.iter().flat_map(|&pid| family(pid));
    all.filter_map(process::cpu_time).sum()
}

/// CPU time so far of each thread of a process whose name has this prefix.
pub fn threads(pid: u32, prefix: &str) -> BTreeMap<u32, Duration> {
    let folder = format!("/proc/{pid}/task");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let threads = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let named = |&thread: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/comm"));
        name.is_ok_and(|name| name.starts_with(prefix))
    };
    let time = |thread: u32| {
        // In nanoseconds; `stat` has hundredths of a second.
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).ok()?;
        let nanoseconds = text.split(' ').next()?.parse().ok()?;
        Some((thread, Duration::from_nanos(nanoseconds)))
    };
    threads.filter(named).filter_map(time).collect()
}

/// CPU time so far of each descendant of this process.
pub fn children(pid: u32) -> BTreeMap<u32, Duration> {
    let below = process::descendants(pid).into_keys();
    let time = |pid| Some((pid, process::cpu_time(pid)?));
    below.filter_map(time).collect()
}

/// Peak of resident memory of the processes and all of their descendants, each at its time, in KiB. Shared pages
/// count for each process.
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

/// Measures the CPU time and memory of a server, and the CPU time of generators that end meanwhile.
pub struct Meter {
    /// Its processes, without their descendants.
    pids: Vec<u32>,
    began: Instant,
    cpu: Duration,
    generators: Duration,
    bystander: Bystander,
}

/// CPU time and memory of a server.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// User and kernel, all threads.
    pub cpu: Duration,
    /// CPU time of generators.
    generators: Duration,
    elapsed: Duration,
    /// Peak of resident memory, in MiB, without files on a tmpfs.
    pub peak_mib: f64,
}

impl Meter {
    /// Starts to measure, and resets the peak of resident memory.
    pub fn start(pids: &[u32]) -> Self {
        for pid in pids.iter().flat_map(|&pid| family(pid)) {
            // See proc(5): `VmHWM` starts again at the current resident memory.
            let _ = std::fs::write(format!("/proc/{pid}/clear_refs"), "5");
        }
        Self {
            pids: pids.to_vec(),
            began: Instant::now(),
            cpu: cpu_time(pids),
            generators: ended(),
            bystander: Bystander::start(),
        }
    }

    /// CPU time and memory until now; `None` if one of the processes has ended, or if there are none.
    pub fn taken(&self) -> Option<Taken> {
        let alive = !self.pids.is_empty() && self.pids.iter().all(|&pid| alive(pid));
        #[allow(clippy::cast_precision_loss)]
        alive.then(|| Taken {
            cpu: cpu_time(&self.pids).saturating_sub(self.cpu),
            generators: ended().saturating_sub(self.generators),
            elapsed: self.began.elapsed(),
            peak_mib: peak_kib(&self.pids) as f64 / 1024.0,
        })
    }

    /// The part of all cores, 0 to 1, that other processes took until now.
    pub fn foreign(&self) -> f64 {
        self.bystander.foreign()
    }
}

impl Taken {
    /// CPU time for each of this many requests, in microseconds.
    pub fn cpu_us(&self, requests: u64) -> f64 {
        each_us(self.cpu, requests)
    }

    /// CPU time of the generators for each of this many requests, in microseconds.
    pub fn generator_us(&self, requests: u64) -> f64 {
        each_us(self.generators, requests)
    }

    /// Number of cores that server and generators have kept busy.
    pub fn cores(&self) -> f64 {
        (self.cpu + self.generators).as_secs_f64() / self.elapsed.as_secs_f64()
    }
}

fn each_us(time: Duration, requests: u64) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    let requests = requests as f64;
    time.as_secs_f64() * 1e6 / requests
}

/// Measures the CPU time of other processes.
pub struct Bystander {
    began: Instant,
    busy: f64,
    own: f64,
}

/// Ticks of the kernel's accounts in a second: `USER_HZ`, the same on all Linux machines here.
const TICKS: f64 = 100.0;

impl Bystander {
    /// Starts to measure.
    pub fn start() -> Self {
        Self {
            began: Instant::now(),
            busy: busy_seconds(),
            own: own_seconds(),
        }
    }

    /// The part of all cores, 0 to 1, that was taken by processes which this one has not started, or by other
    /// machines (steal).
    pub fn foreign(&self) -> f64 {
        let cores = f64::from(crate::machine::cores());
        let capacity = self.began.elapsed().as_secs_f64() * cores;
        let foreign = (busy_seconds() - self.busy) - (own_seconds() - self.own);
        (foreign / capacity).clamp(0.0, 1.0)
    }
}

/// CPU time of the machine so far, except idle time, in seconds.
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

/// CPU time of this process, of all its descendants, and of its descendants that have ended.
fn own_seconds() -> f64 {
    let all = family(std::process::id());
    all.into_iter().filter_map(accounts).flatten().sum()
}

/// Seconds of CPU time: of a process in user space and in the kernel, and of its children that it has waited for,
/// likewise.
fn accounts(pid: u32) -> Option<[f64; 4]> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<_> = text.rsplit_once(") ")?.1.split(' ').collect();
    let seconds = |field: usize| Some(fields.get(field)?.parse::<f64>().ok()? / TICKS);
    Some([seconds(11)?, seconds(12)?, seconds(13)?, seconds(14)?])
}

/// The CPU time of all processes that this one has started and waited for.
fn ended() -> Duration {
    let [.., user, kernel] = accounts(std::process::id()).unwrap_or_default();
    Duration::from_secs_f64(user + kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set in the process that `alone` starts.
    const ALONE: &str = "SLUICE_BENCH_ALONE";

    /// Runs the test of this name in a process without other tests, because their CPU time would count.
    fn alone(name: &str, test: fn()) {
        if std::env::var_os(ALONE).is_some() {
            return test();
        }
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("machine::usage::tests::{name}")])
            .env(ALONE, "1")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{told}");
        assert!(told.contains("1 passed"), "{told}");
    }

    #[test]
    fn a_meter_sees_what_was_taken_since_it_began() {
        alone("a_meter_sees_what_was_taken_since_it_began", || {
            let own = [std::process::id()];
            drop(std::hint::black_box(vec![1_u8; 64 << 20]));
            assert!(peak_kib(&own) > 64 << 10);
            let meter = Meter::start(&own);
            let before = meter.taken().unwrap();
            while meter.taken().unwrap().cpu < before.cpu + Duration::from_millis(20) {
                std::hint::black_box(vec![0_u8; 1 << 16]);
            }
            let after = meter.taken().unwrap();
            assert!((1.0..60.0).contains(&after.peak_mib), "{}", after.peak_mib);
            assert!(after.cpu_us(10) >= 2_000.0, "{after:?}");
            assert!(Meter::start(&[]).taken().is_none());
            assert!(Meter::start(&[u32::MAX]).taken().is_none());
        });
    }

    #[test]
    fn the_time_of_a_thread_is_its_own() {
        let worker = std::thread::Builder::new().name("wrk:test".to_owned());
        let (tell, told) = std::sync::mpsc::channel::<()>();
        let (worked, done) = std::sync::mpsc::channel();
        let worker = worker.spawn(move || {
            let end = Instant::now() + Duration::from_millis(60);
            while Instant::now() < end {
                std::hint::black_box(vec![0_u8; 1 << 16]);
            }
            worked.send(()).unwrap();
            let _ = told.recv();
        });
        done.recv().unwrap();
        let times = threads(std::process::id(), "wrk:test");
        assert_eq!(times.len(), 1);
        assert!(
            times.values().all(|time| *time > Duration::ZERO),
            "{times:?}"
        );
        assert!(threads(std::process::id(), "nobody").is_empty());
        drop(tell);
        worker.unwrap().join().unwrap();
    }

    #[test]
    fn what_has_ended_is_counted_from_then_on() {
        alone("what_has_ended_is_counted_from_then_on", || {
            assert_eq!(ended(), Duration::ZERO);
            let mut child = std::process::Command::new("sh");
            child.args(["-c", "while [ \"$((n = n + 1))\" -lt 200000 ]; do :; done"]);
            assert!(child.status().unwrap().success());
            assert!(ended() >= Duration::from_millis(10), "{:?}", ended());
        });
    }

    #[test]
    fn own_work_is_not_foreign() {
        alone("own_work_is_not_foreign", || {
            let bystander = Bystander::start();
            let own = own_seconds();
            while own_seconds() < own + 0.2 {
                std::hint::black_box(vec![0_u8; 1 << 16]);
            }
            let elapsed = bystander.began.elapsed().as_secs_f64();
            let busy = busy_seconds() - bystander.busy;
            let cores = f64::from(crate::machine::cores());
            // Other processes may be busy; their part is the rest.
            assert!(bystander.foreign() <= (busy - 0.15).max(0.0) / (elapsed * cores) + 0.05);
            assert!(peak_kib(&[std::process::id()]) > 1_000);
            assert!(cpu_time(&[std::process::id()]) >= Duration::from_millis(190));
        });
    }
}
