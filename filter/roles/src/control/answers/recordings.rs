// SPDX-License-Identifier: Apache-2.0
//! The requests that a worker has recorded: its heaviest URLs, its last decisions, and the last error of each origin.

use sluice_core::inspection::{Answer, AskedDecisions};
use sluice_core::sites::Site;

use crate::worker::policies::Policies;
use sluice_core::inspection::recordings::origin_errors::OriginErrors;
use sluice_core::inspection::recordings::recorder::Recorder;
use sluice_core::workers::WorkerId;
use sluice_host::Host;

/// The heaviest URLs, with their queries if `query`. Starts or continues their recording.
pub fn answer_urls(host: &dyn Host, recorder: &mut Recorder, query: bool) -> Answer {
    let now = host.monotonic_millis();
    Answer::of(&recorder.urls(query, now))
}

/// The decisions that `asked` describes. Starts or continues their recording.
pub fn answer_decisions(
    host: &dyn Host,
    recorder: &mut Recorder,
    worker: WorkerId,
    asked: &AskedDecisions,
) -> Answer {
    let now = host.monotonic_millis();
    let start = asked.start(worker);
    Answer::of(&recorder.decisions(start, asked.query, now))
}

/// The last error of each site's origin.
pub fn answer_origins(policies: &Policies, origin_errors: &OriginErrors) -> Answer {
    let newest = policies.newest();
    let sites = newest.into_iter().flat_map(|newest| &newest.sites.sites);
    let origins = origin_errors.to_json(sites.map(Site::name));
    Answer::list("origins", origins)
}
