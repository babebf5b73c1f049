// SPDX-License-Identifier: Apache-2.0
//! Distributions of times as in `HdrHistogram`: each time is counted, to three significant digits.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use std::time::{Duration, SystemTime};

/// The percentiles of curves, dense at the end.
pub const PERCENTILES: [f64; 21] = [
    0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 97.5, 99.0, 99.5, 99.75, 99.9, 99.95, 99.975, 99.99,
    99.995, 99.9975, 99.999, 99.9995, 99.9999, 100.0,
];

const NANOSECONDS: f64 = 1e6;

/// The times of one run.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// In nanoseconds, from a microsecond on.
    histogram: Histogram<u64>,
    began: SystemTime,
    ended: SystemTime,
}

impl Distribution {
    /// Makes a distribution of these times, measured from `began` to now.
    pub fn since(began: SystemTime, times: impl IntoIterator<Item = Duration>) -> Self {
        let bounds = Histogram::new_with_bounds(1_000, 1_000_000_000, 3);
        let mut histogram = bounds.expect("bounds of a histogram");
        histogram.auto(true);
        for time in times {
            let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            histogram
                .record(nanoseconds)
                .expect("a time of less than 500 years");
        }
        Self {
            histogram,
            began,
            ended: SystemTime::now(),
        }
    }

    /// Number of times.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The milliseconds that this many percent do not exceed; NaN if there are no times.
    pub fn percentile(&self, wanted: f64) -> f64 {
        if self.histogram.is_empty() {
            return f64::NAN;
        }
        self.milliseconds(self.histogram.value_at_percentile(wanted))
    }

    /// Average in milliseconds.
    pub fn average(&self) -> f64 {
        self.histogram.mean() / NANOSECONDS
    }

    /// The distributions of several runs together.
    ///
    /// # Panics
    /// When there are none.
    pub fn pool<'a>(several: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut several = several.into_iter();
        let mut pool = several.next().expect("a distribution").clone();
        for other in several {
            pool.histogram
                .add(&other.histogram)
                .expect("a histogram that grows");
            pool.ended = other.ended;
        }
        pool
    }

    /// Its curve by nines: `x` is 1 where a tenth takes longer, 2 where a hundredth does. The curve ends at the
    /// longest time, and leaves out percentiles for which there are too few times.
    #[allow(clippy::cast_precision_loss)]
    pub fn by_nines(&self) -> Vec<(f64, f64)> {
        let last = (self.count().max(1) as f64).log10();
        let nines = PERCENTILES.map(|wanted| -(1.0 - wanted / 100.0).log10());
        let inner = nines.into_iter().zip(self.curve());
        let mut curve: Vec<_> = inner.take_while(|(nines, _)| *nines < last).collect();
        curve.push((last, self.percentile(100.0)));
        curve
    }

    /// The times of [`PERCENTILES`].
    pub fn curve(&self) -> Vec<f64> {
        PERCENTILES.map(|wanted| self.percentile(wanted)).to_vec()
    }

    #[allow(clippy::cast_precision_loss)]
    fn milliseconds(&self, nanoseconds: u64) -> f64 {
        // The histogram returns the upper end of its bucket, which may exceed the measured times.
        nanoseconds.min(self.histogram.max()) as f64 / NANOSECONDS
    }
}

/// `HdrHistogram`'s interval log: a line for each distribution, with its name as the tag.
///
/// # Panics
/// Never: it writes into memory.
pub fn interval_log(named: &[(String, Distribution)]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder
        .add_comment("[Histogram log format version 1.3]")
        .add_comment("Nanoseconds; the largest in milliseconds")
        .with_max_value_divisor(NANOSECONDS);
    let mut writer = builder
        .begin_log_with(&mut text, &mut serializer)
        .expect("a log in memory");
    for (name, distribution) in named {
        let name = tag(name);
        let since_epoch = distribution.began.duration_since(SystemTime::UNIX_EPOCH);
        let length = distribution.ended.duration_since(distribution.began);
        writer
            .write_histogram(
                &distribution.histogram,
                since_epoch.unwrap_or_default(),
                length.unwrap_or_default(),
                Tag::new(&name),
            )
            .expect("a histogram in memory");
    }
    text
}

/// Makes a name a valid tag.
fn tag(name: &str) -> String {
    name.replace(", ", "/").replace([' ', ',', '\n', '\r'], "-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    fn hundred() -> Distribution {
        Distribution::since(
            SystemTime::now(),
            (1..=100).rev().map(Duration::from_millis),
        )
    }

    #[test]
    fn percentiles_are_right_to_a_thousandth() {
        let found = [0.0, 50.0, 99.0, 100.0].map(|wanted| hundred().percentile(wanted));
        for (found, exact) in found.into_iter().zip([1.0, 50.0, 99.0, 100.0]) {
            assert!((found / exact - 1.0).abs() < 1e-3, "{found} for {exact}");
        }
        assert!((hundred().average() / 50.5 - 1.0).abs() < 1e-3);
        let none = Distribution::since(SystemTime::now(), []);
        assert!(none.percentile(50.0).is_nan());
    }

    #[test]
    fn a_curve_ends_where_the_times_end() {
        let curve = hundred().by_nines();
        assert!(curve.iter().any(|(nines, _)| (nines - 1.0).abs() < 1e-9));
        assert!(curve.iter().all(|(nines, _)| *nines <= 2.0), "{curve:?}");
        assert!((curve.last().unwrap().1 / 100.0 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn a_pool_has_the_times_of_all() {
        let hour = Distribution::since(SystemTime::now(), [Duration::from_secs(3_600)]);
        let pool = Distribution::pool([&hundred(), &hour]);
        assert_eq!(pool.count(), 101);
        assert!(pool.percentile(100.0) > 3_599e3);
    }

    #[test]
    fn long_times_are_kept() {
        let hour = Duration::from_secs(3_600);
        let distribution = Distribution::since(SystemTime::now(), [hour]);
        assert!((distribution.percentile(100.0) / 3_600e3 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn the_log_is_read_by_others() {
        let text = interval_log(&[("nginx, no lock".to_owned(), hundred())]);
        let entries: Vec<_> = IntervalLogIterator::new(&text)
            .map(Result::unwrap)
            .collect();
        let interval = entries.into_iter().find_map(|entry| match entry {
            LogEntry::Interval(interval) => Some(interval),
            _ => None,
        });
        let interval = interval.expect("a histogram");
        assert_eq!(interval.tag().unwrap().as_str(), "nginx/no-lock");
        let encoded = base64::Engine::decode(
            &base64::engine::general_purpose::STANDARD,
            interval.encoded_histogram(),
        );
        let read: Histogram<u64> = Deserializer::new()
            .deserialize(&mut &encoded.unwrap()[..])
            .unwrap();
        assert_eq!(read, hundred().histogram);
    }
}
