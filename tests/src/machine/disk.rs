// SPDX-License-Identifier: Apache-2.0
//! A small file system for one process, which a test fills.

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use sluice::cache::Space;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a command in a separate mount namespace. The user namespace, which lets any user mount, clears the signal
/// that ends the process with the test, so `setpriv` sets the signal again.
const ENTER: &str = r#"
set -eu
size=$1 folder=$2
shift 2
mkdir -p "$folder"
mount -t tmpfs -o "size=$size" none "$folder"
exec setpriv --pdeathsig TERM -- "$@"
"#;

/// Room that the first step of filling a file system leaves. If the edge is faster than a step, the step gives back
/// all that it has taken, and the edge would find the disk full and empty in turn.
const SLACK: u64 = 1 << 20;

/// The file system of a process.
#[derive(Debug)]
pub struct Disk(PathBuf);

impl Disk {
    /// Makes the command that runs `command` in its own environment, with a file system of this many bytes mounted on
    /// `folder`.
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

    /// Finds the file system that the process `pid` has on `folder`.
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

    /// Path of its folder for the test.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Fills the file system, except `left` bytes, with a file that does not belong to the cache, in as few steps as
    /// possible. The edge makes room on a disk if the missing room is less than the size of the cache.
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

/// A file that takes the room on a disk until it is dropped.
#[derive(Debug)]
pub struct Filling(PathBuf);

impl Drop for Filling {
    fn drop(&mut self) {
        // The disk may be gone with its edge.
        let _ = std::fs::remove_file(&self.0);
    }
}
