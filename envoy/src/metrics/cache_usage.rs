// SPDX-License-Identifier: Apache-2.0
//! The usage of the cache, in total and by site.

use sluice_core::metrics::{Family, MetricKind};

use super::exposition::{Exposition, epoch_seconds};
use crate::cache::{CacheReport, Usage};

const BYTES: Family = Family::gauge(
    "sluice_cache_bytes",
    "Bytes of the files in the cache, by site.",
);
const OBJECTS: Family = Family::gauge(
    "sluice_cache_objects",
    "Files in the cache, by site: one for each stored response.",
);
const BYTES_LIMIT: Family = Family::gauge(
    "sluice_cache_limit_bytes",
    "The bound on the bytes of the cache (SLUICE_CACHE_MAX_BYTES).",
);
const OBJECTS_LIMIT: Family = Family::gauge(
    "sluice_cache_limit_objects",
    "The bound on the files of the cache (SLUICE_CACHE_MAX_ENTRIES).",
);
const UNCHECKED: Family = Family::gauge(
    "sluice_cache_unchecked_objects",
    "Files of earlier runs that have not been checked yet, so that they are not served.",
);
const OLDEST: Family = Family::gauge(
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

/// Adds the metrics of the cache.
pub fn expose(report: &CacheReport, bound: Usage, exposition: &mut Exposition) {
    exposition.add(BYTES_LIMIT, &[], bound.bytes);
    exposition.add(OBJECTS_LIMIT, &[], bound.files);
    exposition.add(UNCHECKED, &[], report.unchecked.files);
    for (name, files) in &report.sites {
        let site = ("site", name.as_str());
        exposition.add(BYTES, &[site], files.usage.bytes);
        exposition.add(OBJECTS, &[site], files.usage.files);
        if let Some(oldest) = files.oldest {
            exposition.add(OLDEST, &[site], epoch_seconds(oldest));
        }
        for (reason, number) in report.evictions_of(name) {
            exposition.add(EVICTIONS, &[("reason", reason), site], number);
        }
    }
}
