// SPDX-License-Identifier: Apache-2.0
//! The place of a pod: values that manifests need before the pod exists.

use super::Pod;
use crate::machine::ports::free_port;
use crate::mesh::pod_address;
use std::net::IpAddr;
use std::path::PathBuf;
use tempfile::TempDir;

/// Values of a pod that manifests need before the pod exists.
pub struct Place {
    /// Address of the pod.
    pub address: IpAddr,
    /// The version of Istio that its proxy reports; `None` for that of its control plane.
    pub istio_version: Option<String>,
    /// Whether the agent gets a folder for the modules that it fetches.
    pub fetches: bool,
    /// The filter's module, where a volume of the pod has it.
    pub module: Option<PathBuf>,
    /// The folder that stands for its file system.
    pub(super) folder: TempDir,
    pub(super) admin_port: u16,
}

impl Place {
    /// Creates a place.
    ///
    /// # Panics
    /// When no folder can be created.
    #[must_use]
    pub fn new() -> Self {
        Self::at(pod_address().into())
    }

    /// Creates a place at that loopback address.
    ///
    /// # Panics
    /// When no folder can be created.
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

    /// Creates a place with the volume of a pod that has ended.
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
