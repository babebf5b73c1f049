// SPDX-License-Identifier: Apache-2.0
//! What the worker learns of a response's headers, and what its followers are told.

use sluice_core::coalescing::FillVerdict;
use sluice_core::coalescing::hints::Hint;
use sluice_core::freshness::{UncacheableReason, Verdict};
use sluice_core::metrics::Metric;

use super::fetch::{Fetch, millis};
use super::judged::Judged;
use crate::host::Host;
use crate::worker::Worker;
use crate::worker::keys::Audience;
use crate::worker::variants;

/// Tells of the response to `fetch`, whose headers have gone on.
pub fn tell(worker: &mut Worker, fetch: &Fetch, judged: &Judged<'_>, end_of_stream: bool) {
    if matches!(judged.verdict, Verdict::NoRoom(_)) {
        worker.metrics.count(Metric::FillsWithoutRoom, 1);
    }
    note_audience(worker, fetch, &judged.verdict);
    if let Some(reason) = judged.verdict.reason() {
        fetch.is_not_stored(worker, reason);
    }
    if judged.is_stored() {
        teach(worker, fetch, judged);
    }
    match fill_verdict(&*worker.host, fetch, judged) {
        Some(verdict) => tell_headers(worker, fetch, verdict, end_of_stream),
        None => {
            if let Verdict::Passing(reason) = judged.verdict {
                fetch.share_nothing(worker, reason);
            }
        }
    }
}

/// Lets the worker know how the URL of a response that is stored varies.
fn teach(worker: &mut Worker, fetch: &Fetch, judged: &Judged<'_>) {
    let stream = worker.stream(fetch.link.stream);
    let Some(stream) = stream.filter(|_| judged.variance.vary().is_some()) else {
        return;
    };
    worker.keys.renew_lesson(&stream.target);
    if judged.is_primary {
        let plain_key = stream.target.plain_key();
        variants::learn_primary(
            worker,
            plain_key,
            &judged.key,
            stream.key.key,
            fetch.context,
        );
    }
}

/// Remembers who gets the response to a request with `Authorization`.
fn note_audience(worker: &mut Worker, fetch: &Fetch, verdict: &Verdict) {
    let audience = match verdict {
        Verdict::Store(storage) | Verdict::NoRoom(storage) => {
            storage.allows_authenticated.then_some(Audience::All)
        }
        // An error says nothing of the next response.
        Verdict::Share(_) | Verdict::RequestError => return,
        Verdict::ForCredentials => {
            let pause = millis(fetch.policy.policy.cache.hit_for_miss);
            let until = worker.host.monotonic_millis().saturating_add(pause);
            Some(Audience::Client { until })
        }
        Verdict::ShareOnce | Verdict::Uncacheable(_) | Verdict::Passing(_) => None,
    };
    let key = worker.keys.key_hash(&fetch.cache_key);
    worker.keys.note_audience(key, audience);
}

/// What the verdict on a response means for its followers. `None`: EDGE sees whether they get a copy.
fn fill_verdict(host: &dyn Host, fetch: &Fetch, judged: &Judged<'_>) -> Option<FillVerdict> {
    Some(match (&judged.verdict, judged.variance.lesson()) {
        (Verdict::Store(_), _) => FillVerdict::Store,
        // A copy would be used without validation by those who come later.
        (Verdict::NoRoom(storage), _) if storage.lifetime.must_be_validated() => {
            FillVerdict::NoRoom
        }
        (Verdict::NoRoom(_) | Verdict::ShareOnce, _) => return None,
        (Verdict::Share(status), _) => FillVerdict::Failed { status: *status },
        (Verdict::RequestError | Verdict::ForCredentials, _) => FillVerdict::RequestError,
        (
            Verdict::Uncacheable(UncacheableReason::Vary)
            | Verdict::Passing(UncacheableReason::Vary),
            Some(names),
        ) => FillVerdict::Varies {
            names: names.clone(),
        },
        (Verdict::Passing(_), _) => return None,
        (Verdict::Uncacheable(reason), _) => {
            let hit_for_miss = millis(fetch.policy.policy.cache.hit_for_miss);
            FillVerdict::HitForMiss {
                until: host.monotonic_millis().saturating_add(hit_for_miss),
                reason: *reason,
            }
        }
    })
}

fn tell_headers(worker: &mut Worker, fetch: &Fetch, verdict: FillVerdict, end_of_stream: bool) {
    let stream = fetch.link.stream;
    let key = worker.keys.key_hash(&fetch.cache_key);
    let ended = end_of_stream && verdict == FillVerdict::Store;
    match &verdict {
        FillVerdict::Varies { names } => {
            worker.metrics.count(Metric::VaryingLearnt, 1);
            if let Some(stream) = worker.stream(stream) {
                worker.keys.learn(&stream.target, names.clone());
            }
        }
        FillVerdict::HitForMiss { .. } => worker.metrics.count(Metric::HitForMissMarked, 1),
        FillVerdict::Store
        | FillVerdict::Failed { .. }
        | FillVerdict::RequestError
        | FillVerdict::NoRoom => {}
    }
    worker.turn(fetch.context, |coalescer, turn| {
        match verdict {
            FillVerdict::HitForMiss { until, reason } => {
                coalescer.hints().set(key, Hint::HitForMiss(reason), until);
            }
            FillVerdict::Varies { .. } => coalescer.hints().forget(key),
            FillVerdict::Store
            | FillVerdict::Failed { .. }
            | FillVerdict::RequestError
            | FillVerdict::NoRoom => {}
        }
        coalescer.fill_headers(stream, verdict, turn);
        if ended {
            coalescer.fill_ended(stream, turn);
        }
    });
}
