// SPDX-License-Identifier: Apache-2.0
//! Another project's server: configured from a template, ended when dropped.

use sluice_tests::PATIENCE;
use sluice_tests::client::{Client, request};
use sluice_tests::machine::ports::{free_port, loopback};
use sluice_tests::machine::process::Process;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A running server with a temporary folder.
pub struct Peer {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its address for another protocol, if it has one.
    pub second: SocketAddr,
    process: Process,
    // Declared after the process, so that it is removed later.
    folder: TempDir,
}

/// Fills in the template: replaces each `${NAME}`.
pub fn fill(template: &str, values: &[(&str, String)]) -> String {
    values
        .iter()
        .fold(template.to_owned(), |text, (name, value)| {
            text.replace(&format!("${{{name}}}"), value)
        })
}

/// Makes a program that root starts run as `nobody`, and gives that user the folder, because some programs refuse to
/// run as root.
pub fn unprivileged(command: &mut Command, folder: &Path) {
    const NOBODY: u32 = 65534;
    if std::fs::metadata(folder).unwrap().uid() != 0 {
        return;
    }
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    for path in entries.map(|entry| entry.path()).chain([folder.to_owned()]) {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    command.uid(NOBODY).gid(NOBODY);
}

/// The reason why a program has not started. A program that root starts as `nobody` must be in folders that all users
/// may enter.
fn explained(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("{error}: may the user nobody enter every folder above the repository?")
        }
        _ => error.to_string(),
    }
}

impl Peer {
    /// Starts the command that `command` returns for a folder and two addresses, and waits until it answers at the
    /// first.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn start(
        name: &str,
        command: impl Fn(&Path, SocketAddr, SocketAddr) -> Command,
    ) -> Self {
        for _ in 0..5 {
            let folder = TempDir::with_prefix(format!("sluice-bench-{name}-")).unwrap();
            let [address, second] = [(); 2].map(|()| loopback(free_port()));
            let log = folder.path().join("output.log");
            let process = Process::start(command(folder.path(), address, second), &log)
                .unwrap_or_else(|error| panic!("{name}: {}", explained(&error)));
            let mut peer = Self {
                address,
                second,
                process,
                folder,
            };
            if peer.came_up().await {
                return peer;
            }
            let log = peer.process.log();
            assert!(log.contains("in use"), "{name} does not start:\n{log}");
        }
        panic!("five times a port was taken");
    }

    /// Waits until it answers; false if it has ended before.
    async fn came_up(&mut self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while self.process.exited().is_none() {
            if let Ok(mut client) = Client::try_connect(self.address).await
                && client.try_exchange(request("GET", "/", &[])).await.is_ok()
            {
                return true;
            }
            assert!(
                Instant::now() < deadline,
                "no answer:\n{}",
                self.process.log()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_is_filled() {
        let filled = fill(
            "a ${ONE} ${TWO} ${ONE}",
            &[("ONE", "1".into()), ("TWO", "2".into())],
        );
        assert_eq!(filled, "a 1 2 1");
    }
}
