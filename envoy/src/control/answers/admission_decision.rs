// SPDX-License-Identifier: Apache-2.0
//! The decision of the filter about a request.

use serde::{Deserialize, Serialize};

/// The decision of the filter about a request.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct AdmissionDecision {
    /// The site; `None` for an edge with one site.
    pub site: Option<String>,
    /// The rule of the policy that applies to the path.
    pub policy_rule: Option<String>,
    /// `cached`, `passed`, `redirected` or `refused`.
    pub admission: String,
    /// The reason, if the request does not use the cache; the location of a redirect.
    pub reason: Option<String>,
    /// The status of a refusal.
    pub status: Option<u16>,
    /// The cache key.
    pub key: Option<String>,
    /// The key under which Envoy's cache stores the response.
    pub store_key: Option<String>,
    /// The path at the origin.
    pub bucket_path: Option<String>,
}
