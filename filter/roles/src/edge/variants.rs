// SPDX-License-Identifier: Apache-2.0
//! What clients are told that a response varies with.

use std::rc::Rc;

use sluice_core::key::vary;
use sluice_core::store::stored_fields::STORED_VARY;

use crate::host::headers::Headers;
use crate::host::{self, Host, Map};
use crate::request::EdgeRequest;

/// Tells the client what the response, which had these headers, depends on.
pub fn restore(host: &dyn Host, stream: &Rc<EdgeRequest>, headers: &Headers) -> host::Result<()> {
    let policy = &stream.policy.policy;
    let path = policy.client_path(stream.target.origin_path());
    let chooses = policy.compression.applies(path);
    let stored = headers.joined(STORED_VARY);
    if stored.is_some() {
        host.remove_header(Map::Response, STORED_VARY)?;
    } else if !chooses {
        return Ok(());
    }
    let already = headers.joined("vary");
    match vary::told(policy, stored.as_deref(), already.as_deref(), chooses) {
        Some(told) => host.add_header(Map::Response, "vary", &told),
        None => Ok(()),
    }
}
