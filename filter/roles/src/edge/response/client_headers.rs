// SPDX-License-Identifier: Apache-2.0
//! Headers that the rule of a path sets for clients, with the edge's `Cache-Control`.

use sluice_core::freshness::may_be_kept_downstream;
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::policy::{Policy, Rule};

use sluice_host::{self as host, Host, Map};

/// Sets the client's headers by the rule of the path. Conditions and ranges are applied later. `stored` says that the
/// response is for all clients.
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
    // The lifetime begins when the client gets the response, however long the response has been stored here.
    host.remove_header(Map::Response, "age")
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
