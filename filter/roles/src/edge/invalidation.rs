// SPDX-License-Identifier: Apache-2.0
//! Invalidation by unsafe methods (RFC 9111, 4.4). After such a request has succeeded, the stored responses of its
//! URL must be revalidated, and also those of the cache groups that its response names (RFC 9875, 3).

use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::http::url::uri_reference::{TargetUri, within_origin};
use sluice_core::key::{Target, canonicalize};
use sluice_core::policy::{Origin, Policy};
use sluice_core::purge::{groups_of, url_of};

use crate::worker::keys::Keys;
use crate::worker::purges::purge_calls::PurgeCalls;
use crate::worker::roots::Roots;
use sluice_host::headers::Headers;
use sluice_host::{self as host, Host, Map};

const SAFE_METHODS: [&str; 7] = [
    "GET", "HEAD", "OPTIONS", "PROPFIND", "QUERY", "REPORT", "SEARCH",
];

/// A request with an unsafe method, on its way to an HTTP origin.
#[derive(Debug)]
pub struct Invalidation {
    scheme: &'static str,
    authority: Vec<u8>,
    /// Its `:path`, the base of references in the response.
    path: Vec<u8>,
    /// Its own URL.
    url: String,
}

impl Invalidation {
    /// The invalidation by a request, to be applied when the request succeeds. Returns `None` for a method that is
    /// known to be safe (RFC 9110, 9.2.1, and IANA's registry of methods).
    pub fn of(policy: &Policy, method: &str, headers: &Headers, cache_key: &str) -> Option<Self> {
        if SAFE_METHODS.contains(&method) || !matches!(policy.origin, Origin::Http(_)) {
            return None;
        }
        let https = headers.is(":scheme", "https");
        Some(Self {
            scheme: if https { "https" } else { "http" },
            authority: headers.target().authority.to_owned(),
            path: headers.target().path.to_owned(),
            url: url_of(policy, cache_key).to_owned(),
        })
    }

    /// Handles the response's headers. If the request has succeeded, tells all workers which URLs and groups to
    /// revalidate.
    pub fn note(
        &self,
        host: &dyn Host,
        keys: &mut Keys,
        roots: &mut Roots,
        purge_calls: &mut PurgeCalls,
        policy: &Policy,
    ) -> host::Result<()> {
        let status = host.header(Map::Response, ":status")?.unwrap_or_default();
        if !matches!(status.first(), Some(b'2' | b'3')) {
            return Ok(());
        }
        let mut urls = vec![self.url.clone()];
        for name in ["location", "content-location"] {
            let value = host.header(Map::Response, name)?;
            urls.extend(value.and_then(|value| self.same_origin(policy, &value)));
        }
        purge_calls.invalidate(keys, roots, policy, &urls);
        let field = host.header(Map::Response, "cache-group-invalidation")?;
        // A field that is not text names no groups, like any other field that is not a list of strings (RFC 9875, 2).
        let field = field.as_deref().map(FieldValue::new);
        let field = field.and_then(|field| field.text().ok());
        let groups = field.map_or_else(Vec::new, |field| {
            groups_of(&self.url, field, &keys.identity.store_secret)
        });
        if !groups.is_empty() {
            purge_calls.invalidate_groups(keys, roots, policy, &groups);
        }
        Ok(())
    }

    /// The URL that a reference in the response names, if it has the same origin.
    fn same_origin(&self, policy: &Policy, reference: &[u8]) -> Option<String> {
        let base = TargetUri {
            scheme: self.scheme,
            authority: &self.authority,
            path: &self.path,
        };
        let path = within_origin(&base, reference)?;
        let target = Target {
            scheme: Some(base.scheme),
            authority: base.authority,
            path: &path,
        };
        let canonical = canonicalize(policy, &target).ok()?;
        Some(url_of(policy, canonical.cache_key()).to_owned())
    }
}
