// SPDX-License-Identifier: Apache-2.0
//! The heaviest URLs of a worker.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::decision::Decision;
use crate::workers::Millis;

/// The most URLs that a table shows.
pub const MOST_URLS: usize = 1_000;
/// The most URLs that a table has. At this size only the heaviest [`MOST_URLS`] stay.
const ROOM: usize = 2 * MOST_URLS;
/// The most times of the origin that a URL has for the median.
const MOST_TIMES: usize = 15;
/// The separator between site and URL in a key of the table. Neither contains it.
const SITE_END: char = '\n';
/// The milliseconds of the origin that weigh as much as a request.
const MILLIS_OF_UNIT: Millis = 16;
/// The bytes of responses that weigh as much as a request.
const BYTES_OF_UNIT: u64 = 1 << 20;

/// A bounded table of URLs with their numbers of requests, bytes and times. The heaviest URLs stay: a request weighs
/// 1, and one more for each [`MILLIS_OF_UNIT`] of the origin and each [`BYTES_OF_UNIT`] of the response.
///
/// A new URL gets the weight of the heaviest URL that was removed, so that its weight is never below the sum of its
/// requests (the bound of the algorithm "Space-Saving", Metwally et al., 2005). All other numbers are exact since the
/// URL was added.
#[derive(Debug, Default)]
pub struct UrlTable {
    urls: HashMap<Box<str>, Usage>,
    /// The weight of the heaviest URL that was removed.
    removed_weight: u64,
}

/// The usage of a URL.
#[derive(Debug, Default)]
struct Usage {
    weight: u64,
    requests: u64,
    misses: u64,
    bytes: u64,
    has_query: bool,
    origin_sum: Millis,
    origin_max: Millis,
    /// The last times of the origin; the oldest one is replaced by the next.
    times: Vec<Millis>,
    next_time: usize,
    /// The summary of the last request that was not a hit.
    last: Option<String>,
}

impl UrlTable {
    /// Adds a request. Distinguishes URLs by their queries if `query`.
    pub fn add(&mut self, decision: &Decision, query: bool) {
        let url = decision.url.shown(query);
        let site = decision.site.as_deref().unwrap_or_default();
        let key = format!("{site}{SITE_END}{url}");
        if let Some(usage) = self.urls.get_mut(key.as_str()) {
            return usage.add(decision);
        }
        let mut usage = Usage {
            weight: self.removed_weight,
            ..Usage::default()
        };
        usage.add(decision);
        self.urls.insert(key.into(), usage);
        if self.urls.len() >= ROOM {
            self.shrink();
        }
    }

    /// Removes all URLs.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Number of URLs.
    pub fn len(&self) -> usize {
        self.urls.len()
    }

    /// Whether the table has no URL.
    pub fn is_empty(&self) -> bool {
        self.urls.is_empty()
    }

    /// The heaviest [`MOST_URLS`] as JSON, the heaviest first.
    pub fn to_json(&self) -> impl Iterator<Item = Value> {
        let mut urls: Vec<_> = self.urls.iter().collect();
        urls.sort_unstable_by(|(a, left), (b, right)| {
            right.weight.cmp(&left.weight).then_with(|| a.cmp(b))
        });
        urls.into_iter()
            .take(MOST_URLS)
            .map(|(key, usage)| usage.to_json(key))
    }

    /// Removes the lightest URLs.
    fn shrink(&mut self) {
        let mut weights: Vec<_> = self.urls.values().map(|usage| usage.weight).collect();
        let (_, bound, _) = weights.select_nth_unstable(ROOM - MOST_URLS - 1);
        let bound = *bound;
        let heavier = self.urls.values().filter(|usage| usage.weight > bound);
        let mut equal = MOST_URLS.saturating_sub(heavier.count());
        self.urls.retain(|_, usage| {
            let stays = usage.weight > bound || (usage.weight == bound && equal > 0);
            equal -= usize::from(stays && usage.weight == bound);
            stays
        });
        self.removed_weight = bound;
    }
}

impl Usage {
    fn add(&mut self, decision: &Decision) {
        let origin = decision.origin.unwrap_or(0);
        let units = origin / MILLIS_OF_UNIT + decision.bytes / BYTES_OF_UNIT;
        self.weight = self.weight.saturating_add(1).saturating_add(units);
        self.requests += 1;
        self.misses += u64::from(decision.is_miss());
        self.bytes = self.bytes.saturating_add(decision.bytes);
        self.has_query |= decision.url.has_query();
        if decision.result != Some("hit") {
            self.last = Some(decision.summary());
        }
        if let Some(millis) = decision.origin {
            self.add_time(millis);
        }
    }

    fn add_time(&mut self, millis: Millis) {
        self.origin_sum = self.origin_sum.saturating_add(millis);
        self.origin_max = self.origin_max.max(millis);
        match self.times.get_mut(self.next_time) {
            Some(time) => *time = millis,
            None => self.times.push(millis),
        }
        self.next_time = (self.next_time + 1) % MOST_TIMES;
    }

    /// The median of the last [`MOST_TIMES`] times.
    fn median(&self) -> Option<Millis> {
        let mut times = self.times.clone();
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    }

    fn to_json(&self, key: &str) -> Value {
        let (site, path) = key.split_once(SITE_END).unwrap_or(("", key));
        json!({
            "site": site,
            "path": path,
            "query": self.has_query,
            "requests": self.requests,
            "misses": self.misses,
            "bytes": self.bytes,
            "origin_ms": self.origin_sum,
            "origin_max_ms": self.origin_max,
            "origin_p50_ms": self.median(),
            "last": self.last,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::decision::tests::{hit, miss};
    use super::*;

    fn shown(table: &UrlTable, path: &str) -> Option<Value> {
        table.to_json().find(|url| url["path"] == path)
    }

    #[test]
    fn a_table_adds_up_the_requests_of_a_url() {
        let mut table = UrlTable::default();
        for origin in [30, 10, 20] {
            table.add(&miss("/a?page=1", origin), false);
        }
        table.add(&hit("/a"), false);
        let mut unstored = miss("/b", 5);
        unstored.not_stored = Some("set-cookie");
        table.add(&unstored, false);
        assert_eq!(
            shown(&table, "/a").unwrap(),
            json!({
                "site": "shop", "path": "/a", "query": true, "requests": 4, "misses": 3, "bytes": 40,
                "origin_ms": 60, "origin_max_ms": 30, "origin_p50_ms": 20, "last": "miss",
            })
        );
        assert_eq!(shown(&table, "/b").unwrap()["last"], "miss: set-cookie");
    }

    #[test]
    fn queries_distinguish_urls_only_on_demand() {
        let mut table = UrlTable::default();
        table.add(&hit("/a?x=1"), true);
        table.add(&hit("/a?x=2"), true);
        assert_eq!(table.len(), 2);
        table.clear();
        assert!(table.is_empty());
        table.add(&hit("/a?x=1"), false);
        table.add(&hit("/a?x=2"), false);
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn a_table_is_bounded_and_keeps_the_heaviest_urls() {
        let mut table = UrlTable::default();
        for number in 0..20_000 {
            table.add(&hit(&format!("/once/{number}")), false);
            if number % 100 == 0 {
                table.add(&hit("/frequent"), false);
            }
            if number % 1_000 == 0 {
                table.add(&miss("/slow", 3_000), false);
            }
            assert!(table.len() < ROOM);
        }
        assert_eq!(table.to_json().count(), MOST_URLS);
        assert_eq!(shown(&table, "/frequent").unwrap()["requests"], 200);
        assert_eq!(shown(&table, "/slow").unwrap()["requests"], 20);
        assert_eq!(table.to_json().next().unwrap()["path"], "/slow");
    }

    #[test]
    fn the_median_is_that_of_the_last_times() {
        let mut table = UrlTable::default();
        for origin in (0..100).chain([1_000; MOST_TIMES / 2]) {
            table.add(&miss("/a", origin), false);
        }
        let url = shown(&table, "/a").unwrap();
        assert_eq!(url["origin_p50_ms"], 99);
        assert_eq!(url["origin_max_ms"], 1_000);
    }
}
