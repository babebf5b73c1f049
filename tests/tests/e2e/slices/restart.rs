// SPDX-License-Identifier: Apache-2.0
//! Slices and the index of their object survive a restart and a crash: also the first client gets slices, of the store.

use super::world::{Asked, KNOWN, SLICES, UNKNOWN, assert_whole, edge, object, origin};
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::origin::Origin;
use std::fs;
use test_case::test_case;

/// An edge that has stored all slices of the object, and its headers if a HEAD has asked for them.
async fn start(path: &str) -> (Origin, Edge) {
    let origin = origin(&object(1)).await;
    // Another worker could not have heard of the object yet.
    let edge = edge(&origin).workers(1).start().await;
    for _ in 0..2 {
        assert_whole(&edge.get(path).await, path, 1);
    }
    let asked = Asked::of(origin.requests(), path);
    assert_eq!(asked.heads, usize::from(path == KNOWN), "{asked:?}");
    asked.assert_each_slice_once();
    edge.wait_for_manifest((SLICES + asked.heads) as u64).await;
    (origin, edge)
}

/// Waits until the files of this number of earlier runs are in use again.
async fn wait_for_check(edge: &Edge, runs: usize) {
    eventually("the end of the check", async || {
        edge.log_lines("files of earlier runs are whole").len() == runs
    })
    .await;
}

/// Waits for the files of this number of earlier runs, and checks that the origin sends the headers of the object once
/// in all runs, and no bytes again.
async fn assert_stored(origin: &Origin, edge: &Edge, path: &str, runs: usize, before: &Asked) {
    wait_for_check(edge, runs).await;
    for _ in 0..2 {
        let response = edge.get(path).await;
        assert_whole(&response, path, 1);
        assert!(response.is_hit(), "{response}");
        let asked = Asked::of(origin.requests(), path);
        assert_eq!((asked.heads, asked.wholes), (1, before.wholes), "{asked:?}");
        assert_eq!(asked.slices, before.slices);
    }
}

#[test_case(KNOWN; "of a known path")]
#[test_case(UNKNOWN; "of an unknown path, whose headers a HEAD asks for")]
#[tokio::test]
async fn slices_and_their_index_survive_a_restart(path: &str) {
    let (origin, mut edge) = start(path).await;
    let before = Asked::of(origin.requests(), path);
    edge.restart().await;
    assert_stored(&origin, &edge, path, 1, &before).await;
    edge.wait_for_manifest(SLICES as u64 + 1).await;
    edge.restart().await;
    assert_stored(&origin, &edge, path, 2, &before).await;
}

#[test_case(KNOWN; "of a known path")]
#[test_case(UNKNOWN; "of an unknown path, whose headers a HEAD asks for")]
#[tokio::test]
async fn slices_and_their_index_survive_a_crash(path: &str) {
    let (origin, mut edge) = start(path).await;
    let before = Asked::of(origin.requests(), path);
    edge.crash(|_| {}).await;
    assert_stored(&origin, &edge, path, 1, &before).await;
}

#[tokio::test]
async fn control_without_the_list_of_urls_the_object_passes_once_more() {
    let (origin, mut edge) = start(UNKNOWN).await;
    edge.crash(|cache| fs::remove_file(cache.join("large-urls")).unwrap())
        .await;
    wait_for_check(&edge, 1).await;
    for _ in 0..2 {
        assert_whole(&edge.get(UNKNOWN).await, UNKNOWN, 1);
    }
    let asked = Asked::of(origin.requests(), UNKNOWN);
    assert_eq!(asked.wholes, 1 + 1, "{asked:?}");
    asked.assert_each_slice_once();
}
