// SPDX-License-Identifier: Apache-2.0
//! The carrier of a worker's slicers: a stream that never ends, on a connection that the module opens to Envoy. The
//! requests for slices belong to the carrier. So a slice that is under way reaches the store, even if its client
//! leaves.
//!
//! A worker without a carrier, in the first moments of the process, requests slices on behalf of their clients.

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::rc::Rc;

use super::Slicer;
use super::requested::CLUSTER;
use crate::abi::{ExchangeEvent, Filter};

/// Greatest number of requests for slices of one worker that go on without their clients. Beyond this number the
/// requests of a client end with the client.
const MOST_LEFT: usize = 64;

thread_local! {
    // Without a destructor, so that Rust does not destroy it in front of Envoy's last streams.
    static CARRIER: ManuallyDrop<RefCell<Option<Rc<SliceCarrier>>>> =
        const { ManuallyDrop::new(RefCell::new(None)) };
}

/// A stream that carries requests for slices.
pub struct SliceCarrier {
    filter: Filter,
    has_ended: Cell<bool>,
    /// The requests under way, by Envoy's number, with their slicers.
    carried: RefCell<Vec<(u64, Rc<Slicer>)>>,
    /// The slicers whose requests are being sent. Envoy may answer a request, or end it, in front of its number.
    beginning: RefCell<Vec<Option<Rc<Slicer>>>>,
    /// The request whose event is being handled.
    handling: Cell<Option<u64>>,
}

impl SliceCarrier {
    /// A stream that carries nothing yet.
    pub fn new(filter: Filter) -> Self {
        Self {
            filter,
            has_ended: Cell::new(false),
            carried: RefCell::default(),
            beginning: RefCell::default(),
            handling: Cell::new(None),
        }
    }

    /// The carrier of this worker.
    pub fn of_this_worker() -> Option<Rc<Self>> {
        CARRIER.with(|carrier| carrier.borrow().clone())
    }

    /// Makes the stream the carrier of its worker. The stream ends if the worker has a carrier already.
    pub fn begin(self: &Rc<Self>) {
        if Self::of_this_worker().is_some() {
            return self.filter.reset("sluice_second_carrier");
        }
        CARRIER.with(|carrier| carrier.replace(Some(Rc::clone(self))));
    }

    /// Handles the end of the stream. Its requests have failed.
    pub fn end(self: &Rc<Self>) {
        self.has_ended.set(true);
        // At Envoy's end another thread destroys the streams that a worker has left.
        if !self.is_of_this_worker() {
            return;
        }
        CARRIER.with(|carrier| carrier.replace(None));
        for (exchange, slicer) in self.carried.take() {
            slicer.on_exchange(exchange, ExchangeEvent::Failure);
        }
    }

    /// Sends a request for a slice. Returns its number, with which the slicer's hooks are called.
    pub fn ask(&self, slicer: &Rc<Slicer>, headers: &[(&str, &[u8])]) -> Option<u64> {
        if self.has_ended.get() {
            return None;
        }
        self.beginning.borrow_mut().push(Some(Rc::clone(slicer)));
        let exchange = self.filter.begin_exchange(CLUSTER, headers);
        let slicer = self.beginning.borrow_mut().pop().flatten();
        if let (Some(exchange), Some(slicer)) = (exchange, slicer) {
            self.carried.borrow_mut().push((exchange, slicer));
        }
        exchange
    }

    /// Passes an event of a request to its slicer.
    pub fn on_exchange(&self, exchange: u64, event: ExchangeEvent<'_>) {
        let ends = matches!(event, ExchangeEvent::End | ExchangeEvent::Failure);
        let outer = self.handling.replace(Some(exchange));
        if let Some(slicer) = self.find(exchange, ends) {
            slicer.on_exchange(exchange, event);
        }
        self.handling.set(outer);
    }

    /// The slicer of a request, which is forgotten if it `ends`.
    fn find(&self, exchange: u64, ends: bool) -> Option<Rc<Slicer>> {
        let mut carried = self.carried.borrow_mut();
        let place = carried.iter().position(|(number, _)| *number == exchange);
        match place {
            Some(place) if ends => Some(carried.swap_remove(place).1),
            Some(place) => carried.get(place).map(|(_, slicer)| Rc::clone(slicer)),
            None => {
                let mut beginning = self.beginning.borrow_mut();
                let last = beginning.last_mut()?;
                if ends { last.take() } else { last.clone() }
            }
        }
    }

    /// Lets the requests of a slicer go on whose client has left, or ends them if too many go on.
    pub fn leave(&self, left: &Slicer) {
        let carried = self.carried.borrow();
        let going_on = carried.iter().filter(|(_, slicer)| slicer.has_ended());
        if going_on.count() <= MOST_LEFT || !self.is_of_this_worker() {
            return;
        }
        let its_own = carried
            .iter()
            .filter(|(_, slicer)| std::ptr::eq(Rc::as_ptr(slicer), left));
        let numbers = its_own.map(|(number, _)| *number);
        let ended: Vec<u64> = numbers
            .filter(|number| self.handling.get() != Some(*number))
            .collect();
        drop(carried);
        for exchange in ended {
            self.filter.end_exchange(exchange);
        }
    }

    fn is_of_this_worker(&self) -> bool {
        let current = Self::of_this_worker();
        current.is_some_and(|current| std::ptr::eq(Rc::as_ptr(&current), self))
    }
}
