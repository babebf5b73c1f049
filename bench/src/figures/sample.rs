// SPDX-License-Identifier: Apache-2.0
//! Measured times, in milliseconds.

use std::time::Duration;

/// A set of times.
#[derive(Clone, Debug, Default)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// The times of one round.
    pub fn new(times: impl IntoIterator<Item = Duration>) -> Self {
        let mut times: Vec<_> = times
            .into_iter()
            .map(|time| time.as_secs_f64() * 1e3)
            .collect();
        times.sort_by(f64::total_cmp);
        Self(times)
    }

    /// Any figures.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut figures: Vec<_> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        Self(figures)
    }

    /// Those of several rounds together.
    pub fn pool<'a>(samples: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut times: Vec<_> = samples
            .into_iter()
            .flat_map(|sample| sample.0.clone())
            .collect();
        times.sort_by(f64::total_cmp);
        Self(times)
    }

    /// The smallest time that so large a part (0 to 1) does not exceed.
    ///
    /// # Panics
    /// When there is none.
    pub fn quantile(&self, part: f64) -> f64 {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss
        )]
        let rank = (self.0.len() as f64 * part).ceil() as usize;
        self.0[rank.clamp(1, self.0.len()) - 1]
    }

    /// The median.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The longest.
    pub fn max(&self) -> f64 {
        self.quantile(1.0)
    }

    /// All, in order.
    pub fn times(&self) -> &[f64] {
        &self.0
    }
}

/// The smallest and the largest.
pub fn extremes(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    values.into_iter().fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(least, most), value| (least.min(value), most.max(value)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_measured_times() {
        let sample = Sample::new((1..=100).rev().map(Duration::from_millis));
        let at = [0.0, 0.5, 0.9, 0.99, 1.0].map(|part| sample.quantile(part));
        assert_eq!(at, [1.0, 50.0, 90.0, 99.0, 100.0]);
    }
}
