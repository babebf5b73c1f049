// SPDX-License-Identifier: Apache-2.0
//! An entry that was purged softly while a fill of it was under way. The store has one entry, so its fills run one
//! after the other. Requests after the purge must not share a response that was requested before it.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::coalescing::flight::FlightPolicy;
use sluice_core::coalescing::shared::board::FlightKey;
use sluice_core::coalescing::{Coalescer, Effect, NextStep, Request, StoreRequest, Turn};
use sluice_core::key::CanonicalTarget;
use sluice_core::workers::message::{FlightMessage, FlightOutcome};
use sluice_core::workers::{KeyHash, Millis, OwnHeaders, StreamId, WorkerId};
use sluice_fake::FakeSharedData;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::support::{bucket, canonicalize_path};

const ENTRY: KeyHash = KeyHash(7);
const PURGED: KeyHash = KeyHash(8);
const BEFORE: StreamId = StreamId(1);
const AFTER: StreamId = StreamId(2);
const WAITING: StreamId = StreamId(3);

/// Two workers, and the messages between them.
struct Workers {
    data: FakeSharedData,
    coalescers: [Coalescer; 2],
    messages: VecDeque<(WorkerId, FlightMessage)>,
    resumed: Vec<(StreamId, NextStep)>,
    now: Millis,
}

impl Workers {
    fn new() -> Self {
        Self {
            data: FakeSharedData::default(),
            coalescers: [1, 2].map(|worker| Coalescer::new(WorkerId(worker), 100)),
            messages: VecDeque::new(),
            resumed: Vec::new(),
            now: 1,
        }
    }

    fn turn<R>(
        &mut self,
        seat: usize,
        event: impl FnOnce(&mut Coalescer, &mut Turn<'_>) -> R,
    ) -> R {
        let mut effects = Vec::new();
        let mut turn = Turn {
            store: &self.data,
            now: self.now,
            effects: &mut effects,
        };
        let result = event(&mut self.coalescers[seat], &mut turn);
        for effect in effects {
            match effect {
                Effect::Notify { worker, message } => self.messages.push_back((worker, message)),
                Effect::Resume {
                    stream, next_step, ..
                } => self.resumed.push((stream, next_step)),
                _ => {}
            }
        }
        result
    }

    fn request(&mut self, seat: usize, stream: StreamId, key: KeyHash) -> Option<NextStep> {
        let target = target();
        let request = Request {
            stream,
            key: FlightKey { entry: ENTRY, key },
            target: &target,
            own_headers: OwnHeaders::NONE,
            may_lead: true,
            for_others: false,
            policy: FlightPolicy::of(&bucket()),
        };
        self.turn(seat, |coalescer, turn| coalescer.request(&request, turn))
    }

    /// The store has the response to a leader.
    fn end(&mut self, seat: usize, stream: StreamId) {
        let stored = FlightOutcome::Found {
            until: 60_000,
            small: true,
        };
        self.turn(seat, |coalescer, turn| {
            coalescer.end_flight(stream, stored, turn)
        });
    }

    fn deliver_all(&mut self) {
        while let Some((worker, message)) = self.messages.pop_front() {
            let seat = usize::from(worker.0) - 1;
            self.turn(seat, |coalescer, turn| coalescer.message(message, turn));
        }
    }

    fn tick_all(&mut self) {
        for seat in 0..self.coalescers.len() {
            self.turn(seat, |coalescer, turn| coalescer.tick(turn));
        }
    }
}

fn target() -> Rc<CanonicalTarget> {
    Rc::new(canonicalize_path(&bucket(), b"/object").unwrap())
}

#[test]
fn requests_after_a_soft_purge_lead_after_the_older_fill_and_share_nothing_of_it() {
    for after in [0, 1] {
        let mut workers = Workers::new();
        assert_eq!(
            workers.request(0, BEFORE, ENTRY),
            Some(NextStep::Send(StoreRequest::Lead))
        );
        let admitted = workers.request(after, AFTER, PURGED);
        assert_eq!(admitted, None, "on worker {after}");
        assert_eq!(workers.request(after, WAITING, PURGED), None);
        workers.deliver_all();
        assert_eq!(workers.resumed, []);
        workers.end(0, BEFORE);
        workers.deliver_all();
        assert_eq!(
            workers.resumed,
            [(AFTER, NextStep::Send(StoreRequest::Lead))]
        );
        workers.end(after, AFTER);
        workers.deliver_all();
        assert_eq!(
            workers.resumed[1..],
            [(WAITING, NextStep::Send(StoreRequest::Fresh))]
        );
    }
}

#[test]
fn a_request_after_a_soft_purge_leads_though_the_news_of_the_older_fill_is_lost() {
    let mut workers = Workers::new();
    workers.request(0, BEFORE, ENTRY);
    workers.request(1, AFTER, PURGED);
    workers.end(0, BEFORE);
    workers.messages.clear();
    workers.now += FlightPolicy::of(&bucket()).rescan();
    workers.tick_all();
    assert_eq!(
        workers.resumed,
        [(AFTER, NextStep::Send(StoreRequest::Lead))]
    );
}

#[test]
fn a_request_after_a_soft_purge_leads_when_the_client_of_the_older_fill_has_gone() {
    let mut workers = Workers::new();
    workers.request(0, BEFORE, ENTRY);
    workers.request(1, AFTER, PURGED);
    workers.turn(0, |coalescer, turn| coalescer.closed(BEFORE, turn));
    workers.deliver_all();
    assert_eq!(
        workers.resumed,
        [(AFTER, NextStep::Send(StoreRequest::Lead))]
    );
}

#[test]
fn followers_of_the_older_fill_are_released_by_it_and_not_by_the_newer() {
    let mut workers = Workers::new();
    workers.request(0, BEFORE, ENTRY);
    workers.request(1, WAITING, ENTRY);
    workers.request(1, AFTER, PURGED);
    workers.end(0, BEFORE);
    workers.deliver_all();
    workers.resumed.sort_by_key(|(stream, _)| *stream);
    let expected = [
        (AFTER, NextStep::Send(StoreRequest::Lead)),
        (WAITING, NextStep::Send(StoreRequest::Fresh)),
    ];
    assert_eq!(workers.resumed, expected);
}
