// SPDX-License-Identifier: Apache-2.0
//! What the answer to a call of the filter's own tells.

use sluice_core::coalescing::StoreNews;
use sluice_core::key::CanonicalTarget;
use sluice_core::workers::Millis;
use sluice_store::Entry;
use sluice_store::Probed;
use sluice_store::StoredFields;

use crate::reply::NO_ROOM;
use crate::reply::substitute::MOST_BYTES;
use sluice_host::{Host, Map};

/// Whether a look at the store has been answered with that status.
pub fn has_told(host: &dyn Host, status: u16) -> bool {
    told_status(host) == Some(status.into())
}

/// What the store has given to a probe at `now`, where `predates_purge` tells what was asked for before a soft purge, and
/// `is_awaited` whether a response that each use validates is that of the flight or a newer one.
pub fn probed(
    host: &dyn Host,
    now: Millis,
    predates_purge: impl Fn(&Entry<'_>) -> bool,
    is_awaited: impl Fn(&Entry<'_>, &StoredFields<'_>) -> bool,
) -> Probed {
    let Ok(headers) = host.headers(Map::CallResponse) else {
        return Probed::Missing;
    };
    let fields = StoredFields::of(headers.fields());
    match fields.entry().filter(|entry| entry.stored) {
        None if has_told(host, NO_ROOM) => Probed::Answered(StoreNews::Lost),
        None => Probed::Missing,
        Some(entry) if predates_purge(&entry) => Probed::Outdated,
        Some(entry) if entry.lifetime.must_be_validated() => {
            if is_awaited(&entry, &fields) {
                Probed::Answered(StoreNews::Validated)
            } else {
                Probed::Missing
            }
        }
        Some(entry) => Probed::Answered(StoreNews::Readable {
            until: now.saturating_add(fields.served_for(&entry, host.unix_millis())),
            small: fields
                .content_length()
                .is_some_and(|length| length <= MOST_BYTES),
        }),
    }
}

/// Whether requests with `Authorization` may share the response that a look at the store has found. One of another key is
/// another variant than they may want.
pub fn has_for_authenticated(host: &dyn Host, target: &CanonicalTarget) -> bool {
    let headers = host.headers(Map::CallResponse);
    headers.is_ok_and(|headers| {
        let entry = StoredFields::of(headers.fields()).entry();
        entry.is_some_and(|entry| {
            let wanted = [target.cache_key(), target.plain_key()].contains(&entry.key);
            wanted && entry.allows_authenticated
        })
    })
}

/// Whether a call has been answered otherwise than by an error of the origin's, of Envoy's or of the filter's.
pub fn has_succeeded(host: &dyn Host) -> bool {
    told_status(host).is_some_and(|status| !matches!(status, 500 | 502 | 503 | 504))
}

fn told_status(host: &dyn Host) -> Option<u64> {
    let status = host.header_number(Map::CallResponse, ":status");
    status.ok().flatten()
}
