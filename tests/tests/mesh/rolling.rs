// SPDX-License-Identifier: Apache-2.0
//! Clients at a constant rate while their servers are replaced: the caches one after another, then the policy and the
//! module of all.

use crate::fleet::{Owners, fill, moved, targets};
use sluice_tests::client::load::{Load, Plan, Seen};
use sluice_tests::mesh::fleet::Fleet;
use sluice_tests::mesh::pod::Place;
use std::time::Instant;

/// Requests per second.
const RATE: u32 = 200;
/// Number of requests in the measurements before and after the replacement.
const ENOUGH: usize = 400;

/// How a cache is replaced.
#[derive(Clone, Copy, Debug)]
enum Replacement {
    /// Another pod, which is empty, starts before the former one ends: a Deployment.
    Empty,
    /// The same pod starts again with its volume and at its address: a container restart.
    Kept,
    /// Another pod starts with the former pod's volume, at another address, after the former one has ended: a
    /// StatefulSet.
    KeptElsewhere,
}

/// A fleet under load. The owner of each object has the object in its store.
struct Exercise {
    fleet: Fleet,
    load: Load,
    objects: Vec<String>,
    owners: Owners,
    /// Number of times that an object has moved to another owner.
    moved: usize,
}

impl Exercise {
    async fn begin(name: &str) -> Self {
        let fleet = Fleet::builder(name).await.start().await;
        let objects = targets(120);
        fill(&fleet, &objects, 2_000).await;
        for target in &objects {
            fleet.hit(target).await;
        }
        assert_eq!(fleet.all_fetches(), objects.len());
        let load = Load::start(Plan {
            rate: RATE,
            addresses: vec![fleet.http(0), fleet.http(1)],
            targets: objects.clone(),
            keeps_connections: true,
        });
        let owners = fleet.owners(0, &objects).await;
        Self {
            fleet,
            load,
            objects,
            owners,
            moved: 0,
        }
    }

    /// Counts the objects that have another owner now, and waits until each has been requested from its new owner.
    async fn settle(&mut self) {
        let owners = self.fleet.owners(0, &self.objects).await;
        self.moved += moved(&self.owners, &owners).len();
        self.owners = owners;
        self.load.more(2 * self.objects.len()).await;
    }

    /// Replaces the cache that has run for the longest time.
    async fn replace(&mut self, how: Replacement) {
        match how {
            Replacement::Empty => {
                self.fleet.add_cache().await;
                self.settle().await;
                self.fleet.retire(0).await;
            }
            Replacement::Kept => {
                self.fleet.withdraw(0).await;
                self.settle().await;
                self.fleet.caches[0].restart().await;
                self.fleet.known(&self.fleet.caches[0], true).await;
                self.fleet.caches.rotate_left(1);
            }
            Replacement::KeptElsewhere => {
                let former = self.fleet.retire(0).await;
                self.settle().await;
                let place = Place::with_volume_of(former);
                self.fleet.add_cache_in(place).await;
            }
        }
        self.settle().await;
    }

    /// Measurements of the clients since `from`.
    async fn seen(&self, what: &str, from: Instant) -> Seen {
        let seen = self.load.since(from);
        println!("{what}: {seen}");
        assert_eq!(seen.failures, Vec::<String>::new(), "{what}");
        seen
    }

    /// Replaces each cache in turn, and returns the number of fetched objects and of moves.
    async fn replace_all(&mut self, how: Replacement) -> (usize, usize) {
        let (fetched, moved) = (self.fleet.all_fetches(), self.moved);
        let from = Instant::now();
        self.load.more(ENOUGH).await;
        self.seen(&format!("{how:?}, before"), from).await;
        assert_eq!(self.fleet.all_fetches(), fetched);
        let from = Instant::now();
        for _ in 0..self.fleet.caches.len() {
            self.replace(how).await;
        }
        self.seen(&format!("{how:?}, while"), from).await;
        let (fetched, moved) = (self.fleet.all_fetches() - fetched, self.moved - moved);
        println!("{how:?}: {fetched} objects fetched, {moved} times one moved");
        fetched_is_moved_at_most(fetched, moved);
        let from = Instant::now();
        self.load.more(ENOUGH).await;
        self.seen(&format!("{how:?}, after"), from).await;
        (fetched, moved)
    }
}

/// Checks that a new owner of a key fetches the key's object at most once.
fn fetched_is_moved_at_most(fetched: usize, moved: usize) {
    assert!(fetched <= moved, "{fetched} fetched, {moved} moved");
}

#[tokio::test]
async fn each_cache_is_replaced_and_only_keys_that_move_are_fetched() {
    let mut exercise = Exercise::begin("rolling").await;
    let objects = exercise.objects.len();
    let (fetched, _) = exercise.replace_all(Replacement::Empty).await;
    // Every cache is a new one, so each object has been fetched again.
    assert!(fetched >= objects, "{fetched}");
    // A cache that returns still has all its objects. Only the caches that replaced it meanwhile have fetched them.
    let (fetched, moved) = exercise.replace_all(Replacement::Kept).await;
    assert!(fetched * 2 <= moved, "{fetched} fetched, {moved} moved");
    exercise.replace_all(Replacement::KeptElsewhere).await;
}
