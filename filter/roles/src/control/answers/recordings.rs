// SPDX-License-Identifier: Apache-2.0
//! The requests that a worker has recorded: its heaviest URLs, its last decisions, and the last error of each origin.

use sluice_core::inspection::{Answer, AskedDecisions};
use sluice_core::sites::Site;

use crate::worker::Worker;

/// The heaviest URLs, with their queries if `query`. Starts or continues their recording.
pub fn answer_urls(worker: &mut Worker, query: bool) -> Answer {
    let now = worker.host.monotonic_millis();
    Answer::of(&worker.recorder.urls(query, now))
}

/// The decisions that `asked` describes. Starts or continues their recording.
pub fn answer_decisions(worker: &mut Worker, asked: &AskedDecisions) -> Answer {
    let now = worker.host.monotonic_millis();
    let start = asked.start(worker.identity.worker);
    Answer::of(&worker.recorder.decisions(start, asked.query, now))
}

/// The last error of each site's origin.
pub fn answer_origins(worker: &Worker) -> Answer {
    let newest = worker.policies.newest();
    let sites = newest.into_iter().flat_map(|newest| &newest.sites.sites);
    let origins = worker.origin_errors.to_json(sites.map(Site::name));
    Answer::list("origins", origins)
}
