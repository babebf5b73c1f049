// SPDX-License-Identifier: Apache-2.0
//! A request of EDGE, as far as others than its own callbacks have to know it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use sluice_core::coalescing::flight::FlightPolicy;
use sluice_core::coalescing::{Admission, Coalescer, Release, Request, Turn};
use sluice_core::host::SharedStore;
use sluice_core::hot::Capture;
use sluice_core::http::cache_status::CacheStatus;
use sluice_core::http::client_control::RequestControl;
use sluice_core::http::demand::Demand;
use sluice_core::key::CanonicalTarget;
use sluice_core::link::{Link, Purpose};
use sluice_core::policy::Policy;
use sluice_core::site::Visit;
use sluice_core::workers::BodyId;
use sluice_core::workers::KeyHash;
use sluice_core::workers::StreamId;

use crate::account::Account;
use crate::clean::Body;
use crate::delivery::Passing;
use crate::site::StandIn;

/// A policy and its number within this VM.
#[derive(Clone, Debug)]
pub struct NumberedPolicy {
    /// Counts the policies that this VM has had.
    pub number: u32,
    /// The policy.
    pub policy: Rc<Policy>,
    /// Its part for flights.
    pub flights: FlightPolicy,
}

/// What a request that cannot lead has had done by calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preparation {
    /// Nothing.
    None,
    /// The origin was asked for the size.
    Sized,
    /// The store was asked whether it has the object.
    Looked,
    /// All that can be: as a rule, a fill that goes on without it.
    Done,
}

/// A request on its way through EDGE.
#[derive(Debug)]
pub struct Stream {
    /// Its context.
    pub id: StreamId,
    /// What it asks for.
    pub target: Rc<CanonicalTarget>,
    /// Its key on the board.
    pub key: KeyHash,
    /// The policy under which it came.
    pub policy: NumberedPolicy,
    /// Whether the client asked with HEAD.
    pub head: bool,
    /// Whether it is a fill in the background, for others.
    pub for_others: bool,
    /// What is told of it.
    pub account: Rc<Account>,
    /// What it is for, as its link says.
    pub purpose: Cell<Purpose>,
    /// How it left the waiting list.
    pub released: Cell<Option<Release>>,
    /// The status with which the origin has failed it, where the store keeps what it has: ORIGIN says so.
    pub kept: Cell<Option<u16>>,
    /// What the store had for it has expired on the way there, and is served all the same: ORIGIN says so.
    pub late: Cell<bool>,
    /// The store was told to ask the origin first.
    pub forced: Cell<bool>,
    /// It was answered by the filter itself.
    pub answered: Cell<bool>,
    /// It was so with an object that has no media type.
    pub answered_untyped: Cell<bool>,
    /// What has been done for it so far before it may take part.
    pub preparation: Cell<Preparation>,
    /// What its client has sent, for calls on its behalf.
    pub headers: RefCell<Vec<(String, String)>>,
    /// Its response is going into a store that would not survive the loss of this request.
    pub fragile: Cell<bool>,
    /// Conditions and a range, if it has any.
    pub demand: Option<Demand>,
    /// What its client asks of caches, where the policy obeys.
    pub control: RequestControl,
    /// What may take the place of the object if it is missing.
    pub visit: Option<Visit>,
    /// What its response is to stand for.
    pub stand_in: Option<StandIn>,
    /// The response has no body.
    pub bodiless: Cell<bool>,
    /// The body that comes out of the store or goes into it, if no header tells its length.
    pub unannounced: Cell<Option<BodyId>>,
    /// Bytes of the response's body that have come.
    pub bytes: Cell<u64>,
    /// What becomes of the response's body, before a part is cut out of it.
    pub body: RefCell<Body>,
    /// What of the response's body its client gets.
    pub passing: Cell<Passing>,
    /// The copy that is made of it for the hot tier.
    pub capture: RefCell<Option<Capture>>,
    /// How those come to that copy who wait for its response, where the store does not have it.
    pub shares_copy: Cell<Option<CacheStatus<'static>>>,
}

impl Stream {
    /// A request that has just come.
    pub fn new(
        id: StreamId,
        key: KeyHash,
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
            account: Rc::default(),
            purpose: Cell::new(Purpose::Alone),
            released: Cell::new(None),
            kept: Cell::new(None),
            late: Cell::new(false),
            forced: Cell::new(false),
            answered: Cell::new(false),
            answered_untyped: Cell::new(false),
            preparation: Cell::new(Preparation::None),
            headers: RefCell::default(),
            fragile: Cell::new(false),
            demand: None,
            control: RequestControl::default(),
            visit: None,
            stand_in: None,
            bodiless: Cell::new(false),
            unannounced: Cell::new(None),
            capture: RefCell::new(None),
            shares_copy: Cell::new(None),
            bytes: Cell::new(0),
            body: RefCell::default(),
            // A HEAD that leads fills the store as GET, and Envoy would send a body of unannounced length.
            passing: Cell::new(if head {
                Passing::Nothing
            } else {
                Passing::Whole
            }),
        }
    }

    /// This request, for another response of its URL, as if it had just come.
    pub fn retargeted(&self, key: KeyHash, target: Rc<CanonicalTarget>) -> Self {
        Self {
            for_others: self.for_others,
            account: Rc::clone(&self.account),
            demand: self.demand.clone(),
            control: self.control,
            visit: self.visit.clone(),
            stand_in: self.stand_in,
            ..Self::new(self.id, key, target, self.policy.clone(), self.head)
        }
    }

    /// Whether its client asks for a range.
    pub fn is_for_part(&self) -> bool {
        let demand = self.demand.as_ref();
        !self.head && demand.is_some_and(Demand::is_for_part)
    }

    /// Whether a fill in the background leads in its place, if nobody else does: its client may have its whole
    /// answer, 304, with the headers of the object, of which the store would lose the rest with it.
    pub fn is_led_for(&self) -> bool {
        let asks = self.demand.as_ref().is_some_and(Demand::may_be_unchanged);
        asks && self.may_have_less() && !self.is_for_part() && self.stand_in.is_none()
    }

    /// Whether its client may have its whole answer before the object has come with which it fills the store,
    /// and leave then: 304, 412, or a part.
    pub fn may_have_less(&self) -> bool {
        !self.head && self.demand.is_some()
    }

    /// Whether it asks for the headers of a whole that it cannot fetch. A HEAD cannot fill the store:
    /// Envoy does not survive a HEAD that is sent on as GET when its object is large. It does not wait for
    /// others' fills either, which nobody can read before their end, and a fill in the background would let
    /// GETs wait in the same way. So if the store has no such object, HEADs share the headers alone, as an
    /// object of their own: no client waits for more than it asks for, and the origin is asked for no more.
    pub fn wants_headers(&self) -> bool {
        self.head && !self.target.is_for_headers()
    }

    /// This request as the coalescer knows it. A range does not lead unless what it would have to fetch
    /// has been looked at.
    pub fn request(&self) -> Request<'_> {
        Request {
            stream: self.id,
            key: self.key,
            target: &self.target,
            may_lead: !self.is_for_part() && !self.wants_headers(),
            for_others: self.for_others,
            policy: self.policy.flights,
        }
    }

    /// What it goes on for, or `None` if it waits.
    pub fn admission<S: SharedStore + ?Sized>(
        &self,
        coalescer: &mut Coalescer,
        turn: &mut Turn<'_, S>,
    ) -> Option<Purpose> {
        let coalesces = self.policy.policy.coalesce.enabled;
        let remembered = coalesces
            .then(|| coalescer.remembered(self.key, turn.now))
            .flatten();
        if remembered == Some(Admission::HitForMiss) {
            return Some(Purpose::Bypass);
        }
        if !coalesces {
            return Some(Purpose::Alone);
        }
        let waits = !self.wants_headers() || coalescer.is_committing(self.key);
        let mut request = self.request();
        request.may_lead &= !self.is_led_for();
        let admission = match remembered {
            Some(remembered) => remembered,
            None if waits => coalescer.request(&request, turn),
            None => Admission::Alone,
        };
        match admission {
            Admission::Fresh => Some(Purpose::Fresh),
            Admission::Lead => Some(Purpose::Lead),
            Admission::HitForMiss => Some(Purpose::Bypass),
            Admission::Alone => Some(Purpose::Alone),
            Admission::Park => {
                self.account.parks(turn.now);
                None
            }
        }
    }

    /// The link towards ORIGIN.
    pub fn link(&self) -> Link {
        Link {
            purpose: self.purpose.get(),
            stream: self.id,
            policy: self.policy.number,
        }
    }
}
