// SPDX-License-Identifier: Apache-2.0
//! Debian's packages of the peers and of h2load, unpacked by `peers/unpack.sh` into the folder that `SLUICE_BENCH_PEERS`
//! names. Programs of the system are not used.

use sluice_tests::machine::tool;
use std::path::PathBuf;

/// The release that has all of them except Traffic Server, see `peers/packages.txt`.
pub const RELEASE: &str = "trixie";

/// The script that starts the program of this name with its own libraries; `None` if the packages do not have it.
pub fn program(name: &str) -> Option<PathBuf> {
    let script = folder().join("bin").join(name);
    script.is_file().then_some(script)
}

/// The folder with the files of a release's packages.
pub fn root(release: &str) -> PathBuf {
    folder().join(release)
}

/// Prints in one line that a program is missing.
pub fn missing(name: &str) {
    eprintln!(
        "left out: {name}, which is not among the peers' packages (`make peers` unpacks them)"
    );
}

/// The packages' names with Debian's versions, a line.
pub fn versions() -> String {
    let text = std::fs::read_to_string(folder().join("versions.txt")).unwrap_or_default();
    text.lines().collect::<Vec<_>>().join(", ")
}

fn folder() -> PathBuf {
    tool::folder("SLUICE_BENCH_PEERS")
}
