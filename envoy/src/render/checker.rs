// SPDX-License-Identifier: Apache-2.0
//! The servers that are asked whether clients may read a site, as clusters of Envoy, and Envoy's verifiers of tokens.

use std::time::Instant;

use minijinja::{Value, context};

use super::seconds;
use super::server_address::endpoint_address;
use crate::settings::Settings;
use crate::sites::{CheckerServer, IssuerKeys, Site, TokenIssuer};

/// A server that is asked about clients, a verifier of tokens, or the server with its keys.
#[derive(Clone, Debug)]
pub struct Checker {
    /// The name of its cluster, which is another one if the settings differ.
    pub name: String,
    /// The values of its cluster, and of the listener of a verifier.
    pub values: Value,
    /// The time at which a reload has removed it.
    pub removed: Option<Instant>,
}

impl Checker {
    /// The servers that the access rules of a site name, and the verifier of its tokens.
    ///
    /// # Errors
    /// CA certificates to verify a server are missing.
    pub fn all(settings: &Settings, site: &Site) -> anyhow::Result<Vec<Self>> {
        let mut all = Vec::new();
        let Some(access) = &site.access else {
            return Ok(all);
        };
        if let Some(server) = &access.checker {
            all.push(Self::of_server(settings, &site.name, server)?);
        }
        if let Some(issuer) = &access.issuer {
            all.extend(Self::of_issuer(settings, &site.name, issuer)?);
        }
        Ok(all)
    }

    fn of_server(settings: &Settings, site: &str, server: &CheckerServer) -> anyhow::Result<Self> {
        let ca = server.ca.as_deref().or(settings.ca_file.as_deref());
        let named = "the server of access.any_of.forward";
        let address = endpoint_address(&server.endpoint, ca, named)?;
        let name = server.policy.cluster(site);
        let values = context! { kind => "forward", name => name, ..address };
        Ok(Self::new(name, values))
    }

    /// The verifier of an issuer's tokens, and the server with its keys.
    fn of_issuer(
        settings: &Settings,
        site: &str,
        issuer: &TokenIssuer,
    ) -> anyhow::Result<Vec<Self>> {
        let Some(name) = issuer.policy.cluster(site) else {
            return Ok(Vec::new());
        };
        let (text, url, servers) = match &issuer.keys {
            IssuerKeys::File { text, .. } => (Some(text), None, Vec::new()),
            IssuerKeys::Url { url, endpoint, ca } => {
                let ca = ca.as_deref().or(settings.ca_file.as_deref());
                let named = "the server of access.any_of.jwt.jwks";
                let address = endpoint_address(endpoint, ca, named)?;
                let name = format!("{name}_keys");
                let values = context! { kind => "keys", name => name, ..address };
                (None, Some(url), vec![Self::new(name, values)])
            }
        };
        let named = settings.stats_of_sites && !site.is_empty();
        let values = context! {
            kind => "tokens",
            name => name,
            // The site that its statistics name.
            site => named.then_some(site),
            issuer => issuer.policy.issuer,
            audiences => issuer.policy.audiences,
            keys => text,
            url => url,
            refresh => seconds(issuer.policy.refresh),
        };
        Ok(servers
            .into_iter()
            .chain([Self::new(name, values)])
            .collect())
    }

    const fn new(name: String, values: Value) -> Self {
        Self {
            name,
            values,
            removed: None,
        }
    }
}
