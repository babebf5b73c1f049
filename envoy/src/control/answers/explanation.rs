// SPDX-License-Identifier: Apache-2.0
//! The explanation of a URL: its site, its key, and the knowledge of each worker about that key.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Deserializer, Serialize};

use super::next_response::NextResponse;
use crate::cache::{StoredResponse, StoredResponses};
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

/// The decision of the filter about a request.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct AdmissionDecision {
    /// The site; `None` for an edge with one site.
    pub site: Option<String>,
    /// The rule of the policy that applies to the path.
    pub policy_rule: Option<String>,
    /// `cached`, `passed`, `redirected` or `refused`.
    pub admission: String,
    /// The reason, if the request does not use the cache; the location of a redirect.
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
    /// The change with which such a response would be stored.
    pub remedy: Option<String>,
    /// The time for which the response would be fresh, in milliseconds.
    pub ttl_ms: Option<u64>,
    /// The headers of the response.
    pub headers: BTreeMap<String, String>,
    /// The failure of the origin.
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

impl CoveringPurges {
    /// The newest purges that any worker knows.
    pub fn of_all<'a>(workers: impl Iterator<Item = &'a WorkerExplanation>) -> Self {
        workers.fold(Self::default(), |known, worker| Self {
            hard: known.hard.max(worker.purges.hard),
            soft: known.soft.max(worker.purges.soft),
            changed: known.changed.max(worker.purges.changed),
            revalidates: known.revalidates | worker.purges.revalidates,
        })
    }

    /// Whether a stored response is out of service.
    pub fn covers(&self, response: &StoredResponse) -> bool {
        self.hard.is_some_and(|number| number > response.purge)
    }

    /// Whether a stored response is validated at its next use.
    pub fn must_revalidate(&self, response: &StoredResponse) -> bool {
        let is_newer = |number: Option<u64>| number.is_some_and(|number| number > response.purge);
        self.revalidates || is_newer(self.soft)
    }
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
    pub purges: CoveringPurges,
}

/// The newest purges that cover a key, by their numbers.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct CoveringPurges {
    /// The hard purge.
    pub hard: Option<u64>,
    /// The soft purge.
    pub soft: Option<u64>,
    /// The request that has changed the URL.
    pub changed: Option<u64>,
    /// Whether the next request has to validate the stored response.
    pub revalidates: bool,
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
        let found = stored.as_ref();
        let found = found.map_or(&[][..], |stored| &stored.stored);
        Self {
            next: NextResponse::of(decision, found, workers.values(), now_ms),
            shared: answers.shared,
            stored,
            problem,
            workers,
            silent: answers.silent,
        }
    }
}
