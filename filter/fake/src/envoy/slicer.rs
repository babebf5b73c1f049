// SPDX-License-Identifier: Apache-2.0
//! The slicer, the filter that makes responses of slices. Each of its requests is a request to EDGE.

use sluice_core::internal_headers::{SLICE_HEADER, SLICE_STATE_HEADER, SLICES_HEADER};
use sluice_core::slices::asked::{AskedSlice, SliceState};
use sluice_core::slices::assembly::{Assembly, SliceAnswer, Step};
use sluice_core::slices::plan::SlicePlan;
use sluice_store::LINK_HEADER;

use super::FakeEnvoy;
use crate::exchange::Slicer;
use crate::process::Task;
use crate::records::{Client, Ending, Kind, Response, Stage};
use crate::{HeaderMap, HeaderTexts as _};

/// Responses that are made of slices.
impl FakeEnvoy {
    /// Passes a request to the slicer.
    ///
    /// # Panics
    /// The request has no plan.
    pub(super) fn enter_slicer(&mut self, client: Client, request: &HeaderMap) {
        let plan = request.get(SLICES_HEADER).and_then(SlicePlan::parse);
        let mut headers = HeaderMap::of(&[
            (":method", "GET"),
            (":scheme", "http"),
            ("x-forwarded-proto", "http"),
        ]);
        for name in [":authority", ":path", LINK_HEADER] {
            if let Some(value) = request.bytes(name) {
                headers.set(name, value);
            }
        }
        let assembly = Assembly::new(plan.expect("a plan"));
        self.exchanges[client.0].slicer = Some(Slicer { assembly, headers });
        self.step(client, &Response::default(), Assembly::ask);
    }

    /// Lets the slicer of a request decide, and carries out its steps. `answer` is the answer that it has received.
    fn step(
        &mut self,
        client: Client,
        answer: &Response,
        decide: impl FnOnce(&mut Assembly) -> Vec<Step>,
    ) {
        let Some(slicer) = &mut self.exchanges[client.0].slicer else {
            return;
        };
        let steps = decide(&mut slicer.assembly);
        let plan = slicer.assembly.plan().clone();
        for step in steps {
            match step {
                Step::Ask(asked) => self.process.push(Task::AskSlice(client, asked)),
                Step::Begin => {
                    let mut headers = HeaderMap::of(&[(":status", &plan.status().to_string())]);
                    for (name, value) in plan.headers() {
                        headers.add(name, value);
                    }
                    if let Some(status) = answer.headers.bytes("cache-status") {
                        headers.add("cache-status", status);
                    }
                    self.deliver_headers(client, headers, false);
                }
                Step::Relay => self.deliver_headers(client, answer.headers.clone(), false),
                Step::SendGiven(range) => {
                    self.deliver_body(client, answer.body[range].to_vec(), false);
                }
                Step::Send(bytes) => self.deliver_body(client, bytes, false),
                Step::End => self.deliver_body(client, Vec::new(), true),
                Step::Refuse => {
                    let headers = HeaderMap::of(&[(":status", "503"), ("content-length", "0")]);
                    self.deliver_headers(client, headers, true);
                }
                Step::Cut(_) => self.truncate(client),
            }
        }
    }

    /// Sends a request of the slicer.
    pub(super) fn ask_slice(&mut self, outer: Client, asked: AskedSlice) {
        if self.is_over(outer) {
            return;
        }
        let Some(slicer) = &self.exchanges[outer.0].slicer else {
            return;
        };
        let mut headers = slicer.headers.clone();
        headers.set(SLICE_HEADER, asked.to_string());
        let client = self.enlist(self.clients[outer.0].seat, Kind::Other, &headers, None);
        self.exchanges[client.0].slice = Some((outer, asked));
        self.enter(client, headers, true);
        if let Stage::Over(ending) = self.stage(client) {
            self.answer_slice(client, ending);
        }
    }

    /// Passes the result of a request of the slicer to the slicer.
    pub(super) fn answer_slice(&mut self, client: Client, ending: Ending) {
        let Some((outer, asked)) = self.exchanges[client.0].slice.take() else {
            return;
        };
        let answer = self.clients[client.0].response.clone();
        let whole = answer.is_some() && !matches!(ending, Ending::Truncated | Ending::Left);
        if let Some(answer) = answer {
            let state = answer.headers.get(SLICE_STATE_HEADER);
            let facts = SliceAnswer {
                status: answer.headers.status(),
                state: state.and_then(SliceState::parse),
            };
            self.step(outer, &answer, |it| it.on_answer(asked, facts));
            self.step(outer, &answer, |it| it.on_data(asked, &answer.body));
        }
        self.step(outer, &Response::default(), |it| match whole {
            true => it.on_complete(asked),
            false => it.on_failure(asked),
        });
    }

    /// Ends the slicer's requests for a request that has ended.
    pub(super) fn end_slicer(&mut self, outer: Client) {
        if self.exchanges[outer.0].slicer.take().is_none() {
            return;
        }
        for number in 0..self.exchanges.len() {
            if self.exchanges[number]
                .slice
                .is_some_and(|(of, _)| of == outer)
            {
                self.close_as(Client(number), Ending::Left);
            }
        }
    }
}
