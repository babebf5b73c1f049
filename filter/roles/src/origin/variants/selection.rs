// SPDX-License-Identifier: Apache-2.0
//! The variant that a request wants, and the one that the store has under the plain key of its URL.

use crate::worker::coalescing::requests::OpenRequests;
use crate::worker::keys::Keys;
use crate::worker::own_requests::calls::Calls;
use std::rc::Rc;

use sluice_core::coalescing::StoreRequest;
use sluice_core::http::syntax::field_value::JoinedValue;
use sluice_core::key::vary::{self, ACCEPT_ENCODING, VaryNames};
use sluice_store::Link;
use sluice_store::Revalidation;

use crate::request::EdgeRequest;
use sluice_host::Host;
use sluice_host::headers::Headers;

/// A request whose response the store has under the plain key of its URL. The key does not identify the variant.
#[derive(Debug)]
pub struct Selection(Rc<EdgeRequest>);

impl Selection {
    /// The selection of the request that EDGE has sent, with these headers. Returns `None` if the key in the store
    /// identifies the response.
    pub fn of(
        keys: &Keys,
        requests: &OpenRequests,
        calls: &Calls,
        link: Link,
        stored_key: &str,
        headers: &Headers,
    ) -> Option<Self> {
        let stream = match link.request {
            StoreRequest::Head => asked(keys, calls, link, headers),
            request => request
                .names_a_request()
                .then(|| requests.get(link.stream))?,
        };
        let here = |stream: &Rc<EdgeRequest>| {
            let target = &stream.target;
            target.is_stored_plainly() && target.stored_key() == stored_key
        };
        stream.filter(here).map(Self)
    }

    /// The key of the requested response, as far as it is known.
    pub fn cache_key(&self) -> &str {
        self.0.target.cache_key()
    }

    /// The path with the qualifiers of the variant that the store has under the plain key, if the request wants that
    /// variant.
    pub fn plain_path(&self) -> Option<&str> {
        let target = &self.0.target;
        target.has_plain_key().then(|| target.path())
    }

    /// The key of the variant that the request wants, if its URL varies with `names`.
    pub fn key(&self, names: &VaryNames) -> Option<String> {
        let variant = self.0.variant(names)?;
        Some(variant.cache_key().to_owned())
    }

    /// Whether the request has asked the origin for the variant of that key: it has the values that the key adds to
    /// the plain one, in one of their spellings. ORIGIN chooses the coding by the key.
    pub fn asks_for(&self, key: &str) -> bool {
        let Some(sent) = self.0.selecting.as_ref() else {
            return false;
        };
        let variant = vary::variant_of(self.0.target.plain_key(), key);
        let path = format!("#{}", variant.unwrap_or_default());
        let mut asked = vary::selected(&path).filter(|selected| selected.name != ACCEPT_ENCODING);
        asked.all(|selected| {
            let sent = sent.joined(&selected.name);
            selected.is_asked_by(sent.as_ref().map(JoinedValue::value))
        })
    }

    /// The key of the stored response, if it is the variant that the request wants.
    pub fn key_of(&self, stored: &Revalidation) -> Option<String> {
        let target = &self.0.target;
        let plain = target.plain_key();
        let Some(variant) = stored.validator()?.variant else {
            // The URL was not known to vary, so this may be any variant.
            return (!target.has_plain_key()).then(|| plain.to_owned());
        };
        let key = vary::key_of_variant(plain, variant);
        let wanted = if target.has_plain_key() {
            self.cache_key().to_owned()
        } else {
            self.key(&VaryNames::beyond(plain, &key)?)?
        };
        (wanted == key).then_some(key)
    }
}

/// The record of a request of the filter for the headers of an object, as if a client had sent it.
fn asked(keys: &Keys, calls: &Calls, link: Link, headers: &Headers) -> Option<Rc<EdgeRequest>> {
    let call = calls.get(link.stream)?;
    let key = keys.flight_key(&call.target);
    let for_bucket = call.policy.policy.origin.is_bucket();
    let selecting = (!for_bucket).then(|| Rc::new(headers.clone()));
    let record = EdgeRequest::new(link.stream, key, call.target, call.policy, false);
    Some(Rc::new(EdgeRequest {
        selecting,
        ..record
    }))
}

/// The stored response that the store wants to revalidate, if the request can validate it. The response of an `own`
/// request is not for others.
pub fn stored_response(
    host: &dyn Host,
    keys: &mut Keys,
    headers: &Headers,
    stored_key: &str,
    selection: Option<&Selection>,
    own: bool,
) -> Option<Revalidation> {
    // The stored response may be another variant, which this request cannot validate.
    let stored = Revalidation::of_request(host, headers);
    let mut stored = stored.filter(|stored| is_wanted(selection, stored))?;
    // A 304 would change the stored response for others.
    stored.conditional &= !own;
    match stored.conditional && keys.take_doubt(stored_key) {
        true => Some(stored.unconditional()),
        false => Some(stored),
    }
}

/// Whether the stored response is the variant that the request wants, as far as it is known.
fn is_wanted(selection: Option<&Selection>, stored: &Revalidation) -> bool {
    match selection {
        Some(selection) => selection.key_of(stored).is_some(),
        None => stored
            .validator()
            .is_some_and(|stored| stored.variant.is_none()),
    }
}
