// SPDX-License-Identifier: Apache-2.0
//! The certificates of the TLS listener. Envoy chooses one by the server name that a client sends.

use std::path::Path;

use crate::sites::{Certificate, Site, Sites};

/// A certificate of the edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCertificate {
    /// The name of the first site that is served with it.
    pub name: String,
    /// The files of the certificate.
    pub files: Certificate,
}

impl NamedCertificate {
    /// All certificates. Envoy uses the first if no other fits the client's server name.
    pub fn all(sites: &Sites) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for site in &sites.sites {
            if let Some(files) = &site.certificate
                && all.iter().all(|known| known.files != *files)
            {
                all.push(Self {
                    name: site.name.clone(),
                    files: files.clone(),
                });
            }
        }
        all
    }

    /// The certificate of a site.
    pub fn of<'a>(site: &Site, all: &'a [Self]) -> Option<&'a Self> {
        let files = site.certificate.as_ref()?;
        all.iter().find(|each| each.files == *files)
    }

    /// The name of the resource with which Envoy loads the certificate.
    pub fn resource(&self) -> String {
        if self.name.is_empty() {
            return "certificate".to_owned();
        }
        format!("certificate.{}", self.name)
    }

    /// The folder that Envoy watches to read both files again. `None`: the files are in two folders, and Envoy
    /// watches each file.
    pub fn folder(&self) -> Option<&Path> {
        let folder = self.files.chain.parent()?;
        (self.files.key.parent() == Some(folder)).then_some(folder)
    }
}
