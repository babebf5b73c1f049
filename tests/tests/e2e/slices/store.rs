// SPDX-License-Identifier: Apache-2.0
//! A full disk stores no slices and serves all.

use super::world::{Asked, KNOWN, UNKNOWN, assert_part, assert_whole, edge, object, origin};
use sluice_tests::edge::store::Medium;
use sluice_tests::eventually;
use test_case::test_case;

#[test_case(Medium::Disk; "on disk")]
#[test_case(Medium::Memory; "in memory")]
#[tokio::test]
async fn on_a_full_disk_all_is_served_and_nothing_is_stored(medium: Medium) {
    let origin = origin(&object(1)).await;
    let edge = edge(&origin)
        .medium(medium)
        .env("SLUICE_CACHE_MAX_BYTES", "128MiB");
    let edge = edge.disk(192 << 20).start().await;
    let filling = edge.disk().fill(0);
    edge.wait_for_log("nothing is stored until there is more")
        .await;
    for path in [KNOWN, UNKNOWN] {
        for _ in 0..3 {
            assert_whole(&edge.get(path).await, path, 1);
            let part = edge
                .send("GET", path, &[("range", "bytes=5000000-5000099")])
                .await;
            assert_part(&part, path, 5_000_000..5_000_100);
        }
    }
    let before = Asked::of(origin.requests(), KNOWN);
    assert!(before.slices.values().all(|times| *times > 1), "{before:?}");
    drop(filling);
    edge.wait_for_log("responses are stored again").await;
    eventually("a hit", async || {
        let response = edge.get(KNOWN).await;
        assert_whole(&response, KNOWN, 1);
        let asked = Asked::of(origin.requests(), KNOWN);
        let again = edge.get(KNOWN).await;
        again.is_hit() && Asked::of(origin.requests(), KNOWN) == asked
    })
    .await;
}
