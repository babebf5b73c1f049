// SPDX-License-Identifier: Apache-2.0
//! Events of buckets that purge nothing: each is counted by its kind, and one line a minute tells the log of them.

use sluice_host::Host;
use std::collections::BTreeSet;

use sluice_core::metrics::Metric;
use sluice_core::purge::{Effect, IgnoredEvent};
use sluice_core::workers::Millis;
use sluice_core::workers::byte_reader::ByteReader;
use sluice_core::workers::shared_value;

use crate::worker::Worker;
use sluice_host::Level;

/// In shared data: when the log was last told.
const TOLD: &str = "sluice/ignored-events";
/// Time between two lines in the log, of all workers together.
const INTERVAL: Millis = 60_000;
/// Kinds of events in one line.
const MOST_KINDS: usize = 4;

/// Counts the events, and tells the log.
pub fn note(worker: &Worker, events: &[IgnoredEvent]) {
    for event in events {
        worker.metrics.count(metric(event.effect), 1);
    }
    if !events.is_empty() && is_due(&*worker.host) {
        worker.host.log(Level::Warn, &line(events));
    }
}

const fn metric(effect: Effect) -> Metric {
    match effect {
        Effect::Read => Metric::EventsRead,
        Effect::Unchanged => Metric::EventsUnchanged,
        Effect::Unknown => Metric::EventsUnknown,
        Effect::Changed => Metric::EventsElsewhere,
    }
}

/// Whether no worker has told the log within the interval. Where shared data fails, the log is spared.
fn is_due(host: &dyn Host) -> bool {
    let now = host.monotonic_millis();
    let due = shared_value::update(host, TOLD, |bytes| {
        let told = ByteReader(bytes).u64();
        match told {
            Some(told) if now < told.saturating_add(INTERVAL) => (None, false),
            _ => (Some(now.to_le_bytes().to_vec()), true),
        }
    });
    due.unwrap_or(false)
}

fn line(events: &[IgnoredEvent]) -> String {
    let reason = |effect| match effect {
        Effect::Read => "a read",
        Effect::Unchanged => "the object is as it was",
        Effect::Unknown => "unknown",
        Effect::Changed => "of no bucket of these sites",
    };
    // A name is its sender's: no control character reaches the log.
    let kinds = events
        .iter()
        .map(|event| format!("{:?} ({})", event.name, reason(event.effect)));
    let kinds: BTreeSet<String> = kinds.collect();
    let kinds: Vec<String> = kinds.into_iter().take(MOST_KINDS).collect();
    format!(
        "sluice: events of a bucket have purged nothing: {}; sluice_events_… counts them, and no other line follows \
         within a minute",
        kinds.join(", ")
    )
}
