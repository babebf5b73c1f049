// SPDX-License-Identifier: Apache-2.0
//! What the machine, or the container, allows: the bounds of Envoy's overload manager follow from it.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sluice_core::open_keys::MOST_OPEN_KEYS;

/// What the machine can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// How many connections clients may hold.
    pub connections: u64,
    /// How many files the store may have open beside those connections and those to the origin.
    pub files: u64,
    /// How large Envoy's heap may get.
    pub heap_bytes: u64,
}

const MOST_CONNECTIONS: u64 = 50_000;
/// Connections to the origin, of which Envoy's configuration allows 4,096, and what Envoy needs for itself.
const OTHER_FILES: u64 = 4_096 + 512;
const LEAST_HEAP: u64 = 64 << 20;
/// What the v2 store takes of the heap for a key that it keeps open.
const OPEN_KEY_BYTES: u64 = 8 << 10;
/// What part of all entries may be open at least, `1 / FEW_OPEN_KEYS`, so that a store that is renewed, which is read as a
/// whole, costs little for each of them.
const FEW_OPEN_KEYS: u64 = 4;

impl Machine {
    /// Looks at the limits of this process and of its container, in which `reserved` bytes are spoken for.
    pub fn detect(reserved: u64) -> Self {
        let (connections, files) = shares(open_files());
        let memory = memory_bytes().unwrap_or(1 << 30).saturating_sub(reserved);
        Self {
            connections,
            files,
            heap_bytes: (memory / 4 * 3).max(LEAST_HEAP),
        }
    }

    /// How many keys the v2 store may keep open: as many as there are files for, in half of the heap.
    pub fn open_keys(&self) -> u64 {
        let fit = self.heap_bytes / 2 / OPEN_KEY_BYTES;
        self.files.min(fit).clamp(1, MOST_OPEN_KEYS)
    }

    /// What to tell who lets the v2 store keep `open_keys` open, of `entries` that the cache may hold.
    pub fn open_keys_notice(&self, open_keys: u64, entries: u64) -> Option<String> {
        let files = self.files;
        if open_keys > files {
            return Some(format!(
                "CACHE_MAX_OPEN_KEYS is {open_keys}, and {files} files may be open beside connections: if there are none \
                 left, requests fail; raise the limit (ulimit -Hn), or set STORE=v1"
            ));
        }
        (open_keys < entries / FEW_OPEN_KEYS).then(|| {
            format!(
                "{open_keys} objects may be open in the cache at one time, and CACHE_MAX_ENTRIES is {entries}: where many \
                 different ones are asked for, the store is renewed often, which takes CPU time. Allow more open files \
                 (ulimit -Hn) or memory, or set STORE=v1"
            )
        })
    }

    /// How many workers keep all cores busy.
    pub fn cores() -> u32 {
        std::thread::available_parallelism()
            .map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(1).min(512))
    }

    /// Lets this process and its children open as many files as they are allowed to.
    pub fn raise_open_files() {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        // Nothing is lost where this fails: Envoy lives with the lower limit.
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

/// How many of so many open files are for clients' connections, and how many for the store.
fn shares(files: u64) -> (u64, u64) {
    let left = files - OTHER_FILES.min(files / 4);
    let connections = (left / 2).clamp(64, MOST_CONNECTIONS);
    (connections, left.saturating_sub(connections))
}

/// The container's memory limit or the machine's memory, whichever is less.
fn memory_bytes() -> Option<u64> {
    let container = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ]
    .iter()
    .find_map(|path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| mem_total(&text));
    match (container, machine) {
        (Some(container), Some(machine)) => Some(container.min(machine)),
        (container, machine) => container.or(machine),
    }
}

fn mem_total(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_some_of_everything() {
        let machine = Machine::detect(0);
        assert!(machine.connections >= 64);
        assert!(machine.heap_bytes >= LEAST_HEAP);
        assert!(Machine::detect(1 << 30).heap_bytes < machine.heap_bytes);
        assert!(Machine::cores() >= 1);
    }

    #[test]
    fn connections_and_the_store_share_what_files_there_are() {
        assert_eq!(shares(1 << 20), (50_000, (1 << 20) - 4_608 - 50_000));
        assert_eq!(shares(20_000), (7_696, 7_696));
        assert_eq!(shares(1_024), (384, 384));
    }

    #[test]
    fn the_store_keeps_as_many_keys_open_as_files_and_memory_allow() {
        let machine = |files, heap_bytes| Machine {
            connections: 64,
            files,
            heap_bytes,
        };
        assert_eq!(machine(6_000, 1 << 30).open_keys(), 6_000);
        assert_eq!(machine(1_000_000, 1 << 30).open_keys(), 65_536);
    }

    #[test]
    fn who_has_too_few_files_for_the_store_is_told() {
        let machine = Machine {
            connections: 14_000,
            files: 6_000,
            heap_bytes: LEAST_HEAP,
        };
        assert_eq!(machine.open_keys_notice(6_000, 24_000), None);
        for (open_keys, parts) in [
            (
                300,
                ["300 objects", "CACHE_MAX_ENTRIES is 100000", "STORE=v1"],
            ),
            (
                7_000,
                ["6000 files", "CACHE_MAX_OPEN_KEYS is 7000", "STORE=v1"],
            ),
        ] {
            let told = machine.open_keys_notice(open_keys, 100_000).unwrap();
            for part in parts {
                assert!(told.contains(part), "{told}");
            }
        }
    }

    #[test]
    fn total_memory_is_read_in_kib() {
        assert_eq!(
            mem_total("MemTotal:       16 kB\nMemFree: 1 kB\n"),
            Some(16 << 10)
        );
        assert_eq!(mem_total("MemFree: 1 kB\n"), None);
    }
}
