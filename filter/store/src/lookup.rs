// SPDX-License-Identifier: Apache-2.0
//! Lookups, which are the filter's calls that only ask whether the store has a response, and the answers to them.

use sluice_core::coalescing::{SMALL_BYTES, StoreNews};
use sluice_core::http::syntax::date;
use sluice_core::key::CanonicalTarget;
use sluice_core::workers::Millis;
use sluice_host::{Host, Map};

use crate::stored::entry::Entry;
use crate::stored::stored_fields::StoredFields;

/// Status of the answer to a lookup if the stored response has to be revalidated by the origin.
pub const LOOKUP_EXPIRED: u16 = 412;
/// Status of the answer to a lookup if the store has neither the response nor room.
pub const LOOKUP_NO_ROOM: u16 = 507;

/// Reads the store's report from the answer to a lookup, which arrived at `now`. `predates_purge` says whether an entry
/// was requested before a soft purge. `is_awaited` says, for a response that is validated at each use, whether it is
/// the response of the flight or a newer one.
pub fn looked_up(
    host: &dyn Host,
    now: Millis,
    predates_purge: impl Fn(&Entry<'_>) -> bool,
    is_awaited: impl Fn(&Entry<'_>, &StoredFields<'_>) -> bool,
) -> StoreNews {
    let Ok(headers) = host.headers(Map::CallResponse) else {
        return StoreNews::Missing;
    };
    let fields = StoredFields::of(headers.fields());
    match fields.entry().filter(|entry| entry.stored) {
        None if has_told(host, LOOKUP_NO_ROOM) => StoreNews::Lost,
        None => StoreNews::Missing,
        Some(entry) if predates_purge(&entry) => StoreNews::Outdated,
        Some(entry) if entry.lifetime.must_be_validated() => match is_awaited(&entry, &fields) {
            true => StoreNews::Validated,
            false => StoreNews::Missing,
        },
        Some(entry) => StoreNews::Readable {
            until: now.saturating_add(fields.served_for(&entry, host.unix_millis())),
            small: fields
                .content_length()
                .is_some_and(|length| length <= SMALL_BYTES),
        },
    }
}

/// Whether a lookup was answered with this status.
pub fn has_told(host: &dyn Host, status: u16) -> bool {
    told_status(host) == Some(status.into())
}

/// Whether a stored response was received after the origin `answered`. While Envoy's cache writes the changes of a
/// 304, it may still have the earlier response.
pub fn has_come_since(
    host: &dyn Host,
    answered: Millis,
    entry: &Entry<'_>,
    fields: &StoredFields<'_>,
) -> bool {
    let since = host.monotonic_millis().saturating_sub(answered) / 1_000;
    let answered = host.unix_seconds().saturating_sub_unsigned(since);
    let date = fields.date().and_then(date::of);
    let received = date.map(|date| date.saturating_add_unsigned(entry.age));
    received.is_some_and(|received| received > answered)
}

/// Whether requests with `Authorization` may share the response that a lookup has found. A response with another key
/// is another variant, which these requests may not want.
pub fn allows_authenticated(host: &dyn Host, target: &CanonicalTarget) -> bool {
    let headers = host.headers(Map::CallResponse);
    headers.is_ok_and(|headers| {
        let entry = StoredFields::of(headers.fields()).entry();
        entry.is_some_and(|entry| {
            let wanted = [target.cache_key(), target.plain_key()].contains(&entry.key);
            wanted && entry.allows_authenticated
        })
    })
}

/// Whether a call was answered without an error of the origin, of Envoy or of the filter.
pub fn has_succeeded(host: &dyn Host) -> bool {
    told_status(host).is_some_and(|status| !matches!(status, 500 | 502 | 503 | 504))
}

fn told_status(host: &dyn Host) -> Option<u64> {
    let status = host.header_number(Map::CallResponse, ":status");
    status.ok().flatten()
}
