// SPDX-License-Identifier: Apache-2.0
//! What the worker learns of a response's headers, and what its followers are told.

use sluice_core::coalescing::{FillVerdict, NotStored};
use sluice_core::freshness::{UncacheableReason, Verdict};
use sluice_core::metrics::Metric;
use sluice_core::workers::{Millis, OwnHeaders};

use super::fetch::{Fetch, millis};
use super::judged::Judged;
use crate::worker::Worker;
use crate::worker::keys::Audience;
use crate::worker::variants;

/// For how long requests with `Authorization` do not look for a shared response, once one has got its client's own.
const MOMENT_MILLIS: Millis = 1_000;

/// Tells of the response to `fetch`, whose headers have gone on.
pub fn tell(worker: &mut Worker, fetch: &Fetch, judged: &Judged<'_>, end_of_stream: bool) {
    if matches!(judged.verdict, Verdict::NoRoom(_)) {
        worker.metrics.count(Metric::FillsWithoutRoom, 1);
    }
    note_audience(worker, fetch, &judged.verdict);
    if let Some(reason) = fetch.response.reason.or(judged.verdict.reason()) {
        fetch.is_not_stored(worker, reason);
    }
    if judged.is_stored() {
        teach(worker, fetch, judged);
    }
    match fill_verdict(worker, fetch, judged) {
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
        // An error says nothing of the next response, nor does what a request's own headers may have caused.
        Verdict::Share(_)
        | Verdict::RequestError
        | Verdict::Passing(UncacheableReason::RequestHeaders) => return,
        Verdict::ForCredentials => {
            // The response to the next one may be for all, whatever this client has sent.
            let pause = millis(fetch.policy.policy.cache.hit_for_miss).min(MOMENT_MILLIS);
            let until = worker.host.monotonic_millis().saturating_add(pause);
            Some(Audience::Client { until })
        }
        Verdict::ShareOnce | Verdict::Uncacheable(_) | Verdict::Passing(_) => None,
    };
    let key = worker.keys.key_hash(&fetch.cache_key);
    worker.keys.note_audience(key, audience);
}

/// What the verdict on a response means for its followers. `None`: EDGE sees whether they get a copy.
fn fill_verdict(worker: &Worker, fetch: &Fetch, judged: &Judged<'_>) -> Option<FillVerdict> {
    Some(match (&judged.verdict, judged.variance.lesson()) {
        (Verdict::Store(_), _) => FillVerdict::Store,
        // A copy would be used without validation by those who come later.
        (Verdict::NoRoom(storage), _) if storage.lifetime.must_be_validated() => {
            FillVerdict::NoRoom
        }
        (Verdict::NoRoom(_) | Verdict::ShareOnce, _) => return None,
        (Verdict::Share(status), _) => FillVerdict::Failed { status: *status },
        (Verdict::Passing(UncacheableReason::RequestHeaders), _) => FillVerdict::RequestError,
        (Verdict::RequestError, _) if fetch.response.own_failure => FillVerdict::OwnFailure,
        (Verdict::RequestError | Verdict::ForCredentials, _) => FillVerdict::RequestError,
        (
            Verdict::Uncacheable(UncacheableReason::Vary)
            | Verdict::Passing(UncacheableReason::Vary),
            Some(names),
        ) => FillVerdict::Varies {
            names: names.clone(),
        },
        (Verdict::Passing(_), _) => return None,
        (Verdict::Uncacheable(reason), _) => FillVerdict::NotStored(NotStored {
            key: worker.keys.key_hash(&fetch.cache_key),
            own_headers: fetch
                .stream(worker)
                .map_or(OwnHeaders::NONE, |stream| stream.own_headers),
            reason: *reason,
            most: millis(fetch.policy.policy.cache.hit_for_miss),
        }),
    })
}

fn tell_headers(worker: &mut Worker, fetch: &Fetch, verdict: FillVerdict, end_of_stream: bool) {
    let stream = fetch.link.stream;
    let key = worker.keys.key_hash(&fetch.cache_key);
    let ended = end_of_stream && verdict == FillVerdict::Store;
    if let FillVerdict::Varies { names } = &verdict {
        worker.metrics.count(Metric::VaryingLearnt, 1);
        if let Some(stream) = worker.stream(stream) {
            worker.keys.learn(&stream.target, names.clone());
        }
    }
    worker.turn(fetch.context, |coalescer, turn| {
        match verdict {
            FillVerdict::Store => coalescer.response_is_stored(key),
            FillVerdict::Varies { .. } => coalescer.hints().forget(key),
            _ => {}
        }
        coalescer.fill_headers(stream, verdict, turn);
        if ended {
            coalescer.fill_ended(stream, turn);
        }
    });
}
