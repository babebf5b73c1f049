// SPDX-License-Identifier: Apache-2.0
//! Keeps the manifest up to date while the cache runs.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::fingerprint::Fingerprint;
use super::manifest::{Fingerprints, Manifest};

/// The manifest is written anew when it has more than this many records for each file, and [`FEW_RECORDS`] beside.
const STALE_RECORDS: u64 = 2;
/// A manifest with fewer records is never written anew for their number.
const FEW_RECORDS: u64 = 10_000;
/// The time between two attempts to write the manifest anew.
const RETRY: Duration = Duration::from_secs(5);

/// Writes the manifest of one cache.
#[derive(Debug)]
pub struct ManifestWriter {
    root: PathBuf,
    /// `None`: it has not been written yet, or it could not be written.
    manifest: Option<Manifest>,
    written: Option<Instant>,
}

impl ManifestWriter {
    /// A writer of the manifest in `root`, the cache's folder.
    pub const fn new(root: PathBuf) -> Self {
        Self {
            root,
            manifest: None,
            written: None,
        }
    }

    /// The cache's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Adds the entries that have been `stored`. Now and then writes the manifest anew instead, with `files`, all
    /// entries in use, and `unchecked`, those that are not in use yet.
    ///
    /// # Errors
    /// The manifest cannot be written. It is written anew at the next call after a while.
    pub fn record(
        &mut self,
        stored: &[(u64, Fingerprint)],
        files: &Fingerprints,
        unchecked: &Fingerprints,
    ) -> io::Result<()> {
        let most = (files.len() + unchecked.len()) as u64 * STALE_RECORDS + FEW_RECORDS;
        let written = match &mut self.manifest {
            Some(manifest) if manifest.records() <= most => {
                if stored.is_empty() {
                    return Ok(());
                }
                manifest.append(stored)
            }
            _ if self.written.is_some_and(|last| last.elapsed() < RETRY) => return Ok(()),
            manifest => {
                self.written = Some(Instant::now());
                let all = unchecked.iter().chain(files);
                Manifest::write(&self.root, all).map(|new| *manifest = Some(new))
            }
        };
        if written.is_err() {
            self.manifest = None;
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn a_manifest_of_files_that_are_gone_is_written_anew() {
        let dir = TempDir::new().unwrap();
        let mut writer = ManifestWriter::new(dir.path().to_owned());
        let (files, none) = (
            Fingerprints::from([(1, Fingerprint::default())]),
            Fingerprints::new(),
        );
        writer.record(&[], &files, &none).unwrap();
        let stored: Vec<_> = (2..1_002).map(|n| (n, Fingerprint::default())).collect();
        for _ in 0..FEW_RECORDS / 1_000 + 2 {
            let mut more = files.clone();
            more.extend(stored.iter().copied());
            writer.record(&stored, &more, &none).unwrap();
            // As if the last time were long ago.
            writer.written = None;
            writer.record(&[], &files, &none).unwrap();
        }
        let records = writer.manifest.as_ref().map(Manifest::records);
        assert!(records.unwrap() < FEW_RECORDS);
        assert!(Manifest::read(dir.path()).unwrap().contains_key(&1));
    }
}
