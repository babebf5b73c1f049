// SPDX-License-Identifier: Apache-2.0
//! Measurements of the results that mesh/SIZING.md computes.

use crate::fleet::{fill, targets};
use sluice_tests::chance::popularity::{Eviction, Zipf};
use sluice_tests::chance::rng::Rng;
use sluice_tests::client::{Client, request};
use sluice_tests::mesh::fleet::Fleet;
use sluice_tests::mesh::kustomize::changed_policy;

const OBJECTS: usize = 1_000;
/// Number of objects for which each cache has room.
const ROOM: usize = 60;

/// Sends so many requests to both gateways in turn. Returns the share of requests that did not reach the bucket.
async fn hit_ratio(fleet: &Fleet, zipf: &Zipf, rng: &mut Rng, requests: usize) -> f64 {
    let targets = targets(OBJECTS);
    let before = fleet.all_fetches();
    let mut clients = [
        Client::connect(fleet.http(0)).await,
        Client::connect(fleet.http(1)).await,
    ];
    for number in 0..requests {
        let target = &targets[zipf.draw(rng)];
        let answer = clients[number % 2]
            .exchange(request("GET", target, &[]))
            .await;
        let _ = answer.stamp(target);
    }
    1.0 - (fleet.all_fetches() - before) as f64 / requests as f64
}

#[tokio::test]
async fn a_fleet_of_three_hits_as_one_cache_with_the_room_of_all() {
    let fleet = Fleet::builder("sizing").await;
    // The copies in memory are off, because the formula is for the store alone.
    let policy = changed_policy("base", |policy| policy["hot"]["max_bytes"] = 0.into());
    let fleet =
        fleet.tier_two(|overlay| overlay.store("max_cache_entry_count", ROOM).policy(&policy));
    let fleet = fleet.start().await;
    fill(&fleet, &targets(OBJECTS), 1_000).await;
    let zipf = Zipf::new(OBJECTS, 0.9);
    let mut rng = Rng::new(1);
    hit_ratio(&fleet, &zipf, &mut rng, 2_500).await;
    let measured = hit_ratio(&fleet, &zipf, &mut rng, 4_000).await;
    // The lower bound is for file systems that do not record each access. The upper bound is for others.
    let worst = zipf.hit_ratio(3 * ROOM, Eviction::FirstIn);
    let best = zipf.hit_ratio(3 * ROOM, Eviction::LeastRecentlyUsed);
    let apart = zipf.hit_ratio(ROOM, Eviction::LeastRecentlyUsed);
    println!(
        "hit ratio {measured:.3}; by the formula {worst:.3} to {best:.3}, of one cache at most {apart:.3}"
    );
    assert!(
        (worst - 0.04..best + 0.04).contains(&measured),
        "{measured}: {worst} to {best}"
    );
    assert!(measured > apart + 0.04, "{measured}: {apart}");
}
