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
        Question::Flights => flights::answer(worker),
        Question::Urls { query } => recordings::answer_urls(worker, *query),
        Question::Decisions(asked) => recordings::answer_decisions(worker, asked),
        Question::Origins => recordings::answer_origins(worker),
        Question::Explain(request) => explain::answer(worker, request),
    }
}
