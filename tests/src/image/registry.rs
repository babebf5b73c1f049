// SPDX-License-Identifier: Apache-2.0
//! A registry of images on loopback.

use crate::client::Client;
use crate::eventually;
use crate::machine::ports::{free_port, loopback};
use crate::machine::process::Process;
use crate::machine::tool::{folder, repository, tool};
use std::net::SocketAddr;
use std::process::Command;
use tempfile::TempDir;

/// A running registry. Dropping it ends it.
pub struct Registry {
    port: u16,
    _process: Process,
    _folder: TempDir,
}

impl Registry {
    /// Starts an empty registry.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start() -> Self {
        let folder = TempDir::with_prefix("sluice-registry-").unwrap();
        let port = free_port();
        let mut command = crane();
        command.args(["registry", "serve", "--address"]);
        command.arg(loopback(port).to_string());
        let process = Process::start(command, &folder.path().join("log")).unwrap();
        eventually("a registry", async || {
            Client::try_connect(loopback(port)).await.is_ok()
        })
        .await;
        Self {
            port,
            _process: process,
            _folder: folder,
        }
    }

    /// Pushes one image, `edge` or `filter`, without its attached documents, and returns its digest.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn push(&self, image: &str) -> String {
        let layout = folder("SLUICE_IMAGE").join(image);
        let name = format!("{}/{image}:latest", self.repository());
        let pushed = output(crane().arg("push").arg(layout).arg(name));
        let (_, digest) = pushed.trim().split_once('@').unwrap();
        digest.to_owned()
    }

    /// Pushes all images, as `make push-release` does, and returns the output of the script: a line for each image.
    ///
    /// # Panics
    /// When the script fails.
    #[must_use]
    pub fn push_all(&self, version: &str) -> String {
        let mut script = Command::new(repository().join("envoy/image/push.sh"));
        script
            .arg(tool("SLUICE_CRANE", "crane"))
            .arg(folder("SLUICE_IMAGE"))
            .args([&self.repository(), version]);
        output(&mut script)
    }

    /// Runs crane on an image: `arguments` stand in front of its name, which begins behind the repository's.
    ///
    /// # Panics
    /// When crane fails.
    #[must_use]
    pub fn ask(&self, arguments: &[&str], name: &str) -> Vec<u8> {
        let name = format!("{}/{name}", self.repository());
        stdout(crane().args(arguments).arg(name))
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        loopback(self.port)
    }

    /// Name of the filter's image of that digest in the mesh.
    #[must_use]
    pub fn url(&self, digest: &str) -> String {
        format!("oci://{}/filter@{digest}", self.repository())
    }

    fn repository(&self) -> String {
        format!("{}/sluice", loopback(self.port))
    }
}

fn crane() -> Command {
    Command::new(tool("SLUICE_CRANE", "crane"))
}

fn output(command: &mut Command) -> String {
    String::from_utf8(stdout(command)).unwrap()
}

fn stdout(command: &mut Command) -> Vec<u8> {
    let ended = command.output().unwrap();
    assert!(ended.status.success(), "{command:?}: {ended:?}");
    ended.stdout
}
