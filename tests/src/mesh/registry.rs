// SPDX-License-Identifier: Apache-2.0
//! A registry of images on loopback.

use super::tool;
use crate::client::Client;
use crate::eventually;
use crate::ports::{free_port, loopback};
use crate::process::Process;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// A running registry. Dropping it ends it.
pub struct Registry {
    port: u16,
    _process: Process,
    _folder: TempDir,
}

impl Registry {
    /// An empty one.
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

    /// Pushes the image of the filter's module, and gives its digest.
    ///
    /// # Panics
    /// When there is none: `make image` builds it.
    #[must_use]
    pub fn push_filter(&self) -> String {
        let image = std::env::var_os("SLUICE_IMAGE").map(PathBuf::from);
        let image = image.expect("SLUICE_IMAGE is not set: run `make test-mesh`");
        let pushed = crane()
            .arg("push")
            .arg(image)
            .arg(self.name("latest"))
            .output()
            .unwrap();
        assert!(pushed.status.success(), "{pushed:?}");
        let reference = String::from_utf8(pushed.stdout).unwrap();
        let (_, digest) = reference.trim().split_once('@').unwrap();
        digest.to_owned()
    }

    /// How the mesh names the filter's image of that digest.
    #[must_use]
    pub fn url(&self, digest: &str) -> String {
        format!("oci://127.0.0.1:{}/sluice/filter@{digest}", self.port)
    }

    fn name(&self, tag: &str) -> String {
        format!("127.0.0.1:{}/sluice/filter:{tag}", self.port)
    }
}

fn crane() -> Command {
    Command::new(tool("SLUICE_CRANE", "crane"))
}
