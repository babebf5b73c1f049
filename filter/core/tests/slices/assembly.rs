// SPDX-License-Identifier: Apache-2.0
//! Tests of the slicer's state on one client's stream.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::collections::VecDeque;

use proptest::prelude::*;
use sluice_core::slices::asked::{AskedSlice, SliceState};
use sluice_core::slices::assembly::{Assembly, CutReason, SliceAnswer, Step};
use sluice_core::slices::plan::{Segment, SlicePlan};

use AskedSlice::{Again, Number};

const LED: SliceAnswer = SliceAnswer {
    status: 200,
    state: Some(SliceState::Led),
    plan: None,
};
const HIT: SliceAnswer = SliceAnswer {
    status: 200,
    state: Some(SliceState::Hit),
    plan: None,
};

fn answer(status: u16, state: Option<SliceState>) -> SliceAnswer {
    SliceAnswer {
        status,
        state,
        plan: None,
    }
}

/// The answer to a request that is made again: the plan of the object as it is now.
fn renewal(plan: &str) -> SliceAnswer {
    SliceAnswer {
        plan: SlicePlan::parse(plan),
        ..answer(200, None)
    }
}

fn assembly(plan: &str) -> Assembly {
    Assembly::new(SlicePlan::parse(plan).unwrap())
}

fn ask(number: u64) -> Step {
    Step::Ask(Number(number))
}

#[test]
fn a_hit_is_read_slice_by_slice() {
    let mut assembly = assembly("whole 25 10 3");
    assert_eq!(assembly.ask(), [ask(0)]);
    assert_eq!(assembly.on_answer(Number(0), HIT), [Step::Begin]);
    assert_eq!(
        assembly.on_data(Number(0), &[0; 10]),
        [Step::SendGiven(0..10)]
    );
    assert_eq!(assembly.on_complete(Number(0)), [ask(1)]);
    assert_eq!(assembly.on_answer(Number(1), HIT), []);
    assert_eq!(
        assembly.on_data(Number(1), &[0; 10]),
        [Step::SendGiven(0..10)]
    );
    assert_eq!(assembly.on_complete(Number(1)), [ask(2)]);
    assert_eq!(assembly.on_answer(Number(2), HIT), []);
    assert_eq!(
        assembly.on_data(Number(2), &[0; 5]),
        [Step::SendGiven(0..5)]
    );
    assert_eq!(assembly.on_complete(Number(2)), [Step::End]);
    assert!(assembly.is_over());
}

#[test]
fn only_a_client_whose_requests_fetch_the_slices_reads_ahead() {
    for (state, asked) in [
        (Some(SliceState::Led), vec![Step::Begin, ask(1), ask(2)]),
        (Some(SliceState::Followed), vec![Step::Begin]),
        (Some(SliceState::Hit), vec![Step::Begin]),
        (None, vec![Step::Begin]),
    ] {
        let mut assembly = assembly("whole 100 10 2");
        assert_eq!(assembly.ask(), [ask(0)]);
        assert_eq!(assembly.on_answer(Number(0), answer(200, state)), asked);
    }
}

#[test]
fn a_slice_that_is_ahead_is_held_until_its_turn() {
    let mut assembly = assembly("5-14 100 10 2");
    assert_eq!(assembly.ask(), [ask(0)]);
    assert_eq!(assembly.on_answer(Number(0), LED), [Step::Begin, ask(1)]);
    assert_eq!(assembly.on_answer(Number(1), LED), []);
    assert_eq!(assembly.on_data(Number(1), b"0123456789"), []);
    assert_eq!(assembly.on_complete(Number(1)), []);
    assert_eq!(
        assembly.on_data(Number(0), b"0123456789"),
        [Step::SendGiven(5..10)]
    );
    let rest = Step::Send(b"01234".to_vec());
    assert_eq!(assembly.on_complete(Number(0)), [rest, Step::End]);
}

#[test]
fn the_end_of_the_response_waits_for_the_end_of_the_last_slice() {
    let mut assembly = assembly("3-4 25 10 3");
    assembly.ask();
    assert_eq!(assembly.on_answer(Number(0), LED), [Step::Begin]);
    assert_eq!(
        assembly.on_data(Number(0), &[0; 6]),
        [Step::SendGiven(3..5)]
    );
    assert_eq!(assembly.on_data(Number(0), &[0; 4]), []);
    assert_eq!(assembly.on_complete(Number(0)), [Step::End]);
}

#[test]
fn a_failure_behind_the_last_byte_is_no_failure_of_the_response() {
    let mut assembly = assembly("3-4 25 10 3");
    assembly.ask();
    assembly.on_answer(Number(0), LED);
    assembly.on_data(Number(0), &[0; 6]);
    assert_eq!(assembly.on_failure(Number(0)), [Step::End]);
}

#[test]
fn no_slice_is_requested_while_a_buffer_of_the_client_is_full() {
    let mut assembly = assembly("whole 100 10 2");
    assembly.ask();
    assembly.on_full();
    assembly.on_full();
    assert_eq!(assembly.on_answer(Number(0), LED), [Step::Begin]);
    assert_eq!(
        assembly.on_data(Number(0), &[0; 10]),
        [Step::SendGiven(0..10)]
    );
    assert_eq!(assembly.on_complete(Number(0)), []);
    assert_eq!(assembly.on_drained(), []);
    assert_eq!(assembly.on_drained(), [ask(1), ask(2), ask(3)]);
}

#[test]
fn a_changed_object_gets_a_new_plan_if_no_byte_has_been_sent() {
    for state in [SliceState::Changed, SliceState::Gone] {
        let mut assembly = assembly("3-14 25 10 3");
        assembly.ask();
        let changed = answer(502, Some(state));
        assert_eq!(assembly.on_answer(Number(0), changed), [Step::Ask(Again)]);
        assert_eq!(assembly.on_data(Number(0), b"changed"), []);
        assert_eq!(assembly.on_complete(Number(0)), []);
        let plan = renewal("13-14 15 10 3");
        assert_eq!(assembly.on_answer(Again, plan), [ask(1)]);
        assert_eq!(assembly.on_complete(Again), []);
        assert_eq!(assembly.on_answer(Number(1), HIT), [Step::Begin]);
        assert_eq!(assembly.plan().content_length(), 2);
        assert_eq!(
            assembly.on_data(Number(1), b"01234"),
            [Step::SendGiven(3..5)]
        );
        assert_eq!(assembly.on_complete(Number(1)), [Step::End]);
    }
}

#[test]
fn a_changed_object_without_a_new_plan_is_passed_on() {
    let mut assembly = assembly("3-4 25 10 3");
    assembly.ask();
    let changed = answer(502, Some(SliceState::Changed));
    assert_eq!(assembly.on_answer(Number(0), changed), [Step::Ask(Again)]);
    assert_eq!(assembly.on_answer(Again, answer(206, None)), [Step::Relay]);
    assert_eq!(assembly.on_data(Again, b"ab"), [Step::SendGiven(0..2)]);
    assert_eq!(assembly.on_complete(Again), [Step::End]);
}

#[test]
fn an_object_that_always_changes_is_refused_after_two_more_plans() {
    let mut assembly = assembly("whole 25 10 3");
    assembly.ask();
    let changed = || answer(502, Some(SliceState::Changed));
    for _ in 0..2 {
        assert_eq!(assembly.on_answer(Number(0), changed()), [Step::Ask(Again)]);
        let plan = renewal("whole 25 10 3");
        assert_eq!(assembly.on_answer(Again, plan), [ask(0)]);
    }
    assert_eq!(assembly.on_answer(Number(0), changed()), [Step::Refuse]);
    assert!(assembly.is_over());
}

#[test]
fn an_error_of_the_first_slice_is_passed_on() {
    let mut assembly = assembly("whole 25 10 3");
    assembly.ask();
    assert_eq!(
        assembly.on_answer(Number(0), answer(503, None)),
        [Step::Relay]
    );
    assert_eq!(
        assembly.on_data(Number(0), b"busy"),
        [Step::SendGiven(0..4)]
    );
    assert_eq!(assembly.on_complete(Number(0)), [Step::End]);
}

#[test]
fn a_request_without_an_answer_is_refused() {
    let mut first = assembly("whole 25 10 3");
    first.ask();
    assert_eq!(first.on_failure(Number(0)), [Step::Refuse]);
    assert!(first.is_over());
    let mut again = assembly("whole 25 10 3");
    again.ask();
    again.on_answer(Number(0), answer(502, Some(SliceState::Gone)));
    assert_eq!(again.on_failure(Again), [Step::Refuse]);
}

/// A failure of slice 1.
type Failure = &'static dyn Fn(&mut Assembly) -> Vec<Step>;

#[test]
fn a_response_is_cut_at_the_first_slice_that_is_missing() {
    let failures: [(Failure, CutReason); 5] = [
        (
            &|it| it.on_answer(Number(1), answer(503, None)),
            CutReason::Failed,
        ),
        (
            &|it| it.on_answer(Number(1), answer(502, Some(SliceState::Changed))),
            CutReason::Outdated,
        ),
        (&|it| it.on_failure(Number(1)), CutReason::Failed),
        (&|it| it.on_data(Number(1), &[0; 11]), CutReason::Failed),
        (&|it| it.on_complete(Number(1)), CutReason::Failed),
    ];
    for (fail, reason) in failures {
        let mut ahead = assembly("whole 100 10 1");
        ahead.ask();
        assert_eq!(ahead.on_answer(Number(0), LED), [Step::Begin, ask(1)]);
        assert_eq!(fail(&mut ahead), []);
        assert_eq!(ahead.on_data(Number(1), &[1; 10]), [], "too late");
        assert_eq!(ahead.on_data(Number(0), &[0; 10]), [Step::SendGiven(0..10)]);
        assert_eq!(ahead.on_complete(Number(0)), [Step::Cut(reason)]);
        assert!(ahead.is_over());

        let mut behind = assembly("whole 100 10 1");
        behind.ask();
        behind.on_answer(Number(0), HIT);
        behind.on_data(Number(0), &[0; 10]);
        assert_eq!(behind.on_complete(Number(0)), [ask(1)]);
        assert_eq!(fail(&mut behind), [Step::Cut(reason)]);
    }
}

#[test]
fn a_client_that_does_not_read_what_is_passed_on_is_cut() {
    let mut assembly = assembly("whole 25 10 3");
    assembly.ask();
    assembly.on_answer(Number(0), answer(502, Some(SliceState::Changed)));
    assembly.on_answer(Again, answer(200, None));
    let mebibyte = vec![0; 1 << 20];
    for _ in 0..40 {
        assert_eq!(
            assembly.on_data(Again, &mebibyte),
            [Step::SendGiven(0..1 << 20)]
        );
    }
    assembly.on_full();
    for _ in 0..16 {
        assert_eq!(
            assembly.on_data(Again, &mebibyte),
            [Step::SendGiven(0..1 << 20)]
        );
    }
    assert_eq!(
        assembly.on_data(Again, &mebibyte),
        [Step::Cut(CutReason::Unread)]
    );
    assert_eq!(assembly.on_data(Again, &mebibyte), []);
}

/// A slicer with its client and EDGE, whose answers arrive in any order.
struct Scene {
    object: Vec<u8>,
    assembly: Assembly,
    /// Requested slices: the number, and the bytes that have not arrived; `None` before the headers.
    under_way: VecDeque<(u64, Option<Vec<u8>>)>,
    body: Vec<u8>,
    ended: bool,
    cut: bool,
}

impl Scene {
    fn carry_out(&mut self, steps: Vec<Step>, given: &[u8]) {
        for step in steps {
            assert!(!self.ended && !self.cut, "{step:?} behind the end");
            match step {
                Step::Ask(Number(number)) => self.under_way.push_back((number, None)),
                Step::Begin => assert!(self.body.is_empty()),
                Step::SendGiven(range) => self.body.extend(&given[range]),
                Step::Send(bytes) => self.body.extend(bytes),
                Step::End => self.ended = true,
                Step::Cut(_) => self.cut = true,
                Step::Ask(Again) | Step::Relay | Step::Refuse => panic!("{step:?}"),
            }
        }
    }

    /// Lets the request number `which` advance: its headers, `size` bytes or its end.
    fn advance(&mut self, which: usize, size: usize, answer: SliceAnswer, fails: bool) {
        let which = which % self.under_way.len();
        let (number, left) = self.under_way[which].clone();
        let (steps, given) = match left {
            Some(_) if fails => {
                self.under_way.remove(which);
                (self.assembly.on_failure(Number(number)), Vec::new())
            }
            None => {
                let range = self.assembly.plan().grid().range_of(number).unwrap();
                let bytes = range.cut_from(&self.object).to_vec();
                self.under_way[which].1 = Some(bytes);
                (self.assembly.on_answer(Number(number), answer), Vec::new())
            }
            Some(left) if left.is_empty() => {
                self.under_way.remove(which);
                (self.assembly.on_complete(Number(number)), left)
            }
            Some(left) => {
                let size = size.min(left.len());
                self.under_way[which].1 = Some(left[size..].to_vec());
                let given = left[..size].to_vec();
                (self.assembly.on_data(Number(number), &given), given)
            }
        };
        self.carry_out(steps, &given);
    }

    fn expected(&self) -> Vec<u8> {
        let bytes = |segment| match segment {
            Segment::Text(text) => text.into_bytes(),
            Segment::Bytes(range) => range.cut_from(&self.object).to_vec(),
        };
        self.assembly.plan().segments().flat_map(bytes).collect()
    }
}

fn plans() -> impl Strategy<Value = String> {
    let ends = prop::collection::btree_set(0..500_u64, 0..=8);
    (ends, 500..600_u64, 20..200_u64, 0..4_usize).prop_map(|(ends, length, size, ahead)| {
        let ends: Vec<u64> = ends.into_iter().collect();
        let ranges = ends
            .chunks_exact(2)
            .map(|pair| format!("{}-{}", pair[0], pair[1]));
        let ranges: Vec<String> = ranges.collect();
        match ranges.as_slice() {
            [] => format!("whole {length} {size} {ahead}"),
            [one] => format!("{one} {length} {size} {ahead}"),
            several => format!("{} {length} {size} {ahead} b a/b", several.join(",")),
        }
    })
}

proptest! {
    #[test]
    fn the_client_gets_the_plans_bytes_or_a_beginning_of_them(
        plan in plans(),
        events in prop::collection::vec((0..8_usize, 1..90_usize, any::<bool>(), 0..40_u8), 0..200),
        fails: bool,
    ) {
        let assembly = assembly(&plan);
        let length = assembly.plan().grid().length() as usize;
        let most = 1 + assembly.plan().ahead();
        let mut scene = Scene {
            object: (0..length).map(|at| (at % 251) as u8).collect(),
            assembly,
            under_way: VecDeque::new(),
            body: Vec::new(),
            ended: false,
            cut: false,
        };
        let steps = scene.assembly.ask();
        scene.carry_out(steps, &[]);
        let mut full = 0;
        // At the end all buffers drain, and all answers arrive.
        let end = std::iter::repeat((0, 1_000, true, 2));
        for (which, size, leads, chance) in events.into_iter().chain(end) {
            if chance == 0 {
                full += 1;
                scene.assembly.on_full();
            } else if full > 0 && (chance == 1 || scene.under_way.is_empty()) {
                full -= 1;
                let before = scene.under_way.len();
                let steps = scene.assembly.on_drained();
                scene.carry_out(steps, &[]);
                prop_assert!(full == 0 || scene.under_way.len() == before);
            }
            if scene.ended || scene.cut {
                break;
            }
            if !scene.under_way.is_empty() {
                let answer = if leads { LED } else { HIT };
                scene.advance(which, size, answer, fails && chance == 3);
            }
            prop_assert!(scene.under_way.len() <= most);
            prop_assert!(full == 0 || chance != 0 || scene.under_way.len() <= most);
        }
        let expected = scene.expected();
        if scene.ended {
            prop_assert_eq!(&scene.body, &expected);
        } else {
            prop_assert!(scene.cut && fails && expected.starts_with(&scene.body));
        }
        prop_assert!(scene.assembly.is_over());
    }
}
