// SPDX-License-Identifier: Apache-2.0
//! The files of a running edge's configuration: one that Envoy reads at its start, and one for each resource that may
//! change while it serves.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use minijinja::context;

use super::certificates::NamedCertificate;
use super::template::Templates;
use super::{Run, credentials};
use crate::settings::Settings;
use crate::sites::Sites;
use crate::system::private;

/// What one file of the configuration has. They are in the order in which Envoy must learn of something new: nothing
/// names what comes after it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// The credentials that variables of the environment have, for the clusters.
    Credentials,
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
            Self::Credentials => folder.join("credentials").join("aws"),
            Self::Clusters => folder.join("clusters.yaml"),
            Self::Routes => folder.join("routes.yaml"),
            Self::Certificate(name) => folder.join(format!("{name}.yaml")),
            Self::Listeners => folder.join("listeners.yaml"),
            Self::Purge => folder.join("purge.yaml"),
            Self::Edge => folder.join("edge.yaml"),
            Self::Bootstrap => folder.join("envoy.yaml"),
        }
    }
}

/// The files of a running edge's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The folder of the files.
    pub folder: PathBuf,
    /// The contents of the files.
    pub files: BTreeMap<Resource, String>,
}

impl Rendered {
    pub(super) fn new(settings: &Settings, sites: &Sites, run: Run<'_>) -> anyhow::Result<Self> {
        let folder = settings.files();
        let templates = Templates::new(settings, sites, run, Some(&folder))?;
        let mut files = BTreeMap::new();
        if let Some(text) = credentials::file(sites, &|name| std::env::var_os(name))? {
            files.insert(Resource::Credentials, text);
        }
        for certificate in &templates.certificates {
            let values = context! {
                certificate => context! {
                    name => certificate.resource(),
                    chain => certificate.files.chain,
                    key => certificate.files.key,
                    folder => certificate.folder(),
                },
            };
            let text = templates.render_with("certificate.yaml.j2", &values)?;
            files.insert(Resource::of(certificate), text);
        }
        for (resource, template) in [
            (Resource::Clusters, "servers.yaml.j2"),
            (Resource::Routes, "routes.yaml.j2"),
            (Resource::Listeners, "listeners.yaml.j2"),
            (Resource::Bootstrap, "envoy.yaml.j2"),
        ] {
            files.insert(resource, templates.render(template)?);
        }
        let purge = templates.takes_purges.then_some((Resource::Purge, "purge"));
        let edge = settings.filter.then_some((Resource::Edge, "edge"));
        for (resource, role) in purge.into_iter().chain(edge) {
            let values = context! { role => role };
            let text = templates.render_with("role.yaml.j2", &values)?;
            files.insert(resource, text);
        }
        Ok(Self { folder, files })
    }

    /// Writes all files, each to its place at once.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self) -> io::Result<()> {
        self.files
            .iter()
            .try_for_each(|(resource, text)| put(&resource.path(&self.folder), text))
    }
}

/// Puts a file into its place at once, which Envoy notices.
///
/// # Errors
/// The file cannot be written.
pub fn put(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        private::make_folder(folder)?;
    }
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    private::write(part.as_ref(), text)?;
    std::fs::rename(&part, path)
}
