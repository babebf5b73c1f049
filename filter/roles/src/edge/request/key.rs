// SPDX-License-Identifier: Apache-2.0
//! The key of a cacheable request, and the reasons for which such a request bypasses the store.

use crate::worker::coalescing::Coalescing;
use crate::worker::keys::Keys;
use crate::worker::slices::KnownObjects;
use sluice_core::admission::{PassReason, RequestFacts};
use sluice_core::coalescing::shared::board::FlightKey;
use sluice_core::http::caching::client_control::{ClientDemand, RequestControl};
use sluice_core::http::syntax::field_value::{FieldValue, JoinedValue};
use sluice_core::key::CanonicalTarget;
use sluice_core::key::vary::HeaderTooLong;
use sluice_core::policy::Obedience;

use crate::edge::Edge;
use crate::edge::authorization_sharing::credentials_to_hide;
use crate::worker::own_requests::looks;
use sluice_host::headers::Headers;

/// A cacheable request with its key.
pub(super) struct Keyed<'a> {
    /// The hashes of the key.
    pub key: FlightKey,
    /// The client's cache directives, if the policy obeys them.
    pub control: RequestControl,
    /// The handling that these directives demand.
    pub way: ClientDemand,
    /// The credentials to hide from the store.
    pub credentials: Option<FieldValue<'a>>,
}

impl Edge {
    /// Completes the key of a cacheable request.
    ///
    /// # Errors
    /// The reason for which the request bypasses the store.
    pub(super) fn find_key<'a>(
        &self,
        keys: &mut Keys,
        slices: &mut KnownObjects,
        coalescing: &mut Coalescing,
        target: &mut CanonicalTarget,
        headers: &'a Headers,
        facts: &RequestFacts<'_>,
    ) -> Result<Keyed<'a>, PassReason> {
        let head = facts.method == "HEAD";
        let authenticated = facts.shows_credentials(&self.policy.policy);
        let control = self.control(facts.control, headers);
        let way = self.way(control, target);
        let key = self
            .qualify(keys, slices, coalescing, target, headers, head)
            .map_err(|HeaderTooLong| PassReason::Vary)?;
        if control.avoids_the_store() {
            return Err(PassReason::NoStore);
        }
        let credentials = authenticated
            .then(|| credentials_to_hide(keys, target, headers, &way, facts.demand))
            .flatten();
        if authenticated != credentials.is_some() {
            return Err(PassReason::Authorization);
        }
        Ok(Keyed {
            key,
            control,
            way,
            credentials,
        })
    }

    /// Adds every key qualifier (purge generation, coding, `Vary`) to `target` and returns the key's hash.
    fn qualify(
        &self,
        keys: &mut Keys,
        slices: &mut KnownObjects,
        coalescing: &mut Coalescing,
        target: &mut CanonicalTarget,
        headers: &Headers,
        head: bool,
    ) -> Result<FlightKey, HeaderTooLong> {
        let policy = &self.policy.policy;
        keys.qualify_generation(policy, target);
        keys.qualify(policy, target, headers)?;
        if head {
            let host = &*coalescing.host;
            let object = keys.object_hash(target.cache_key());
            if slices.is_sliced(object) {
                *target = target.for_headers();
            } else {
                looks::turn_to_headers(host, keys, &mut coalescing.coalescer, target);
            }
        }
        Ok(keys.flight_key(target))
    }

    /// The client's cache directives, if the policy obeys them. `asks` says whether there are any.
    pub(in crate::edge) fn control(&self, asks: bool, headers: &Headers) -> RequestControl {
        if !asks || self.policy.policy.request.cache_control == Obedience::Ignore {
            return RequestControl::default();
        }
        let cache_control = headers.joined("cache-control");
        let cache_control = cache_control.as_ref().map(JoinedValue::value);
        RequestControl::parse(cache_control, headers.get("pragma"))
    }

    /// The handling of a request that its client's directives demand.
    pub(in crate::edge) fn way(
        &self,
        control: RequestControl,
        target: &CanonicalTarget,
    ) -> ClientDemand {
        let rule = self.policy.policy.rule(target.path());
        control.way(rule.stale_while_revalidate.as_secs())
    }
}
