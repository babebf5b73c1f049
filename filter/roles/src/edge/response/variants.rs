// SPDX-License-Identifier: Apache-2.0
//! Variants: whether a stored response is the one that a request wants, and the `Vary` that clients see.

use crate::worker::coalescing::Coalescing;
use crate::worker::identity::Identity;
use crate::worker::keys::Keys;
use crate::worker::own_requests::calls::Calls;
use crate::worker::roots::Roots;
use std::rc::Rc;

use sluice_core::http::syntax::field_value::JoinedValue;
use sluice_core::key::CanonicalTarget;
use sluice_core::key::vary::{self, VaryNames};
use sluice_store::Entry;
use sluice_store::STORED_VARY;

use super::refused::{refuse_mismatch, refuse_variant};
use crate::request::EdgeRequest;
use crate::worker::own_requests::variants;
use sluice_host::headers::Headers;
use sluice_host::{self as host, Action, Host, Map};

/// Refuses a response that the request does not want: that of another key with the same file name, or another variant
/// of its URL. Returns `None` if the request wants the response. If the URL varies, the worker learns which variant the
/// store has under the plain key.
pub fn refuse_unwanted(
    identity: &Identity,
    keys: &mut Keys,
    roots: &mut Roots,
    coalescing: &mut Coalescing,
    calls: &mut Calls,
    stream: &EdgeRequest,
    entry: &Entry<'_>,
) -> host::Result<Option<Action>> {
    let (target, plain_key) = (&stream.target, stream.target.plain_key());
    // A response that does not vary is for all requests, and ORIGIN has requested one of this fill for this request.
    let is_plain = || entry.key == plain_key || entry.fill == identity.vouching.fill_id(stream.id);
    if entry.key == target.cache_key() || (target.is_stored_plainly() && is_plain()) {
        return Ok(None);
    }
    let names = VaryNames::beyond(plain_key, entry.key).filter(|_| target.is_stored_plainly());
    let wanted = names.map(|names| stream.variant(&names));
    // The plain keys of this policy may have parts that those of the former policy did not have.
    let is_foreign = |wanted: &CanonicalTarget| wanted.cache_key() == plain_key;
    let Some(wanted) = wanted.filter(|wanted| !wanted.as_ref().is_some_and(is_foreign)) else {
        return refuse_mismatch(
            identity,
            keys,
            coalescing,
            calls,
            stream,
            "the response of another key",
        )
        .map(Some);
    };
    variants::learn_plain_variant(
        keys,
        roots,
        coalescing,
        plain_key,
        entry.key,
        stream.key.key,
    );
    match wanted {
        Some(mut wanted) if wanted.cache_key() == entry.key => {
            wanted.take_plain_key();
            stream.progress.variant.replace(Some(Rc::new(wanted)));
            Ok(None)
        }
        wanted => refuse_variant(identity, coalescing, calls, stream, wanted).map(Some),
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
