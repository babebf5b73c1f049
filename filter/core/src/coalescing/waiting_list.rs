// SPDX-License-Identifier: Apache-2.0
//! The requests of one worker that wait for one flight, in the order in which they came.

use std::collections::VecDeque;

use crate::workers::{Millis, OwnHeaders, StreamId};

/// A request that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// The request.
    pub stream: StreamId,
    /// When it began to wait.
    pub since: Millis,
    /// The headers that it takes to the origin beside its key.
    pub own_headers: OwnHeaders,
    /// Whether its response can fill the store, so that it may lead.
    pub may_lead: bool,
    /// Whether it is there to lead for others, and for nothing else.
    pub for_others: bool,
}

/// The place of a request in a waiting list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitingPlace(u64);

/// A waiting list.
#[derive(Debug, Default)]
pub struct WaitingList {
    /// Ordered by place.
    waiters: VecDeque<(WaitingPlace, Waiter)>,
    last: u64,
}

impl WaitingList {
    /// Number of requests.
    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    /// Whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Adds a request at the end. Gives its place.
    pub fn push(&mut self, waiter: Waiter) -> WaitingPlace {
        self.last += 1;
        let place = WaitingPlace(self.last);
        self.waiters.push_back((place, waiter));
        place
    }

    /// Takes the request at that place.
    pub fn take(&mut self, place: WaitingPlace) -> Option<Waiter> {
        let at = self
            .waiters
            .binary_search_by_key(&place, |(place, _)| *place);
        self.waiters.remove(at.ok()?).map(|(_, waiter)| waiter)
    }

    /// Takes the request that has waited longest.
    pub fn take_first(&mut self) -> Option<Waiter> {
        self.waiters.pop_front().map(|(_, waiter)| waiter)
    }

    /// Takes all requests, in their order.
    pub fn take_all(&mut self) -> impl Iterator<Item = Waiter> + use<> {
        std::mem::take(&mut self.waiters)
            .into_iter()
            .map(|(_, waiter)| waiter)
    }

    /// Takes the requests that `leaves` is true of, which is asked of all in their order.
    pub fn take_if(&mut self, mut leaves: impl FnMut(&Waiter) -> bool) -> Vec<Waiter> {
        let mut left = Vec::new();
        self.waiters.retain(|(_, waiter)| {
            let stays = !leaves(waiter);
            if !stays {
                left.push(*waiter);
            }
            stays
        });
        left
    }

    /// The place of the request that leads next: the first that may lead. A request whose own headers are not among the
    /// `doubted` ones comes in front of one with such headers.
    pub fn heir(&self, doubted: [Option<OwnHeaders>; 2]) -> Option<WaitingPlace> {
        let leads = |(_, waiter): &&(WaitingPlace, Waiter)| waiter.may_lead;
        let differs = |waiter: &Waiter| !doubted.contains(&Some(waiter.own_headers));
        let mut able = self.waiters.iter().filter(leads);
        let first = able.find(|(_, waiter)| differs(waiter));
        let heir = first.or_else(|| self.waiters.iter().find(leads));
        heir.map(|(place, _)| *place)
    }
}
