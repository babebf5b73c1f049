// SPDX-License-Identifier: Apache-2.0
//! The context of a file of sites.

use std::ffi::OsString;
use std::time::SystemTime;

use sluice_core::policy::purge::TokenHash;

use super::secret_text::find_secret;
use crate::origin::Endpoint;

/// The context in which a file of sites is read.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Finds the environment's variables.
    pub lookup: &'a dyn Fn(&str) -> Option<OsString>,
    /// The region of sites that do not name one.
    pub region: &'a str,
    /// The address of the S3 server for sites that do not name one; `None`: AWS.
    pub endpoint: Option<&'a Endpoint>,
    /// The hash of the edge's token for purges.
    pub purge_token: Option<TokenHash>,
    /// Whether a proxy in front of the edge may speak HTTPS for it.
    pub behind_proxy: bool,
    /// The present time, at which certificates must be valid.
    pub now: SystemTime,
}

impl Surroundings<'_> {
    /// The secret that a field names by its variable; see [`find_secret`].
    pub fn secret(&self, name: &str) -> Result<Option<OsString>, String> {
        find_secret(self.lookup, name)
    }
}
