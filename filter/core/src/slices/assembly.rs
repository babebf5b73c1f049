// SPDX-License-Identifier: Apache-2.0
//! The slicer's state on one client's stream: which slice it asks for, and which bytes it sends.
//!
//! The response begins with the answer to its first slice. From then on it can only be completed or cut. Its end
//! waits for the end of the last slice, because the store would lose a slice whose request ends early.
//!
//! The client's buffers bound the slices: the next one is requested only if none of the buffers is full. A slice that
//! has been requested arrives to its end, because Envoy cannot pause such a request.

use std::collections::VecDeque;
use std::ops::Range;

use crate::http::conditional::range::Slice;
use crate::slices::asked::{AskedSlice, SliceState};
use crate::slices::cutter::{Cutter, Piece};
use crate::slices::plan::SlicePlan;

/// Greatest number of bytes of an answer that is passed on unchanged, and that arrive while the client's buffers are
/// full. A client that reads more slowly is cut, and finds the changed object with its next request.
const MOST_UNREAD_BYTES: usize = 16 << 20;
/// Greatest number of plans that a response gets in the place of its first one.
const MOST_RENEWALS: u8 = 2;

/// The parts of EDGE's answer to the request for a slice that decide about the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceAnswer {
    /// Status of the answer.
    pub status: u16,
    /// Value of `x-sluice-slice-state`.
    pub state: Option<SliceState>,
    /// Value of `x-sluice-slices`: the plan of the object as it is now.
    pub plan: Option<SlicePlan>,
}

/// A thing that the slicer does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Requests a slice.
    Ask(AskedSlice),
    /// Begins the response of the plan.
    Begin,
    /// Begins a response with the status and the headers of the answer that has just been given.
    Relay,
    /// Sends these bytes of the data that have just been given.
    SendGiven(Range<usize>),
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Ends the response.
    End,
    /// Refuses the request with a 503, because no answer has come.
    Refuse,
    /// Cuts the response, for this reason.
    Cut(CutReason),
}

/// The reason why a response is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutReason {
    /// The origin has another object now, or none.
    Outdated,
    /// A slice has failed, or does not have its length.
    Failed,
    /// The client does not read a response that is passed on unchanged.
    Unread,
}

impl CutReason {
    /// The reason for Envoy's log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Outdated => "slice_outdated",
            Self::Failed => "slice_failed",
            Self::Unread => "slice_unread",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No slice has been answered.
    Waiting,
    /// The object has changed, and the client's request has been made again.
    Renewing,
    /// This answer is passed on unchanged.
    Relaying(AskedSlice),
    /// The response has begun.
    Passing,
    /// All bytes of the response have been sent, and the last slice has not ended.
    Ending,
    /// The response has ended.
    Over,
}

/// A requested slice.
#[derive(Debug)]
struct RequestedSlice {
    number: u64,
    range: Slice,
    received: u64,
    /// Bytes that have arrived while an earlier slice was passing.
    held: Vec<u8>,
    has_ended: bool,
    failure: Option<CutReason>,
}

/// Response that is made of slices.
#[derive(Debug)]
pub struct Assembly {
    plan: SlicePlan,
    cutter: Cutter,
    phase: Phase,
    /// The first one passes, and the others are held.
    requested: VecDeque<RequestedSlice>,
    next: Option<u64>,
    /// Number of the client's buffers that are full. They are counted, because several signal by turns.
    full: u32,
    /// Whether the origin sends the slices for this client's requests.
    leads: bool,
    /// Number of plans that the object has got because it has changed.
    renewals: u8,
    unread: usize,
}

impl Assembly {
    /// The response of a plan, before its first step.
    pub fn new(plan: SlicePlan) -> Self {
        Self {
            cutter: Cutter::new(&plan),
            next: plan.next_slice(0),
            phase: Phase::Waiting,
            requested: VecDeque::new(),
            full: 0,
            leads: false,
            renewals: 0,
            unread: 0,
            plan,
        }
    }

    /// The plan.
    pub const fn plan(&self) -> &SlicePlan {
        &self.plan
    }

    /// Whether the response has ended.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Requests as many slices as may be under way: one, or more if this client's requests fetch them.
    pub fn ask(&mut self) -> Vec<Step> {
        let ahead = match self.phase {
            Phase::Waiting => 0,
            Phase::Passing if self.leads => self.plan.ahead(),
            Phase::Passing => 0,
            _ => return Vec::new(),
        };
        let mut steps = Vec::new();
        while self.full == 0 && self.requested.len() <= ahead {
            let slice = self
                .next
                .map(|number| (number, self.plan.grid().range_of(number)));
            let Some((number, Some(range))) = slice else {
                break;
            };
            self.requested.push_back(RequestedSlice {
                number,
                range,
                received: 0,
                held: Vec::new(),
                has_ended: false,
                failure: None,
            });
            self.next = self.plan.next_slice(number + 1);
            steps.push(Step::Ask(AskedSlice::Number(number)));
        }
        steps
    }

    /// Handles the headers of an answer.
    pub fn on_answer(&mut self, asked: AskedSlice, answer: SliceAnswer) -> Vec<Step> {
        let is_outdated = answer.state.is_some_and(SliceState::is_outdated);
        match (self.phase, asked) {
            (Phase::Renewing, AskedSlice::Again) => match answer.plan {
                Some(plan) => self.renew(plan),
                None => self.relay(asked),
            },
            (Phase::Waiting, AskedSlice::Number(_)) if is_outdated => self.ask_again(),
            (Phase::Waiting, AskedSlice::Number(_)) if answer.status != 200 => self.relay(asked),
            (Phase::Waiting | Phase::Passing, AskedSlice::Number(number)) => {
                if is_outdated {
                    return self.fail(number, CutReason::Outdated);
                }
                if answer.status != 200 {
                    return self.fail(number, CutReason::Failed);
                }
                self.leads = answer.state == Some(SliceState::Led);
                let mut steps = Vec::new();
                if self.phase == Phase::Waiting {
                    self.phase = Phase::Passing;
                    steps.push(Step::Begin);
                }
                steps.extend(self.ask());
                steps
            }
            _ => Vec::new(),
        }
    }

    /// Makes the client's request again, unless the object has changed too often.
    fn ask_again(&mut self) -> Vec<Step> {
        self.requested.clear();
        if self.renewals == MOST_RENEWALS {
            self.phase = Phase::Over;
            return vec![Step::Refuse];
        }
        self.renewals += 1;
        self.phase = Phase::Renewing;
        vec![Step::Ask(AskedSlice::Again)]
    }

    /// Begins with the plan of the object as it is now.
    fn renew(&mut self, plan: SlicePlan) -> Vec<Step> {
        self.cutter = Cutter::new(&plan);
        self.next = plan.next_slice(0);
        self.plan = plan;
        self.phase = Phase::Waiting;
        self.ask()
    }

    fn relay(&mut self, asked: AskedSlice) -> Vec<Step> {
        self.requested.clear();
        self.phase = Phase::Relaying(asked);
        vec![Step::Relay]
    }

    /// Handles data of an answer.
    pub fn on_data(&mut self, asked: AskedSlice, data: &[u8]) -> Vec<Step> {
        match (self.phase, asked) {
            (Phase::Relaying(relayed), _) if relayed == asked => self.relay_data(data.len()),
            (Phase::Passing | Phase::Ending, AskedSlice::Number(number)) => {
                self.take_data(number, data)
            }
            _ => Vec::new(),
        }
    }

    fn relay_data(&mut self, size: usize) -> Vec<Step> {
        if self.full > 0 {
            self.unread = self.unread.saturating_add(size);
        }
        if self.unread > MOST_UNREAD_BYTES {
            return self.cut(CutReason::Unread);
        }
        vec![Step::SendGiven(0..size)]
    }

    fn take_data(&mut self, number: u64, data: &[u8]) -> Vec<Step> {
        let is_passing = self.is_first(number);
        let Some(slice) = self.find(number).filter(|slice| slice.failure.is_none()) else {
            return Vec::new();
        };
        let position = slice.range.first().saturating_add(slice.received);
        slice.received = slice.received.saturating_add(data.len() as u64);
        if slice.received > slice.range.length() {
            return self.fail(number, CutReason::Failed);
        }
        if !is_passing {
            slice.held.extend_from_slice(data);
            return Vec::new();
        }
        let pieces = self.cutter.cut(position, data.len()).into_iter();
        let steps = pieces.map(|piece| match piece {
            Piece::Text(text) => Step::Send(text.into_bytes()),
            Piece::Given(range) => Step::SendGiven(range),
        });
        let steps = steps.collect();
        self.note_end();
        steps
    }

    /// Handles the end of an answer.
    pub fn on_complete(&mut self, asked: AskedSlice) -> Vec<Step> {
        match (self.phase, asked) {
            (Phase::Relaying(relayed), _) if relayed == asked => self.end(),
            (Phase::Passing | Phase::Ending, AskedSlice::Number(number)) => {
                match self.find(number) {
                    None => return Vec::new(),
                    Some(slice) if slice.received != slice.range.length() => {
                        return self.fail(number, CutReason::Failed);
                    }
                    Some(slice) => slice.has_ended = true,
                }
                let mut steps = self.advance();
                steps.extend(self.ask());
                steps
            }
            _ => self.on_failure(asked),
        }
    }

    /// Handles an answer that has broken off, or a request that could not be sent.
    pub fn on_failure(&mut self, asked: AskedSlice) -> Vec<Step> {
        match (self.phase, asked) {
            (Phase::Waiting, AskedSlice::Number(_)) | (Phase::Renewing, AskedSlice::Again) => {
                self.phase = Phase::Over;
                vec![Step::Refuse]
            }
            (Phase::Relaying(relayed), _) if relayed == asked => self.cut(CutReason::Failed),
            (Phase::Passing | Phase::Ending, AskedSlice::Number(number)) => {
                self.fail(number, CutReason::Failed)
            }
            _ => Vec::new(),
        }
    }

    /// Notes that one of the client's buffers is full.
    pub fn on_full(&mut self) {
        self.full = self.full.saturating_add(1);
    }

    /// Notes that one of the client's buffers is no longer full.
    pub fn on_drained(&mut self) -> Vec<Step> {
        self.full = self.full.saturating_sub(1);
        self.unread = 0;
        self.ask()
    }

    /// Notes that a slice has failed. The response is cut at the first byte that is missing.
    fn fail(&mut self, number: u64, reason: CutReason) -> Vec<Step> {
        let is_first = self.is_first(number);
        match (self.phase, self.find(number)) {
            (_, None) => Vec::new(),
            (Phase::Ending, Some(_)) => self.end(),
            (_, Some(_)) if is_first => self.cut(reason),
            (_, Some(slice)) => {
                slice.failure.get_or_insert(reason);
                slice.held = Vec::new();
                Vec::new()
            }
        }
    }

    /// Lets the next slices pass, as far as the slices in front of them have ended.
    fn advance(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        while self.requested.front().is_some_and(|slice| slice.has_ended) {
            self.requested.pop_front();
            let Some(slice) = self.requested.front_mut() else {
                break;
            };
            let (held, first) = (std::mem::take(&mut slice.held), slice.range.first());
            if let Some(reason) = slice.failure {
                steps.extend(self.cut(reason));
                return steps;
            }
            steps.extend(self.send_held(first, held));
        }
        if self.requested.is_empty() && self.next.is_none() {
            steps.extend(self.end());
        }
        steps
    }

    fn send_held(&mut self, position: u64, held: Vec<u8>) -> Vec<Step> {
        let pieces = self.cutter.cut(position, held.len());
        self.note_end();
        if let [Piece::Given(range)] = pieces.as_slice()
            && *range == (0..held.len())
        {
            return vec![Step::Send(held)];
        }
        let bytes = |piece| match piece {
            Piece::Text(text) => text.into_bytes(),
            Piece::Given(range) => held.get(range).unwrap_or_default().to_vec(),
        };
        let steps = pieces.into_iter().map(bytes).map(Step::Send);
        steps.collect()
    }

    fn note_end(&mut self) {
        if self.cutter.is_at_end() {
            self.phase = Phase::Ending;
        }
    }

    fn end(&mut self) -> Vec<Step> {
        self.phase = Phase::Over;
        vec![Step::End]
    }

    fn cut(&mut self, reason: CutReason) -> Vec<Step> {
        self.phase = Phase::Over;
        vec![Step::Cut(reason)]
    }

    fn find(&mut self, number: u64) -> Option<&mut RequestedSlice> {
        let mut slices = self.requested.iter_mut();
        slices.find(|slice| slice.number == number)
    }

    fn is_first(&self, number: u64) -> bool {
        let first = self.requested.front();
        first.is_some_and(|slice| slice.number == number)
    }
}
