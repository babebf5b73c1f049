// SPDX-License-Identifier: Apache-2.0
//! One site: the requests that it serves, and its origin.

use std::time::Duration;

use serde_json::Value;
use sluice_core::policy::purge::TokenHash;

use super::access::SiteAccess;
use super::certificate::Certificate;
use super::credentials::Credentials;
use super::failover::Failover;
use super::servers::Servers;
use crate::origin::Origin;

/// One site.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// The site's name in keys, metrics, logs and Envoy's resources; empty for the one site of `SLUICE_ORIGIN`.
    pub name: String,
    /// The hosts of the site, in lower case and without ports: exact names and `*.example.com`. Empty: all hosts
    /// that no other site has.
    pub hosts: Vec<String>,
    /// The path prefix of the site, whole segments, such as `/static`; `None`: all paths that no other site has.
    pub path: Option<String>,
    /// The origin.
    pub origin: Origin,
    /// The servers of an HTTP origin beside the first one, and their health checks.
    pub servers: Servers,
    /// Time for which an idle connection to the origin is kept; `None`: the default for the kind of origin.
    pub keepalive: Option<Duration>,
    /// The credentials for a bucket.
    pub credentials: Credentials,
    /// The second origin; `None`: a request that the origin fails has failed.
    pub failover: Option<Failover>,
    /// Time without a response after which a GET is sent to the origin a second time; `None`: it is not.
    pub hedge_after: Option<Duration>,
    /// The name or the path of the policy, for messages.
    pub policy_name: String,
    /// The policy's document as the user has written it: an object without `origin` and without sections of the edge.
    pub policy: Value,
    /// The rules for its clients; `None`: every client is answered.
    pub access: Option<SiteAccess>,
    /// The certificate that the edge uses for the site's hosts.
    pub certificate: Option<Certificate>,
    /// Whether requests over cleartext are redirected to HTTPS.
    pub redirect_to_https: bool,
    /// The value of `Strict-Transport-Security` (RFC 6797) in responses over HTTPS.
    pub hsts: Option<String>,
    /// The weight of the site when sites compete for the cache and the hot tier.
    pub share: u32,
    /// The hash of the token for purges of this site alone.
    pub purge_token: Option<TokenHash>,
    /// The variables of the environment with secrets that Envoy does not need.
    pub secret_variables: Vec<String>,
}
