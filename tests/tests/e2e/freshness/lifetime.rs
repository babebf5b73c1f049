// SPDX-License-Identifier: Apache-2.0
//! The origin decides how long a response is fresh, by the first of its fields that is valid.

use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};

/// Response headers, and the time to live in `Cache-Status` on the hit, or none.
type Row = (
    &'static str,
    &'static [(&'static str, &'static str)],
    Option<&'static str>,
);

const ROWS: [Row; 9] = [
    (
        "a targeted field comes first",
        &[
            ("cdn-cache-control", "max-age=500"),
            ("surrogate-control", "max-age=50"),
            ("cache-control", "no-store"),
            ("expires", "0"),
        ],
        Some("ttl=500"),
    ),
    (
        "an invalid one counts as absent",
        &[
            ("cdn-cache-control", "max-age = 500"),
            ("cache-control", "max-age=600"),
        ],
        Some("ttl=600"),
    ),
    (
        "Surrogate-Control before Cache-Control",
        &[
            ("surrogate-control", "max-age=500, content=\"ESI/1.0\""),
            ("cache-control", "private"),
        ],
        Some("ttl=500"),
    ),
    (
        "it may forbid what Cache-Control allows",
        &[
            ("cdn-cache-control", "no-store"),
            ("cache-control", "max-age=600"),
        ],
        None,
    ),
    (
        "all lines of a field count",
        &[
            ("cache-control", "max-age=600"),
            ("cache-control", "private"),
        ],
        None,
    ),
    (
        "the lines of a targeted field too",
        &[
            ("cdn-cache-control", "max-age=5"),
            ("cdn-cache-control", "max-age=500"),
        ],
        Some("ttl=500"),
    ),
    (
        "s-maxage before max-age",
        &[("cache-control", "max-age=1, S-MaxAge=\"500\"")],
        Some("ttl=500"),
    ),
    (
        "what is not understood is not stored",
        &[("cache-control", "max-age=600;no-store")],
        None,
    ),
    (
        "must-understand, understood",
        &[("cache-control", "must-understand, no-store, max-age=500")],
        Some("ttl=500"),
    ),
];

#[tokio::test]
async fn the_first_valid_field_decides() {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).workers(1).start().await;
    for (n, (name, headers, ttl)) in ROWS.into_iter().enumerate() {
        let path = format!("/{n}");
        let reply = headers
            .iter()
            .fold(Reply::ok(1000), |reply, (name, value)| {
                reply.header(name, value)
            });
        origin.on(&path, reply);
        let miss = edge.get(&path).await;
        let hit = edge.get(&path).await;
        let fetches = if ttl.is_some() { 1 } else { 2 };
        assert_eq!(origin.count(&path), fetches, "{name}: {hit}");
        if let Some(ttl) = ttl {
            assert!(miss.cache_status().ends_with(ttl), "{name}: {miss}");
        }
        for response in [miss, hit] {
            for (header, value) in headers {
                let mut shown = response.headers.all(header).collect::<Vec<_>>().join(",");
                shown.retain(|byte| byte != ' ');
                let hidden = *header == "surrogate-control";
                assert_eq!(shown.is_empty(), hidden, "{name}: {response}");
                let value = value.replace(' ', "");
                assert!(hidden || shown.contains(&value), "{name}: {response}");
            }
        }
    }
}
