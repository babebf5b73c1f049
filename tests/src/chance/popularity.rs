// SPDX-License-Identifier: Apache-2.0
//! How often objects are requested, and the hit ratio of a bounded cache for such requests.

use crate::chance::rng::Rng;

/// Zipf's law: the object of rank `r`, counted from 1, gets a share of the requests in proportion to `r` to the power of
/// minus the exponent. Sites and content networks are found between 0.6 and 1.1 (Breslau et al., "Web Caching and Zipf-like
/// Distributions", 1999).
#[derive(Clone, Debug)]
pub struct Zipf {
    /// The share of this rank and of all ranks before it together.
    cumulative: Vec<f64>,
}

/// Which object a full cache evicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// The oldest one: Envoy's stores on file systems that keep no time of each access (`relatime`, `noatime`).
    FirstIn,
    /// The least recently used one: the same stores on `strictatime`.
    LeastRecentlyUsed,
}

impl Eviction {
    /// The probability that an object is in the cache that is requested `x` times, on average, while another one
    /// stays.
    fn occupancy(self, x: f64) -> f64 {
        match self {
            Self::FirstIn => x / (1.0 + x),
            Self::LeastRecentlyUsed => -(-x).exp_m1(),
        }
    }
}

impl Zipf {
    /// Creates the law for a number of objects, at least one.
    #[must_use]
    pub fn new(objects: usize, exponent: f64) -> Self {
        let mut total = 0.0;
        let mut cumulative: Vec<_> = (1..=objects)
            .map(|rank| {
                total += (rank as f64).powf(-exponent);
                total
            })
            .collect();
        for share in &mut cumulative {
            *share /= total;
        }
        Self { cumulative }
    }

    /// Number of objects.
    #[must_use]
    pub const fn objects(&self) -> usize {
        self.cumulative.len()
    }

    /// Share of the requests for the object of this rank, counted from 0.
    #[must_use]
    pub fn share(&self, rank: usize) -> f64 {
        let before = rank
            .checked_sub(1)
            .map_or(0.0, |before| self.cumulative[before]);
        self.cumulative[rank] - before
    }

    /// Rank of the object of the next request, counted from 0.
    pub fn draw(&self, rng: &mut Rng) -> usize {
        let point = rng.next() as f64 / u64::MAX as f64;
        let rank = self.cumulative.partition_point(|&share| share < point);
        rank.min(self.objects() - 1)
    }

    /// Share of requests that a cache answers. The cache has room for `room` objects, all of one size, and its
    /// objects never expire.
    ///
    /// One number says how long objects stay: the number for which the objects that are expected in the cache fill
    /// the room exactly. For the least recently used this is Che's approximation (Che, Tung, Wang: "Hierarchical Web
    /// Caching Systems", 2002); for first in, first out the same with another occupancy (Fagin, Price 1978; Martina,
    /// Garetto, Leonardi: "A unified approach to the performance analysis of caching systems", 2014).
    #[must_use]
    pub fn hit_ratio(&self, room: usize, eviction: Eviction) -> f64 {
        if room >= self.objects() {
            return 1.0;
        }
        let shares: Vec<_> = (0..self.objects()).map(|rank| self.share(rank)).collect();
        let expected = |stay: f64| -> f64 {
            let there = shares.iter().map(|share| eviction.occupancy(share * stay));
            there.sum()
        };
        let (mut short, mut long) = (0.0, 1.0);
        while expected(long) < room as f64 {
            long *= 2.0;
        }
        for _ in 0..60 {
            let middle = f64::midpoint(short, long);
            if expected(middle) < room as f64 {
                short = middle;
            } else {
                long = middle;
            }
        }
        let hits = shares
            .iter()
            .map(|share| share * eviction.occupancy(share * long));
        hits.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fall_with_the_rank_and_make_a_whole() {
        let zipf = Zipf::new(1000, 0.9);
        let shares: Vec<_> = (0..1000).map(|rank| zipf.share(rank)).collect();
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(shares.windows(2).all(|pair| pair[0] > pair[1]));
        let tenth = shares[0] / shares[9];
        assert!((tenth - 10_f64.powf(0.9)).abs() < 1e-6, "{tenth}");
    }

    #[test]
    fn draws_follow_the_shares() {
        let zipf = Zipf::new(50, 1.0);
        let mut rng = Rng::new(7);
        let mut counts = [0_u32; 50];
        for _ in 0..100_000 {
            counts[zipf.draw(&mut rng)] += 1;
        }
        for rank in [0, 1, 10, 49] {
            let expected = zipf.share(rank) * 100_000.0;
            let off = (f64::from(counts[rank]) - expected).abs();
            assert!(
                off < 5.0 * expected.sqrt(),
                "{rank}: {} of {expected}",
                counts[rank]
            );
        }
    }

    #[test]
    fn equally_popular_objects_are_hit_by_the_share_that_has_room() {
        let zipf = Zipf::new(1000, 0.0);
        for eviction in [Eviction::FirstIn, Eviction::LeastRecentlyUsed] {
            let ratio = zipf.hit_ratio(250, eviction);
            assert!((ratio - 0.25).abs() < 1e-6, "{eviction:?}: {ratio}");
        }
    }

    #[test]
    fn more_room_and_better_eviction_hit_more() {
        let zipf = Zipf::new(10_000, 0.9);
        let first = |room| zipf.hit_ratio(room, Eviction::FirstIn);
        assert!(first(100) < first(200));
        assert!(first(100) < zipf.hit_ratio(100, Eviction::LeastRecentlyUsed));
        assert!((first(10_000) - 1.0).abs() < f64::EPSILON);
    }
}
