// SPDX-License-Identifier: Apache-2.0
//! A request of EDGE, as far as others than its own callbacks have to know it.

use std::cell::Cell;
use std::rc::Rc;

use sluice_core::board::KeyHash;
use sluice_core::coalescer::{Release, Request};
use sluice_core::flight::{FlightPolicy, StreamId};
use sluice_core::key::CanonicalTarget;
use sluice_core::link::{Link, Purpose};
use sluice_core::policy::{Policy, StoreVersion};

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
    /// What it is for, as its link says.
    pub purpose: Cell<Purpose>,
    /// How it left the waiting list.
    pub released: Cell<Option<Release>>,
    /// It was answered by the filter itself.
    pub answered: Cell<bool>,
}

impl Stream {
    /// This request as the coalescer knows it. On v1 a HEAD cannot fill the store: Envoy does not
    /// survive a HEAD that is sent on as GET when its object is large.
    pub fn request(&self) -> Request<'_> {
        Request {
            stream: self.id,
            key: self.key,
            target: &self.target,
            may_lead: !self.head || self.policy.policy.store == StoreVersion::V2,
            policy: self.policy.flights,
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
