// SPDX-License-Identifier: Apache-2.0
//! An in-flight request of EDGE. EDGE's callbacks, ORIGIN and the worker share its record.

pub mod account;
pub mod body;
pub mod counters;
pub mod headers;
pub mod policy;
pub mod stand_in;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use account::Account;
use body::PassingBody;
use policy::NumberedPolicy;
use sluice_core::coalescing::beside::ahead::Representation;
use sluice_core::coalescing::shared::board::FlightKey;
use sluice_core::coalescing::{Coalescer, NextStep, Request, Turn};
use sluice_core::http::caching::client_control::RequestControl;
use sluice_core::http::conditional::demand::Demand;
use sluice_core::key::CanonicalTarget;
use sluice_core::key::vary::{VaryNames, qualify_variant};
use sluice_core::website::MissingObjectVisit;
use sluice_core::workers::{OwnHeaders, StreamId};
use sluice_store::{Link, StoreRequest};
use stand_in::StandIn;

use crate::request::headers::Header;
use sluice_host::headers::Headers;

/// Which background calls a request has had that may not lead or wait at once: a range, a HEAD, a conditional request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorCall {
    /// None yet.
    None,
    /// The origin was asked for the size.
    Sized,
    /// The store was asked whether it has the object.
    Looked,
    /// All that it can have, as a rule a fill that goes on without it.
    Done,
}

/// The report of ORIGIN on a question of the store, where EDGE cannot see the reason in the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginReport {
    /// ORIGIN reports nothing.
    None,
    /// The origin failed, and the store serves a stale response.
    Failed {
        /// The status of the failure.
        status: u16,
        /// Whether the request's own headers may be the cause.
        own: bool,
    },
    /// The stored response expired while the request was on its way to the store, which serves it nevertheless.
    Late,
    /// The store has just lost the response that it was believed to have. A call asks the store again.
    Lost,
}

/// The record of a request: what it is, and how far it has come.
#[derive(Debug)]
pub struct EdgeRequest {
    /// Its context in EDGE.
    pub id: StreamId,
    /// What it asks for.
    pub target: Rc<CanonicalTarget>,
    /// The hashes of its key.
    pub key: FlightKey,
    /// The policy under which it came.
    pub policy: NumberedPolicy,
    /// Whether the client asked with HEAD.
    pub head: bool,
    /// Whether it is a background fill, which leads for others.
    pub for_others: bool,
    /// Whether its `Authorization` is hidden from the store, for ORIGIN.
    pub authenticated: bool,
    /// What it takes to the origin beside its key.
    pub own_headers: OwnHeaders,
    /// Whether others may get what it fetches, because its headers are few enough.
    pub may_share: bool,
    /// Whether it may lead: others may get what it fetches, and the worker has room for a fill that its client may not
    /// read.
    pub may_lead: bool,
    /// Whether a call may bring what it asks for, once it is on its way to the store: it is a client's, for what all
    /// clients may get.
    pub may_call: bool,
    /// Conditions and a range, if it has any.
    pub demand: Option<Demand>,
    /// Its headers as they came, which select a variant, where the store may have any under the key that it is asked for.
    pub selecting: Option<Rc<Headers>>,
    /// What its client asks of caches, where the policy obeys.
    pub control: RequestControl,
    /// A visitor's request, for which a document may take the place of a missing object.
    pub visit: Option<MissingObjectVisit>,
    /// The missing object whose place its response takes.
    pub stand_in: Option<StandIn>,
    /// How far it has come.
    pub progress: Progress,
    /// The body of its response, as it passes.
    pub body: PassingBody,
}

/// How far a request has come.
#[derive(Debug)]
pub struct Progress {
    /// Facts for the access log.
    pub account: Rc<Account>,
    /// Its request to the store, as its link says.
    pub store_request: Cell<StoreRequest>,
    /// How it goes on, unless it asks the store or the origin in a way of its own.
    pub next_step: Cell<Option<NextStep>>,
    /// Which background calls it has had.
    pub prior_call: Cell<PriorCall>,
    /// Its client's headers, for background calls on its behalf.
    pub headers: RefCell<Vec<Header>>,
    /// The variant that the store has served it, where its own key does not tell.
    pub variant: RefCell<Option<Rc<CanonicalTarget>>>,
    /// What it asks for a range of, if that goes to the origin ahead of the fill.
    pub ahead_of: RefCell<Option<Rc<Representation>>>,
    /// Whether equal ranges wait for its response, and get it too.
    pub shares: Cell<bool>,
    /// Whether the store was told to ask the origin first, after a soft purge.
    pub forced: Cell<bool>,
    /// The report of ORIGIN on the store's question.
    pub report: Cell<OriginReport>,
    /// Whether its response goes into the store, which would lose the fill with this request.
    pub fragile: Cell<bool>,
    /// Whether the filter has answered it by itself.
    pub answered: Cell<bool>,
    /// Whether that answer has no media type, and Envoy gives it one that must go.
    pub answered_untyped: Cell<bool>,
}

impl Progress {
    /// That of a request that has just come.
    fn new(account: Rc<Account>) -> Self {
        Self {
            account,
            store_request: Cell::new(StoreRequest::Alone),
            next_step: Cell::new(None),
            prior_call: Cell::new(PriorCall::None),
            headers: RefCell::default(),
            variant: RefCell::default(),
            ahead_of: RefCell::default(),
            shares: Cell::new(false),
            forced: Cell::new(false),
            report: Cell::new(OriginReport::None),
            fragile: Cell::new(false),
            answered: Cell::new(false),
            answered_untyped: Cell::new(false),
        }
    }
}

impl Progress {
    /// Takes the report that the store has lost the response, if there is that report.
    pub fn take_loss(&self) -> bool {
        let lost = self.report.get() == OriginReport::Lost;
        if lost {
            self.report.set(OriginReport::None);
        }
        lost
    }
}

impl EdgeRequest {
    /// A request that has just come.
    pub fn new(
        id: StreamId,
        key: FlightKey,
        target: Rc<CanonicalTarget>,
        policy: NumberedPolicy,
        head: bool,
    ) -> Self {
        Self {
            id,
            target,
            key,
            policy,
            head,
            for_others: false,
            authenticated: false,
            own_headers: OwnHeaders::NONE,
            may_share: true,
            may_lead: true,
            may_call: false,
            demand: None,
            selecting: None,
            control: RequestControl::default(),
            visit: None,
            stand_in: None,
            progress: Progress::new(Rc::default()),
            body: PassingBody::new(head),
        }
    }

    /// This request as if it had just come, under the key of another variant.
    pub fn retargeted(&self, key: FlightKey, target: Rc<CanonicalTarget>) -> Self {
        Self {
            for_others: self.for_others,
            authenticated: self.authenticated,
            own_headers: self.own_headers,
            may_share: self.may_share,
            may_lead: self.may_lead,
            may_call: self.may_call,
            progress: Progress::new(Rc::clone(&self.progress.account)),
            demand: self.demand.clone(),
            control: self.control,
            visit: self.visit.clone(),
            stand_in: self.stand_in,
            ..Self::new(self.id, key, target, self.policy.clone(), self.head)
        }
    }

    /// The target of the variant that it wants, where its URL varies with `names`; `None` if one of its headers is too long
    /// for a key, or they are not known.
    pub fn variant(&self, names: &VaryNames) -> Option<CanonicalTarget> {
        let headers = self.selecting.as_ref()?;
        let mut variant = self.target.plain();
        let value = |name: &str| headers.joined(name);
        qualify_variant(&self.policy.policy, &mut variant, names, value).ok()?;
        Some(variant)
    }

    /// Whether its client asks for a range.
    pub fn is_for_part(&self) -> bool {
        let demand = self.demand.as_ref();
        !self.head && demand.is_some_and(Demand::is_for_part)
    }

    /// Whether it has the store looked at in front of any other call.
    pub fn looks_first(&self) -> bool {
        self.head || self.is_for_part()
    }

    /// Whether the origin is to be asked for the object's size, as the store has been looked at.
    pub fn sizes_next(&self) -> bool {
        self.is_for_part() && self.progress.prior_call.get() == PriorCall::Looked
    }

    /// Whether its whole answer may be a 304 or a 412.
    pub fn may_be_bodiless(&self) -> bool {
        let demand = self.demand.as_ref();
        demand.is_some_and(Demand::may_be_bodiless)
            && self.may_finish_early()
            && !self.is_for_part()
            && self.stand_in.is_none()
    }

    /// Whether its client asks for a range of what it has named, and of nothing that takes its place.
    pub fn is_for_plain_part(&self) -> bool {
        self.is_for_part() && self.stand_in.is_none()
    }

    /// Whether both get the same headers of one response: the policy makes them.
    pub fn is_alike(&self, other: &Self) -> bool {
        self.target.cache_key() == other.target.cache_key()
            && self.policy.number == other.policy.number
    }

    /// Whether its client has a part of one version, and wants more of that only.
    pub fn is_for_one_version(&self) -> bool {
        self.demand.as_ref().is_some_and(Demand::has_if_range)
    }

    /// Whether a background fill must lead in its place. Its client may leave with a 304 at the headers, and the store
    /// loses a fill with its client.
    pub fn needs_background_leader(&self) -> bool {
        let asks = self.demand.as_ref().is_some_and(Demand::may_be_unchanged);
        asks && self.may_lead && self.may_be_bodiless()
    }

    /// Whether its client may leave with a whole answer (304, 412, or a part) before the object has come that fills the
    /// store.
    pub fn may_finish_early(&self) -> bool {
        !self.head && self.demand.is_some()
    }

    /// Whether it is a HEAD that is not yet turned to the headers alone. A HEAD cannot fill the store: Envoy does not
    /// survive a HEAD that is sent on as GET when its object is large. It does not wait for fills either, which nobody
    /// can read before their end, and a background fill would let GETs wait in the same way. So if the store does not
    /// have the object, HEADs share the headers alone, as an object of their own: no client waits for more than it asks
    /// for, and the origin is asked for no more.
    pub fn shares_headers_only(&self) -> bool {
        self.head && !self.target.is_for_headers()
    }

    /// This request as the coalescer knows it. A range does not lead unless what it would have to fetch
    /// has been looked at.
    pub fn request(&self) -> Request<'_> {
        Request {
            stream: self.id,
            key: self.key,
            target: &self.target,
            own_headers: self.own_headers,
            may_lead: self.may_lead && !self.is_for_part() && !self.shares_headers_only(),
            for_others: self.for_others,
            policy: self.policy.flights,
        }
    }

    /// Asks the coalescer how it goes on; `None` if it waits.
    pub fn admission(&self, coalescer: &mut Coalescer, turn: &mut Turn<'_>) -> Option<NextStep> {
        let remembered = coalescer.remembered(self.key.key, turn.now);
        if !self.policy.policy.coalesce.enabled {
            let avoids =
                remembered.filter(|next_step| matches!(next_step, NextStep::HitForMiss(_)));
            let avoids = avoids.filter(|_| !coalescer.hints().take_check(self.key.key, turn.now));
            return avoids.or(Some(NextStep::Alone));
        }
        let waits = !self.shares_headers_only() || coalescer.is_storing(self.key.key);
        if remembered == Some(NextStep::Fresh) || !waits {
            return remembered.or(Some(NextStep::Alone));
        }
        let mut request = self.request();
        request.may_lead &= !self.needs_background_leader();
        let admitted = coalescer.request(&request, turn);
        if admitted.is_none() {
            self.progress.account.parks(turn.now);
        }
        admitted
    }

    /// The link towards ORIGIN.
    pub fn link(&self) -> Link {
        Link {
            request: self.progress.store_request.get(),
            stream: self.id,
            policy: self.policy.number,
        }
    }
}
