// SPDX-License-Identifier: Apache-2.0
//! The values of the origin's cluster, and of the guards that keep requests inside the bucket.

use serde::Serialize;
use sluice_core::policy::{self, BucketOrigin, Policy, QueryRule};

use super::{RenderError, seconds};
use crate::net::ca_bundle;
use crate::origin::{Bucket, Origin};
use crate::settings::Settings;

/// The qualifiers of the cache key, which the filter adds to a path towards the store. Envoy refuses a client's `#`.
const QUALIFIERS: &str = "(?:#[^#]*)?";

/// The values of the origin's cluster and of the guards.
#[derive(Serialize)]
pub struct OriginView {
    host: String,
    port: u16,
    authority: String,
    is_ip: bool,
    tls: bool,
    ca_file: Option<String>,
    idle: String,
    bucket: Option<BucketView>,
}

#[derive(Serialize)]
struct BucketView {
    region: String,
    static_credentials: bool,
    /// Every canonical path matches this.
    path_regex: String,
    /// No canonical path matches this.
    forbidden_regex: &'static str,
}

impl OriginView {
    /// The values for `origin` under this `policy`.
    ///
    /// # Errors
    /// There are no CA certificates to verify the origin with.
    pub fn new(settings: &Settings, origin: &Origin, policy: &Policy) -> Result<Self, RenderError> {
        let endpoint = origin.endpoint();
        let ca_file = match (endpoint.tls, &settings.ca_file) {
            (false, _) => None,
            (true, Some(file)) => Some(file.display().to_string()),
            (true, None) => Some(ca_bundle::find().ok_or(RenderError::NoCaBundle)?.to_owned()),
        };
        let bucket = match (origin, &policy.origin) {
            (Origin::Bucket(bucket), policy::Origin::Bucket(paths)) => {
                Some(BucketView::new(bucket, settings, paths, &policy.key.query))
            }
            (Origin::Bucket(_) | Origin::Http(_), _) => None,
        };
        Ok(Self {
            host: endpoint.host.clone(),
            port: endpoint.port,
            authority: endpoint.authority(),
            is_ip: endpoint.ip().is_some(),
            tls: endpoint.tls,
            ca_file,
            idle: seconds(settings.origin_idle),
            bucket,
        })
    }
}

impl BucketView {
    fn new(bucket: &Bucket, settings: &Settings, paths: &BucketOrigin, query: &QueryRule) -> Self {
        // NB: the prefix is percent-encoded, so only its dots have a meaning in a regular expression.
        let start = paths.path_prefix.replace('.', r"\.");
        let query = match query {
            QueryRule::Drop { allow } if allow.is_empty() => "",
            QueryRule::Drop { .. } | QueryRule::Keep { .. } | QueryRule::Sort { .. } => {
                r"(?:\?[^#]*)?"
            }
        };
        Self {
            region: bucket.region.clone(),
            static_credentials: settings.static_credentials,
            path_regex: format!(
                "{start}/(?:[A-Za-z0-9._~/-]|%[0-9A-F][0-9A-F])*{query}{QUALIFIERS}"
            ),
            forbidden_regex: r"[^?#]*(?:/\.\.?(?:[/?#].*)?|%(?:00|2E|2F).*)",
        }
    }
}
