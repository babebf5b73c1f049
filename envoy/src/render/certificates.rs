// SPDX-License-Identifier: Apache-2.0
//! The certificates of the listener for TLS, of which Envoy chooses by the name that a client asks for.

use std::path::Path;

use crate::sites::{Certificate, Site, Sites};

/// A certificate of the edge's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCertificate {
    /// The name of the first site that is served with it.
    pub name: String,
    /// Its files.
    pub files: Certificate,
}

impl NamedCertificate {
    /// All certificates, of which Envoy shows the first where no other fits.
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

    /// The one with which a site is served.
    pub fn of<'a>(site: &Site, all: &'a [Self]) -> Option<&'a Self> {
        let files = site.certificate.as_ref()?;
        all.iter().find(|each| each.files == *files)
    }

    /// The name of the resource by which Envoy gets it.
    pub fn resource(&self) -> String {
        if self.name.is_empty() {
            return "certificate".to_owned();
        }
        format!("certificate.{}", self.name)
    }

    /// The folder in whose changes Envoy reads both files again. `None`: they are in two, and Envoy reads them again when
    /// they are replaced themselves.
    pub fn folder(&self) -> Option<&Path> {
        let folder = self.files.chain.parent()?;
        (self.files.key.parent() == Some(folder)).then_some(folder)
    }
}
