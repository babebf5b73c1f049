// SPDX-License-Identifier: Apache-2.0
//! The sites of one edge. Each site has an origin, a policy, credentials, and optionally a certificate.
//!
//! `fields` defines the file of sites, `reader` makes [`Sites`] from it, and `table` checks the sites together.
//! `file` has the parts for any file of the user: lines, forms, problems.

mod access;
mod bucket_keys;
mod built_in;
mod certificate;
mod credentials;
mod failover;
mod fields;
mod file;
mod host;
mod hsts;
pub mod maintenance_page;
mod policy;
mod profile;
mod purge_token;
mod reader;
mod secret_text;
mod servers;
mod site;
mod surroundings;
mod table;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use access::{
    CheckerServer, IssuerKeys, LONGEST_KEY_SET, SigningSecret, SiteAccess, TokenIssuer, UsersFile,
    check_key_set,
};
pub use bucket_keys::{bucket_keys, own_bucket_keys};
pub use built_in::{BUCKET, HTTP, READY_MADE, ready_made};
pub use certificate::{Certificate, CertificateProblem, CertifiedNames};
pub use credentials::Credentials;
pub use failover::{
    EXPECTED_DAY, EXPECTED_MOVE, EXPECTED_PATIENCE, EXPECTED_SECOND, EXPECTED_TTL, Failover,
    FailoverTimes, OnMissing, day, patience, ttl,
};
pub use fields::{EXPECTED_KEEPALIVE, keepalive, schema};
pub use file::{Problem, YamlFault, read as read_yaml};
pub use hsts::Hsts;
pub use profile::ProfileKeys;
pub use purge_token::{ACCEPTED_TOKEN, hash_of_token};
pub use secret_text::{
    ACCEPTED_SECRET, CREDENTIALS_DIRECTORY, FILE, find_secret, is_secret, read_secret,
};
pub use servers::{EXPECTED_HEALTH_CHECK, EXPECTED_SERVER, Servers, is_health_check, read_servers};
pub use site::Site;
pub use surroundings::Surroundings;

/// The sites of an edge, and the sections that they share.
#[derive(Clone, Debug, PartialEq)]
pub struct Sites {
    /// The sections of the policy's document that belong to the edge: `store`, `hot`, `purge`, `limits` and
    /// `coalesce.lease`, as the user has written them. An object.
    pub edge: Value,
    /// The sites, in the order of the file. Not empty.
    pub sites: Vec<Site>,
}

impl Sites {
    /// The names and the weights of the sites.
    pub fn shares(&self) -> impl Iterator<Item = (&str, u32)> {
        let sites = self.sites.iter();
        sites.map(|site| (site.name.as_str(), site.share))
    }
}

impl Sites {
    /// The variables of the environment with secrets that Envoy does not need.
    pub fn secret_variables(&self) -> impl Iterator<Item = &str> {
        let variables = self.sites.iter().flat_map(|site| &site.secret_variables);
        variables.map(String::as_str)
    }

    /// Whether any site has a separate token for purges.
    pub fn take_purges(&self) -> bool {
        self.sites.iter().any(|site| site.purge_token.is_some())
    }
}
