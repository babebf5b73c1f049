// SPDX-License-Identifier: Apache-2.0
//! Why a cache cannot be used.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::settings::{Reserve, Size};

/// Why a cache cannot be used.
#[derive(Debug, Error)]
pub enum CacheError {
    /// A file operation failed.
    #[error("CACHE_DIR: {0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// Another edge holds the folder's lock.
    #[error("CACHE_DIR={0}: another edge is using this folder; each edge needs one of its own")]
    InUse(PathBuf),
    /// The folder holds something that is not a cache of Sluice's.
    #[error(
        "CACHE_DIR={0}: expected an empty folder or a cache of Sluice's, but there are other files in it"
    )]
    Foreign(PathBuf),
    /// `CACHE=memory`, and the folder is not on a tmpfs.
    #[error("CACHE_DIR={0}: expected a folder on a tmpfs, as CACHE=memory")]
    NotTmpfs(PathBuf),
    /// `CACHE=memory`, and the tmpfs is too small.
    #[error(
        "CACHE_MAX_BYTES={}: expected at most {}, which is what {path} holds, as CACHE=memory \
         (in a container: --shm-size)",
        Size(*wanted),
        Size(*holds)
    )]
    TooSmall {
        /// The tmpfs.
        path: PathBuf,
        /// The bytes that the tmpfs holds.
        holds: u64,
        /// The bytes that the cache may take.
        wanted: u64,
    },
    /// The reserve is more than half of the file system.
    #[error(
        "CACHE_RESERVE={reserve}: expected at most {}, half of the file system of {path}",
        Size(*most)
    )]
    Reserve {
        /// The space that is to stay free.
        reserve: Reserve,
        /// A folder on the file system.
        path: PathBuf,
        /// Half of the file system, in bytes.
        most: u64,
    },
}
