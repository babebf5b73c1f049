// SPDX-License-Identifier: Apache-2.0
//! The files of a running edge's configuration, by what they have.

use std::io;
use std::path::{Path, PathBuf};

use super::certificates::NamedCertificate;
use crate::system::private;

/// What one file of the configuration has. They are in the order in which Envoy must learn of something new: nothing
/// names what comes after it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// The credentials that variables of the environment have for the server with this name. Envoy takes no credentials
    /// from a file of more than 4 KiB, so there is one for each.
    Credentials(String),
    /// The servers of the sites' origins.
    Clusters,
    /// The hop's routes.
    Routes,
    /// The certificate with this name.
    Certificate(String),
    /// The listeners for clients that can come and go.
    Listeners,
    /// The filter's configuration for the listener for purges.
    Purge,
    /// The filter's configuration for clients' requests.
    Edge,
    /// Whether the last reload was refused: 1 or 0.
    Refused,
    /// All that cannot change.
    Bootstrap,
}

impl Resource {
    /// The resource of a certificate.
    pub fn of(certificate: &NamedCertificate) -> Self {
        Self::Certificate(certificate.resource())
    }

    /// The file of the resource in the folder of an edge.
    pub fn path(&self, folder: &Path) -> PathBuf {
        match self {
            // NB: a folder of its own, as Envoy reads the credentials again when anything moves there.
            Self::Credentials(server) => folder.join("credentials").join(server),
            Self::Clusters => folder.join("clusters.yaml"),
            Self::Routes => folder.join("routes.yaml"),
            Self::Certificate(name) => folder.join(format!("{name}.yaml")),
            Self::Listeners => folder.join("listeners.yaml"),
            Self::Purge => folder.join("purge.yaml"),
            Self::Edge => folder.join("edge.yaml"),
            Self::Refused => folder.join("refused"),
            Self::Bootstrap => folder.join("envoy.yaml"),
        }
    }

    /// Its name in the log of a reload, in the words of the user's files.
    pub fn part(&self) -> &str {
        match self {
            Self::Credentials(_) => "credentials",
            Self::Clusters => "servers",
            Self::Routes => "routes",
            Self::Certificate(_) => "certificates",
            Self::Listeners => "listeners",
            Self::Purge => "purges",
            Self::Edge => "policies",
            Self::Refused | Self::Bootstrap => "settings",
        }
    }

    /// Puts a file with `text` into the place of the resource at once, which Envoy notices.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, folder: &Path, text: &str) -> io::Result<()> {
        let path = self.path(folder);
        if let Some(folder) = path.parent() {
            private::make_folder(folder)?;
        }
        let mut part = path.clone().into_os_string();
        part.push(".part");
        private::write(part.as_ref(), text)?;
        std::fs::rename(&part, path)
    }
}
