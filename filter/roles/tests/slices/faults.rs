// SPDX-License-Identifier: Apache-2.0
//! Responses in slices while something fails: a worker, the disk.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_fake::{Ending, Stage};

use super::world::*;
use crate::support::assert_all_over;

#[test]
fn a_trap_ends_the_sliced_responses_of_its_worker_alone() {
    let mut envoy = workers(2);
    introduce(&mut envoy, &OBJECT);
    let clients = [1, 0].map(|seat| get(&mut envoy, seat));
    answer_first(&mut envoy, &OBJECT);
    envoy.kill(0);
    assert!(matches!(envoy.stage(clients[1]), Stage::Over(ending) if ending != Ending::Served));
    envoy.revive(0);
    serve(&mut envoy, &OBJECT);
    assert_whole(&envoy, clients[0], &OBJECT);
}

#[test]
fn slices_and_their_index_survive_a_restart() {
    let mut envoy = workers_that_know(1, "/7*", 0);
    introduce(&mut envoy, &OBJECT);
    envoy.kill(0);
    envoy.revive(0);
    let before = envoy.fetches.len();
    let client = get(&mut envoy, 0);
    serve(&mut envoy, &OBJECT);
    assert!(is_sliced(&envoy, client));
    assert_whole(&envoy, client, &OBJECT);
    assert_eq!(envoy.fetches.len(), before, "the store has all");
    assert_all_over(&mut envoy);
}

#[test]
fn a_full_disk_stores_no_slice_and_serves_all() {
    let mut envoy = workers(1);
    introduce(&mut envoy, &OBJECT);
    envoy.full = true;
    envoy.advance(2_000);
    for _ in 0..2 {
        let before = ranges(&envoy).len();
        let client = get(&mut envoy, 0);
        serve(&mut envoy, &OBJECT);
        assert_whole(&envoy, client, &OBJECT);
        assert_eq!(ranges(&envoy).len() - before, 3);
    }
    assert_all_over(&mut envoy);
}
