// SPDX-License-Identifier: Apache-2.0
//! EDGE's judgement of a response from the store: its age, whether it is stale or too old, the metric of the request,
//! and the member of `Cache-Status`.

use crate::stored::entry::{Entry, FillId};
use crate::stored::stored_fields::StoredFields;
use sluice_core::coalescing::StoreRequest;
use sluice_core::hot::StoreCheck;
use sluice_core::http::caching::cache_status::{CacheStatus, Forward};
use sluice_core::http::caching::client_control::RequestControl;
use sluice_core::http::syntax::date;
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::metrics::Metric;
use sluice_core::workers::Millis;

/// Detail in `Cache-Status` for a response that the store has no room for.
pub const NO_ROOM: &str = "no-room";

/// Circumstances in which a response arrives at EDGE.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Identity of the fill that this request would be.
    pub fill: FillId,
    /// Status with which the origin has failed this request, if the store keeps its entry.
    pub failure: Option<u16>,
    /// Whether the stored response expired while the request was on its way to the store.
    pub late: bool,
    /// Whether the response was requested before a soft purge.
    pub purged: bool,
    /// Time of the arrival in milliseconds since 1970.
    pub now: Millis,
}

/// Response that ORIGIN has marked, with the circumstances of its arrival.
#[derive(Debug)]
pub struct Served<'a> {
    /// Mark of the response.
    pub entry: Entry<'a>,
    /// Whether the origin sent the response because of this very request.
    pub own: bool,
    /// Status with which the origin has failed this request, if the store keeps its entry.
    pub failure: Option<u16>,
    late: bool,
    /// Age in seconds (RFC 9111, 4.2.3).
    pub age: u64,
    /// Whether the response has an `Age`.
    pub has_age: bool,
    /// Whether the response was requested before a soft purge and stored after it, because the fill was under way.
    pub predates_purge: bool,
    /// Milliseconds for which the store serves the response without asking the origin; 0 if the store does not have
    /// it.
    pub served_for: Millis,
    date: Option<FieldValue<'a>>,
    seen: Millis,
}

impl<'a> Served<'a> {
    /// Judges a response with the mark `entry` and these `fields`.
    pub fn of(entry: Entry<'a>, fields: &StoredFields<'a>, arrival: &Arrival) -> Self {
        let own = entry.fill == arrival.fill;
        let counted = fields.age();
        let age = match counted {
            Some(age) => age,
            // ORIGIN has removed the origin's `Age`, and written the age into the entry.
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

    /// Whether the response is served within a window of staleness.
    pub fn is_stale(&self) -> bool {
        self.predates_purge || self.is_past_its_time()
    }

    /// Returns the state of the stored response now. Envoy computed its `Age` a moment ago, perhaps in an earlier
    /// second.
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

    /// Returns the state of a response that the store does not have. It may be served while it is fresh.
    pub fn sighting_without_room(&self) -> StoreCheck {
        let left = self.entry.lifetime.ttl.saturating_sub(self.age);
        StoreCheck {
            left: left.saturating_mul(1_000),
            ..self.sighting()
        }
    }

    /// Whether the response must not be served (RFC 9111, 4.2.4), because the origin had to be asked and has failed.
    /// `control` has the staleness that the client accepts.
    pub fn is_expired(&self, control: &RequestControl) -> bool {
        let lifetime = self.entry.lifetime;
        let accepted = lifetime.ttl.saturating_add(control.max_stale.unwrap_or(0));
        // The stores count whole seconds.
        let servable = lifetime.servable().max(accepted).saturating_add(1);
        !self.own && !self.late && self.entry.stored && self.age > servable
    }

    /// Whether the response satisfies the client's `Cache-Control` without asking the origin.
    pub fn satisfies(&self, control: &RequestControl) -> bool {
        let lifetime = self.entry.lifetime;
        let fresh_for = lifetime.fresh_for(self.age);
        control.accepts(self.age, fresh_for, lifetime.stale_while_revalidate)
    }

    /// Whether the origin sent the response for this client, and other clients must not get it.
    pub fn is_its_clients_alone(&self) -> bool {
        self.own && !self.entry.stored && !self.entry.revalidated && !self.entry.lacks_room()
    }

    /// Whether the response is an object of the origin that is stored while its client receives it.
    pub fn is_fill(&self) -> bool {
        self.own && self.entry.stored && !self.entry.revalidated
    }

    /// Whether the store has served a 200 unchanged, without asking the origin.
    pub fn is_hit(&self, request: StoreRequest) -> bool {
        let whole = self.entry.stored && self.entry.status == 200;
        whole && self.failure.is_none() && self.metric(request) == Metric::RequestsHit
    }

    /// Returns the metric that counts a request sent as `request`.
    pub fn metric(&self, request: StoreRequest) -> Metric {
        match request {
            _ if self.own && self.entry.revalidated => Metric::RequestsRevalidated,
            _ if self.own => Metric::RequestsMiss,
            StoreRequest::Collapsed | StoreRequest::Validated => Metric::RequestsCollapsed,
            _ if self.is_stale() => Metric::RequestsStale,
            _ => Metric::RequestsHit,
        }
    }

    /// Returns the member of `Cache-Status` for a client whose request was sent as `request`. `collapsed` says
    /// whether the request has waited for another request's response.
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

    /// Returns the member of `Cache-Status` for the followers that have waited for this response.
    pub fn collapsed_cache_status(&self) -> CacheStatus<'static> {
        // The followers waited for a validation of a stored response, or the store had no response.
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

/// Returns the age of a stored response by its `Date`. Envoy sends no `Age` for a response that was revalidated.
fn age_by_date(date: Option<FieldValue<'_>>, now: Millis) -> u64 {
    let now = i64::try_from(now / 1_000).unwrap_or(i64::MAX);
    let date = date.and_then(date::of);
    let age = date.map_or(0, |date| now.saturating_sub(date));
    u64::try_from(age).unwrap_or(0)
}

#[cfg(test)]
mod tests;
