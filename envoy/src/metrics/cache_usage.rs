// SPDX-License-Identifier: Apache-2.0
//! The usage of the cache, in total and by site.

use std::time::{Duration, SystemTime};

use sluice_core::metrics::{Family, MetricKind};

use super::exposition::{Exposition, Labels};
use crate::cache::{CacheReport, Usage};

const BYTES: Family = gauge(
    "sluice_cache_bytes",
    "Bytes of the files in the cache, by site.",
);
const OBJECTS: Family = gauge(
    "sluice_cache_objects",
    "Files in the cache, by site: one for each stored response.",
);
const BYTES_LIMIT: Family = gauge(
    "sluice_cache_limit_bytes",
    "The bound on the bytes of the cache (SLUICE_CACHE_MAX_BYTES).",
);
const OBJECTS_LIMIT: Family = gauge(
    "sluice_cache_limit_objects",
    "The bound on the files of the cache (SLUICE_CACHE_MAX_ENTRIES).",
);
const UNCHECKED: Family = gauge(
    "sluice_cache_unchecked_objects",
    "Files of earlier runs that have not been checked yet, so that they are not served.",
);
const OLDEST: Family = gauge(
    "sluice_cache_oldest_object_timestamp_seconds",
    "The time at which the oldest object in the cache was stored or last validated, by site, in seconds since the epoch.",
);
const EVICTIONS: Family = Family {
    name: "sluice_cache_evictions_total",
    kind: MetricKind::Counter,
    help: "Files that the entry point has removed from the cache, by site and reason: limit, disk or variants.",
};

/// The families of this module.
pub const FAMILIES: [Family; 7] = [
    BYTES,
    OBJECTS,
    BYTES_LIMIT,
    OBJECTS_LIMIT,
    UNCHECKED,
    OLDEST,
    EVICTIONS,
];

const fn gauge(name: &'static str, help: &'static str) -> Family {
    let kind = MetricKind::Gauge;
    Family { name, kind, help }
}

/// Adds the metrics of the cache.
pub fn expose(report: &CacheReport, bound: Usage, exposition: &mut Exposition) {
    exposition.add(BYTES_LIMIT, "", Labels::default(), bound.bytes);
    exposition.add(OBJECTS_LIMIT, "", Labels::default(), bound.files);
    exposition.add(UNCHECKED, "", Labels::default(), report.unchecked.files);
    for (name, site) in &report.sites {
        let labels = Labels::one("site", name);
        exposition.add(BYTES, "", labels, site.usage.bytes);
        exposition.add(OBJECTS, "", labels, site.usage.files);
        if let Some(oldest) = site.oldest {
            let since_epoch = oldest.duration_since(SystemTime::UNIX_EPOCH);
            let seconds = since_epoch.as_ref().map_or(0, Duration::as_secs);
            exposition.add(OLDEST, "", labels, seconds);
        }
        let site = if name.is_empty() {
            String::new()
        } else {
            format!("site=\"{name}\"")
        };
        for (reason, number) in report.evictions_of(name) {
            let labels = Labels {
                written: &site,
                label: Some(("reason", reason)),
            };
            exposition.add(EVICTIONS, "", labels, number);
        }
    }
}
