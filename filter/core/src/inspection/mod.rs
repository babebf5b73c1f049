// SPDX-License-Identifier: Apache-2.0
//! Inspection: questions of the edge's operator about what the workers know. One worker takes a [`Question`] from the
//! control listener, sends it to the other workers as a message, collects their [`Answer`]s in [`PendingQuestions`],
//! and sends all of them to the caller as one JSON document.
//!
//! ```text
//! GET /flights ─► worker 1 ─┬─ Message::Asked ────► worker 2
//!                           ├─ its own answer       │
//! one document ◄─ worker 1 ◄┴─ Message::Answered ◄──┘   at most PATIENCE later
//! ```
//!
//! A request of a client costs nothing for this: a worker collects facts only when it has a question. A question that
//! needs requests starts their recording for ten seconds ([`recordings`]).
//!
//! A further question needs:
//!
//! 1. a variant of [`Question`], whose text form is the path and query of the request: a branch of
//!    [`Question::parse`], which takes its parameters from [`Parameters`], and a branch of its `Display`;
//! 2. a function in a separate file below `filter/roles/src/control/answers/`, which returns what one worker knows
//!    as an [`Answer`], and a branch that calls it in `answers::answer`;
//! 3. if all workers share a part of the answer, [`PendingQuestions::share`] with that part, called by the worker
//!    that has taken the question (`filter/roles/src/control/mod.rs`);
//! 4. tests in `filter/roles/tests/control/`.
//!
//! The message between the workers, the time limit and the merging are the same for each question.

mod answer;
mod asked_decisions;
mod explained_request;
mod parameters;
mod pending;
mod question;
mod question_error;
pub mod recordings;

pub use answer::{Answer, MOST_ANSWER_BYTES};
pub use asked_decisions::AskedDecisions;
pub use explained_request::ExplainedRequest;
pub use parameters::Parameters;
pub use pending::{Inspection, PATIENCE, PendingQuestions};
pub use question::Question;
pub use question_error::QuestionError;
