// SPDX-License-Identifier: Apache-2.0
//! The answers of one worker to each question.

pub mod explain;
mod flights;
mod recordings;

use sluice_core::inspection::{Answer, Question};

use crate::worker::Worker;

/// The answer of this worker.
pub fn answer(worker: &mut Worker, question: &Question) -> Answer {
    match question {
        Question::Flights => flights::answer(&worker.policies, &worker.coalescing, &worker.fills),
        Question::Urls { query } => {
            recordings::answer_urls(&*worker.host, &mut worker.recorder, *query)
        }
        Question::Decisions(asked) => {
            let me = worker.identity.worker;
            recordings::answer_decisions(&*worker.host, &mut worker.recorder, me, asked)
        }
        Question::Origins => recordings::answer_origins(&worker.policies, &worker.origin_errors),
        Question::Explain(request) => explain::answer(worker, request),
    }
}
