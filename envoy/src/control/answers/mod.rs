// SPDX-License-Identifier: Apache-2.0
//! The answers to the questions of the commands: the parts of the workers, joined. The server writes them as JSON, and
//! the commands read the same types.

mod admission_decision;
mod decisions;
mod edge_reading;
mod explanation;
mod flights;
mod next_response;
mod origins;
mod urls;
mod worker_explanation;

pub use admission_decision::AdmissionDecision;
pub use decisions::{Decision, Decisions, WorkerDecisions};
pub use edge_reading::EdgeReading;
pub use explanation::{Explanation, OnlineAnswer, SharedExplanation};
pub use flights::{Flight, Flights, WorkerFlights};
pub use origins::{Origin, OriginError, Origins, WorkerOrigins};
pub use urls::{RequestedUrl, RequestedUrls, WorkerUrls};
pub use worker_explanation::{CoveringPurges, HotCopy, Lesson, SlicedObject, WorkerExplanation};
