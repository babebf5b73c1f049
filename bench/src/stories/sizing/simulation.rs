// SPDX-License-Identifier: Apache-2.0
//! Simulated caches without servers.

use lru::LruCache;
use sluice_tests::chance::popularity::{Eviction, Zipf};
use sluice_tests::chance::rng::{Rng, mix};
use std::num::NonZeroUsize;

/// The pod that gets a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// Any pod, as a Service balances.
    Anyone,
    /// The pod that owns the key, as in a fleet.
    Owner,
}

/// Pods with a cache each.
#[derive(Clone, Copy, Debug)]
pub struct Pods {
    /// Number of pods.
    pub number: usize,
    /// Room of each pod, in objects.
    pub room: NonZeroUsize,
    /// The object that a full cache evicts.
    pub eviction: Eviction,
    /// The pod that gets a request.
    pub balance: Balance,
}

/// Result of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The share of requests that a cache answered.
    pub hit_ratio: f64,
    /// The requests of the busiest pod, as a multiple of the mean.
    pub busiest: f64,
}

impl Pods {
    /// Sends `requests` requests to fill the caches, then as many more, which are counted.
    pub fn simulate(&self, zipf: &Zipf, requests: usize) -> Outcome {
        let mut rng = Rng::new(1);
        let mut caches = vec![LruCache::new(self.room); self.number];
        let mut of_pod = vec![0_usize; self.number];
        let mut hits = 0_usize;
        for request in 0..2 * requests {
            let object = zipf.draw(&mut rng);
            let pod = match self.balance {
                Balance::Anyone => rng.below(self.number),
                Balance::Owner => usize::try_from(mix(object as u64)).unwrap() % self.number,
            };
            let hit = self.asks(&mut caches[pod], object);
            if request >= requests {
                of_pod[pod] += 1;
                hits += usize::from(hit);
            }
        }
        let most = of_pod.into_iter().max().unwrap_or(0);
        Outcome {
            hit_ratio: hits as f64 / requests as f64,
            busiest: (most * self.number) as f64 / requests as f64,
        }
    }

    /// Whether the object is cached; afterwards it is.
    fn asks(&self, cache: &mut LruCache<usize, ()>, object: usize) -> bool {
        let there = match self.eviction {
            Eviction::LeastRecentlyUsed => cache.get(&object).is_some(),
            Eviction::FirstIn => cache.peek(&object).is_some(),
        };
        if !there {
            cache.push(object, ());
        }
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods(number: usize, balance: Balance) -> Pods {
        Pods {
            number,
            room: NonZeroUsize::new(100).unwrap(),
            eviction: Eviction::FirstIn,
            balance,
        }
    }

    #[test]
    fn simulations_agree_with_the_formula() {
        let zipf = Zipf::new(5_000, 0.9);
        for eviction in [Eviction::FirstIn, Eviction::LeastRecentlyUsed] {
            let one = Pods {
                eviction,
                ..pods(1, Balance::Anyone)
            };
            let simulated = one.simulate(&zipf, 50_000).hit_ratio;
            let formula = zipf.hit_ratio(100, eviction);
            assert!(
                (simulated - formula).abs() < 0.01,
                "{eviction:?}: {simulated} {formula}"
            );
        }
    }

    #[test]
    fn pods_by_themselves_hit_no_more_than_one_and_a_fleet_hits_as_one_of_the_size_of_all() {
        let zipf = Zipf::new(5_000, 0.9);
        let apart = pods(4, Balance::Anyone).simulate(&zipf, 50_000).hit_ratio;
        assert!(
            (apart - zipf.hit_ratio(100, Eviction::FirstIn)).abs() < 0.01,
            "{apart}"
        );
        let fleet = pods(4, Balance::Owner).simulate(&zipf, 50_000).hit_ratio;
        assert!(
            (fleet - zipf.hit_ratio(400, Eviction::FirstIn)).abs() < 0.02,
            "{fleet}"
        );
    }
}
