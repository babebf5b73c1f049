// SPDX-License-Identifier: Apache-2.0
//! The files from which Envoy reads the filters that are renewed.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::StoreInstance;
use crate::private;
use crate::render::Renderer;
use crate::run::RunError;

/// A filter that Envoy reads again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewedFilter {
    /// The cache filter, for new requests.
    Cache,
    /// The former one, which nobody asks: it keeps the store's instance for a while.
    FormerCache,
    /// EDGE.
    Edge,
}

impl RenewedFilter {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cache, Self::FormerCache, Self::Edge];

    /// The filter's name in Envoy's configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cache => "cache",
            Self::FormerCache => "former_cache",
            Self::Edge => "sluice.edge",
        }
    }
}

/// A folder with a file for each of them.
#[derive(Clone, Debug)]
pub struct RenewedFiles {
    folder: PathBuf,
    first: StoreInstance,
}

impl RenewedFiles {
    /// In `folder`, where all instances together may keep `max_open_keys` open.
    pub fn new(folder: PathBuf, max_open_keys: u64) -> Self {
        Self {
            folder,
            first: StoreInstance::first(max_open_keys),
        }
    }

    /// The instance of the store that Envoy starts with.
    pub fn first_instance(&self) -> StoreInstance {
        self.first
    }

    /// Where Envoy reads a filter from.
    pub fn path(&self, filter: RenewedFilter) -> PathBuf {
        self.folder.join(format!("{}.yaml", filter.name()))
    }

    /// Writes what Envoy starts with.
    ///
    /// # Errors
    /// The templates are wrong, or the folder cannot be written to.
    pub fn write_first(&self, renderer: &Renderer) -> Result<(), RunError> {
        let failed = |error| RunError::Io(self.folder.clone(), error);
        private::make_folder(&self.folder).map_err(failed)?;
        for filter in RenewedFilter::ALL {
            let text = renderer.renewed(filter, self.first);
            let text = text.map_err(RunError::Render)?;
            self.write(filter, &text).map_err(failed)?;
        }
        Ok(())
    }

    /// Puts a file with `text`, which only this user reads, in the place of the filter's: Envoy sees all of it at once.
    pub fn write(&self, filter: RenewedFilter, text: &str) -> io::Result<()> {
        let path = self.path(filter);
        let new = path.with_extension("new");
        private::write(&new, text)?;
        fs::rename(&new, &path)
    }
}
