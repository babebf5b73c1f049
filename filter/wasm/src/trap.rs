// SPDX-License-Identifier: Apache-2.0
//! Traps the VM on demand, so that tests can see which state survives. The shipped module does not have it.

use sluice_host::{Host as _, Map};
use sluice_roles::root::ORIGIN_ROOT_ID;

use crate::host::Envoy;

/// Ends this VM if the request's `x-trap` header names the role of this VM, `edge` or `origin`.
pub fn on_demand() {
    let root_id = Envoy.property("plugin_root_id").ok().flatten();
    let is_origin = root_id.is_some_and(|id| id == ORIGIN_ROOT_ID);
    let role: &[u8] = if is_origin { b"origin" } else { b"edge" };
    let named = Envoy.header(Map::Request, "x-trap").ok().flatten();
    if named.is_some_and(|named| named == role) {
        std::process::abort();
    }
}
