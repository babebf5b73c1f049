// SPDX-License-Identifier: Apache-2.0
//! Panics on demand, so that tests can see which state survives. The shipped module does not have it.

use sluice_host::{Host, Map};

use crate::abi::{Filter, HeaderMapType};

/// Panics if the request's `x-trap` header names the role of this stream, `edge` or `origin`.
#[allow(clippy::panic)]
pub fn on_demand(host: &dyn Host, upstream: bool) {
    let role: &[u8] = if upstream { b"origin" } else { b"edge" };
    let named = host.header(Map::Request, "x-trap").ok().flatten();
    assert!(named.is_none_or(|named| named != role), "a trap on demand");
}

/// Panics if the request's `x-trap` header names the slicer.
#[allow(clippy::panic)]
pub fn on_demand_in_slicer(filter: Filter) {
    let named = filter.header(HeaderMapType::Request, "x-trap");
    assert!(
        named.is_none_or(|named| named != b"slicer"),
        "a trap on demand"
    );
}
