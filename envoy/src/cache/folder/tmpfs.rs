// SPDX-License-Identifier: Apache-2.0
//! `SLUICE_CACHE=memory`: a cache in a new folder on a tmpfs, which ends with the edge.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use rustix::fs::FsWord;

use super::{io_error, lock, read_format};
use crate::settings::{Cache, Size};
use crate::system::random;

const TMPFS_MAGIC: FsWord = 0x0102_1994;
/// The names of the folders begin with this.
pub const PREFIX: &str = "sluice-";

/// Returns a new name for a folder on the tmpfs `cache.dir`. Removes the folders of edges that have died.
///
/// # Errors
/// The file system is not a tmpfs, or it is too small.
pub fn new_folder(cache: &Cache) -> anyhow::Result<PathBuf> {
    let (failed, path) = (io_error(&cache.dir), cache.dir.display());
    let status = rustix::fs::statfs(&cache.dir).map_err(|error| failed(error.into()))?;
    ensure!(
        status.f_type == TMPFS_MAGIC,
        "SLUICE_CACHE_DIR={path}: expected a folder on a tmpfs, as SLUICE_CACHE=memory"
    );
    let block = u64::try_from(status.f_bsize).unwrap_or(0);
    let holds = status.f_blocks.saturating_mul(block);
    // NB: a tmpfs without a limit reports 0 blocks.
    ensure!(
        holds == 0 || holds >= cache.max_bytes,
        "SLUICE_CACHE_MAX_BYTES={}: expected at most {}, which is what {path} holds, as SLUICE_CACHE=memory \
         (in a container: --shm-size)",
        Size(cache.max_bytes),
        Size(holds)
    );
    remove_orphans(&cache.dir);
    let name = random::hex().map_err(failed)?;
    Ok(cache.dir.join(format!("{PREFIX}{name}")))
}

/// Removes the folders of edges that died before they could clean up. The lock of such a folder is free.
fn remove_orphans(tmpfs: &Path) {
    let Ok(folders) = fs::read_dir(tmpfs) else {
        return;
    };
    for path in folders.flatten().map(|entry| entry.path()) {
        let ours = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
        if ours && matches!(read_format(&path), Ok(Some(_))) && matches!(lock(&path), Ok(Some(_))) {
            // A folder of another user cannot be removed, and remains.
            let _ = fs::remove_dir_all(&path);
        }
    }
}
