// SPDX-License-Identifier: Apache-2.0
//! What EDGE judges of a response that has come through the store: its age, whether it is stale or too old, what the
//! request counts as, and what `Cache-Status` says.

use crate::link::StoreRequest;
use crate::stored::entry::{Entry, FillId};
use crate::stored::stored_fields::StoredFields;
use sluice_core::hot::StoreCheck;
use sluice_core::http::caching::cache_status::{CacheStatus, Forward};
use sluice_core::http::caching::client_control::RequestControl;
use sluice_core::http::syntax::date;
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::metrics::Metric;
use sluice_core::workers::Millis;

/// What `Cache-Status` says of a response for which the store has no room.
pub const NO_ROOM: &str = "no-room";

/// How a response has come to EDGE.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The fill that this very request would be.
    pub fill: FillId,
    /// The status with which the origin has failed this request, where the store keeps what it has.
    pub failure: Option<u16>,
    /// Whether the stored response expired while the request was on its way to the store.
    pub late: bool,
    /// Whether the response was asked for before a soft purge.
    pub purged: bool,
    /// When, in milliseconds since 1970.
    pub now: Millis,
}

/// A response that ORIGIN has marked, and how it has come here.
#[derive(Debug)]
pub struct Served<'a> {
    /// The response's mark.
    pub entry: Entry<'a>,
    /// Whether it came from the origin because of this very request.
    pub own: bool,
    /// The status with which the origin has failed this request, where the store keeps what it has.
    pub failure: Option<u16>,
    late: bool,
    /// In seconds (RFC 9111, 4.2.3).
    pub age: u64,
    /// Whether the response says its age.
    pub has_age: bool,
    /// Whether it was asked for before a soft purge, and stored after: the fill was under way.
    pub predates_purge: bool,
    /// Milliseconds for which the store serves it without asking; 0 if it does not have it.
    pub served_for: Millis,
    date: Option<FieldValue<'a>>,
    seen: Millis,
}

impl<'a> Served<'a> {
    /// The response with that mark and these `fields`.
    pub fn of(entry: Entry<'a>, fields: &StoredFields<'a>, arrival: &Arrival) -> Self {
        let own = entry.fill == arrival.fill;
        let counted = fields.age();
        let age = match counted {
            Some(age) => age,
            // ORIGIN has taken the header with the age that the response came with.
            None if own => entry.age,
            None => age_by_date(fields.date(), arrival.now),
        };
        Self {
            own,
            failure: arrival.failure,
            late: arrival.late,
            age,
            has_age: counted.is_some(),
            predates_purge: arrival.purged && !own,
            served_for: fields.served_for(&entry, arrival.now),
            date: fields.date(),
            seen: arrival.now,
            entry,
        }
    }

    /// Whether it is served within a window of staleness.
    pub fn is_stale(&self) -> bool {
        self.predates_purge || self.is_past_its_time()
    }

    /// What is seen of the stored response now. Envoy counted its `Age` a moment ago, maybe in another second.
    pub fn sighting(&self) -> StoreCheck {
        let age = if self.has_age {
            self.age.max(age_by_date(self.date, self.seen))
        } else {
            self.age
        };
        StoreCheck {
            lifetime: self.entry.lifetime,
            age,
            seen: self.seen,
            left: self.served_for,
        }
    }

    /// The same of a response that the store does not have: it is good for as long as it is fresh.
    pub fn sighting_without_room(&self) -> StoreCheck {
        let left = self.entry.lifetime.ttl.saturating_sub(self.age);
        StoreCheck {
            left: left.saturating_mul(1_000),
            ..self.sighting()
        }
    }

    /// Whether it must not be served (RFC 9111, 4.2.4): the origin had to be asked, and has failed. `control` is what
    /// the client accepts.
    pub fn is_expired(&self, control: &RequestControl) -> bool {
        let lifetime = self.entry.lifetime;
        let accepted = lifetime.ttl.saturating_add(control.max_stale.unwrap_or(0));
        // The stores count in whole seconds.
        let servable = lifetime.servable().max(accepted).saturating_add(1);
        !self.own && !self.late && self.entry.stored && self.age > servable
    }

    /// Whether a client takes it that takes what the store has and nothing else.
    pub fn satisfies(&self, control: &RequestControl) -> bool {
        let lifetime = self.entry.lifetime;
        let fresh_for = lifetime.fresh_for(self.age);
        control.accepts(self.age, fresh_for, lifetime.stale_while_revalidate)
    }

    /// Whether the origin has brought it for this client, and it is not for others.
    pub fn is_its_clients_alone(&self) -> bool {
        self.own && !self.entry.stored && !self.entry.revalidated && !self.entry.lacks_room()
    }

    /// Whether the origin has brought an object that goes into the store while its client gets it.
    pub fn is_fill(&self) -> bool {
        self.own && self.entry.stored && !self.entry.revalidated
    }

    /// Whether the store has served a 200 as it is, without a word from the origin.
    pub fn is_hit(&self, request: StoreRequest) -> bool {
        let whole = self.entry.stored && self.entry.status == 200;
        whole && self.failure.is_none() && self.metric(request) == Metric::RequestsHit
    }

    /// What the request counts as that was sent as `request`.
    pub fn metric(&self, request: StoreRequest) -> Metric {
        match request {
            _ if self.own && self.entry.revalidated => Metric::RequestsRevalidated,
            _ if self.own => Metric::RequestsMiss,
            StoreRequest::Collapsed | StoreRequest::Validated => Metric::RequestsCollapsed,
            _ if self.is_stale() => Metric::RequestsStale,
            _ => Metric::RequestsHit,
        }
    }

    /// What `Cache-Status` says to a client whose request was sent as `request`. `collapsed` says that it has
    /// waited for another's response.
    pub fn cache_status(&self, request: StoreRequest, collapsed: bool) -> CacheStatus<'static> {
        if self.own {
            return self.own_cache_status(request);
        }
        if let Some(status) = self.failure {
            return CacheStatus::forwarded(Forward::Stale)
                .forward_status(status)
                .ttl(self.fresh_for());
        }
        if collapsed {
            return self.collapsed_cache_status();
        }
        CacheStatus::hit().ttl(self.fresh_for())
    }

    /// What `Cache-Status` says to the followers that have waited for this response.
    pub fn collapsed_cache_status(&self) -> CacheStatus<'static> {
        // What they have waited for was a validation, or there was nothing.
        let forward = if self.is_stale() || self.entry.revalidated {
            Forward::Stale
        } else {
            Forward::UriMiss
        };
        let status = CacheStatus::forwarded(forward).collapsed();
        if self.entry.shared_once {
            return status;
        }
        status.ttl(self.fresh_for())
    }

    fn own_cache_status(&self, request: StoreRequest) -> CacheStatus<'static> {
        let entry = &self.entry;
        let (forward, status) = match request {
            _ if !entry.revalidated => (Forward::UriMiss, entry.status),
            StoreRequest::Unshared => (Forward::Request, 304),
            _ => (Forward::Stale, 304),
        };
        let mut said = CacheStatus::forwarded(forward).forward_status(status);
        if entry.stored && !entry.revalidated {
            said = said.stored();
        }
        if entry.stored || entry.revalidated {
            said = said.ttl(self.fresh_for());
        }
        if entry.lacks_room() {
            said = said.detail(NO_ROOM);
        }
        said
    }

    fn fresh_for(&self) -> i64 {
        self.entry.lifetime.fresh_for(self.age)
    }

    fn is_past_its_time(&self) -> bool {
        let lifetime = self.entry.lifetime;
        let windows = lifetime.servable() > lifetime.ttl;
        !self.own && windows && self.fresh_for() <= 0
    }
}

/// The age of a stored response with that `Date`. Envoy does not count that of one that comes from a revalidation.
fn age_by_date(date: Option<FieldValue<'_>>, now: Millis) -> u64 {
    let now = i64::try_from(now / 1_000).unwrap_or(i64::MAX);
    let date = date.and_then(date::of);
    let age = date.map_or(0, |date| now.saturating_sub(date));
    u64::try_from(age).unwrap_or(0)
}

#[cfg(test)]
mod tests;
