// SPDX-License-Identifier: Apache-2.0
//! The last filter of the listener `sluice_slices`, which makes a response of slices. Each slice is the answer to a
//! request through the listener `sluice_slice`. `sluice_core::slices::assembly` decides what the filter does.
//!
//! The filter uses no worker of the roles, so it works beside a role in a VM as well. A panic ends only its own stream.

pub mod carrier;
mod requested;

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;

use sluice_core::internal_headers::{SLICE_STATE_HEADER, SLICES_HEADER};
use sluice_core::slices::asked::{AskedSlice, SliceState};
use sluice_core::slices::assembly::{Assembly, SliceAnswer, Step};
use sluice_core::slices::plan::SlicePlan;

use crate::abi::{ExchangeEvent, Filter, HeaderMapType, lent_data, lent_headers};
use carrier::SliceCarrier;
use requested::{CLUSTER, Requested};

/// Fields of one connection, which do not belong to a response on another connection.
const OF_CONNECTION: [&[u8]; 4] = [
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"transfer-encoding",
];
/// The header of the first slice that its response has, too.
const CACHE_STATUS: &[u8] = b"cache-status";

/// The slicer on one stream.
pub struct Slicer {
    /// Envoy's side of the stream, until it has ended.
    filter: Filter,
    has_ended: Cell<bool>,
    assembly: RefCell<Option<Assembly>>,
    requested: Requested,
    /// The stream that the requests for slices belong to, if the worker has one.
    carrier: Option<Rc<SliceCarrier>>,
    /// Whether a response, or a part of it, has been sent.
    has_begun: Cell<bool>,
    has_panicked: Cell<bool>,
}

/// The parts of an answer that a hook has just received.
#[derive(Clone, Copy, Default)]
struct Received<'a> {
    fields: &'a [(&'a [u8], &'a [u8])],
    data: &'a [u8],
}

impl Slicer {
    /// The slicer on a new stream.
    pub fn new(filter: Filter) -> Self {
        Self {
            filter,
            has_ended: Cell::new(false),
            assembly: RefCell::new(None),
            requested: Requested::default(),
            carrier: SliceCarrier::of_this_worker(),
            has_begun: Cell::new(false),
            has_panicked: Cell::new(false),
        }
    }

    /// Handles the end of the stream. No call to Envoy follows for it.
    pub fn end(&self) {
        self.has_ended.set(true);
        // NB: the stream may end while a part of its assembly is being sent.
        if let Ok(mut assembly) = self.assembly.try_borrow_mut() {
            assembly.take();
        }
        if let Some(carrier) = &self.carrier {
            carrier.leave(self);
        }
    }

    /// Whether the stream has ended.
    pub fn has_ended(&self) -> bool {
        self.has_ended.get()
    }

    /// Handles the request's headers, and requests the first slice.
    pub fn begin(self: &Rc<Self>) {
        self.guarded(|| {
            #[cfg(feature = "trap")]
            crate::trap::on_demand_in_slicer(self.filter);
            let plan = self.filter.header(HeaderMapType::Request, SLICES_HEADER);
            let plan = plan.and_then(|plan| String::from_utf8(plan).ok());
            let Some(plan) = plan.and_then(|plan| SlicePlan::parse(&plan)) else {
                return self.carry_out(vec![Step::Refuse], Received::default());
            };
            self.requested.note_request(self.filter);
            self.assembly.replace(Some(Assembly::new(plan)));
            self.handle(Received::default(), Assembly::ask);
        });
    }

    /// Handles an event of the request for a slice.
    pub fn on_exchange(self: &Rc<Self>, exchange: u64, event: ExchangeEvent<'_>) {
        self.guarded(|| {
            let Some(asked) = self.requested.find(exchange) else {
                return;
            };
            match event {
                ExchangeEvent::Headers(headers) => {
                    let fields: Vec<_> = lent_headers(headers).collect();
                    self.on_answer(asked, &fields);
                }
                ExchangeEvent::Data(chunks) => {
                    for data in lent_data(chunks) {
                        let received = Received {
                            data,
                            ..Received::default()
                        };
                        self.handle(received, |it| it.on_data(asked, data));
                    }
                }
                ExchangeEvent::End => {
                    self.requested.forget(exchange);
                    self.handle(Received::default(), |it| it.on_complete(asked));
                }
                ExchangeEvent::Failure => {
                    self.requested.forget(exchange);
                    self.handle(Received::default(), |it| it.on_failure(asked));
                }
            }
        });
    }

    /// Handles a change of a buffer of the client.
    pub fn on_client_buffer(self: &Rc<Self>, is_full: bool) {
        self.guarded(|| {
            self.handle(Received::default(), |it| {
                if is_full {
                    it.on_full();
                    return Vec::new();
                }
                it.on_drained()
            });
        });
    }

    fn on_answer(self: &Rc<Self>, asked: AskedSlice, fields: &[(&[u8], &[u8])]) {
        let find = |name: &str| {
            let mut fields = fields.iter();
            let field = fields.find(|(found, _)| *found == name.as_bytes());
            field.and_then(|(_, value)| std::str::from_utf8(value).ok())
        };
        let status = find(":status").and_then(|status| status.parse().ok());
        let answer = SliceAnswer {
            status: status.unwrap_or_default(),
            state: find(SLICE_STATE_HEADER).and_then(SliceState::parse),
            plan: find(SLICES_HEADER).and_then(SlicePlan::parse),
        };
        let received = Received {
            fields,
            ..Received::default()
        };
        self.handle(received, |it| it.on_answer(asked, answer));
    }

    /// Lets the assembly decide, and carries out its steps.
    fn handle(
        self: &Rc<Self>,
        received: Received<'_>,
        decide: impl FnOnce(&mut Assembly) -> Vec<Step>,
    ) {
        // NB: a step may call hooks of this stream, so the assembly is not borrowed while steps are carried out.
        let steps = self.assembly.borrow_mut().as_mut().map(decide);
        self.carry_out(steps.unwrap_or_default(), received);
    }

    fn carry_out(self: &Rc<Self>, steps: Vec<Step>, received: Received<'_>) {
        for step in steps {
            if self.has_ended.get() {
                return;
            }
            match step {
                Step::Ask(asked) => self.ask(asked),
                Step::Begin => self.send_head(received),
                Step::Relay => self.relay_head(received),
                Step::SendGiven(range) => {
                    let data = received.data.get(range).unwrap_or_default();
                    self.filter.send_response_data(data);
                }
                Step::Send(data) => self.filter.send_response_data(&data),
                Step::End => self.filter.end_response(b""),
                Step::Refuse => self.refuse("slice_unanswered"),
                Step::Cut(reason) => self.filter.reset(reason.as_str()),
            }
        }
    }

    fn ask(self: &Rc<Self>, asked: AskedSlice) {
        if asked == AskedSlice::Again {
            // The next plan has other slices of the same numbers.
            self.requested.forget_all();
        }
        let is_sent = self.requested.ask(asked, |headers| match &self.carrier {
            Some(carrier) => carrier.ask(self, headers),
            None => self.filter.begin_exchange(CLUSTER, headers),
        });
        if !is_sent {
            self.handle(Received::default(), |it| it.on_failure(asked));
        }
    }

    /// Begins the response of the plan. EDGE adds the headers of the object.
    fn send_head(&self, received: Received<'_>) {
        let head = self.assembly.borrow();
        let head = head.as_ref().map(Assembly::plan);
        let head = head.map(|plan| (plan.status().to_string(), plan.headers()));
        let Some((status, headers)) = head else {
            return;
        };
        let headers = headers.iter();
        let headers = headers.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let cache_status = received.fields.iter().copied();
        let cache_status = cache_status.filter(|(name, _)| *name == CACHE_STATUS);
        let fields = std::iter::once((&b":status"[..], status.as_bytes()));
        self.has_begun.set(true);
        let fields = fields.chain(headers).chain(cache_status);
        self.filter.send_response_headers(fields, false);
    }

    /// Begins a response with the headers of an answer.
    fn relay_head(&self, received: Received<'_>) {
        let fields = received.fields.iter().copied();
        let fields = fields.filter(|(name, _)| !OF_CONNECTION.contains(name));
        self.has_begun.set(true);
        self.filter.send_response_headers(fields, false);
    }

    fn refuse(&self, details: &str) {
        self.has_begun.set(true);
        let headers = [
            (&b"cache-control"[..], &b"no-store"[..]),
            (&b"retry-after"[..], &b"1"[..]),
        ];
        self.filter
            .send_response(503, headers.into_iter(), b"", details);
    }

    /// Runs a hook. A panic ends the stream, and no later hook does anything.
    fn guarded(&self, hook: impl FnOnce()) {
        if self.has_panicked.get() || self.has_ended.get() {
            return;
        }
        if panic::catch_unwind(AssertUnwindSafe(hook)).is_ok() {
            return;
        }
        self.has_panicked.set(true);
        if self.has_ended.get() {
            return;
        }
        if self.has_begun.get() {
            self.filter.reset("slicer_panicked");
        } else {
            self.refuse("slicer_panicked");
        }
    }
}
