// SPDX-License-Identifier: Apache-2.0
//! `CACHE=memory`: a cache in a folder of its own on a tmpfs, which ends with the edge.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::FsWord;

use super::{CacheError, lock, read_format};
use crate::settings::Cache;
use crate::system::random;

const TMPFS_MAGIC: FsWord = 0x0102_1994;
/// The names of the folders begin with this.
pub const PREFIX: &str = "sluice-";

/// A new name for a folder on the tmpfs `cache.dir`. Removes the folders of edges that have died.
///
/// # Errors
/// There is no tmpfs, or it is too small.
pub fn new_folder(cache: &Cache) -> Result<PathBuf, CacheError> {
    check(&cache.dir, cache.max_bytes)?;
    remove_orphans(&cache.dir);
    match random::hex::<8>() {
        Ok(name) => Ok(cache.dir.join(format!("{PREFIX}{name}"))),
        Err(error) => Err(CacheError::Io(cache.dir.clone(), error)),
    }
}

fn check(path: &Path, wanted: u64) -> Result<(), CacheError> {
    let status =
        rustix::fs::statfs(path).map_err(|error| CacheError::Io(path.to_owned(), error.into()))?;
    if status.f_type != TMPFS_MAGIC {
        return Err(CacheError::NotTmpfs(path.to_owned()));
    }
    let block = u64::try_from(status.f_bsize).unwrap_or(0);
    let holds = status.f_blocks.saturating_mul(block);
    // NB: a tmpfs without a limit reports 0 blocks.
    if holds != 0 && holds < wanted {
        return Err(CacheError::TooSmall {
            path: path.to_owned(),
            holds,
            wanted,
        });
    }
    Ok(())
}

/// Removes the folders of edges that died before they could clean up: those whose lock is free.
fn remove_orphans(tmpfs: &Path) {
    let Ok(folders) = fs::read_dir(tmpfs) else {
        return;
    };
    for path in folders.flatten().map(|entry| entry.path()) {
        let ours = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
        if ours && matches!(read_format(&path), Ok(Some(_))) && lock(&path).is_ok() {
            // A folder of another user cannot be removed, and stays.
            let _ = fs::remove_dir_all(&path);
        }
    }
}
