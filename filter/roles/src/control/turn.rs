// SPDX-License-Identifier: Apache-2.0
//! The root context's turn for questions: answers to them, and documents for their callers.

use sluice_core::inspection::{Answer, Inspection};
use sluice_core::workers::message::Message;

use super::answers;
use crate::worker::Worker;
use crate::worker::metrics::Metrics;
use crate::worker::questions::{DueQuestion, Questions};
use crate::worker::roots::Roots;

/// Answers the questions that wait for this worker, and sends the documents that are complete.
pub fn go_on(worker: &mut Worker) {
    for due in worker.questions.take_due() {
        let answer = answers::answer(worker, &due.question);
        let (questions, roots) = (&mut worker.questions, &mut worker.roots);
        answer_with(&worker.metrics, questions, roots, &due, answer);
    }
    if worker.questions.pending.is_empty() {
        return;
    }
    let now = worker.host.monotonic_millis();
    for inspection in worker.questions.pending.take_done(now) {
        send(&worker.metrics, &worker.roots, &inspection);
    }
    worker.roots.restore(worker.roots.serving());
}

/// Answers a question, of this worker or of another one.
fn answer_with(
    metrics: &Metrics,
    questions: &mut Questions,
    roots: &mut Roots,
    due: &DueQuestion,
    answer: Answer,
) {
    let own = roots.worker();
    if due.asker == own {
        return questions.pending.answer(due.call, own, answer);
    }
    let message = Message::Answered {
        worker: own,
        call: due.call,
        answer: answer.as_str().to_owned(),
    };
    if let Err(error) = roots.send(due.asker, &message) {
        metrics.fault("a question was not answered", error);
    }
}

/// Sends the document of a question to its caller.
fn send(metrics: &Metrics, roots: &Roots, inspection: &Inspection) {
    let headers = [("content-type", "application/json")];
    let answered = roots
        .act_as(inspection.context)
        .and_then(|host| host.respond(200, "sluice_control", &headers, &inspection.document));
    if let Err(error) = answered {
        metrics.fault("a question was not answered", error);
    }
}
