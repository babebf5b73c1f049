// SPDX-License-Identifier: Apache-2.0
//! A request in EDGE from its start to its end. EDGE's callbacks, ORIGIN and the worker share its record.

pub mod account;
pub mod body;
pub mod call_kind;
pub mod counters;
pub mod headers;
pub mod policy;
pub mod sliced;
pub mod stand_in;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use account::Account;
use body::PassingBody;
use call_kind::CallKind;
use policy::NumberedPolicy;
use sliced::{RequestedSlice, Sliceable, SlicedResponse, is_key_sliceable};
use sluice_core::coalescing::shared::board::FlightKey;
use sluice_core::coalescing::{Coalescer, NextStep, Request, StoreRequest, Turn};
use sluice_core::http::caching::client_control::RequestControl;
use sluice_core::http::conditional::demand::Demand;
use sluice_core::key::CanonicalTarget;
use sluice_core::key::vary::{VaryNames, qualify_variant};
use sluice_core::metrics::Metric;
use sluice_core::second_origin::SecondOrigin;
use sluice_core::slices::connections::ConnectionId;
use sluice_core::website::MissingObjectVisit;
use sluice_core::workers::{OwnHeaders, StreamId};
use sluice_store::Link;
use stand_in::StandIn;

use crate::request::headers::Header;
use sluice_host::headers::Headers;

/// The report of ORIGIN about a request from the store, if EDGE cannot see the reason in the response.
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

/// The record of a request: its properties, and its progress.
#[derive(Debug)]
pub struct EdgeRequest {
    /// Its context in EDGE.
    pub id: StreamId,
    /// The object that it requests.
    pub target: Rc<CanonicalTarget>,
    /// The hashes of its key.
    pub key: FlightKey,
    /// The policy under which it began.
    pub policy: NumberedPolicy,
    /// Whether the client asked with HEAD.
    pub head: bool,
    /// Whether it is a background fill, which leads for others.
    pub for_others: bool,
    /// Whether it is a background fill that fetches a written object, for which no request waits.
    pub is_for_created: bool,
    /// Whether its `Authorization` is hidden from the store, for ORIGIN.
    pub authenticated: bool,
    /// The headers that it takes to the origin beside those of its key, as a hash.
    pub own_headers: OwnHeaders,
    /// Whether others may get the response that it fetches, because its headers are few enough.
    pub may_share: bool,
    /// Whether it may lead: others may get the response that it fetches, and the worker has room for a fill that its
    /// client may not read.
    pub may_lead: bool,
    /// Whether a call may fetch its object after the request has been sent to the store: a client sent it, and its
    /// object is for all clients.
    pub may_call: bool,
    /// Conditions and a range, if it has any.
    pub demand: Option<Demand>,
    /// Its headers as received, which select a variant, if the store may have any variant under its key.
    pub selecting: Option<Rc<Headers>>,
    /// The cache directives of its client, if the policy obeys them.
    pub control: RequestControl,
    /// The visitor who sent it, if a document may replace a missing object.
    pub visit: Option<MissingObjectVisit>,
    /// The missing object that its response replaces.
    pub stand_in: Option<StandIn>,
    /// Whether it counts as a request of a client. The filter's requests for slices and indexes do not.
    pub counts: bool,
    /// Whether a peer has sent it, on a connection with requests of many clients.
    pub is_of_peer: bool,
    /// The slice that it requests, if it is for a slice.
    pub slice: Option<Rc<RequestedSlice>>,
    /// The request of a client that it repeats for the slicer, because the object has changed.
    pub repeats: Option<StreamId>,
    /// Its progress.
    pub progress: Progress,
    /// The body of its response, as it passes.
    pub body: PassingBody,
}

/// The progress of a request.
#[derive(Debug)]
pub struct Progress {
    /// Facts for the access log.
    pub account: Rc<Account>,
    /// Its next step, as far as it is known.
    pub next_step: Cell<Option<NextStep>>,
    /// The last background call that prepared it, if it may not lead or wait at once: a range, a HEAD, or a
    /// conditional request. A fill is the last possible call. A lookup in place of a fill counts as a fill.
    pub prior_call: Cell<Option<CallKind>>,
    /// Its client's headers, for background calls on its behalf.
    pub headers: RefCell<Vec<Header>>,
    /// The variant that the store has served to it, if its own key does not identify the variant.
    pub variant: RefCell<Option<Rc<CanonicalTarget>>>,
    /// Its response in slices, if the slicer puts its response together.
    pub sliced: RefCell<Option<Rc<SlicedResponse>>>,
    /// Its client's connection, while it waits for its turn among the responses in slices of the connection.
    pub queued: Cell<Option<ConnectionId>>,
    /// How the origin allows the object to be stored, if its response shows that the object may be served in slices.
    pub sliceable: Cell<Option<Sliceable>>,
    /// Whether the store must ask the origin first, because of a soft purge.
    pub forced: Cell<bool>,
    /// The second origin, if that has sent the response.
    pub second_origin: Cell<Option<SecondOrigin>>,
    /// The report of ORIGIN about the request from the store.
    pub report: Cell<OriginReport>,
    /// Whether its response is being stored, so that the store would lose the fill with this request.
    pub fragile: Cell<bool>,
    /// Whether the filter has answered it without the store.
    pub answered: Cell<bool>,
    /// Whether that answer has no media type. Envoy adds one, which must be removed.
    pub answered_untyped: Cell<bool>,
}

impl Progress {
    /// The progress of a request that has just arrived.
    fn new(account: Rc<Account>) -> Self {
        Self {
            account,
            next_step: Cell::new(None),
            prior_call: Cell::new(None),
            headers: RefCell::default(),
            variant: RefCell::default(),
            sliced: RefCell::default(),
            queued: Cell::new(None),
            sliceable: Cell::new(None),
            forced: Cell::new(false),
            second_origin: Cell::default(),
            report: Cell::new(OriginReport::None),
            fragile: Cell::new(false),
            answered: Cell::new(false),
            answered_untyped: Cell::new(false),
        }
    }
}

impl Progress {
    /// Its request to the store, as its link says.
    pub fn request(&self) -> StoreRequest {
        let request = self.next_step.get().and_then(NextStep::request);
        request.unwrap_or(StoreRequest::Alone)
    }

    /// Takes ORIGIN's report that the store has lost the response, and returns whether there was one.
    pub fn take_loss(&self) -> bool {
        let lost = self.report.get() == OriginReport::Lost;
        if lost {
            self.report.set(OriginReport::None);
        }
        lost
    }
}

impl EdgeRequest {
    /// Creates the record of a request that has just arrived.
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
            is_for_created: false,
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
            counts: true,
            is_of_peer: false,
            slice: None,
            repeats: None,
            progress: Progress::new(Rc::default()),
            body: PassingBody::new(head),
        }
    }

    /// Returns this request as if it had just arrived, under the key of another variant.
    pub fn retargeted(&self, key: FlightKey, target: Rc<CanonicalTarget>) -> Self {
        Self {
            for_others: self.for_others,
            is_for_created: self.is_for_created,
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
            counts: self.counts,
            is_of_peer: self.is_of_peer,
            slice: self.slice.clone(),
            repeats: self.repeats,
            ..Self::new(self.id, key, target, self.policy.clone(), self.head)
        }
    }

    /// Returns a request of the slicer, `id`, that repeats this request.
    pub fn repeated(&self, id: StreamId) -> Self {
        Self {
            may_share: self.may_share,
            may_lead: self.may_lead,
            demand: self.demand.clone(),
            repeats: Some(self.id),
            progress: Progress::new(Rc::clone(&self.progress.account)),
            ..Self::new(
                id,
                self.key,
                Rc::clone(&self.target),
                self.policy.clone(),
                false,
            )
        }
    }

    /// The target of the variant that it wants, if its URL varies with `names`. `None` if one of its headers is too
    /// long for a key, or if the headers are not known.
    pub fn variant(&self, names: &VaryNames) -> Option<CanonicalTarget> {
        let headers = self.selecting.as_ref()?;
        let mut variant = self.target.plain();
        let value = |name: &str| headers.joined(name);
        qualify_variant(&self.policy.policy, &mut variant, names, value).ok()?;
        Some(variant)
    }

    /// Whether the filter has sent it without a client: it leads for others, or refreshes a response that is served
    /// stale.
    pub fn is_own(&self) -> bool {
        self.for_others || self.progress.request() == StoreRequest::Refresh
    }

    /// Whether its client asks for a range.
    pub fn is_for_part(&self) -> bool {
        let demand = self.demand.as_ref();
        !self.head && demand.is_some_and(Demand::is_for_part)
    }

    /// Whether a lookup precedes all other calls for it.
    pub fn looks_first(&self) -> bool {
        self.head || self.is_for_part()
    }

    /// Whether the lookup was the last call for it.
    pub fn has_been_looked_up(&self) -> bool {
        matches!(self.progress.prior_call.get(), Some(CallKind::Look(_)))
    }

    /// Whether to ask the origin for the object's size, because the lookup is done.
    pub fn sizes_next(&self) -> bool {
        self.is_for_part() && self.has_been_looked_up()
    }

    /// Whether its object may be served in slices: it wants the object itself, for any client, and its key is for the
    /// bytes that the origin sends.
    pub fn may_be_sliced(&self) -> bool {
        self.policy.policy.edge.slices.is_on()
            && !(self.head || self.for_others || self.authenticated)
            && self.slice.is_none()
            && self.stand_in.is_none()
            && self.target.variant().is_empty()
            && is_key_sliceable(self.target.cache_key())
    }

    /// Whether its complete answer may be a 304 or a 412.
    pub fn may_be_bodiless(&self) -> bool {
        let demand = self.demand.as_ref();
        demand.is_some_and(Demand::may_be_bodiless)
            && self.may_finish_early()
            && !self.is_for_part()
            && self.stand_in.is_none()
    }

    /// Whether both requests get the same headers of one response. The policy determines them.
    pub fn is_alike(&self, other: &Self) -> bool {
        self.target.cache_key() == other.target.cache_key()
            && self.policy.number == other.policy.number
    }

    /// Whether a background fill must lead in its place. Its client may leave with a 304 at the headers, and the store
    /// loses a fill with its client.
    pub fn needs_background_leader(&self) -> bool {
        let asks = self.demand.as_ref().is_some_and(Demand::may_be_unchanged);
        asks && self.may_lead && self.may_be_bodiless()
    }

    /// Whether its client may have a complete answer (304, 412, or a part) and leave before the whole object is
    /// stored.
    pub fn may_finish_early(&self) -> bool {
        !self.head && self.demand.is_some()
    }

    /// Whether it is a HEAD whose target is not the headers alone yet. A HEAD cannot fill the store: Envoy crashes if
    /// a HEAD is forwarded as GET and its object is large. A HEAD does not wait for fills either, because they cannot
    /// be read before their end, and a background fill would make GETs wait in the same way. Therefore, if the store
    /// does not have the object, HEADs share the headers alone, as a separate object. So no client waits for more
    /// than it requests, and the origin sends no more.
    pub fn shares_headers_only(&self) -> bool {
        self.head && !self.target.is_for_headers()
    }

    /// This request as the coalescer knows it. A range may lead only after the object that it would have to fetch has
    /// been looked up.
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

    /// Asks the coalescer for its next step. `None` means that it waits.
    pub fn admission(&self, coalescer: &mut Coalescer, turn: &mut Turn<'_>) -> Option<NextStep> {
        let remembered = coalescer.remembered(self.key.key, turn.now);
        if !self.policy.policy.coalesce.enabled {
            let avoids =
                remembered.filter(|next_step| matches!(next_step, NextStep::HitForMiss(_)));
            let avoids = avoids.filter(|_| !coalescer.hints().take_check(self.key.key, turn.now));
            return avoids.or(Some(NextStep::Send(StoreRequest::Alone)));
        }
        let waits = !self.shares_headers_only() || coalescer.is_storing(self.key.key);
        if remembered == Some(NextStep::Send(StoreRequest::Fresh)) || !waits {
            return remembered.or(Some(NextStep::Send(StoreRequest::Alone)));
        }
        let mut request = self.request();
        request.may_lead &= !self.needs_background_leader();
        let admitted = coalescer.request(&request, turn);
        if admitted.is_none() {
            self.progress.account.parks(turn.now);
        }
        admitted
    }

    /// The histogram for the time to the first byte of its response. `None`: the edge itself has made the response.
    pub fn first_byte_metric(&self) -> Option<Metric> {
        let sliced = self.progress.sliced.borrow();
        let progress = &self.progress;
        let has_waited =
            progress.prior_call.get().is_some() || progress.account.waited(0).is_some();
        let of_slices = sliced
            .as_ref()
            .map(|sliced| sliced.first_byte_metric(has_waited));
        of_slices.or_else(|| self.progress.account.first_byte_metric())
    }

    /// The link that identifies the request to ORIGIN.
    pub fn link(&self) -> Link {
        Link {
            request: self.progress.request(),
            stream: self.id,
            policy: self.policy.number,
        }
    }
}
