// SPDX-License-Identifier: Apache-2.0
//! The answers of one worker to each question.

pub mod explain;
mod flights;

use sluice_core::inspection::{Answer, Question};

use crate::worker::Worker;

/// The answer of this worker.
pub fn answer(worker: &mut Worker, question: &Question) -> Answer {
    match question {
        Question::Flights => flights::answer(worker),
        Question::Explain(request) => explain::answer(worker, request),
    }
}
