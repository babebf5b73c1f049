// SPDX-License-Identifier: Apache-2.0
//! Where a pod will be: what manifests name of it before it is there.

use super::Pod;
use crate::machine::ports::free_port;
use crate::mesh::pod_address;
use std::net::IpAddr;
use std::path::PathBuf;
use tempfile::TempDir;

/// What must be known of a pod before it is there, as manifests name it.
pub struct Place {
    /// Its address.
    pub address: IpAddr,
    /// The version of Istio that its proxy says it is of; none is that of its control plane.
    pub istio_version: Option<String>,
    /// Whether the agent gets a folder for modules that it fetches.
    pub fetches: bool,
    /// The filter's module, where a volume of the pod has it.
    pub module: Option<PathBuf>,
    /// What stands for its file system.
    pub(super) folder: TempDir,
    pub(super) admin_port: u16,
}

impl Place {
    /// A place for one.
    ///
    /// # Panics
    /// When no folder is to be had.
    #[must_use]
    pub fn new() -> Self {
        Self::at(pod_address().into())
    }

    /// A place at that loopback address.
    ///
    /// # Panics
    /// When no folder is to be had.
    #[must_use]
    pub fn at(address: IpAddr) -> Self {
        let folder = TempDir::with_prefix("sluice-pod-").unwrap();
        let place = Self {
            address,
            istio_version: None,
            fetches: false,
            module: None,
            folder,
            admin_port: free_port(),
        };
        std::fs::create_dir(place.cache()).unwrap();
        place
    }

    /// A place for one with the volume of a pod that has ended.
    ///
    /// # Panics
    /// When the volume cannot be moved.
    #[must_use]
    pub fn with_volume_of(pod: Pod) -> Self {
        let place = Self::new();
        std::fs::remove_dir(place.cache()).unwrap();
        std::fs::rename(pod.place.cache(), place.cache()).unwrap();
        place
    }

    /// The folder for the cache.
    #[must_use]
    pub fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }
}

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}
