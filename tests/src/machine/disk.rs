// SPDX-License-Identifier: Apache-2.0
//! A small file system for one process, which a test fills.

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use sluice::cache::Space;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a command in a mount namespace of its own. The user namespace, which lets anybody mount, clears the signal that
/// ends the process with the test, so `setpriv` sets that again.
const ENTER: &str = r#"
set -eu
size=$1 folder=$2
shift 2
mkdir -p "$folder"
mount -t tmpfs -o "size=$size" none "$folder"
exec setpriv --pdeathsig TERM -- "$@"
"#;

/// What the first step of filling a file system leaves. A step that the edge is faster than gives all back that it has
/// taken, and the edge would find the disk full and empty in turn.
const SLACK: u64 = 1 << 20;

/// The file system of a process.
#[derive(Debug)]
pub struct Disk(PathBuf);

impl Disk {
    /// The command, in its own environment alone, with a file system of so many bytes mounted on `folder`.
    #[must_use]
    pub fn mounted(bytes: u64, folder: &Path, command: &Command) -> Command {
        let mut entering = Command::new("unshare");
        entering
            .args(["--map-root-user", "--mount", "sh", "-c", ENTER, "sh"])
            .arg(bytes.to_string())
            .arg(folder)
            .arg(command.get_program())
            .args(command.get_args())
            .env_clear()
            .envs(
                command
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
        if let Some(current) = command.get_current_dir() {
            entering.current_dir(current);
        }
        entering
    }

    /// The file system that the process `pid` has on `folder`.
    #[must_use]
    pub fn of(pid: u32, folder: &Path) -> Self {
        let inside = folder.strip_prefix("/").unwrap_or(folder);
        Self(
            Path::new("/proc")
                .join(pid.to_string())
                .join("root")
                .join(inside),
        )
    }

    /// Its folder, as the test sees it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Fills it but for `left` bytes with a file that is not the cache's, in as few steps as can be: the edge makes room
    /// for a disk that lacks less than the cache holds.
    ///
    /// # Panics
    /// When it cannot be written to.
    #[must_use]
    pub fn fill(&self, left: u64) -> Filling {
        let filling = Filling(self.0.join("others"));
        let file = File::create(&filling.0).unwrap();
        let mut length = 0;
        loop {
            let free = Space::of(&self.0).unwrap().free;
            let missing = free.saturating_sub(left);
            if missing == 0 {
                return filling;
            }
            let step = if missing > 2 * SLACK {
                missing - SLACK
            } else {
                missing
            };
            match fallocate(&file, FallocateFlags::empty(), length, step) {
                Ok(()) => length += step,
                // The edge has been faster: nothing is allocated, and there is less to allocate.
                Err(Errno::NOSPC) => {}
                Err(error) => panic!("{}: {error}", filling.0.display()),
            }
        }
    }
}

/// What takes the room on a disk until it is dropped.
#[derive(Debug)]
pub struct Filling(PathBuf);

impl Drop for Filling {
    fn drop(&mut self) {
        // The disk may be gone with its edge.
        let _ = std::fs::remove_file(&self.0);
    }
}
