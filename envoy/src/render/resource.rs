// SPDX-License-Identifier: Apache-2.0
//! The files of a running edge's configuration.

use std::io;
use std::path::{Path, PathBuf};

use super::certificates::NamedCertificate;
use crate::system::private;

/// A file of the configuration, by its content. The files are in the order in which Envoy must load new ones, so
/// that no file names one that follows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// The credentials for the server with this name, from variables of the environment. Each server has a separate
    /// file because Envoy does not read credentials from a file of more than 4 KiB.
    Credentials(String),
    /// The place of the value of a header for an origin, by the name of its secret.
    Header(String),
    /// The servers of the sites' origins.
    Clusters,
    /// The certificate with this name.
    Certificate(String),
    /// The listeners that a reload can add and remove: those for clients, and those of the origins behind pairs.
    Listeners,
    /// The hop's routes.
    Routes,
    /// The filter's configuration for the listener for purges.
    Purge,
    /// The filter's configuration for clients' requests.
    Edge,
    /// The filter's configuration for requests of peers.
    Peer,
    /// The filter's configuration for clients' requests in front of peers.
    Front,
    /// The parts of the configuration that cannot change.
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
            // NB: a separate folder, because Envoy reads the credentials again when anything moves there.
            Self::Credentials(server) => folder.join("credentials").join(server),
            Self::Clusters => folder.join("clusters.yaml"),
            Self::Routes => folder.join("routes.yaml"),
            Self::Header(name) | Self::Certificate(name) => folder.join(format!("{name}.yaml")),
            Self::Listeners => folder.join("listeners.yaml"),
            Self::Purge => folder.join("purge.yaml"),
            Self::Edge => folder.join("edge.yaml"),
            Self::Peer => folder.join("peer.yaml"),
            Self::Front => folder.join("front.yaml"),
            Self::Bootstrap => folder.join("envoy.yaml"),
        }
    }

    /// The name of the resource in the log of a reload, in the words of the user's files.
    pub fn part(&self) -> &str {
        match self {
            Self::Credentials(_) => "credentials",
            Self::Header(_) => "headers for origins",
            Self::Clusters => "servers",
            Self::Routes => "routes",
            Self::Certificate(_) => "certificates",
            Self::Listeners => "listeners",
            Self::Purge => "purges",
            Self::Edge | Self::Peer | Self::Front => "policies",
            Self::Bootstrap => "settings",
        }
    }

    /// Replaces the file of the resource atomically with `text`. Envoy notices the change.
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
