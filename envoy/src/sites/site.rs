// SPDX-License-Identifier: Apache-2.0
//! One site: which requests it takes, and what answers them.

use std::time::Duration;

use serde_json::Value;
use sluice_core::policy::purge::TokenHash;

use super::certificate::Certificate;
use super::credentials::Credentials;
use crate::origin::Origin;

/// One site.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// Its name in keys, metrics, logs and Envoy's resources; empty for the one site of `ORIGIN`.
    pub name: String,
    /// The hosts whose requests it takes, in lower case and without ports: exact names and `*.example.com`. Empty: all
    /// others.
    pub hosts: Vec<String>,
    /// The beginning of the paths that it takes, whole segments, such as `/static`; `None`: all others.
    pub path: Option<String>,
    /// What stands behind it.
    pub origin: Origin,
    /// For how long an idle connection to it is kept; `None`: as its kind of origin has it.
    pub keepalive: Option<Duration>,
    /// The credentials for a bucket.
    pub credentials: Credentials,
    /// The name or the path of the policy, for messages.
    pub policy_name: String,
    /// The policy's document as the user has written it: an object without `origin` and without sections of the edge.
    pub policy: Value,
    /// The certificate that the edge shows for its hosts.
    pub certificate: Option<Certificate>,
    /// Whether requests over cleartext are redirected to HTTPS.
    pub redirect_to_https: bool,
    /// The value of `Strict-Transport-Security` (RFC 6797) in responses over HTTPS.
    pub hsts: Option<String>,
    /// Its weight where sites compete for the cache and the hot tier.
    pub share: u32,
    /// The hash of the token for purges of this site alone.
    pub purge_token: Option<TokenHash>,
    /// The variables of the environment with secrets that Envoy does not need.
    pub secret_variables: Vec<String>,
}
