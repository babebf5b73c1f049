// SPDX-License-Identifier: Apache-2.0
//! The servers that are asked whether clients may read a site, as clusters of Envoy.

use std::time::Instant;

use minijinja::{Value, context};

use super::server_address::endpoint_address;
use crate::settings::Settings;
use crate::sites::Site;

/// A server that is asked about clients.
#[derive(Clone, Debug)]
pub struct Checker {
    /// The name of its cluster, which is another one if the settings differ.
    pub name: String,
    /// The values of its cluster.
    pub values: Value,
    /// The time at which a reload has removed it.
    pub removed: Option<Instant>,
}

impl Checker {
    /// The server that the access rules of a site name, if they name one.
    ///
    /// # Errors
    /// CA certificates to verify the server are missing.
    pub fn of(settings: &Settings, site: &Site) -> anyhow::Result<Option<Self>> {
        let access = site.access.as_ref();
        let Some(server) = access.and_then(|access| access.checker.as_ref()) else {
            return Ok(None);
        };
        let ca = server.ca.as_deref().or(settings.ca_file.as_deref());
        let named = "the server of access.any_of.forward";
        let address = endpoint_address(&server.endpoint, ca, named)?;
        let name = server.policy.cluster(&site.name);
        let values = context! {
            name => name,
            ..address
        };
        Ok(Some(Self {
            name,
            values,
            removed: None,
        }))
    }
}
