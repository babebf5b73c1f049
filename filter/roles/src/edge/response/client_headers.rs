// SPDX-License-Identifier: Apache-2.0
//! Headers that the rule of a path sets for clients, with the edge's `Cache-Control`.

use sluice_core::freshness::may_be_kept_downstream;
use sluice_core::http::caching::private_response::private_directives;
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::policy::{Policy, Rule};

use crate::reply::complete_reply::MAINTENANCE_STATUS;
use sluice_host::{self as host, Host, Map};

/// The fields with directives for other caches that a policy may leave out of `cache.targeted_fields` (RFC 9213; Edge
/// Architecture Specification).
const TARGETED: [&str; 2] = ["cdn-cache-control", "surrogate-control"];

/// Sets the client's headers by the rule of the path. Conditions and ranges are applied later. `stored` says that the
/// response is for all clients. A site with access rules has private responses, unless the rule says otherwise.
pub fn add_client_headers(
    host: &dyn Host,
    policy: &Policy,
    store_path: &str,
    status: u16,
    stored: bool,
) -> host::Result<()> {
    let rule = policy.rule(store_path);
    add_headers(host, rule)?;
    if status == MAINTENANCE_STATUS
        && policy.response.maintenance_page.is_some()
        && host.header(Map::Response, "cache-control")?.is_none()
    {
        // The store may keep the page for a moment.
        return host.set_header(Map::Response, "cache-control", "no-store");
    }
    let told = rule.client_cache_control(status);
    let told = match told {
        Some(told) if stored || is_public(host, rule)? => Some(told),
        _ => None,
    };
    let Some(told) = told else {
        return keep_from_caches(host, policy);
    };
    host.set_header(Map::Response, "cache-control", told)?;
    host.remove_header(Map::Response, "expires")?;
    // The lifetime begins when the client gets the response, however long the response has been stored here.
    host.remove_header(Map::Response, "age")
}

/// Tells other caches that a response is for its client alone, if the site has access rules: they would serve it
/// to everyone.
pub fn keep_from_caches(host: &dyn Host, policy: &Policy) -> host::Result<()> {
    if policy.access.is_none() {
        return Ok(());
    }
    let cache_control = host.header(Map::Response, "cache-control")?;
    let cache_control = cache_control.unwrap_or_default();
    let private = private_directives(FieldValue::new(&cache_control));
    host.set_header(Map::Response, "cache-control", private)?;
    let targeted = policy.cache.targeted_fields.iter().map(String::as_str);
    let mut fields = targeted.chain(TARGETED);
    fields.try_for_each(|field| host.remove_header(Map::Response, field))
}

/// Sets the headers of the rule, and leaves the response's `Cache-Control` unchanged.
pub fn add_headers(host: &dyn Host, rule: &Rule) -> host::Result<()> {
    rule.headers
        .iter()
        .try_for_each(|(name, value)| host.set_header(Map::Response, name, value))
}

fn is_public(host: &dyn Host, rule: &Rule) -> host::Result<bool> {
    let cache_control = host.header(Map::Response, "cache-control")?;
    let cache_control = cache_control.unwrap_or_default();
    let has_set_cookie = host.header(Map::Response, "set-cookie")?.is_some();
    let cache_control = FieldValue::new(&cache_control);
    Ok(may_be_kept_downstream(rule, cache_control, has_set_cookie))
}
