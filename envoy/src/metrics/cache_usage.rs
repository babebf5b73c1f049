// SPDX-License-Identifier: Apache-2.0
//! The usage of the cache, in total and by site.

use sluice_core::metrics::{Family, MetricKind};

use super::exposition::{Exposition, epoch_seconds};
use crate::cache::{CacheReport, SiteFiles, Usage};

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

/// Adds the metrics of the cache, with the sites in use as labels if `by_site`.
pub fn expose(report: &CacheReport, bound: Usage, by_site: bool, exposition: &mut Exposition) {
    exposition.add(BYTES_LIMIT, &[], bound.bytes);
    exposition.add(OBJECTS_LIMIT, &[], bound.files);
    exposition.add(UNCHECKED, &[], report.unchecked.files);
    if !by_site {
        return expose_site("", report.all_files(), report.all_evictions(), exposition);
    }
    for (name, files) in &report.sites {
        expose_site(name, *files, report.evictions_of(name), exposition);
    }
}

/// Adds the metrics of one site, or of all sites together under the name "".
fn expose_site(
    name: &str,
    files: SiteFiles,
    evictions: impl Iterator<Item = (&'static str, u64)>,
    exposition: &mut Exposition,
) {
    let site = ("site", name);
    exposition.add(BYTES, &[site], files.usage.bytes);
    exposition.add(OBJECTS, &[site], files.usage.files);
    if let Some(oldest) = files.oldest {
        exposition.add(OLDEST, &[site], epoch_seconds(oldest));
    }
    for (reason, number) in evictions {
        exposition.add(EVICTIONS, &[("reason", reason), site], number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    fn exposed(by_site: bool) -> String {
        let of = |bytes, age| SiteFiles {
            usage: Usage { bytes, files: 1 },
            oldest: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(age)),
        };
        let sites = vec![("a".to_owned(), of(3, 50)), ("b".to_owned(), of(4, 40))];
        let report = CacheReport {
            sites,
            ..CacheReport::default()
        };
        let mut exposition = Exposition::default();
        expose(&report, Usage::default(), by_site, &mut exposition);
        exposition.to_string()
    }

    #[test]
    fn sites_have_labels_or_are_added_up() {
        let (by_site, added_up) = (exposed(true), exposed(false));
        for line in [
            "sluice_cache_bytes{site=\"a\"} 3",
            "sluice_cache_bytes{site=\"b\"} 4",
        ] {
            assert!(by_site.lines().any(|found| found == line), "{by_site}");
        }
        for line in [
            "sluice_cache_bytes 7",
            "sluice_cache_objects 2",
            "sluice_cache_oldest_object_timestamp_seconds 40",
            "sluice_cache_evictions_total{reason=\"limit\"} 0",
        ] {
            assert!(added_up.lines().any(|found| found == line), "{added_up}");
        }
        assert!(!added_up.contains("site="), "{added_up}");
    }
}
