// SPDX-License-Identifier: Apache-2.0
//! The tables of `sluice top`.

use super::TopAnswer;
use super::rates::SiteRates;
use crate::control::answers::{EdgeReading, RequestedUrl, RequestedUrls};
use crate::control::text::{
    TextTable, bytes, date_time, duration, number, percentage, printable, seconds, site_name,
};
use crate::metrics::SiteTotals;

/// The state of the edge, and both tables.
pub fn text(answer: &TopAnswer, shows_query: bool) -> String {
    let mut text = heading(&answer.edge);
    text += &sites(&answer.sites);
    if answer.problem.is_none() {
        text += "\n";
        text += &urls(&answer.urls, shows_query);
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "rounded to one decimal")]
fn heading(EdgeReading { state, totals }: &EdgeReading) -> String {
    let mut text = format!(
        "Sluice {} ({}), configuration {}, loaded at {}\n",
        state.version,
        state.runtime,
        state.configuration,
        date_time(state.loaded_at_ms),
    );
    if let Some(reload) = &state.last_reload {
        let result = printable(&reload.result.replace('\n', "; "));
        text += &format!("last reload at {}: {result}\n", date_time(reload.at_ms));
    }
    let sum = |value: fn(&SiteTotals) -> Option<f64>| -> Option<f64> {
        let known = totals.sites.iter().filter_map(value);
        known.reduce(|one, other| one + other)
    };
    if let (Some(sent), Some(fetched)) =
        (sum(|site| site.bytes_sent), sum(|site| site.origin_bytes))
    {
        let saved = percentage((sent - fetched).max(0.0), sent);
        let (sent, fetched) = (bytes(sent), bytes(fetched));
        text += &format!(
            "since the start: {sent} to clients, {fetched} from origins: {saved} % saved\n"
        );
    }
    let (used, limit) = (totals.cache_bytes as f64, totals.cache_limit_bytes as f64);
    let evicted: u64 = totals.sites.iter().map(|site| site.cache_evictions).sum();
    text += &format!(
        "cache: {} of {}, {} %; {evicted} objects evicted since the start\n\n",
        bytes(used),
        bytes(limit),
        percentage(used, limit)
    );
    text
}

#[expect(clippy::cast_precision_loss, reason = "rounded to one decimal")]
fn sites(sites: &[SiteRates]) -> String {
    let columns = [
        "SITE",
        ">REQ/S",
        ">HIT %",
        ">COLLAPSED %",
        ">ERR %",
        ">OUT/S",
        ">ORIGIN/S",
        ">ORIGIN p99",
        ">CACHE",
        ">EVICTED/S",
        ">WAITING",
    ];
    let mut table = TextTable::new(&columns);
    for rates in sites {
        let cache = bytes(rates.cache_bytes as f64);
        table.add_row([
            site_name(&rates.site).to_owned(),
            number(rates.requests),
            percentage(rates.hits, rates.requests),
            percentage(rates.collapsed, rates.requests),
            percentage(rates.errors, rates.requests),
            rates.bytes.map_or("-".to_owned(), bytes),
            number(rates.origin_requests),
            rates.origin_p99.map_or("-".to_owned(), seconds),
            match rates.cache_share_bytes {
                Some(share) => format!("{cache} / {}", bytes(share as f64)),
                None => cache,
            },
            number(rates.evictions),
            number(rates.waiting),
        ]);
    }
    table.text()
}

#[expect(clippy::cast_precision_loss, reason = "rounded to one decimal")]
fn urls(answer: &RequestedUrls, shows_query: bool) -> String {
    let elapsed = answer.since_ms.max(1) as f64 / 1000.0;
    if answer.urls.is_empty() {
        return "no requests have ended since the recording began\n".to_owned();
    }
    let columns = [
        "SITE",
        "URL",
        ">REQ/S",
        ">MISS/S",
        ">OUT/S",
        ">ORIGIN p50",
        ">MAX",
        ">SUM",
        "LAST RESULT",
    ];
    let mut table = TextTable::new(&columns);
    for url in &answer.urls {
        table.add_row(url_row(url, elapsed, shows_query));
    }
    let period = seconds(elapsed);
    format!("URLs of the last {period}:\n{}", table.text())
}

#[expect(clippy::cast_precision_loss, reason = "rounded to one decimal")]
fn url_row(url: &RequestedUrl, elapsed: f64, shows_query: bool) -> [String; 9] {
    let query = match url.query && !shows_query {
        true => "?…",
        false => "",
    };
    [
        site_name(&url.site).to_owned(),
        format!("{}{query}", url.path),
        number(url.requests as f64 / elapsed),
        number(url.misses as f64 / elapsed),
        bytes(url.bytes as f64 / elapsed),
        url.origin_p50_ms.map_or("-".to_owned(), duration),
        duration(url.origin_max_ms),
        duration(url.origin_ms),
        url.last.clone().unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{EdgeState, EdgeTotals, LastReload};

    fn words(text: &str) -> Vec<String> {
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        text.lines().map(words).collect()
    }

    fn edge() -> EdgeReading {
        let site = |bytes_sent, origin_bytes, cache_evictions| SiteTotals {
            bytes_sent: Some(bytes_sent),
            origin_bytes: Some(origin_bytes),
            cache_evictions,
            ..SiteTotals::default()
        };
        EdgeReading {
            state: EdgeState {
                version: "0.1.0".to_owned(),
                runtime: "wasm".to_owned(),
                configuration: "00ab".to_owned(),
                loaded_at_ms: 1_764_252_847_123,
                last_reload: Some(LastReload {
                    at_ms: 1_764_252_847_123,
                    accepted: true,
                    result: "reloaded: sites\npolicies".to_owned(),
                }),
            },
            totals: EdgeTotals {
                sites: vec![site(90_000.0, 10_000.0, 1), site(10_000.0, 0.0, 2)],
                cache_bytes: 2048,
                cache_limit_bytes: 8192,
                ..EdgeTotals::default()
            },
        }
    }

    #[test]
    fn each_site_and_each_url_is_a_line() {
        let assets = SiteRates {
            site: "assets".to_owned(),
            requests: 4210.0,
            hits: 4000.0,
            collapsed: 8.4,
            bytes: Some(85_000_000.0),
            origin_requests: 12.0,
            origin_p99: Some(0.118),
            cache_bytes: 2048,
            cache_share_bytes: Some(4096),
            waiting: 23.0,
            ..SiteRates::default()
        };
        let url = RequestedUrl {
            site: "shop".to_owned(),
            path: "/search".to_owned(),
            query: true,
            requests: 122,
            misses: 61,
            bytes: 4096,
            origin_ms: 115_900,
            origin_max_ms: 2500,
            origin_p50_ms: Some(1900),
            last: Some("hit_for_miss: set-cookie".to_owned()),
        };
        let answer = TopAnswer {
            edge: edge(),
            sites: vec![assets, SiteRates::default()],
            urls: RequestedUrls {
                since_ms: 2000,
                urls: vec![url],
                ..RequestedUrls::default()
            },
            problem: None,
        };
        let expected = [
            "Sluice 0.1.0 (wasm), configuration 00ab, loaded at 2025-11-27 14:14:07Z",
            "last reload at 2025-11-27 14:14:07Z: reloaded: sites; policies",
            "since the start: 97.7 KiB to clients, 9.8 KiB from origins: 90.0 % saved",
            "cache: 2.0 KiB of 8.0 KiB, 25.0 %; 3 objects evicted since the start",
            "",
            "SITE REQ/S HIT % COLLAPSED % ERR % OUT/S ORIGIN/S ORIGIN p99 CACHE EVICTED/S WAITING",
            "assets 4210 95.0 0.2 0.0 81.1 MiB 12 118 ms 2.0 KiB / 4.0 KiB 0 23",
            "- 0 - - - - 0 - 0 B 0 0",
            "",
            "URLs of the last 2.00 s:",
            "SITE URL REQ/S MISS/S OUT/S ORIGIN p50 MAX SUM LAST RESULT",
            "shop /search?… 61 30.5 2.0 KiB 1.90 s 2.50 s 1m55s hit_for_miss: set-cookie",
        ];
        assert_eq!(words(&text(&answer, false)), expected);
    }

    #[test]
    fn without_an_answer_of_the_filter_the_sites_remain() {
        let answer = TopAnswer {
            edge: EdgeReading::default(),
            sites: vec![SiteRates::default()],
            urls: RequestedUrls::default(),
            problem: Some("no answer".to_owned()),
        };
        assert_eq!(words(&text(&answer, false)).len(), 5);
    }
}
