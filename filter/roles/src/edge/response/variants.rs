// SPDX-License-Identifier: Apache-2.0
//! Variants: whether a stored response is the one that a request wants, and the `Vary` that clients see.

use std::rc::Rc;

use sluice_core::http::syntax::field_value::JoinedValue;
use sluice_core::key::CanonicalTarget;
use sluice_core::key::vary::{self, VaryNames};
use sluice_store::Entry;
use sluice_store::STORED_VARY;

use crate::request::EdgeRequest;
use crate::worker::Worker;
use crate::worker::own_requests::variants;
use sluice_host::headers::Headers;
use sluice_host::{self as host, Host, Map};

/// The relation of a marked response to a request.
#[derive(Debug)]
pub enum Recognized {
    /// The response that the request wants.
    Wanted,
    /// Another variant of its URL. The variant that the request wants has this target, unless one of its headers is
    /// too long for a key.
    Other(Option<CanonicalTarget>),
    /// The response of another key, which has the same file name.
    Foreign,
}

/// Compares the key of a response with that of the request. If the URL varies, the worker learns which variant the
/// store has under the plain key.
pub fn recognize(worker: &mut Worker, stream: &EdgeRequest, entry: &Entry<'_>) -> Recognized {
    let target = &stream.target;
    if entry.key == target.cache_key() {
        return Recognized::Wanted;
    }
    if !target.is_stored_plainly() {
        return Recognized::Foreign;
    }
    let plain_key = target.plain_key();
    if entry.key == plain_key || entry.fill == worker.identity.vouching.fill_id(stream.id) {
        // A response that does not vary is for all requests, and ORIGIN has requested this one for this request.
        return Recognized::Wanted;
    }
    let Some(names) = VaryNames::beyond(plain_key, entry.key) else {
        return Recognized::Foreign;
    };
    let wanted = stream.variant(&names);
    if wanted
        .as_ref()
        .is_some_and(|wanted| wanted.cache_key() == plain_key)
    {
        // The plain keys of this policy have parts that those of the former policy did not have.
        return Recognized::Foreign;
    }
    variants::learn_plain_variant(worker, plain_key, entry.key, stream.key.key, stream.id.0);
    match wanted {
        Some(mut wanted) if wanted.cache_key() == entry.key => {
            wanted.take_plain_key();
            stream.progress.variant.replace(Some(Rc::new(wanted)));
            Recognized::Wanted
        }
        wanted => Recognized::Other(wanted),
    }
}

/// Sets the `Vary` that the client sees. `headers` are those of the response before the edits for the client.
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
    let [stored, already] =
        [&stored, &already].map(|joined| joined.as_ref().map(JoinedValue::value));
    match vary::told(policy, stored, already, chooses) {
        Some(told) => host.add_header(Map::Response, "vary", told),
        None => Ok(()),
    }
}
