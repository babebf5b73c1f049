// SPDX-License-Identifier: Apache-2.0
//! The rates of the sites between two readings of the metrics.

use std::cmp::Ordering;

use serde::Serialize;

use super::Sorting;
use crate::metrics::{EdgeTotals, SiteTotals};

/// The rates of a site, per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SiteRates {
    /// The site; empty for an edge with one site.
    pub site: String,
    /// Requests of clients, without refused ones.
    pub requests: f64,
    /// Requests that caused no separate request to the origin.
    pub hits: f64,
    /// Requests that waited for another one and shared its response.
    pub collapsed: f64,
    /// Requests that were answered with an error of the origin.
    pub errors: f64,
    /// Bytes to clients; `None` if the edge does not count them by site.
    pub bytes: Option<f64>,
    /// Requests to the origin.
    pub origin_requests: f64,
    /// The time to the origin's first byte that 99 % of its responses take at most, in seconds.
    pub origin_p99: Option<f64>,
    /// Bytes in the cache.
    pub cache_bytes: u64,
    /// The site's share of the cache, in bytes.
    pub cache_share_bytes: Option<u64>,
    /// Files that were evicted from the cache.
    pub evictions: f64,
    /// Requests that wait now.
    pub waiting: f64,
}

impl SiteRates {
    /// The rates of all sites between two readings.
    #[expect(clippy::cast_precision_loss, reason = "a time of seconds, and a count")]
    pub fn between(earlier: &EdgeTotals, later: &EdgeTotals) -> Vec<Self> {
        let millis = later.at_ms.saturating_sub(earlier.at_ms).max(1);
        let seconds = millis as f64 / 1000.0;
        let new = SiteTotals::default();
        let rates = later.sites.iter().map(|now| {
            let mut known = earlier.sites.iter();
            let then = known.find(|then| then.site == now.site).unwrap_or(&new);
            // A worker that has started again counts from zero.
            let rate = |now: f64, then: f64| (now - then).max(0.0) / seconds;
            Self {
                site: now.site.clone(),
                requests: rate(now.requests - now.rejected, then.requests - then.rejected),
                hits: rate(now.hits, then.hits),
                collapsed: rate(now.collapsed, then.collapsed),
                errors: rate(now.errors, then.errors),
                bytes: now
                    .bytes_sent
                    .map(|bytes| rate(bytes, then.bytes_sent.unwrap_or(0.0))),
                origin_requests: rate(now.origin_requests, then.origin_requests),
                origin_p99: origin_p99(now, then),
                cache_bytes: now.cache_bytes,
                cache_share_bytes: now.cache_share_bytes,
                evictions: {
                    let evicted = now.cache_evictions.saturating_sub(then.cache_evictions);
                    evicted as f64 / seconds
                },
                waiting: now.waiting,
            }
        });
        rates.collect()
    }

    /// The order of two sites: the greater one first.
    pub fn compare(&self, other: &Self, sorting: Sorting) -> Ordering {
        let weight = |rates: &Self| match sorting {
            Sorting::Requests => rates.requests,
            Sorting::Misses => rates.requests - rates.hits,
            Sorting::Bytes => rates.bytes.unwrap_or(0.0),
            Sorting::Origin => rates.origin_p99.unwrap_or(0.0),
        };
        let by_name = || self.site.cmp(&other.site);
        weight(other).total_cmp(&weight(self)).then_with(by_name)
    }
}

/// The time between the readings, or else of all the time until the later one: Envoy adds the times of five seconds at
/// once.
fn origin_p99(now: &SiteTotals, then: &SiteTotals) -> Option<f64> {
    let times = now.origin_first_byte.since(&then.origin_first_byte);
    let recent = times.quantile(0.99);
    recent.or_else(|| now.origin_first_byte.quantile(0.99))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(at_ms: u64, hits: f64, misses: f64) -> EdgeTotals {
        let site = |name: &str, hits: f64, misses: f64| SiteTotals {
            site: name.to_owned(),
            requests: hits + misses + 1.0,
            rejected: 1.0,
            hits,
            ..SiteTotals::default()
        };
        EdgeTotals {
            at_ms,
            sites: vec![site("a", hits, misses), site("b", 0.0, 2.0 * misses)],
            ..EdgeTotals::default()
        }
    }

    #[test]
    fn rates_are_the_differences_by_the_time_between_the_readings() {
        let rates = SiteRates::between(&totals(1000, 10.0, 4.0), &totals(3000, 110.0, 14.0));
        let [a, b] = rates.as_slice() else {
            panic!("{rates:?}");
        };
        assert_eq!((a.requests, a.hits, b.requests), (55.0, 50.0, 10.0));
        assert_eq!(a.compare(b, Sorting::Requests), Ordering::Less);
        assert_eq!(a.compare(b, Sorting::Misses), Ordering::Greater);
    }

    #[test]
    fn without_a_new_time_of_the_origin_all_times_count() {
        let mut now = SiteTotals::default();
        now.origin_first_byte.add_bucket(0.1, 0.0);
        now.origin_first_byte.add_bucket(0.2, 10.0);
        now.origin_first_byte.count = 10.0;
        let then = now.clone();
        assert_eq!(
            origin_p99(&now, &then),
            origin_p99(&now, &SiteTotals::default())
        );
        now.origin_first_byte.add_bucket(0.1, 5.0);
        now.origin_first_byte.add_bucket(0.2, 5.0);
        now.origin_first_byte.count = 15.0;
        assert!(origin_p99(&now, &then) < Some(0.1));
    }

    #[test]
    fn counters_that_begin_again_give_no_negative_rate() {
        let rates = SiteRates::between(&totals(1000, 10.0, 4.0), &totals(2000, 0.0, 0.0));
        assert_eq!((rates[0].requests, rates[0].hits), (0.0, 0.0));
    }
}
