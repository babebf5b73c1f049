// SPDX-License-Identifier: Apache-2.0
//! Envoy's stores: which of its cache filters stores, and where.

use std::fmt;

/// Which of Envoy's cache filters stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `envoy.filters.http.cache`, as in Istio's proxy.
    V1,
    /// `envoy.filters.http.cache_v2`.
    V2,
}

/// Medium of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A bounded store on tmpfs.
    Memory,
    /// A folder.
    Disk,
}

impl fmt::Display for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
        })
    }
}

/// A store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// Version of the cache filter. Only bare Envoy has the choice.
    pub version: Version,
    /// `SLUICE_CACHE`.
    pub medium: Medium,
}

impl Store {
    /// v1, `SLUICE_CACHE=memory`
    pub const V1_MEMORY: Self = Self {
        version: Version::V1,
        medium: Medium::Memory,
    };
    /// v1, `SLUICE_CACHE=disk`
    pub const V1_DISK: Self = Self {
        version: Version::V1,
        medium: Medium::Disk,
    };
    /// v2, `SLUICE_CACHE=memory`
    pub const V2_MEMORY: Self = Self {
        version: Version::V2,
        medium: Medium::Memory,
    };
    /// v2, `SLUICE_CACHE=disk`
    pub const V2_DISK: Self = Self {
        version: Version::V2,
        medium: Medium::Disk,
    };
    /// The stores that an edge can have.
    pub const ALL: [Self; 2] = [Self::V1_MEMORY, Self::V1_DISK];

    /// The version's name.
    #[must_use]
    pub const fn version_name(self) -> &'static str {
        match self.version {
            Version::V1 => "v1",
            Version::V2 => "v2",
        }
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.version_name(), self.medium)
    }
}
