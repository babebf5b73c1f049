// SPDX-License-Identifier: Apache-2.0
//! A histogram of Prometheus, and its quantiles.

use serde::{Deserialize, Serialize};

use super::sample::Sample;

/// The name of the histogram of the times to the origin's first byte.
pub const ORIGIN_FIRST_BYTE: &str = "sluice_origin_first_byte_seconds";

/// A distribution of values in cumulative buckets.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Distribution {
    /// The upper bounds, in ascending order, each with the number of values that are at most as large.
    pub buckets: Vec<(f64, f64)>,
    /// The number of all values.
    pub count: f64,
}

impl Distribution {
    /// Adds a sample of the histogram `name`; leaves other samples out.
    pub fn add(&mut self, sample: &Sample<'_>, name: &str) {
        match sample.name.strip_prefix(name) {
            Some("_bucket") => {
                // `f64` reads the bound of the last bucket, `+Inf`, too.
                if let Ok(bound) = sample.label("le").parse() {
                    self.add_bucket(bound, sample.value);
                }
            }
            Some("_count") => self.count += sample.value,
            _ => {}
        }
    }

    /// Adds values to the bucket with this bound. The bucket without a bound is left out, because its number is that of
    /// all values.
    pub fn add_bucket(&mut self, bound: f64, number: f64) {
        if !bound.is_finite() {
            return;
        }
        match self.buckets.iter_mut().find(|(known, _)| *known == bound) {
            Some((_, sum)) => *sum += number,
            None => self.buckets.push((bound, number)),
        }
    }

    /// The values since an `earlier` state of the same distribution.
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |bound: f64| {
            let known = earlier.buckets.iter().find(|(known, _)| *known == bound);
            known.map_or(0.0, |(_, number)| *number)
        };
        let buckets = self.buckets.iter();
        Self {
            buckets: buckets
                .map(|(bound, number)| (*bound, number - before(*bound)))
                .collect(),
            count: self.count - earlier.count,
        }
    }

    /// The value below which this share of the values is, by linear interpolation as Prometheus's `histogram_quantile`
    /// does it. A value above all bounds counts as the last bound. `None`: there are no values.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        if self.count <= 0.0 {
            return None;
        }
        let rank = share * self.count;
        let (mut lower, mut below) = (0.0, 0.0);
        for (bound, number) in &self.buckets {
            if *number >= rank {
                let inside = (number - below).max(f64::MIN_POSITIVE);
                return Some(lower + (bound - lower) * (rank - below) / inside);
            }
            (lower, below) = (*bound, *number);
        }
        self.buckets.last().map(|(bound, _)| *bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution(buckets: &[(f64, f64)], count: f64) -> Distribution {
        let mut made = Distribution {
            count,
            ..Distribution::default()
        };
        for (bound, number) in buckets {
            made.add_bucket(*bound, *number);
        }
        made
    }

    #[test]
    fn a_quantile_is_interpolated_within_its_bucket() {
        let times = distribution(&[(0.1, 50.0), (0.5, 90.0), (f64::INFINITY, 100.0)], 100.0);
        assert_eq!(times.quantile(0.25), Some(0.05));
        assert_eq!(times.quantile(0.9), Some(0.5));
        assert_eq!(times.quantile(0.99), Some(0.5));
        assert_eq!(Distribution::default().quantile(0.5), None);
    }

    #[test]
    fn the_values_between_two_states_are_their_difference() {
        let earlier = distribution(&[(0.1, 50.0)], 60.0);
        let later = distribution(&[(0.1, 50.0), (0.5, 4.0)], 64.0);
        assert_eq!(
            later.since(&earlier),
            distribution(&[(0.1, 0.0), (0.5, 4.0)], 4.0)
        );
    }
}
