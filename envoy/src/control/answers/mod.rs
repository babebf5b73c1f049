// SPDX-License-Identifier: Apache-2.0
//! The answers to the questions of the commands: the parts of the workers, joined. The server writes them as JSON, and
//! the commands read the same types.

mod decisions;
mod explanation;
mod flights;
mod origins;
mod urls;

pub use decisions::{Decision, Decisions, WorkerDecisions};
pub use explanation::{
    AdmissionDecision, Explanation, HotCopy, Lesson, OnlineAnswer, SharedExplanation,
    WorkerExplanation,
};
pub use flights::{Flight, Flights, WorkerFlights};
pub use origins::{Origin, OriginError, Origins, WorkerOrigins};
pub use urls::{RequestedUrl, RequestedUrls, WorkerUrls};
