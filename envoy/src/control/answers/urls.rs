// SPDX-License-Identifier: Apache-2.0
//! The URLs that clients request, with their costs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::control::filter::WorkerAnswers;

/// The requests for one URL since the recording began.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct RequestedUrl {
    /// The site; empty for an edge with one site.
    pub site: String,
    /// The path, with the query if the question has asked for it.
    pub path: String,
    /// Whether requests had a query.
    #[serde(default)]
    pub query: bool,
    /// The number of requests.
    #[serde(default)]
    pub requests: u64,
    /// The number of requests that the origin has answered.
    #[serde(default)]
    pub misses: u64,
    /// The bytes to clients.
    #[serde(default)]
    pub bytes: u64,
    /// The sum of the times to the origin's first byte, in milliseconds.
    #[serde(default)]
    pub origin_ms: u64,
    /// The longest of these times, in milliseconds.
    #[serde(default)]
    pub origin_max_ms: u64,
    /// The median of these times, approximately, in milliseconds, if there are any.
    #[serde(default)]
    pub origin_p50_ms: Option<u64>,
    /// The result of the last request that was not a hit, or the reason for it.
    #[serde(default)]
    pub last: Option<String>,
}

/// The URLs of one worker.
#[derive(Clone, Debug, Deserialize)]
pub struct WorkerUrls {
    since_ms: u64,
    urls: Vec<RequestedUrl>,
    #[serde(default)]
    cut: bool,
}

/// The URLs of all workers.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct RequestedUrls {
    /// Milliseconds since the recording began.
    pub since_ms: u64,
    /// The URLs.
    pub urls: Vec<RequestedUrl>,
    /// Whether a worker has left out URLs, because there are too many for its answer.
    pub cut: bool,
    /// The numbers of the workers that have not answered.
    pub silent: Vec<u32>,
}

impl RequestedUrls {
    /// Joins the answers of the workers: one entry for each site and path.
    pub fn join(answers: WorkerAnswers<WorkerUrls>) -> Self {
        let mut joined: BTreeMap<(String, String), RequestedUrl> = BTreeMap::new();
        let (mut since_ms, mut cut) = (0, false);
        for answer in answers.workers {
            since_ms = since_ms.max(answer.answer.since_ms);
            cut |= answer.answer.cut;
            for part in answer.answer.urls {
                let name = (part.site.clone(), part.path.clone());
                match joined.get_mut(&name) {
                    Some(url) => url.add(part),
                    None => {
                        joined.insert(name, part);
                    }
                }
            }
        }
        Self {
            since_ms,
            urls: joined.into_values().collect(),
            cut,
            silent: answers.silent,
        }
    }
}

impl RequestedUrl {
    fn add(&mut self, other: Self) {
        // Two medians have no exact common one; the mean by misses is between them.
        self.origin_p50_ms = match (self.origin_p50_ms, other.origin_p50_ms) {
            (Some(one), Some(another)) => {
                let sum = one * self.misses + another * other.misses;
                Some(sum.checked_div(self.misses + other.misses).unwrap_or(one))
            }
            (one, another) => one.or(another),
        };
        self.query |= other.query;
        if other.misses > self.misses || self.last.is_none() {
            self.last = other.last;
        }
        self.misses += other.misses;
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.origin_ms += other.origin_ms;
        self.origin_max_ms = self.origin_max_ms.max(other.origin_max_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_parts_of_the_workers_add_up_by_site_and_path() {
        let url = |misses: u64, p50: u64, last: &str| {
            json!({"site": "shop", "path": "/search?…", "requests": 10, "misses": misses, "bytes": 5,
                "origin_ms": 100, "origin_max_ms": p50 * 2, "origin_p50_ms": p50, "last": last})
        };
        let answers = json!({"workers": [
            {"worker": 0, "since_ms": 900, "urls": [url(1, 100, "miss")]},
            {"worker": 1, "since_ms": 1000, "urls": [url(3, 200, "hit-for-miss")], "cut": true},
        ], "silent": []});
        let joined = RequestedUrls::join(serde_json::from_value(answers).unwrap());
        assert_eq!((joined.since_ms, joined.cut), (1000, true));
        let [url] = joined.urls.as_slice() else {
            panic!("{joined:?}");
        };
        assert_eq!(
            (url.requests, url.misses, url.bytes, url.origin_ms),
            (20, 4, 10, 200)
        );
        assert_eq!((url.origin_p50_ms, url.origin_max_ms), (Some(175), 400));
        assert_eq!(url.last.as_deref(), Some("hit-for-miss"));
    }
}
