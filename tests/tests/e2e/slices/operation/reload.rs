// SPDX-License-Identifier: Apache-2.0
//! The size of slices changes while the edge serves. Responses that run end with their own plan, and no slice of one
//! size is read as one of another.

use crate::slices::world::{KNOWN, OBJECT, SLICE, SLICES, assert_whole, object, origin};
use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;
use sluice_tests::edge::direct::Direct;
use sluice_tests::origin::Origin;
use std::collections::BTreeMap;

/// Changes the size of slices, for the `times`-th time.
async fn change(edge: &Edge, mib: u64, times: u64) {
    edge.update_policy(&|policy| policy["store"]["slices"]["bytes"] = (mib << 20).into());
    edge.wait_for_counter("listener_manager.listener_modified", times)
        .await;
    // Until then, workers of the former listener still accept connections.
    edge.wait_for_value("listener_manager.total_listeners_warming", 0)
        .await;
}

/// The numbers of whole slices that the origin has sent, by their size in MiB.
fn sizes(origin: &Origin) -> BTreeMap<usize, usize> {
    let mut sizes = BTreeMap::new();
    for request in origin.requests().of(KNOWN) {
        let range = request.headers.get("range").unwrap_or("bytes=0-0");
        let (first, last) = range.trim_start_matches("bytes=").split_once('-').unwrap();
        let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
        if request.method == "GET" && last + 1 < OBJECT {
            *sizes.entry((last + 1 - first) / SLICE).or_default() += 1;
        }
    }
    sizes
}

#[tokio::test]
async fn responses_end_with_their_own_plan_when_the_size_of_slices_changes() {
    let origin = origin(&object(1)).await;
    let edge = Edge::http(&origin).origin_decides();
    let direct = Direct {
        listener_file: true,
        ..Direct::default()
    };
    let edge = edge.direct(direct).start().await;
    let mut running = Client::connect_narrow(edge.address()).await;
    running.send(request("GET", KNOWN, &[])).await.unwrap();
    let (head, response) = running.head().await.unwrap();
    change(&edge, 2, 1).await;
    assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
    assert_whole(&running.rest(&head, response).await.unwrap(), KNOWN, 1);
    // Each slice of either size is requested once.
    let slices = sizes(&origin);
    assert_eq!(slices, [(1, SLICES - 1), (2, OBJECT / (2 * SLICE))].into());
    for (mib, times) in [(1, 2), (2, 3)] {
        change(&edge, mib, times).await;
        let response = edge.get(KNOWN).await;
        assert_whole(&response, KNOWN, 1);
        assert!(response.is_hit(), "{response}");
    }
    assert_eq!(sizes(&origin), slices, "all slices are stored");
}
