// SPDX-License-Identifier: Apache-2.0
//! What the rule of a path wants clients to see: headers, and a `Cache-Control` of the edge's own.

use sluice_core::freshness::may_be_kept_downstream;
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::policy::{Policy, Rule};

use sluice_host::{self as host, Host, Map};

/// Gives the response, as the client gets it but for its validity as a whole or a part, what the rule
/// of its path wants. `stored` says that it is one for all.
pub fn add_client_headers(
    host: &dyn Host,
    policy: &Policy,
    store_path: &str,
    status: u16,
    stored: bool,
) -> host::Result<()> {
    let rule = policy.rule(store_path);
    add_headers(host, rule)?;
    let Some(told) = rule.client_cache_control(status) else {
        return Ok(());
    };
    if !stored && !is_public(host, rule)? {
        return Ok(());
    }
    host.set_header(Map::Response, "cache-control", told)?;
    host.remove_header(Map::Response, "expires")?;
    // It counts from when the client gets it, whatever time the response has spent here.
    host.remove_header(Map::Response, "age")
}

/// Gives the response the headers of the rule and leaves its `Cache-Control` alone.
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
