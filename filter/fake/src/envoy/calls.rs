// SPDX-License-Identifier: Apache-2.0
//! The filter's calls. Most are sent to its background listener, where each is a request to EDGE.

use sluice_roles::worker::own_requests::calls::BackgroundCall;
use sluice_store::{LINK_HEADER, Vouched};

use super::FakeEnvoy;
use crate::process::Call;
use crate::records::{Client, Ending, Kind};
use crate::{HeaderMap, HeaderTexts as _};

/// Cluster of the background listener.
const BACKGROUND: &str = "sluice_background";

/// Calls of the filter.
impl FakeEnvoy {
    /// Sends a call, or keeps it until the test sends it.
    pub(super) fn place_call(&mut self, call: Call) {
        let kind = self.kind_of(&call);
        let fails = self.calls_fail && kind == Some(Kind::Background);
        let hold = self.hold_calls;
        let Some(vm) = &mut self.vms[call.seat] else {
            return;
        };
        match kind {
            Some(Kind::Lookup) => vm.lookups.push_back(call),
            Some(Kind::Feed) => vm.readings.push_back(call),
            Some(_) if fails => self.answer_call(&call, None),
            Some(_) if !hold => self.enter_edge(&call),
            _ => vm.calls.push_back(call),
        }
    }

    /// Returns the kind of a call to the background listener.
    fn kind_of(&self, call: &Call) -> Option<Kind> {
        let link = call.headers.get(LINK_HEADER)?;
        let worker = self.worker(call.seat)?;
        match worker.identity.vouching.decode(link.as_bytes())?.vouched {
            Vouched::Here(link) if call.cluster == BACKGROUND => {
                let made = worker.calls.get(link.stream);
                let leads = made.as_ref().is_some_and(BackgroundCall::leads);
                Some(Kind::of_call(link.request, leads))
            }
            Vouched::Here(_) | Vouched::Elsewhere(_) => None,
        }
    }

    /// Passes a call to EDGE through the background listener.
    pub(super) fn enter_edge(&mut self, call: &Call) {
        let kind = self.kind_of(call).unwrap_or(Kind::Lookup);
        let mut headers = call.headers.clone();
        // Envoy sets this header in a listener that trusts the sender, on a connection without TLS.
        if !headers.has("x-forwarded-proto") {
            headers.set("x-forwarded-proto", "http");
        }
        self.come(call.seat, kind, headers, Some(call));
    }

    /// Sends the calls that were held.
    pub fn send_calls(&mut self, seat: usize) {
        let Some(vm) = &mut self.vms[seat] else {
            return;
        };
        let calls = std::mem::take(&mut vm.calls);
        for call in calls {
            if call.cluster == BACKGROUND {
                self.enter_edge(&call);
                self.run();
            } else if let Some(vm) = &mut self.vms[seat] {
                vm.calls.push_back(call);
            }
        }
    }

    /// Returns the bodies of the calls to other clusters that wait for an answer.
    pub fn outside_calls(&self, seat: usize) -> Vec<Vec<u8>> {
        let calls = self.vms[seat].iter().flat_map(|vm| &vm.calls);
        let outside = calls.filter(|call| call.cluster != BACKGROUND);
        outside.map(|call| call.body.clone()).collect()
    }

    /// Returns the clusters and the headers of the calls to other clusters that wait for an answer.
    pub fn outside_questions(&self, seat: usize) -> Vec<(&str, &HeaderMap)> {
        let calls = self.vms[seat].iter().flat_map(|vm| &vm.calls);
        let outside = calls.filter(|call| call.cluster != BACKGROUND);
        outside
            .map(|call| (call.cluster.as_str(), &call.headers))
            .collect()
    }

    /// Answers the oldest call to another cluster.
    pub fn answer_outside_call(&mut self, seat: usize, status: u16) {
        self.answer_outside_call_with(seat, status, &[], b"");
    }

    /// Answers the oldest call to another cluster with these headers and this body.
    pub fn answer_outside_call_with(
        &mut self,
        seat: usize,
        status: u16,
        headers: &[(&str, &str)],
        body: &[u8],
    ) {
        if let Some(call) = self.take_outside_call(seat) {
            let mut answer = HeaderMap::of(&[(":status", &status.to_string())]);
            for (name, value) in headers {
                answer.add(name, value);
            }
            self.answer_call(&call, Some((answer, body.to_vec())));
            self.run();
        }
    }

    /// Lets the oldest call to another cluster fail.
    pub fn fail_outside_call(&mut self, seat: usize) {
        if let Some(call) = self.take_outside_call(seat) {
            self.answer_call(&call, None);
            self.run();
        }
    }

    fn take_outside_call(&mut self, seat: usize) -> Option<Call> {
        let calls = &mut self.vms[seat].as_mut()?.calls;
        let outside = |call: &Call| call.cluster != BACKGROUND;
        let position = calls.iter().position(outside)?;
        calls.remove(position)
    }

    /// Passes the result of a request of the filter to the context that has made the call.
    pub(super) fn answer_own(&mut self, client: Client, ending: Ending) {
        let Some((number, context, _)) = self.exchanges[client.0].call.take() else {
            return;
        };
        let whole = !matches!(ending, Ending::Truncated | Ending::Left);
        let response = self.clients[client.0].response.clone();
        let response = response.filter(|_| whole);
        let answer = response.map(|response| (response.headers, response.body));
        self.hand_over(self.clients[client.0].seat, context, number, answer);
    }

    pub(super) fn answer_call(&mut self, call: &Call, answer: Option<(HeaderMap, Vec<u8>)>) {
        self.hand_over(call.seat, call.context, call.number, answer);
    }

    fn hand_over(
        &mut self,
        seat: usize,
        context: u32,
        number: u32,
        answer: Option<(HeaderMap, Vec<u8>)>,
    ) {
        let Some(vm) = &self.vms[seat] else {
            return;
        };
        if !vm.host.contexts.borrow().contains_key(&context) {
            return;
        }
        let answered = answer.is_some();
        let (headers, body) = answer.unwrap_or_default();
        let size = body.len();
        vm.host.with(context, |messages| {
            (messages.call_response, messages.body) = (Some(headers), body);
        });
        match self.stream_of(seat, context) {
            Some((client, side)) => self.call(client, side, |stream, host, worker| {
                stream.on_call_response(host, worker, answered, size);
            }),
            None => self.call_root(seat, context, |root, worker| {
                root.on_call_response(worker, number, answered, size);
            }),
        }
        if let Some(vm) = &self.vms[seat]
            && let Some(messages) = vm.host.contexts.borrow_mut().get_mut(&context)
        {
            messages.call_response = None;
        }
    }

    /// Ends the calls that take too long, as Envoy does.
    pub(super) fn expire_calls(&mut self) {
        let now = self.now();
        for client in self.open_clients() {
            let call = self.exchanges[client.0].call;
            if call.is_some_and(|(_, _, deadline)| deadline <= now) {
                self.abort(client);
            }
        }
        for seat in 0..self.workers() {
            let Some(vm) = &mut self.vms[seat] else {
                continue;
            };
            let mut late = Vec::new();
            late.extend(vm.lost.extract_if(.., |call| call.deadline <= now));
            let is_late = |call: &Call| call.cluster != BACKGROUND && call.deadline <= now;
            late.extend(vm.calls.iter().filter(|call| is_late(call)).cloned());
            vm.calls.retain(|call| !is_late(call));
            for calls in [&mut vm.lookups, &mut vm.readings] {
                while calls.front().is_some_and(|call| call.deadline <= now) {
                    late.extend(calls.pop_front());
                }
            }
            for call in late {
                self.answer_call(&call, None);
                self.run();
            }
        }
    }
}
