// SPDX-License-Identifier: Apache-2.0
//! The sites that one edge serves, each with an origin, a policy, credentials and perhaps a certificate of its own.

mod credentials;
mod site;

use serde_json::Value;

pub use credentials::Credentials;
pub use site::{Certificate, Site};

/// The sites of an edge, and what they share.
#[derive(Clone, Debug, PartialEq)]
pub struct Sites {
    /// The sections of the policy's document that are the edge's: `store`, `hot`, `purge`, `limits` and
    /// `coalesce.lease`, as the user has written them. An object.
    pub edge: Value,
    /// The sites, in the order of the file. Not empty.
    pub sites: Vec<Site>,
}
