// SPDX-License-Identifier: Apache-2.0
//! The demo: its start, and its page in a real browser, which shows the `Cache-Status` of each object.

use sluice_tests::client::browser::Browser;
use sluice_tests::edge::{Builder, Edge};
use std::collections::BTreeMap;

/// Object that the page itself shows as well, so that the script may get a miss or a hit.
const LOGO: &str = "images/sluice.svg";
const MISSING: &str = "text/does-not-exist.txt";

/// The status and the `Cache-Status` of each object on the page.
type Shown = BTreeMap<String, (String, String)>;

fn demo() -> Builder {
    let minio = sluice_tests::bucket::minio::binary();
    let demo = Builder::new().env("SLUICE_MINIO", minio.display().to_string());
    // The disk of the testing machine may be nearly full.
    demo.env("SLUICE_CACHE_RESERVE", "0")
}

#[tokio::test]
async fn the_first_start_says_where_the_edge_is_and_warns_of_nothing() {
    // These are the limits of a usual container and of a usual shell.
    for open_files in [20_000, 4_096] {
        let edge = demo().open_files(open_files).start().await;
        edge.wait_for_log("admin interface").await;
        let log = edge.log();
        let ready = format!(
            "sluice: http://{}/ is ready, in front of s3://",
            edge.address()
        );
        let lines: Vec<_> = log.lines().collect();
        assert_eq!(lines.len(), 2, "{log}");
        assert!(lines[0].contains(&ready), "{log}");
    }
}

#[tokio::test]
async fn the_page_shows_misses_and_then_hits() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let edge = demo().start().await;
    let first = shown(&edge, &browser).await;
    assert_eq!(first.len(), 13, "{first:#?}");
    for (key, (status, cache)) in &first {
        let wanted = if key == MISSING { "404" } else { "200" };
        assert_eq!(status, wanted, "{key}: {cache}");
        assert!(cache.contains("sluice; "), "{key}: {cache}");
        if key != LOGO {
            assert!(cache.contains("fwd=uri-miss"), "{key}: {cache}");
            assert!(cache.contains("stored"), "{key}: {cache}");
        }
    }
    let second = shown(&edge, &browser).await;
    for (key, (_, cache)) in second.iter().filter(|(key, _)| *key != MISSING) {
        assert!(cache.contains("sluice; hit"), "{key}: {cache}");
    }
    assert_eq!(second.len(), first.len());
}

/// Returns the contents of the page after it has loaded all objects.
async fn shown(edge: &Edge, browser: &Browser) -> Shown {
    let page = browser
        .document(&format!("http://{}/", edge.address()))
        .await;
    assert!(page.contains("data-state=\"done\""), "{page}");
    let rows = page.split("<tr ").skip(1).filter_map(|row| {
        let attribute = |name: &str| {
            let (_, rest) = row.split_once(&format!("{name}=\""))?;
            Some(rest.split_once('"')?.0.replace("&amp;", "&"))
        };
        let said = (attribute("data-status")?, attribute("data-cache-status")?);
        Some((attribute("data-key")?, said))
    });
    rows.collect()
}
