// SPDX-License-Identifier: Apache-2.0
//! The slicer, which puts a response together from the slices that it asks EDGE for.

use sluice_core::coalescing::StoreRequest;
use sluice_core::internal_headers::{SLICE_HEADER, SLICE_STATE_HEADER, SLICES_HEADER};
use sluice_core::slices::asked::{AskedSlice, SliceState};
use sluice_core::slices::assembly::{Assembly, SliceAnswer, Step};
use sluice_core::slices::plan::SlicePlan;
use sluice_store::LINK_HEADER;

use super::FakeEnvoy;
use crate::records::{Client, Ending, Kind};
use crate::slicing::Slicing;
use crate::{HeaderMap, HeaderTexts as _};

/// Responses that the slicer puts together.
impl FakeEnvoy {
    /// Passes a request to the slicer.
    pub(super) fn enter_slicer(&mut self, client: Client, request: HeaderMap) {
        let plan = request.get(SLICES_HEADER).and_then(SlicePlan::parse);
        let mut assembly = Assembly::new(plan.expect("a plan"));
        let steps = assembly.ask();
        self.exchanges[client.0].slicing = Some(Slicing { assembly, request });
        self.follow(client, steps, &[]);
    }

    /// Calls `event` on the slicer's state of a response, and follows its steps. `given` is the data of the event.
    fn slicer_event(
        &mut self,
        client: Client,
        given: &[u8],
        event: impl FnOnce(&mut Assembly) -> Vec<Step>,
    ) {
        if let Some(slicing) = &mut self.exchanges[client.0].slicing {
            let steps = event(&mut slicing.assembly);
            self.follow(client, steps, given);
        }
    }

    fn follow(&mut self, client: Client, steps: Vec<Step>, given: &[u8]) {
        for step in steps {
            match step {
                Step::Ask(asked) => self.ask_for_slice(client, asked),
                Step::Begin => self.begin_sliced(client),
                Step::Relay => self.relay(client),
                Step::SendGiven(range) => self.deliver_body(client, given[range].to_vec(), false),
                Step::Send(bytes) => self.deliver_body(client, bytes, false),
                Step::End => self.deliver_body(client, Vec::new(), true),
                Step::Refuse => {
                    let headers = HeaderMap::of(&[(":status", "503")]);
                    self.deliver_headers(client, headers, true);
                }
                Step::Cut(_) => self.truncate(client),
            }
        }
    }

    fn begin_sliced(&mut self, client: Client) {
        let slicing = self.exchanges[client.0].slicing.as_ref();
        let plan = slicing.expect("a response").assembly.plan();
        let mut headers = HeaderMap::of(&[(":status", &plan.status().to_string())]);
        for (name, value) in plan.headers() {
            headers.add(name, value);
        }
        self.deliver_headers(client, headers, false);
    }

    /// Passes the last answer on unchanged.
    fn relay(&mut self, client: Client) {
        let mut slices = (0..self.clients.len()).rev().map(Client);
        let last = slices.find(|slice| {
            let exchange = &self.exchanges[slice.0];
            exchange.slice.is_some_and(|(of, _)| of == client) && exchange.responded
        });
        let response = last.and_then(|last| self.clients[last.0].response.clone());
        let headers = response.expect("an answer").headers;
        self.deliver_headers(client, headers, false);
    }

    /// Sends a request of the slicer to EDGE.
    fn ask_for_slice(&mut self, client: Client, asked: AskedSlice) {
        let slicing = self.exchanges[client.0].slicing.as_ref();
        let sent = &slicing.expect("a response").request;
        let number = asked.to_string();
        let mut headers = HeaderMap::of(&[(":method", "GET"), (":scheme", "http")]);
        for name in [":authority", ":path", LINK_HEADER] {
            headers.add(name, sent.get(name).expect("a header"));
        }
        headers.add(SLICE_HEADER, number);
        let seat = self.clients[client.0].seat;
        let slice = self.enlist(seat, Kind::Slice, &headers, None);
        self.exchanges[slice.0].slice = Some((client, asked));
        self.enter(slice, headers, true);
    }

    /// Passes the headers of a slice to the slicer.
    pub(super) fn slice_answers(&mut self, slice: Client) {
        let Some((client, asked)) = self.exchanges[slice.0].slice else {
            return;
        };
        let record = &self.clients[slice.0];
        let answer = SliceAnswer {
            status: record.status(),
            state: record
                .header(SLICE_STATE_HEADER)
                .and_then(SliceState::parse),
            plan: record.header(SLICES_HEADER).and_then(SlicePlan::parse),
        };
        self.slicer_event(client, &[], |assembly| assembly.on_answer(asked, answer));
    }

    /// Passes a part of a slice to the slicer.
    pub(super) fn slice_sends(&mut self, slice: Client, part: &[u8]) {
        if let Some((client, asked)) = self.exchanges[slice.0].slice
            && !part.is_empty()
        {
            self.slicer_event(client, part, |assembly| assembly.on_data(asked, part));
        }
    }

    /// Passes the end of a slice to the slicer. The slices of a client that has left go on.
    pub(super) fn end_slices(&mut self, ended: Client, ending: Ending) {
        if let Some((client, asked)) = self.exchanges[ended.0].slice {
            self.slicer_event(client, &[], |assembly| match ending {
                Ending::Truncated | Ending::Left => assembly.on_failure(asked),
                _ => assembly.on_complete(asked),
            });
        }
        self.exchanges[ended.0].slicing = None;
    }

    /// Whether EDGE has sent a request to the slicer.
    pub(super) fn is_for_slicer(request: Option<StoreRequest>) -> bool {
        request == Some(StoreRequest::Slice)
    }
}
