// SPDX-License-Identifier: Apache-2.0
//! Questions of the edge's operator, from the control listener of this worker or of another one. The role `control`
//! finds the answers.

use serde_json::json;
use sluice_core::inspection::{Answer, PendingQuestions, Question};
use sluice_core::workers::message::Message;
use sluice_core::workers::{Millis, WorkerId};

use crate::worker::keys::Keys;
use crate::worker::metrics::Metrics;
use crate::worker::purges::purge_calls::Unavailable;
use crate::worker::roots::Roots;
use sluice_host::Host;

/// Timer period while questions are under way, in milliseconds.
const WATCH_MILLIS: Millis = 100;

/// The name of the origin's part in an answer.
pub const ONLINE: &str = "online";

/// A question that waits for the answer of this worker.
#[derive(Debug)]
pub struct DueQuestion {
    /// The worker that waits for the answer, which may be this one.
    pub asker: WorkerId,
    /// The asker's number for the question.
    pub call: u32,
    /// The question.
    pub question: Question,
}

/// The questions of one worker.
#[derive(Debug, Default)]
pub struct Questions {
    due: Vec<DueQuestion>,
    /// The questions that this worker has taken.
    pub pending: PendingQuestions,
}

impl Questions {
    /// The timer period that questions under way need.
    pub fn tick_period(&self) -> Option<Millis> {
        (!self.pending.is_empty()).then_some(WATCH_MILLIS)
    }

    /// Adds a question of another worker, from the text in a message.
    pub fn receive(&mut self, asker: WorkerId, call: u32, question: &str) {
        if let Ok(question) = Question::parse(question) {
            self.due.push(DueQuestion {
                asker,
                call,
                question,
            });
        }
    }

    /// Records the answer of another worker, from the text in a message.
    pub fn answer(&mut self, call: u32, worker: WorkerId, answer: &str) {
        self.pending.answer(call, worker, Answer::received(answer));
    }

    /// Records that the origin has not answered a question, unless its answer is known.
    pub fn lack_origin(&mut self, call: u32) {
        if self.pending.awaits(call, ONLINE) {
            let error = json!({"error": "the origin was not reached in time"});
            self.pending.share(call, ONLINE, &error);
        }
    }

    /// Asks all workers, this one included. `context` gets the answers in a turn of the root context. Returns the
    /// number of the call.
    ///
    /// # Errors
    /// Too many questions are under way, or shared data could not be read.
    pub fn ask(
        &mut self,
        host: &dyn Host,
        metrics: &Metrics,
        keys: &mut Keys,
        roots: &mut Roots,
        context: u32,
        question: Question,
    ) -> Result<u32, Unavailable> {
        keys.join_roster();
        let (worker, now) = (roots.worker(), host.monotonic_millis());
        let others = roots.others().map_err(|error| {
            metrics.fault("a question failed", error.into());
            Unavailable::Failed
        })?;
        let mut workers = others.clone();
        workers.push(worker);
        let call = self.pending.open(context, workers, now);
        let call = call.ok_or(Unavailable::Busy)?;
        let message = Message::Asked {
            asker: worker,
            call,
            question: question.to_string(),
        };
        let fault = "a worker did not receive a question";
        roots.spread(&others, &message, fault);
        self.due.push(DueQuestion {
            asker: worker,
            call,
            question,
        });
        roots.wake();
        Ok(call)
    }

    /// Takes the questions that wait for the answer of this worker.
    pub fn take_due(&mut self) -> Vec<DueQuestion> {
        std::mem::take(&mut self.due)
    }
}
