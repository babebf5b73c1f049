// SPDX-License-Identifier: Apache-2.0
//! The cache on files, and the hot tier in the workers' memory.

mod reserve;
mod slices;

use std::path::PathBuf;

pub use reserve::Reserve;
pub use slices::Slices;

use super::environment::Environment;
use super::locations::Locations;
use sluice_core::size::{self, Size};

/// Default bound on the size of a stored object. Envoy's cache reads a whole object into memory even if the client
/// reads slowly, so each slow client may hold this much memory.
const MAX_OBJECT_BYTES: u64 = 16 << 20;

/// The cache: its place, and its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// The kind of file system that the cache is on.
    pub medium: Medium,
    /// The cache's folder; for [`Medium::Memory`] the tmpfs on which the edge makes one.
    pub dir: PathBuf,
    /// Bound on the bytes of all entries.
    pub max_bytes: u64,
    /// Bound on the number of entries.
    pub max_entries: u64,
    /// Bound on the bytes of one object.
    pub max_object_bytes: u64,
    /// The space that stays free on the file system.
    pub reserve: Reserve,
}

/// The kind of file system that the cache is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A disk: the cache outlives the edge.
    Disk,
    /// A tmpfs: the cache ends with the edge.
    Memory,
}

impl Cache {
    /// Reads `SLUICE_CACHE` and `SLUICE_CACHE_…`.
    pub fn read(env: &mut Environment<'_>, locations: Option<&Locations>) -> Option<Self> {
        let media = [("disk", Medium::Disk), ("memory", Medium::Memory)];
        let medium = env.choice("SLUICE_CACHE", &media);
        let dir = env.set("SLUICE_CACHE_DIR").map(PathBuf::from);
        let max_bytes = env.parse("SLUICE_CACHE_MAX_BYTES", size::ACCEPTED, size::parse);
        let max_entries = env.number("SLUICE_CACHE_MAX_ENTRIES", 1..=1_000_000_000, "a number");
        let max_object_bytes =
            env.parse("SLUICE_CACHE_MAX_OBJECT_BYTES", size::ACCEPTED, size::parse);
        let reserve = env.parse("SLUICE_CACHE_RESERVE", reserve::ACCEPTED, Reserve::parse);
        let max_bytes = max_bytes?;
        if let Some(object) = max_object_bytes.filter(|object| *object > max_bytes) {
            let accepted = format!("at most SLUICE_CACHE_MAX_BYTES, {}", Size(max_bytes));
            let shown = Size(object).to_string();
            env.refuse("SLUICE_CACHE_MAX_OBJECT_BYTES", Some(shown), accepted);
        }
        let medium = medium?;
        let dir = dir.unwrap_or(match medium {
            Medium::Disk => locations?.state.join("cache"),
            Medium::Memory => PathBuf::from("/dev/shm"),
        });
        let default = MAX_OBJECT_BYTES.min(max_bytes / 4).max(1);
        Some(Self {
            medium,
            dir,
            max_bytes,
            max_entries: max_entries?,
            max_object_bytes: max_object_bytes.unwrap_or(default),
            reserve: reserve?,
        })
    }

    /// The memory of the machine that the entries may use, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        match self.medium {
            Medium::Disk => 0,
            Medium::Memory => self.max_bytes,
        }
    }
}

/// The hot tier: copies of small objects in each worker's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotTier {
    /// Bound on the bytes of all copies of one worker; 0 turns the hot tier off.
    pub max_bytes: u64,
    /// Bound on the bytes of one object.
    pub max_object_bytes: u64,
}

impl HotTier {
    /// Reads `SLUICE_HOT_BYTES`; `None`: it is not set, or there is a problem.
    pub fn read_max_bytes(env: &mut Environment<'_>) -> Option<u64> {
        let accepted = "0, or a number of bytes to 1GiB, plain or with KiB or MiB";
        env.parse("SLUICE_HOT_BYTES", accepted, |text| match text {
            "0" => Some(0),
            _ => size::parse(text).filter(|bytes| *bytes <= Self::MOST),
        })
    }

    /// Reads `SLUICE_HOT_OBJECT_BYTES`.
    pub fn read_max_object_bytes(env: &mut Environment<'_>) -> Option<u64> {
        let accepted = "a number of bytes from 1 to 1GiB, plain or with KiB or MiB";
        env.parse("SLUICE_HOT_OBJECT_BYTES", accepted, |text| {
            size::parse(text).filter(|bytes| *bytes <= Self::MOST)
        })
    }

    const MOST: u64 = 1 << 30;
}
