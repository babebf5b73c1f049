// SPDX-License-Identifier: Apache-2.0
//! Why a cache cannot be used.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::settings::{Reserve, Size};

/// Why a cache cannot be used.
#[derive(Debug)]
pub enum CacheError {
    /// A file operation failed.
    Io(PathBuf, io::Error),
    /// Another edge holds the folder's lock.
    InUse(PathBuf),
    /// The folder holds something that is not a cache of Sluice's.
    Foreign(PathBuf),
    /// `CACHE=memory`, and the folder is not on a tmpfs.
    NotTmpfs(PathBuf),
    /// `CACHE=memory`, and the tmpfs is too small.
    TooSmall {
        /// The tmpfs.
        path: PathBuf,
        /// The bytes that the tmpfs holds.
        holds: u64,
        /// The bytes that the cache may take.
        wanted: u64,
    },
    /// The reserve is more than half of the file system.
    Reserve {
        /// The space that is to stay free.
        reserve: Reserve,
        /// A folder on the file system.
        path: PathBuf,
        /// Half of the file system, in bytes.
        most: u64,
    },
}

impl fmt::Display for CacheError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(out, "CACHE_DIR: {}: {error}", path.display()),
            Self::InUse(path) => write!(
                out,
                "CACHE_DIR={}: another edge is using this folder; each edge needs one of its own",
                path.display()
            ),
            Self::Foreign(path) => write!(
                out,
                "CACHE_DIR={}: expected an empty folder or a cache of Sluice's, but there are other files in it",
                path.display()
            ),
            Self::NotTmpfs(path) => write!(
                out,
                "CACHE_DIR={}: expected a folder on a tmpfs, as CACHE=memory",
                path.display()
            ),
            Self::TooSmall {
                path,
                holds,
                wanted,
            } => write!(
                out,
                "CACHE_MAX_BYTES={}: expected at most {}, which is what {} holds, as CACHE=memory \
                 (in a container: --shm-size)",
                Size(*wanted),
                Size(*holds),
                path.display()
            ),
            Self::Reserve {
                reserve,
                path,
                most,
            } => write!(
                out,
                "CACHE_RESERVE={reserve}: expected at most {}, half of the file system of {}",
                Size(*most),
                path.display()
            ),
        }
    }
}

impl std::error::Error for CacheError {}
