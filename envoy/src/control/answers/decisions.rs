// SPDX-License-Identifier: Apache-2.0
//! The requests that the workers have recorded, one decision for each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::control::filter::WorkerAnswers;

/// A finished request.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Decision {
    /// The time of its end, in milliseconds since the epoch.
    pub at_ms: u64,
    /// The site; `None` for an edge with one site.
    pub site: Option<String>,
    /// The host that the client has named.
    pub host: String,
    /// The method.
    pub method: String,
    /// The path, with the query if the question has asked for it.
    pub path: String,
    /// Whether the URL has a query.
    pub query: bool,
    /// The status of the response; `None` if the client has gone first.
    pub status: Option<u16>,
    /// The result, such as `hit` or `miss`; `None` for an answer of the edge itself.
    pub result: Option<String>,
    /// The time from the request to the end of the response, in milliseconds.
    pub duration_ms: u64,
    /// The time for which the request waited for another one, in milliseconds.
    pub waited_ms: Option<u64>,
    /// The time to the origin's first byte, in milliseconds, if the origin was asked.
    pub origin_ms: Option<u64>,
    /// The bytes of the response's body.
    pub bytes: u64,
    /// The reason for which the response was not stored.
    pub not_stored: Option<String>,
    /// The client's identifier of the request.
    pub request_id: Option<String>,
}

/// The decisions of one worker.
#[derive(Clone, Debug, Deserialize)]
pub struct WorkerDecisions {
    next: u64,
    #[serde(default)]
    lost: u64,
    decisions: Vec<Decision>,
    #[serde(default)]
    cut: bool,
}

/// The decisions of all workers.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Decisions {
    /// The sequence number of the next decision of each worker, by the worker's number.
    pub next: BTreeMap<u32, u64>,
    /// The number of decisions that were overwritten before they could be read.
    pub lost: u64,
    /// The decisions, the oldest first.
    pub decisions: Vec<Decision>,
    /// Whether there are more decisions, from `next` on.
    pub cut: bool,
    /// The numbers of the workers that have not answered.
    pub silent: Vec<u32>,
}

impl Decisions {
    /// Joins the answers of the workers, by time.
    pub fn join(answers: WorkerAnswers<WorkerDecisions>) -> Self {
        let mut joined = Self {
            silent: answers.silent,
            ..Self::default()
        };
        for answer in answers.workers {
            joined.next.insert(answer.worker, answer.answer.next);
            joined.lost += answer.answer.lost;
            joined.cut |= answer.answer.cut;
            joined.decisions.extend(answer.answer.decisions);
        }
        joined.decisions.sort_by_key(|decision| decision.at_ms);
        joined
    }

    /// The value of `after` in the next question: the sequence numbers of the workers 0, 1 and so on. A worker that has
    /// not answered has an empty place.
    pub fn after(next: &BTreeMap<u32, u64>) -> String {
        let last = next.keys().next_back().map_or(0, |worker| worker + 1);
        let numbers = (0..last).map(|worker| next.get(&worker).map(u64::to_string));
        let numbers: Vec<_> = numbers.map(Option::unwrap_or_default).collect();
        numbers.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn decisions_of_the_workers_are_in_the_order_of_their_times() {
        let answers = json!({"workers": [
            {"worker": 0, "next": 7, "lost": 1, "decisions": [{"at_ms": 5, "path": "/a"}, {"at_ms": 9, "path": "/b"}]},
            {"worker": 2, "next": 3, "lost": 2, "decisions": [{"at_ms": 7, "path": "/c"}]},
        ], "silent": [1]});
        let joined = Decisions::join(serde_json::from_value(answers).unwrap());
        let paths: Vec<_> = joined
            .decisions
            .iter()
            .map(|one| one.path.as_str())
            .collect();
        assert_eq!(paths, ["/a", "/c", "/b"]);
        assert_eq!(
            (joined.lost, Decisions::after(&joined.next).as_str()),
            (3, "7,,3")
        );
    }
}
