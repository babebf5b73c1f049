// SPDX-License-Identifier: Apache-2.0
//! The edge's image as an engine would run it: in its own file system, read-only except its volume, with its user and
//! its variables. Unlike with an engine, it shares the network of the machine.

use crate::image::architecture::Architecture;
use crate::image::registry::Registry;
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

/// Enters a separate mount namespace, which needs root. It binds the volume into the file system, which becomes
/// read-only; then all else is the image's.
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

/// An image that was pulled and unpacked.
#[derive(Debug)]
pub struct Container {
    root: TempDir,
    config: Value,
}

impl Container {
    /// Pulls the edge's image for this machine out of a registry.
    ///
    /// # Panics
    /// When it cannot be pulled.
    pub async fn edge() -> Arc<Self> {
        Self::edge_for(Architecture::this()).await
    }

    /// Pulls the edge's image for an architecture out of a registry.
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

    /// The command that an engine would run, with this folder as the volume, and with `arguments` after the entry
    /// point. It creates the folder if it is missing.
    ///
    /// # Panics
    /// When the folder cannot be made.
    #[must_use]
    pub fn command(&self, volume: &Path, arguments: &[&str]) -> Command {
        let user = self.config()["User"].as_str().unwrap();
        // As in an engine, a new volume is a copy of the folder that it hides.
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

/// The words of a list in the configuration of an image or of a container. A list that is missing has none.
///
/// # Panics
/// When a word is not a text.
#[must_use]
pub fn words(list: &Value) -> Vec<&str> {
    let words = list.as_array().into_iter().flatten();
    words.map(|word| word.as_str().unwrap()).collect()
}

/// Unpacks a tar archive with its owners and modes.
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
