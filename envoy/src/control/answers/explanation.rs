// SPDX-License-Identifier: Apache-2.0
//! The explanation of a URL: its site, its key, and the knowledge of each worker about that key.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Deserializer, Serialize};

use super::admission_decision::AdmissionDecision;
use super::next_response::NextResponse;
use super::worker_explanation::WorkerExplanation;
use crate::cache::StoredResponses;
use crate::control::filter::WorkerAnswers;

/// The part of an explanation that is the same for all workers.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct SharedExplanation {
    /// The decision about the request; the default one if the worker has no policy yet.
    #[serde(deserialize_with = "null_as_default")]
    pub decision: AdmissionDecision,
    /// The answer of the origin to a request that the filter has sent for this explanation.
    #[serde(default)]
    pub online: Option<OnlineAnswer>,
}

fn null_as_default<'a, D: Deserializer<'a>>(
    deserializer: D,
) -> Result<AdmissionDecision, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The verdict about the origin's answer.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct OnlineAnswer {
    /// The status.
    pub status: Option<u16>,
    /// `stored` or `not stored`.
    pub verdict: Option<String>,
    /// The reasons for which the response would not be stored.
    pub reasons: Vec<String>,
    /// The change with which such a response would be stored.
    pub remedy: Option<String>,
    /// The time for which the response would be fresh, in milliseconds.
    pub ttl_ms: Option<u64>,
    /// The headers of the response.
    pub headers: BTreeMap<String, String>,
    /// The failure of the origin.
    pub error: Option<String>,
}

/// The explanation of a URL.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Explanation {
    /// The common part.
    #[serde(flatten)]
    pub shared: SharedExplanation,
    /// The stored responses of the URL, with all their variants; `None`: the URL has no key.
    pub stored: Option<StoredResponses>,
    /// The reason for which the stored responses are not known.
    pub problem: Option<String>,
    /// The knowledge of each worker, by its number.
    pub workers: BTreeMap<u32, WorkerExplanation>,
    /// The answer to a GET that arrived now.
    pub next: NextResponse,
    /// The numbers of the workers that have not answered.
    pub silent: Vec<u32>,
}

impl Explanation {
    /// Joins the answers of the workers and the stored responses, which `find` finds by the key under which the filter
    /// asks the store. `now_ms` is the time, in milliseconds since the epoch.
    pub fn join(
        answers: WorkerAnswers<WorkerExplanation, SharedExplanation>,
        find: impl FnOnce(&str) -> io::Result<StoredResponses>,
        now_ms: u64,
    ) -> Self {
        let workers = answers.workers.into_iter();
        let workers: BTreeMap<_, _> = workers.map(|part| (part.worker, part.answer)).collect();
        let decision = &answers.shared.decision;
        let key = decision.store_key.as_deref();
        let (stored, problem) = match key.map(find) {
            Some(Ok(stored)) => (Some(stored), None),
            Some(Err(error)) => (None, Some(format!("the cache cannot be read: {error}"))),
            None => (None, None),
        };
        Self {
            next: NextResponse::of(decision, stored.as_ref(), workers.values(), now_ms),
            shared: answers.shared,
            stored,
            problem,
            workers,
            silent: answers.silent,
        }
    }
}
