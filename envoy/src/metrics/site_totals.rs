// SPDX-License-Identifier: Apache-2.0
//! The totals of each site, from which a viewer computes rates: two readings give the rates of the time between them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use sluice_core::metrics::Metric;

use super::distribution::{Distribution, ORIGIN_FIRST_BYTE};
use super::exposition::{Exposition, epoch_millis};
use super::sample::Sample;
use super::translation::translate;
use crate::cache::{CacheReport, Usage};

/// The results of requests that were answered without a separate request to the origin, as in
/// `sluice:hit_ratio:rate5m`.
const HITS: [&str; 3] = ["hit", "stale", "collapsed"];
/// The families that the totals need.
const FAMILIES: [&str; 7] = [
    "sluice_requests_total",
    "sluice_not_stored_total",
    "sluice_origin_requests_total",
    "sluice_bytes_sent_total",
    "sluice_origin_bytes_total",
    "sluice_waiting_requests",
    ORIGIN_FIRST_BYTE,
];

/// A reading of all sites.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EdgeTotals {
    /// The time of the reading, in milliseconds since the epoch.
    pub at_ms: u64,
    /// The version of the edge.
    pub version: String,
    /// The sites, ordered by name.
    pub sites: Vec<SiteTotals>,
    /// The bytes of the cache's files.
    pub cache_bytes: u64,
    /// The bound on the bytes of the cache.
    pub cache_limit_bytes: u64,
    /// Files of earlier runs that have not been checked yet.
    pub unchecked_objects: u64,
}

/// The totals of one site since the start of the edge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SiteTotals {
    /// The name; empty for an edge with one site without a name, and for requests of no site.
    pub site: String,
    /// The requests of clients.
    pub requests: f64,
    /// The requests that were refused.
    pub rejected: f64,
    /// The requests that were answered without a separate request to the origin.
    pub hits: f64,
    /// The requests that shared the response of another request.
    pub collapsed: f64,
    /// The requests that were answered with an error of the origin.
    pub errors: f64,
    /// The requests to the origin.
    pub origin_requests: f64,
    /// The times to the first byte of the origin's responses, in seconds.
    pub origin_first_byte: Distribution,
    /// The bytes of bodies to clients. `None`: the edge does not count them.
    pub bytes_sent: Option<f64>,
    /// The bytes of bodies from the origin. `None`: the edge does not count them.
    pub origin_bytes: Option<f64>,
    /// The requests that wait now.
    pub waiting: f64,
    /// The bytes in the cache.
    pub cache_bytes: u64,
    /// The stored responses in the cache.
    pub cache_objects: u64,
    /// The files that were evicted from the cache.
    pub cache_evictions: u64,
    /// The share of the cache, in bytes. `None`: the site is not in use any more.
    pub cache_share_bytes: Option<u64>,
}

/// The regular expression for Envoy's admin interface that selects the statistics of the totals.
pub fn statistics_filter() -> String {
    let mut filter = String::new();
    for metric in Metric::ALL {
        if FAMILIES.contains(&metric.in_family().family.name) {
            let separator = if filter.is_empty() { "" } else { "|" };
            // Writing to a string cannot fail.
            let _ = write!(filter, "{separator}{}", metric.name());
        }
    }
    format!(r"\.({filter})(\.|$)")
}

impl EdgeTotals {
    /// The totals in `text`, the answer of Envoy's admin interface to `/stats/prometheus`. `shares` has the share of
    /// each site in use. Without `by_site` the metrics have no names of sites, and all sites are one row.
    pub fn read(
        text: &str,
        report: &CacheReport,
        bound: Usage,
        shares: &[(String, u64)],
        by_site: bool,
    ) -> Self {
        let row = |name: &str| {
            if by_site {
                name.to_owned()
            } else {
                String::new()
            }
        };
        let mut exposition = Exposition::default();
        translate(text, &mut exposition);
        let mut sites: BTreeMap<String, SiteTotals> = BTreeMap::new();
        for line in exposition.to_string().lines() {
            if let Some(sample) = Sample::read(line) {
                let site = sample.label("site").to_owned();
                sites.entry(site).or_default().add(&sample);
            }
        }
        for (name, files) in &report.sites {
            let site = sites.entry(row(name)).or_default();
            site.cache_bytes += files.usage.bytes;
            site.cache_objects += files.usage.files;
            let evictions = report.evictions_of(name).map(|(_, number)| number);
            site.cache_evictions += evictions.sum::<u64>();
        }
        for (name, bytes) in shares {
            let share = &mut sites.entry(row(name)).or_default().cache_share_bytes;
            *share = Some(share.unwrap_or(0) + bytes);
        }
        let sites = sites
            .into_iter()
            .map(|(site, totals)| SiteTotals { site, ..totals });
        let sites: Vec<_> = sites.collect();
        let cached = sites.iter().map(|site| site.cache_bytes).sum();
        Self {
            at_ms: epoch_millis(SystemTime::now()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sites: without_idle_remainder(sites),
            cache_bytes: cached,
            cache_limit_bytes: bound.bytes,
            unchecked_objects: report.unchecked.files,
        }
    }
}

/// Drops the row of no site, if the edge has named sites and this row counts nothing.
fn without_idle_remainder(mut sites: Vec<SiteTotals>) -> Vec<SiteTotals> {
    let has_names = sites.iter().any(|site| !site.site.is_empty());
    sites.retain(|site| {
        let counts = site.requests > 0.0 || site.cache_objects > 0;
        !has_names || counts || !site.site.is_empty()
    });
    sites
}

impl SiteTotals {
    fn add(&mut self, sample: &Sample<'_>) {
        let value = sample.value;
        self.origin_first_byte.add(sample, ORIGIN_FIRST_BYTE);
        match sample.name {
            "sluice_requests_total" => {
                let result = sample.label("result");
                self.requests += value;
                if HITS.contains(&result) {
                    self.hits += value;
                }
                match result {
                    "collapsed" => self.collapsed += value,
                    "rejected" => self.rejected += value,
                    "failed" => self.errors += value,
                    _ => {}
                }
            }
            "sluice_not_stored_total" if sample.label("reason") == "server-error" => {
                self.errors += value;
            }
            "sluice_origin_requests_total" => self.origin_requests += value,
            "sluice_bytes_sent_total" => *self.bytes_sent.get_or_insert(0.0) += value,
            "sluice_origin_bytes_total" => *self.origin_bytes.get_or_insert(0.0) += value,
            "sluice_waiting_requests" => self.waiting += value,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# TYPE sluice_requests_hit counter\n\
        sluice_requests_hit{} 0\n\
        sluice_requests_hit{site=\"a\"} 8\n\
        # TYPE sluice_requests_collapsed counter\n\
        sluice_requests_collapsed{site=\"a\"} 1\n\
        # TYPE sluice_requests_miss counter\n\
        sluice_requests_miss{site=\"a\"} 2\n\
        sluice_requests_miss{site=\"b\"} 5\n\
        # TYPE sluice_requests_rejected counter\n\
        sluice_requests_rejected{site=\"a\"} 3\n\
        # TYPE sluice_followers_failed counter\n\
        sluice_followers_failed{site=\"a\"} 1\n\
        # TYPE sluice_uncacheable_server_error counter\n\
        sluice_uncacheable_server_error{site=\"a\"} 1\n\
        # TYPE sluice_uncacheable_private counter\n\
        sluice_uncacheable_private{site=\"a\"} 7\n\
        # TYPE sluice_origin_fetches counter\n\
        sluice_origin_fetches{site=\"a\"} 4\n\
        # TYPE sluice_parked_now gauge\n\
        sluice_parked_now{site=\"b\"} 2\n";

    fn read(text: &str, shares: &[(String, u64)]) -> EdgeTotals {
        let bound = Usage {
            bytes: 100,
            files: 9,
        };
        EdgeTotals::read(text, &CacheReport::default(), bound, shares, true)
    }

    #[test]
    fn each_site_has_its_totals_and_its_share() {
        let shares = [("a".to_owned(), 75), ("b".to_owned(), 25)];
        let totals = read(TEXT, &shares);
        let a = SiteTotals {
            site: "a".to_owned(),
            requests: 15.0,
            rejected: 3.0,
            hits: 9.0,
            collapsed: 1.0,
            errors: 2.0,
            origin_requests: 4.0,
            cache_share_bytes: Some(75),
            ..SiteTotals::default()
        };
        let b = SiteTotals {
            site: "b".to_owned(),
            requests: 5.0,
            waiting: 2.0,
            cache_share_bytes: Some(25),
            ..SiteTotals::default()
        };
        assert_eq!(totals.sites, [a, b], "the row of no site counts nothing");
        assert_eq!(totals.cache_limit_bytes, 100);
    }

    #[test]
    fn without_names_in_the_metrics_all_sites_are_one_row() {
        let text = "# TYPE sluice_requests_hit counter\nsluice_requests_hit{} 4\n";
        let bound = Usage::default();
        let shares = [("a".to_owned(), 75), ("b".to_owned(), 25)];
        let totals = EdgeTotals::read(text, &CacheReport::default(), bound, &shares, false);
        let [all] = totals.sites.as_slice() else {
            panic!("{totals:?}");
        };
        assert_eq!((all.site.as_str(), all.requests), ("", 4.0));
        assert_eq!(all.cache_share_bytes, Some(100));
    }

    #[test]
    fn an_edge_without_named_sites_has_one_row() {
        let text = "# TYPE sluice_requests_hit counter\nsluice_requests_hit{} 0\n";
        let totals = read(text, &[(String::new(), 100)]);
        assert_eq!(totals.sites.len(), 1);
    }

    #[test]
    fn the_filter_selects_the_statistics_of_the_totals_alone() {
        let filter = statistics_filter();
        for name in [
            "sluice_requests_hit",
            "sluice_uncacheable_server_error",
            "sluice_parked_now",
        ] {
            assert!(filter.contains(name), "{filter}");
        }
        assert!(!filter.contains("sluice_hot_hits"), "{filter}");
    }
}
