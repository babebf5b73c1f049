// SPDX-License-Identifier: Apache-2.0
//! The space of a file system.

use std::io;
use std::path::Path;

/// The space of a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Size of the file system; 0 for a tmpfs without a limit.
    pub total: u64,
    /// Space that the edge could still write.
    pub free: u64,
}

impl Space {
    /// The space of the file system that `path` is on.
    ///
    /// # Errors
    /// The file system cannot be asked.
    pub fn of(path: &Path) -> io::Result<Self> {
        let status = rustix::fs::statvfs(path)?;
        let bytes = |blocks: u64| blocks.saturating_mul(status.f_frsize);
        Ok(Self {
            total: bytes(status.f_blocks),
            free: bytes(status.f_bavail),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_has_no_more_free_than_it_holds() {
        let space = Space::of(Path::new("/")).unwrap();
        assert!(space.total > 0 && space.free <= space.total, "{space:?}");
    }
}
