// SPDX-License-Identifier: Apache-2.0
//! The questions under way on one worker, and the answers that have arrived.

use serde_json::Value;

use super::answer::Answer;
use crate::workers::{Millis, WorkerId};

/// Longest time for which a question waits for the workers' answers, in milliseconds. A worker that takes longer is
/// busy, or has lost its VM.
pub const PATIENCE: Millis = 1_000;
/// Greatest number of questions under way on one worker, which bounds the memory for answers.
const QUESTIONS: usize = 16;

/// A question under way.
#[derive(Debug)]
struct PendingQuestion {
    call: u32,
    context: u32,
    opened: Millis,
    /// The workers whose answers are missing.
    waiting: Vec<WorkerId>,
    answers: Vec<(WorkerId, Answer)>,
    /// The parts of the document that all workers share: name and JSON.
    shared: Vec<(&'static str, String)>,
    /// The part that the answer of the origin will give, and the time until which it is awaited.
    awaited: Option<(&'static str, Millis)>,
}

/// The complete answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Context of the caller's request.
    pub context: u32,
    /// The document for the caller.
    pub document: String,
}

/// Questions under way.
#[derive(Debug, Default)]
pub struct PendingQuestions {
    /// Questions, the oldest first.
    questions: Vec<PendingQuestion>,
    last: u32,
}

impl PendingQuestions {
    /// Adds a question to these workers. Returns the number of its call; `None` if too many questions are under way.
    pub fn open(&mut self, context: u32, workers: Vec<WorkerId>, now: Millis) -> Option<u32> {
        if self.questions.len() >= QUESTIONS {
            return None;
        }
        self.last = self.last.wrapping_add(1);
        self.questions.push(PendingQuestion {
            call: self.last,
            context,
            opened: now,
            waiting: workers,
            answers: Vec::new(),
            shared: Vec::new(),
            awaited: None,
        });
        Some(self.last)
    }

    /// Whether no question is under way.
    pub fn is_empty(&self) -> bool {
        self.questions.is_empty()
    }

    /// Records the answer of a worker. An answer that comes too late has no effect.
    pub fn answer(&mut self, call: u32, worker: WorkerId, answer: Answer) {
        let Some(question) = self.question(call) else {
            return;
        };
        let place = question.waiting.iter().position(|known| *known == worker);
        if let Some(place) = place {
            question.waiting.remove(place);
            question.answers.push((worker, answer));
        }
    }

    /// Adds a part to the document that is the same for all workers.
    pub fn share(&mut self, call: u32, name: &'static str, value: &Value) {
        if let Some(question) = self.question(call) {
            question.awaited.take_if(|(awaited, _)| *awaited == name);
            question.shared.push((name, value.to_string()));
        }
    }

    /// Makes a question wait until [`PendingQuestions::share`] has added the part of that name, or until a time.
    pub fn await_part(&mut self, call: u32, name: &'static str, until: Millis) {
        if let Some(question) = self.question(call) {
            question.awaited = Some((name, until));
        }
    }

    /// Whether a question waits for the part of that name.
    pub fn awaits(&self, call: u32, name: &str) -> bool {
        let mut questions = self.questions.iter();
        let question = questions.find(|question| question.call == call);
        let awaited = question.and_then(|question| question.awaited);
        awaited.is_some_and(|(awaited, _)| awaited == name)
    }

    /// Forgets the questions of a caller that has left.
    pub fn forget(&mut self, context: u32) {
        self.questions
            .retain(|question| question.context != context);
    }

    /// Removes and returns the questions that have all answers, or that have waited long enough.
    pub fn take_done(&mut self, now: Millis) -> Vec<Inspection> {
        let is_done = |question: &mut PendingQuestion| {
            let waited = now.saturating_sub(question.opened);
            let heard = question.waiting.is_empty() || waited >= PATIENCE;
            heard && question.awaited.is_none_or(|(_, until)| until <= now)
        };
        let done = self.questions.extract_if(.., is_done);
        done.map(PendingQuestion::finish).collect()
    }

    fn question(&mut self, call: u32) -> Option<&mut PendingQuestion> {
        let mut questions = self.questions.iter_mut();
        questions.find(|question| question.call == call)
    }
}

impl PendingQuestion {
    /// The document: the answers by the numbers of their workers, the silent workers, and the shared parts.
    fn finish(mut self) -> Inspection {
        self.answers.sort_by_key(|(worker, _)| *worker);
        self.waiting.sort_unstable();
        let answers = self.answers.iter();
        let answers: Vec<_> = answers
            .map(|(worker, answer)| answer.of_worker(worker.0))
            .collect();
        let silent: Vec<_> = self.waiting.iter().map(|worker| worker.0).collect();
        let silent = Value::from(silent);
        let mut document = format!("{{\"workers\":[{}],\"silent\":{silent}", answers.join(","));
        for (name, value) in &self.shared {
            document.push_str(&format!(",\"{name}\":{value}"));
        }
        document.push_str("}\n");
        Inspection {
            context: self.context,
            document,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ONE: WorkerId = WorkerId(1);
    const TWO: WorkerId = WorkerId(2);

    fn answer(number: u32) -> Answer {
        Answer::list("flights", [json!(number)])
    }

    fn done(questions: &mut PendingQuestions, now: Millis) -> Option<Value> {
        let done = questions.take_done(now);
        let document = &done.first()?.document;
        Some(serde_json::from_str(document).unwrap())
    }

    #[test]
    fn a_document_has_all_answers_by_worker() {
        let mut questions = PendingQuestions::default();
        let call = questions.open(7, vec![ONE, TWO], 0).unwrap();
        questions.answer(call, TWO, answer(20));
        assert_eq!(done(&mut questions, 1), None);
        questions.answer(call, ONE, answer(10));
        let document = done(&mut questions, 1).unwrap();
        let workers = json!([
            {"worker": 1, "flights": [10]},
            {"worker": 2, "flights": [20]},
        ]);
        assert_eq!(document, json!({"workers": workers, "silent": []}));
        assert!(questions.is_empty());
    }

    #[test]
    fn a_worker_that_does_not_answer_within_a_second_is_silent() {
        let mut questions = PendingQuestions::default();
        let call = questions.open(7, vec![TWO, ONE], 500).unwrap();
        questions.answer(call, ONE, answer(1));
        questions.answer(call, ONE, answer(2));
        questions.answer(call, WorkerId(9), answer(9));
        assert_eq!(done(&mut questions, 500 + PATIENCE - 1), None);
        let document = done(&mut questions, 500 + PATIENCE).unwrap();
        let workers = json!([{"worker": 1, "flights": [1]}]);
        assert_eq!(document, json!({"workers": workers, "silent": [2]}));
        questions.answer(call, TWO, answer(3));
        assert!(questions.is_empty(), "an answer came too late");
    }

    #[test]
    fn an_awaited_part_delays_the_document_until_its_time() {
        let mut questions = PendingQuestions::default();
        let call = questions.open(7, vec![ONE], 0).unwrap();
        questions.answer(call, ONE, answer(1));
        questions.await_part(call, "online", 5_000);
        assert!(questions.awaits(call, "online") && !questions.awaits(call, "decision"));
        assert_eq!(done(&mut questions, 4_999), None);
        questions.share(call, "decision", &json!({"site": "a"}));
        assert_eq!(done(&mut questions, 4_999), None);
        questions.share(call, "online", &json!(1));
        let document = done(&mut questions, 4_999).unwrap();
        assert_eq!(document["decision"], json!({"site": "a"}));
        assert_eq!(document["online"], json!(1));
        let call = questions.open(7, Vec::new(), 0).unwrap();
        questions.await_part(call, "online", 5_000);
        assert!(done(&mut questions, 5_000).is_some());
    }

    #[test]
    fn the_number_of_questions_is_bounded_and_callers_may_leave() {
        let mut questions = PendingQuestions::default();
        for context in 0..16 {
            assert!(questions.open(context, vec![ONE], 0).is_some());
        }
        assert_eq!(questions.open(16, vec![ONE], 0), None);
        questions.forget(3);
        assert!(questions.open(16, vec![ONE], 0).is_some());
    }
}
