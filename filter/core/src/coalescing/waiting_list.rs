// SPDX-License-Identifier: Apache-2.0
//! The requests of one worker that wait for one flight, in order of arrival.

use std::collections::VecDeque;

use crate::workers::{Millis, OwnHeaders, StreamId};

/// A waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// The request.
    pub stream: StreamId,
    /// When it began to wait.
    pub since: Millis,
    /// The headers that it sends to the origin beside those of its key.
    pub own_headers: OwnHeaders,
    /// Whether its response can fill the store, so that it may be the leader.
    pub may_lead: bool,
    /// Whether it only exists to be the leader for others.
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

    /// When the request that has waited longest began to wait.
    pub fn oldest(&self) -> Option<Millis> {
        self.waiters.front().map(|(_, waiter)| waiter.since)
    }

    /// Adds a request at the end. Returns its place.
    pub fn push(&mut self, waiter: Waiter) -> WaitingPlace {
        self.last += 1;
        let place = WaitingPlace(self.last);
        self.waiters.push_back((place, waiter));
        place
    }

    /// Removes the request at `place`.
    pub fn take(&mut self, place: WaitingPlace) -> Option<Waiter> {
        let at = self
            .waiters
            .binary_search_by_key(&place, |(place, _)| *place);
        self.waiters.remove(at.ok()?).map(|(_, waiter)| waiter)
    }

    /// Removes the request that has waited longest.
    pub fn take_first(&mut self) -> Option<Waiter> {
        self.waiters.pop_front().map(|(_, waiter)| waiter)
    }

    /// Removes all requests, in their order.
    pub fn take_all(&mut self) -> impl Iterator<Item = Waiter> + use<> {
        std::mem::take(&mut self.waiters)
            .into_iter()
            .map(|(_, waiter)| waiter)
    }

    /// Removes the requests for which `leaves` is true. Calls it for each request, in their order.
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

    /// The place of the next leader: the first request that may be one. Requests whose own headers are not among
    /// `doubted` are preferred.
    pub fn heir(&self, doubted: [Option<OwnHeaders>; 2]) -> Option<WaitingPlace> {
        let leads = |(_, waiter): &&(WaitingPlace, Waiter)| waiter.may_lead;
        let differs = |waiter: &Waiter| !doubted.contains(&Some(waiter.own_headers));
        let mut able = self.waiters.iter().filter(leads);
        let first = able.find(|(_, waiter)| differs(waiter));
        let heir = first.or_else(|| self.waiters.iter().find(leads));
        heir.map(|(place, _)| *place)
    }
}
