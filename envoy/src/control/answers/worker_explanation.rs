// SPDX-License-Identifier: Apache-2.0
//! The knowledge of a worker about a key.

use serde::{Deserialize, Serialize};

use crate::cache::StoredResponse;

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

/// The knowledge that an object is served in slices.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct SlicedObject {
    /// `index`: the headers of the object are known; `url`: the object was served in slices; `path`: an object of such a
    /// path is large as a rule.
    pub known_by: String,
    /// The size of the object, in bytes.
    pub bytes: Option<u64>,
    /// Milliseconds for which the index is fresh.
    pub fresh_ms_left: Option<u64>,
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
    /// The knowledge that the object is served in slices.
    pub slices: Option<SlicedObject>,
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
