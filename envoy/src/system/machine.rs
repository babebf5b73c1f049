// SPDX-License-Identifier: Apache-2.0
//! The resources of the machine, or of the container: memory, cores and open files.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::system::sysinfo;

use super::cgroup;

/// The resources of the machine, from which the edge derives its bounds at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The memory in bytes: the memory of the machine, or the limit of this process's control groups if that is
    /// less.
    pub memory_bytes: u64,
    /// The number of workers that keep all cores busy. A CPU limit counts; a CPU request of Kubernetes does not.
    pub cores: u32,
    /// Bound on the number of clients' connections.
    pub connections: u64,
}

const MOST_CONNECTIONS: u64 = 50_000;
/// Files for connections to the origin (Envoy's configuration allows 4,096), and for Envoy itself.
const OTHER_FILES: u64 = 4_096 + 512;

impl Machine {
    /// Reads the limits of this process and of its container.
    pub fn detect() -> Self {
        Self {
            memory_bytes: memory_bytes(),
            cores: Self::cores(),
            connections: connections(open_files()),
        }
    }

    /// The number of workers that keep all cores busy.
    pub fn cores() -> u32 {
        std::thread::available_parallelism()
            .map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(1).min(512))
    }

    /// Raises the limit on open files of this process and its children to the hard limit.
    pub fn raise_open_files() {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        // If this fails, Envoy works with the lower limit.
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: maximum,
                maximum,
            },
        );
    }
}

/// The limit on open files after [`Machine::raise_open_files`].
fn open_files() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

/// The number of clients' connections that `files` open files allow: half of the files that remain for clients,
/// because the store may have a file open for each request.
fn connections(files: u64) -> u64 {
    let left = files - OTHER_FILES.min(files / 4);
    (left / 2).clamp(64, MOST_CONNECTIONS)
}

/// The lesser of the container's memory limit and the machine's memory.
fn memory_bytes() -> u64 {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = cgroup::memory_limit(&groups, Path::new(cgroup::MOUNTED));
    let machine = sysinfo();
    let machine = machine.totalram.saturating_mul(machine.mem_unit.into());
    limit.unwrap_or(machine).min(machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_some_of_everything() {
        let machine = Machine::detect();
        assert!(machine.connections >= 64);
        assert!(machine.cores >= 1);
    }

    #[test]
    fn connections_and_the_store_share_what_files_there_are() {
        assert_eq!(connections(1 << 20), 50_000);
        // As in `docs/operations.md`.
        assert_eq!(connections(104_608), 50_000);
        assert_eq!(connections(20_000), 7_696);
        assert_eq!(connections(1_024), 384);
    }

    #[test]
    fn memory_is_at_most_that_of_the_machine() {
        let text = fs::read_to_string("/proc/meminfo").unwrap();
        let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
        let kib: u64 = total
            .unwrap()
            .trim()
            .strip_suffix(" kB")
            .unwrap()
            .parse()
            .unwrap();
        assert!((1..=kib << 10).contains(&memory_bytes()));
    }
}
