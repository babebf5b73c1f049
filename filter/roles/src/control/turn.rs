// SPDX-License-Identifier: Apache-2.0
//! The root context's turn for questions: answers to them, and documents for their callers.

use sluice_core::inspection::Inspection;
use sluice_core::workers::message::Message;

use super::answers;
use crate::worker::Worker;
use crate::worker::questions::DueQuestion;

/// Answers the questions that wait for this worker, and sends the documents that are complete.
pub fn go_on(worker: &mut Worker) {
    for due in worker.questions.take_due() {
        answer(worker, &due);
    }
    if worker.questions.pending.is_empty() {
        return;
    }
    let now = worker.host.monotonic_millis();
    for inspection in worker.questions.pending.take_done(now) {
        send(worker, &inspection);
    }
    worker.roots.restore(worker.roots.serving());
}

/// Answers a question, of this worker or of another one.
fn answer(worker: &mut Worker, due: &DueQuestion) {
    let me = worker.identity.worker;
    let answer = answers::answer(worker, &due.question);
    if due.asker == me {
        let pending = &mut worker.questions.pending;
        return pending.answer(due.call, me, answer);
    }
    let message = Message::Answered {
        worker: me,
        call: due.call,
        answer: answer.as_str().to_owned(),
    };
    if let Err(error) = worker.roots.send(due.asker, &message) {
        worker.metrics.fault("a question was not answered", error);
    }
}

/// Sends the document of a question to its caller.
fn send(worker: &Worker, inspection: &Inspection) {
    let headers = [("content-type", "application/json")];
    let answered = worker
        .roots
        .act_as(inspection.context)
        .and_then(|host| host.respond(200, "sluice_control", &headers, &inspection.document));
    if let Err(error) = answered {
        worker.metrics.fault("a question was not answered", error);
    }
}
