// SPDX-License-Identifier: Apache-2.0
//! The edge's image as an engine would run it: its own file system, read-only but for its volume, its user and its
//! variables. What is an engine's and not here is a network of its own.

use crate::image::architecture::Architecture;
use crate::image::registry::Registry;
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

/// In a mount namespace of its own, which takes root: the volume is bound into the file system, which becomes
/// read-only; then everything else is the image's.
const ENTER: &str = r#"
set -eu
root=$1 volume=$2 user=$3
shift 3
mount --bind "$root" "$root"
mount --bind "$volume" "$root/var/lib/sluice"
mount --rbind /dev "$root/dev"
mount --rbind /proc "$root/proc"
mount -o remount,bind,ro "$root"
exec chroot --userspec="$user" "$root" "$@"
"#;

/// An image that has been pulled and unpacked.
#[derive(Debug)]
pub struct Container {
    root: TempDir,
    config: Value,
}

impl Container {
    /// The edge's for this machine, out of a registry.
    ///
    /// # Panics
    /// When it cannot be pulled.
    pub async fn edge() -> Arc<Self> {
        Self::edge_for(Architecture::this()).await
    }

    /// The edge's for an architecture, out of a registry.
    ///
    /// # Panics
    /// When it cannot be pulled.
    pub async fn edge_for(architecture: Architecture) -> Arc<Self> {
        let registry = Registry::start().await;
        let name = format!("edge@{}", registry.push("edge"));
        let platform = format!("--platform=linux/{}", architecture.name());
        let ask = |what| registry.ask(&[what, &platform], &name);
        let config = serde_json::from_slice(&ask("config")).unwrap();
        let root = TempDir::with_prefix("sluice-image-").unwrap();
        unpack(&ask("export"), root.path());
        Arc::new(Self { root, config })
    }

    /// The image's configuration: <https://github.com/opencontainers/image-spec/blob/v1.1.1/config.md>.
    #[must_use]
    pub fn config(&self) -> &Value {
        &self.config["config"]
    }

    /// Its file system.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The variables that the image sets.
    #[must_use]
    pub fn variables(&self) -> BTreeMap<String, String> {
        let variables = words(&self.config()["Env"]).into_iter();
        variables
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap();
                (name.to_owned(), value.to_owned())
            })
            .collect()
    }

    /// What an engine runs, with this folder as the volume, which is made where it is not there, and with `arguments`
    /// after the entry point.
    ///
    /// # Panics
    /// When the folder cannot be made.
    #[must_use]
    pub fn command(&self, volume: &Path, arguments: &[&str]) -> Command {
        let user = self.config()["User"].as_str().unwrap();
        // As an engine does: a new volume is like the folder that it hides.
        std::fs::create_dir_all(volume).unwrap();
        let hidden = std::fs::metadata(self.root().join("var/lib/sluice")).unwrap();
        std::os::unix::fs::chown(volume, Some(hidden.uid()), Some(hidden.gid())).unwrap();
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--propagation", "private"])
            .args(["sh", "-c", ENTER, "sh"])
            .args([self.root(), volume])
            .arg(user)
            .args(words(&self.config()["Entrypoint"]))
            .args(arguments)
            .env_clear()
            .envs(self.variables());
        command
    }
}

fn words(list: &Value) -> Vec<&str> {
    let words = list.as_array().unwrap().iter();
    words.map(|word| word.as_str().unwrap()).collect()
}

/// Unpacks a tar archive with the owners and modes that it says.
///
/// # Panics
/// When it cannot be unpacked.
pub fn unpack(archive: &[u8], folder: &Path) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), archive).unwrap();
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--preserve-permissions", "--numeric-owner"])
        .args(["--same-owner", "--file"])
        .arg(file.path())
        .arg("--directory")
        .arg(folder);
    assert!(tar.status().unwrap().success(), "{tar:?}");
}
