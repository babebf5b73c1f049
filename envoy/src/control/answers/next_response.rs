// SPDX-License-Identifier: Apache-2.0
//! The answer to a GET that arrived now.

use serde::{Deserialize, Serialize};

use super::admission_decision::AdmissionDecision;
use super::worker_explanation::{CoveringPurges, WorkerExplanation};
use crate::cache::{StoredResponse, StoredResponses};

/// The origin of the next response to a URL.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NextResponse {
    /// The edge refuses the request.
    Refused,
    /// The edge answers with a redirect.
    Redirected,
    /// The origin, because the request does not use the cache.
    Passed,
    /// The memory of a worker.
    HitInMemory,
    /// The request to the origin that is under way.
    Waits,
    /// The origin, because its responses for the key are not stored.
    HitForMiss,
    /// The cache.
    Hit,
    /// The cache for each slice that is stored, the origin for the others.
    Slices,
    /// The cache, after or during a validation at the origin.
    Revalidated,
    /// The origin.
    #[default]
    Miss,
}

impl NextResponse {
    /// The answer after this decision, with these stored responses and this knowledge of the workers.
    pub fn of<'a>(
        decision: &AdmissionDecision,
        stored: Option<&StoredResponses>,
        workers: impl Iterator<Item = &'a WorkerExplanation> + Clone,
        now_ms: u64,
    ) -> Self {
        match decision.admission.as_str() {
            "refused" => return Self::Refused,
            "redirected" => return Self::Redirected,
            "passed" => return Self::Passed,
            _ => {}
        }
        if workers.clone().any(|known| known.hot.is_some()) {
            return Self::HitInMemory;
        }
        if workers.clone().any(|known| known.flight.is_some()) {
            return Self::Waits;
        }
        let mut lessons = workers.clone().filter_map(|known| known.learnt.as_ref());
        if lessons.any(|lesson| lesson.kind == "hit_for_miss") {
            return Self::HitForMiss;
        }
        let purges = CoveringPurges::of_all(workers);
        let found = stored.map_or(&[][..], |stored| &stored.stored);
        let usable = found.iter().filter(|response| !purges.covers(response));
        let has_slices = stored.is_some_and(|stored| stored.slices.count > 0);
        if has_slices && usable.clone().any(|response| response.for_head) {
            return Self::Slices;
        }
        let usable = usable.filter(|response| !response.for_head);
        let is_fresh = |response: &StoredResponse| {
            let is_fresh = response.fresh_until_ms.is_some_and(|until| until > now_ms);
            is_fresh && !purges.must_revalidate(response)
        };
        match (usable.clone().any(is_fresh), usable.count()) {
            (true, _) => Self::Hit,
            (false, 0) => Self::Miss,
            (false, _) => Self::Revalidated,
        }
    }

    /// The answer in words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Redirected => "a redirect of the edge",
            Self::Passed => "to the origin, around the cache",
            Self::HitInMemory => "a hit, in memory",
            Self::Waits => "waits for the request to the origin that is under way",
            Self::HitForMiss => {
                "to the origin, around the cache and without waiting (hit-for-miss)"
            }
            Self::Hit => "a hit, if a stored variant fits its headers",
            Self::Slices => "in slices: a hit for each slice that is stored",
            Self::Revalidated => "the stored response, validated at the origin",
            Self::Miss => "a miss: from the origin, and stored if the response allows it",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::StoredSlices;
    use serde_json::{Value, json};

    const NOW: u64 = 100_000;

    fn next(admission: &str, stored: &[StoredResponse], known: Value) -> NextResponse {
        let decision = AdmissionDecision {
            admission: admission.to_owned(),
            ..AdmissionDecision::default()
        };
        let known: Vec<WorkerExplanation> = serde_json::from_value(json!([{}, known])).unwrap();
        let stored = StoredResponses {
            stored: stored.to_vec(),
            slices: StoredSlices::default(),
            cut: false,
        };
        NextResponse::of(&decision, Some(&stored), known.iter(), NOW)
    }

    fn stored(fresh_until_ms: u64, purge: u64) -> Vec<StoredResponse> {
        let response = json!({
            "site": "", "host": "a.example", "path": "/", "variant": "", "for_head": false, "status": 200,
            "bytes": 1, "body_bytes": 1, "stored_at_ms": null, "used_at_ms": 1, "fresh_until_ms": fresh_until_ms,
            "served_until_ms": null, "purge": purge, "etag": null, "content_type": null, "surrogate_keys": [],
        });
        vec![serde_json::from_value(response).unwrap()]
    }

    #[test]
    fn requests_that_do_not_use_the_cache_do_not_depend_on_its_contents() {
        let fresh = stored(NOW + 1, 0);
        assert_eq!(next("refused", &fresh, json!({})), NextResponse::Refused);
        assert_eq!(next("passed", &fresh, json!({})), NextResponse::Passed);
        assert_eq!(
            next("redirected", &fresh, json!({})),
            NextResponse::Redirected
        );
    }

    #[test]
    fn a_stored_response_is_a_hit_while_it_is_fresh_and_not_purged() {
        let cached = |stored: &[StoredResponse], known| next("cached", stored, known);
        assert_eq!(cached(&stored(NOW + 1, 0), json!({})), NextResponse::Hit);
        assert_eq!(
            cached(&stored(NOW, 0), json!({})),
            NextResponse::Revalidated
        );
        assert_eq!(cached(&[], json!({})), NextResponse::Miss);
        let hard = json!({"purges": {"hard": 7}});
        assert_eq!(
            cached(&stored(NOW + 1, 6), hard.clone()),
            NextResponse::Miss
        );
        assert_eq!(cached(&stored(NOW + 1, 7), hard), NextResponse::Hit);
        let soft = json!({"purges": {"soft": 7}});
        assert_eq!(cached(&stored(NOW + 1, 6), soft), NextResponse::Revalidated);
    }

    #[test]
    fn an_object_with_slices_and_its_headers_is_served_in_slices() {
        let headers = |purge| StoredResponse {
            for_head: true,
            ..stored(NOW + 1, purge).remove(0)
        };
        let decision = AdmissionDecision {
            admission: "cached".to_owned(),
            ..AdmissionDecision::default()
        };
        let purged: WorkerExplanation =
            serde_json::from_value(json!({"purges": {"hard": 7}})).unwrap();
        for (purge, count, expected) in [
            (7, 3, NextResponse::Slices),
            (6, 3, NextResponse::Miss),
            (7, 0, NextResponse::Miss),
        ] {
            let stored = StoredResponses {
                stored: vec![headers(purge)],
                slices: StoredSlices {
                    count,
                    body_bytes: 5,
                },
                cut: false,
            };
            let next = NextResponse::of(&decision, Some(&stored), [&purged].into_iter(), NOW);
            assert_eq!(next, expected, "{purge} {count}");
        }
    }

    #[test]
    fn the_knowledge_of_any_worker_counts() {
        let fresh = stored(NOW + 1, 0);
        for (known, expected) in [
            (json!({"hot": {"bytes": 5}}), NextResponse::HitInMemory),
            (json!({"flight": {"since_ms": 5}}), NextResponse::Waits),
            (
                json!({"learnt": {"kind": "hit_for_miss"}}),
                NextResponse::HitForMiss,
            ),
            (json!({"learnt": {"kind": "fresh"}}), NextResponse::Hit),
        ] {
            assert_eq!(next("cached", &fresh, known), expected);
        }
    }
}
