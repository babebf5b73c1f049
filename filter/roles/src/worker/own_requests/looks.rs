// SPDX-License-Identifier: Apache-2.0
//! Lookups in the store. HEADs need them to learn whether the store has the object, or whether only the object's
//! headers are shared. Ranges need them ahead of the question for the object's size. Requests that would otherwise be
//! sent to the origin alone need them as well.

use crate::worker::coalescing::Coalescing;
use crate::worker::own_requests::calls::Calls;
use sluice_core::coalescing::{Coalescer, NextStep, StoreNews, StoreRequest};
use sluice_core::key::CanonicalTarget;
use sluice_core::workers::KeyHash;
use sluice_store::{LOOKUP_EXPIRED, allows_authenticated, has_told, looked_up};

use crate::request::EdgeRequest;
use crate::request::call_kind::CallKind;
use crate::worker::keys::{AuthorizedSharing, Keys};
use sluice_host::Host;

/// Changes a HEAD's target to the headers alone if this worker knows of stored headers but of no stored object.
pub fn turn_to_headers(
    host: &dyn Host,
    keys: &Keys,
    coalescer: &mut Coalescer,
    target: &mut CanonicalTarget,
) {
    let headers = target.for_headers();
    let now = host.monotonic_millis();
    let whole = keys.key_hash(target.cache_key());
    let part = keys.key_hash(headers.cache_key());
    let has_whole = coalescer.remembered(whole, now).is_some() || coalescer.is_storing(whole);
    if !has_whole && coalescer.knows(part, now) {
        *target = headers;
    }
}

/// Handles the store's answer to a lookup, if there is one, and resumes the requests that wait for it.
pub fn looked(
    keys: &mut Keys,
    coalescing: &mut Coalescing,
    calls: &mut Calls,
    key: KeyHash,
    target: &CanonicalTarget,
    answered: bool,
) {
    let news = if answered {
        news_of(&*calls.host)
    } else {
        StoreNews::Missing
    };
    for id in calls.take_waiting(CallKind::Look(key)) {
        let Some(stream) = coalescing.requests.get(id) else {
            continue;
        };
        let purged = keys.must_revalidate(stream.target.cache_key(), stream.key.key);
        let next_step = match news {
            StoreNews::Readable { .. }
                if stream.authenticated
                    && !purged
                    && allows_authenticated(&*calls.host, target) =>
            {
                keys.note_authorized_sharing(key, Some(AuthorizedSharing::All));
                NextStep::Send(StoreRequest::Fresh)
            }
            _ if stream.authenticated => unshared(&stream),
            StoreNews::Readable { .. } if !stream.head && !purged => {
                NextStep::Send(StoreRequest::Fresh)
            }
            _ if stream.sizes_next() => NextStep::Send(StoreRequest::Alone),
            // A request that may lead validates a response that was purged softly.
            StoreNews::Validated if !stream.head && !purged => NextStep::Send(StoreRequest::Fresh),
            _ if !stream.head => NextStep::Unfilled,
            StoreNews::Outdated | StoreNews::Missing | StoreNews::Lost => NextStep::Varies,
            StoreNews::Readable { .. } if !purged => {
                stream.progress.prior_call.set(Some(CallKind::Fill(key)));
                NextStep::Send(StoreRequest::Alone)
            }
            StoreNews::Readable { .. } | StoreNews::Validated => {
                NextStep::Send(StoreRequest::Alone)
            }
        };
        coalescing.wakeups.resume(id, next_step);
    }
}

/// The next step of a request with credentials that shares no response.
pub fn unshared(stream: &EdgeRequest) -> NextStep {
    match stream.demand {
        Some(_) => NextStep::Unfilled,
        None => NextStep::Send(StoreRequest::Unshared),
    }
}

/// The store's report to a lookup. A response that must be revalidated now counts as one that each use validates.
fn news_of(host: &dyn Host) -> StoreNews {
    match looked_up(host, 0, |_| false, |_, _| true) {
        StoreNews::Missing | StoreNews::Lost if has_told(host, LOOKUP_EXPIRED) => {
            StoreNews::Validated
        }
        news => news,
    }
}
