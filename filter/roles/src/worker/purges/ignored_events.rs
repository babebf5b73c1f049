// SPDX-License-Identifier: Apache-2.0
//! Events of buckets that purge nothing. Each is counted by its kind, and the log gets one line per minute about
//! them.

use sluice_host::Host;
use std::collections::BTreeSet;

use sluice_core::metrics::Metric;
use sluice_core::purge::{Effect, IgnoredEvent};
use sluice_core::workers::Millis;
use sluice_core::workers::byte_reader::ByteReader;
use sluice_core::workers::shared_value;

use crate::worker::metrics::Metrics;
use sluice_host::Level;

/// Key in shared data: the time of the last line in the log.
const TOLD: &str = "sluice/ignored-events";
/// Time between two lines in the log, of all workers together.
const INTERVAL: Millis = 60_000;
/// Maximum number of kinds of events in one line.
const MOST_KINDS: usize = 4;

/// Counts the events, and logs them.
pub fn note(host: &dyn Host, metrics: &Metrics, events: &[IgnoredEvent]) {
    for event in events {
        metrics.count(metric(event.effect), 1);
    }
    if !events.is_empty() && is_due(host) {
        host.log(Level::Warn, &line(events));
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

/// Whether no worker has logged within the interval. If shared data fails, no line is logged.
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
        Effect::Unchanged => "the object is unchanged",
        Effect::Unknown => "unknown",
        Effect::Changed => "not for a bucket of these sites",
    };
    // The sender chooses the name. `{:?}` keeps control characters out of the log.
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
