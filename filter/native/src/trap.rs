// SPDX-License-Identifier: Apache-2.0
//! Panics on demand, so that tests can see what survives it. Not in the module that is shipped.

use sluice_host::{Host, Map};

/// Panics if the request's `x-trap` header names the role that has it, `edge` or `origin`.
#[allow(clippy::panic)]
pub fn on_demand(host: &dyn Host, upstream: bool) {
    let role: &[u8] = if upstream { b"origin" } else { b"edge" };
    let named = host.header(Map::Request, "x-trap").ok().flatten();
    assert!(named.is_none_or(|named| named != role), "a trap on demand");
}
