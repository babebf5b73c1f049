// SPDX-License-Identifier: Apache-2.0
//! Copies of a response for the requests of this worker that wait for it.

use crate::edge::hot;
use crate::request::EdgeRequest;
use crate::request::body::{SharedCopy, Sharing};
use crate::worker::coalescing::Coalescing;
use crate::worker::keys::Keys;
use sluice_core::freshness::UncacheableReason;
use sluice_host::{self as host, Map};
use sluice_store::{NO_ROOM, Served};

/// Passes on a response that other clients may get but the store does not. If it is small, the followers on this
/// worker get a copy. Otherwise only its own client gets it.
pub fn share_unstored(
    keys: &mut Keys,
    coalescing: &mut Coalescing,
    stream: &EdgeRequest,
    announced: Option<u64>,
    served: &Served<'_>,
) -> host::Result<()> {
    let once = served.entry.shared_once;
    let plain = stream.demand.is_none() && stream.stand_in.is_none() && !stream.head;
    let whole = plain && (once || served.entry.status == 200) && !stream.for_others;
    let way = served.collapsed_cache_status();
    let way = way.detail(if once {
        UncacheableReason::NoLifetime.name()
    } else {
        NO_ROOM
    });
    let sighting = served.sighting_without_room();
    let shared = match once {
        true => SharedCopy::Once,
        false => SharedCopy::WithoutRoom,
    };
    let sharing = Sharing { way, shared };
    let shares = whole
        && hot::begin_to_share(
            &*coalescing.host,
            keys,
            stream,
            announced,
            sighting,
            sharing,
        )?;
    if !shares {
        hot::share_nothing(coalescing, stream, shared);
    }
    if !served.has_age && served.age == 0 {
        // The client of this request has it from the origin (RFC 9111, 5.1).
        coalescing.host.remove_header(Map::Response, "age")?;
    }
    Ok(())
}

/// Starts to copy a response that is being stored, if it is small and requests of this worker wait for it. They get the
/// copy when the response ends, without a lookup in the store. All other followers get it from the store.
pub fn share_fill(
    keys: &mut Keys,
    coalescing: &mut Coalescing,
    stream: &EdgeRequest,
    announced: Option<u64>,
    served: &Served<'_>,
) -> host::Result<()> {
    let entry = &served.entry;
    let plain = stream.demand.is_none() && stream.stand_in.is_none() && !stream.head;
    let whole = plain && entry.status == 200 && stream.slice.is_none();
    // Each use of such a response must be validated.
    let shares = whole && !entry.lifetime.must_be_validated() && !stream.authenticated;
    let flight = coalescing.coalescer.flight(stream.key.key);
    if !shares || flight.is_none_or(|flight| flight.waiters.is_empty()) {
        return Ok(());
    }
    let sharing = Sharing {
        way: served.collapsed_cache_status(),
        shared: SharedCopy::Stored,
    };
    let (host, sighting) = (&*coalescing.host, served.sighting());
    hot::begin_to_share(host, keys, stream, announced, sighting, sharing).map(|_| ())
}
