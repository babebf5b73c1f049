// SPDX-License-Identifier: Apache-2.0
//! The recordings of a worker: its last decisions and its heaviest URLs.
//!
//! A question starts the recording that answers it, and ten seconds after the last question the recording ends and its
//! memory is free ([`Recording`]). The policy's `limits.decisions` keeps decisions at all times.

use serde_json::{Map, Value};

use super::decision::Decision;
use super::decision_ring::DecisionRing;
use super::recording::Recording;
use super::url_table::UrlTable;
use crate::inspection::MOST_ANSWER_BYTES;
use crate::workers::Millis;

/// The most decisions that are kept because of a question.
pub const RING_DECISIONS: usize = 4_096;

/// The bytes of an answer beside its list.
const OTHER_BYTES: usize = 1 << 10;
/// The period of the worker's timer during a recording, in milliseconds.
const TICK_MILLIS: Millis = 1_000;

/// The decisions that a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionStart {
    /// The decisions from this sequence number on.
    At(u64),
    /// The decisions after the question.
    Now,
    /// All decisions that the worker has.
    Oldest,
}

/// The recordings of a worker.
#[derive(Debug, Default)]
pub struct Recorder {
    /// Whether any of the recordings may be on.
    is_on: bool,
    /// The number of decisions that are kept at all times.
    lasting: usize,
    decisions: Recording,
    ring: DecisionRing,
    by_path: UrlRecording,
    by_query: UrlRecording,
}

/// A table of URLs with its recording.
#[derive(Debug, Default)]
struct UrlRecording {
    recording: Recording,
    table: UrlTable,
}

impl Recorder {
    /// Sets the number of decisions that are kept at all times.
    pub fn keep_decisions(&mut self, most: usize) {
        self.lasting = most;
        self.ring.keep(self.most_decisions());
        self.update();
    }

    /// Whether requests are recorded. Each request asks this twice, so that it must be cheap.
    #[inline]
    pub const fn is_on(&self) -> bool {
        self.is_on
    }

    /// The period of the timer that ends the recordings, in milliseconds.
    pub fn tick_period(&self) -> Option<Millis> {
        let recordings = [
            &self.decisions,
            &self.by_path.recording,
            &self.by_query.recording,
        ];
        let open = recordings.into_iter().any(Recording::is_open);
        open.then_some(TICK_MILLIS)
    }

    /// Ends the recordings whose time is over.
    pub fn tick(&mut self, now: Millis) {
        if self.decisions.is_open() && !self.decisions.is_on(now) {
            self.decisions.stop();
            self.ring.keep(self.lasting);
        }
        self.by_path.tick(now);
        self.by_query.tick(now);
        self.update();
    }

    /// Records a request that has ended.
    pub fn record(&mut self, decision: Decision, now: Millis) {
        self.by_path.add(&decision, false, now);
        self.by_query.add(&decision, true, now);
        if self.lasting > 0 || self.decisions.is_on(now) {
            self.ring.push(decision, self.most_decisions());
        }
    }

    /// Starts or continues the recording of URLs. Returns the heaviest URLs as JSON, with their queries if `query`.
    pub fn urls(&mut self, query: bool, now: Millis) -> Map<String, Value> {
        let urls = match query {
            true => &mut self.by_query,
            false => &mut self.by_path,
        };
        if urls.recording.extend(now) {
            urls.table.clear();
        }
        let since = ("since_ms", urls.recording.length(now).into());
        let list = BoundedList::of(urls.table.to_json());
        self.update();
        list.into_answer("urls", [since])
    }

    /// Starts or continues the recording of decisions. Returns the decisions as JSON, with their queries if `query`.
    /// If there are too many for one answer, the oldest come first, and `next` is the number of the first missing
    /// decision.
    pub fn decisions(
        &mut self,
        start: DecisionStart,
        query: bool,
        now: Millis,
    ) -> Map<String, Value> {
        if self.decisions.extend(now) {
            self.ring.keep(self.lasting);
        }
        self.update();
        let start = match start {
            DecisionStart::At(number) => number,
            DecisionStart::Now => self.ring.next(),
            DecisionStart::Oldest => u64::MAX,
        };
        let found = self.ring.from(start);
        let all = found.decisions.iter();
        let list = BoundedList::of(all.map(|decision| decision.to_json(query)));
        let next = ("next", (found.first + list.values.len() as u64).into());
        let lost = ("lost", found.lost.into());
        list.into_answer("decisions", [next, lost])
    }

    /// The most decisions that the ring has now.
    fn most_decisions(&self) -> usize {
        match self.decisions.is_open() {
            true => self.lasting.max(RING_DECISIONS),
            false => self.lasting,
        }
    }

    fn update(&mut self) {
        self.is_on = self.lasting > 0 || self.tick_period().is_some();
    }
}

impl UrlRecording {
    fn add(&mut self, decision: &Decision, query: bool, now: Millis) {
        if self.recording.is_on(now) {
            self.table.add(decision, query);
        }
    }

    fn tick(&mut self, now: Millis) {
        if self.recording.is_open() && !self.recording.is_on(now) {
            self.recording.stop();
            self.table.clear();
        }
    }
}

/// The first values of a list that fit into an answer.
struct BoundedList {
    values: Vec<Value>,
    /// Whether there are more values.
    is_cut: bool,
}

impl BoundedList {
    fn of(all: impl Iterator<Item = Value>) -> Self {
        let mut left = MOST_ANSWER_BYTES - OTHER_BYTES;
        let mut values = Vec::new();
        for value in all {
            let size = value.to_string().len() + 1;
            if size > left {
                let is_cut = true;
                return Self { values, is_cut };
            }
            left -= size;
            values.push(value);
        }
        let is_cut = false;
        Self { values, is_cut }
    }

    /// The members of an answer: the list under `name`, and `others`.
    fn into_answer<const N: usize>(
        self,
        name: &str,
        others: [(&str, Value); N],
    ) -> Map<String, Value> {
        let cut = self.is_cut.then_some(("cut", true.into()));
        let list = (name, self.values.into());
        let members = others.into_iter().chain([list]).chain(cut);
        members
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::decision::tests::{hit, miss};
    use super::super::recording::RECORDING_MILLIS;
    use super::*;
    use serde_json::json;

    fn count(answer: &Map<String, Value>, field: &str) -> usize {
        answer[field].as_array().unwrap().len()
    }

    fn text(answer: &Map<String, Value>) -> String {
        Value::from(answer.clone()).to_string()
    }

    #[test]
    fn nothing_is_recorded_without_a_question() {
        let mut recorder = Recorder::default();
        assert!(!recorder.is_on());
        recorder.record(hit("/a"), 1);
        let answer = recorder.decisions(DecisionStart::Oldest, false, 2);
        assert_eq!(
            (count(&answer, "decisions"), &answer["next"]),
            (0, &json!(0))
        );
        assert_eq!(count(&recorder.urls(false, 2), "urls"), 0);
    }

    #[test]
    fn each_question_records_for_ten_seconds_and_the_memory_is_free_afterwards() {
        let mut recorder = Recorder::default();
        recorder.urls(false, 100);
        recorder.decisions(DecisionStart::Now, false, 200);
        assert!(recorder.is_on() && recorder.tick_period().is_some());
        recorder.record(miss("/a?q=1", 40), 300);
        let urls = recorder.urls(false, 400);
        assert_eq!((count(&urls, "urls"), &urls["since_ms"]), (1, &json!(300)));
        // The end of the recording of decisions does not end that of URLs.
        let end = 200 + RECORDING_MILLIS;
        recorder.tick(end);
        recorder.record(hit("/a"), end);
        let urls = recorder.urls(false, end);
        assert_eq!(urls["urls"][0]["requests"], 2);
        let end = end + RECORDING_MILLIS;
        recorder.record(hit("/a"), end);
        recorder.tick(end);
        assert!(!recorder.is_on());
        assert_eq!(recorder.tick_period(), None);
        assert!(recorder.by_path.table.is_empty());
        let answer = recorder.decisions(DecisionStart::At(0), false, end);
        assert_eq!((&answer["lost"], &answer["next"]), (&json!(1), &json!(1)));
    }

    #[test]
    fn queries_are_recorded_only_for_questions_with_queries() {
        let mut recorder = Recorder::default();
        recorder.urls(false, 1);
        recorder.record(hit("/a?q=private"), 2);
        assert!(recorder.by_query.table.is_empty());
        assert!(!text(&recorder.urls(false, 3)).contains("private"));
        recorder.urls(true, 3);
        recorder.record(hit("/a?q=private"), 4);
        assert_eq!(recorder.urls(true, 5)["urls"][0]["path"], "/a?q=private");
        assert!(!text(&recorder.urls(false, 6)).contains("private"));
    }

    #[test]
    fn lasting_decisions_need_no_question() {
        let mut recorder = Recorder::default();
        recorder.keep_decisions(2);
        assert!(recorder.is_on());
        assert_eq!(recorder.tick_period(), None, "no timer");
        for number in 0..3 {
            recorder.record(hit(&format!("/{number}")), 1);
        }
        let answer = recorder.decisions(DecisionStart::Oldest, false, 2);
        assert_eq!(
            (count(&answer, "decisions"), &answer["lost"]),
            (2, &json!(0))
        );
        assert_eq!(
            recorder.decisions(DecisionStart::At(0), false, 2)["lost"],
            1
        );
        for _ in 0..RING_DECISIONS {
            recorder.record(hit("/x"), 3);
        }
        recorder.tick(2 + RECORDING_MILLIS);
        assert!(recorder.is_on());
        let answer = recorder.decisions(DecisionStart::Oldest, false, 2 + RECORDING_MILLIS);
        assert_eq!(count(&answer, "decisions"), 2);
        recorder.keep_decisions(0);
        recorder.tick(2 + 2 * RECORDING_MILLIS);
        assert!(!recorder.is_on());
    }

    #[test]
    fn an_answer_is_bounded_and_continues_in_the_next_one() {
        let mut recorder = Recorder::default();
        recorder.decisions(DecisionStart::Now, false, 1);
        let path = "/a".repeat(500);
        for _ in 0..RING_DECISIONS {
            recorder.record(hit(&path), 2);
        }
        let (mut next, mut seen, mut answers) = (0, 0, 0);
        loop {
            let answer = recorder.decisions(DecisionStart::At(next), false, 3);
            assert!(text(&answer).len() <= MOST_ANSWER_BYTES);
            assert_eq!(answer["lost"], 0);
            next = answer["next"].as_u64().unwrap();
            seen += count(&answer, "decisions");
            answers += 1;
            if !answer.contains_key("cut") {
                break;
            }
        }
        assert_eq!(seen, RING_DECISIONS);
        assert!(answers > 1);
    }
}
