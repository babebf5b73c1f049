// SPDX-License-Identifier: Apache-2.0
//! The explanation of a URL: its site, its key, and the knowledge of each worker about that key.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};

use crate::cache::StoredResponses;
use crate::control::filter::WorkerAnswers;

/// The part of an explanation that is the same for all workers.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct SharedExplanation {
    /// The decision about the request.
    pub decision: AdmissionDecision,
    /// The answer of the origin to a request that the filter has sent for this explanation.
    #[serde(default)]
    pub online: Option<OnlineAnswer>,
}

/// The decision of the filter about a request.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct AdmissionDecision {
    /// The site; `None` for an edge with one site.
    pub site: Option<String>,
    /// The rule of the policy that applies to the path.
    pub policy_rule: Option<String>,
    /// `cached`, `passed` or `refused`.
    pub admission: String,
    /// The reason, if the request does not use the cache.
    pub reason: Option<String>,
    /// The status of a refusal.
    pub status: Option<u16>,
    /// The cache key.
    pub key: Option<String>,
    /// The key under which Envoy's cache stores the response.
    pub store_key: Option<String>,
    /// The path at the origin.
    pub bucket_path: Option<String>,
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
    /// The time for which the response would be fresh, in milliseconds.
    pub ttl_ms: Option<u64>,
    /// The headers of the response.
    pub headers: BTreeMap<String, String>,
    /// The reason for which the origin has not answered.
    pub error: Option<String>,
}

/// The copy of an object in a worker's memory.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct HotCopy {
    /// Milliseconds since the response was stored.
    pub stored_ms_ago: Option<u64>,
    /// Milliseconds for which the copy is fresh.
    pub fresh_ms_left: Option<u64>,
    /// The number of requests that the copy has answered.
    pub hits: Option<u64>,
    /// The size, in bytes.
    pub bytes: Option<u64>,
}

/// A fact that a worker has learnt about a key.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Lesson {
    /// The fact, such as `hit_for_miss`.
    pub kind: String,
    /// The reason.
    pub reason: Option<String>,
    /// Milliseconds for which the worker remembers the fact.
    pub left_ms: Option<u64>,
}

/// The flight of a key.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct KeyFlight {
    /// Milliseconds since the flight began.
    pub since_ms: u64,
    /// The number of requests that wait on this worker.
    pub waiting: u64,
}

/// The knowledge of one worker about a key.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct WorkerExplanation {
    /// The copy in the worker's memory.
    pub hot: Option<HotCopy>,
    /// The fact that the worker has learnt.
    pub learnt: Option<Lesson>,
    /// The flight in which the worker takes part.
    pub flight: Option<KeyFlight>,
    /// The purges that cover the key.
    pub purges: serde_json::Value,
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
    /// The numbers of the workers that have not answered.
    pub silent: Vec<u32>,
}

impl Explanation {
    /// Joins the answers of the workers and the stored responses, which `find` finds by the key under which the filter
    /// asks the store.
    pub fn join(
        answers: WorkerAnswers<WorkerExplanation, SharedExplanation>,
        find: impl FnOnce(&str) -> io::Result<StoredResponses>,
    ) -> Self {
        let workers = answers.workers.into_iter();
        let key = answers.shared.decision.store_key.as_deref();
        let (stored, problem) = match key.map(find) {
            Some(Ok(stored)) => (Some(stored), None),
            Some(Err(error)) => (None, Some(format!("the cache cannot be read: {error}"))),
            None => (None, None),
        };
        Self {
            shared: answers.shared,
            stored,
            problem,
            workers: workers
                .map(|answer| (answer.worker, answer.answer))
                .collect(),
            silent: answers.silent,
        }
    }
}
