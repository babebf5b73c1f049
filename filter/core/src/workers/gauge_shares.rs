// SPDX-License-Identifier: Apache-2.0
//! The share of each worker in the gauges, which the host adds up. When a VM has died, its successor subtracts the
//! share of the dead worker.

use crate::host::SharedStore;
use crate::metrics::Metric;
use crate::workers::WorkerId;
use crate::workers::byte_reader::ByteReader;
use crate::workers::shared_value::{self, SharedError};

const KEY: &str = "sluice/gauges";

/// All gauges, in the order of their values in a share.
pub const GAUGES: [Metric; 9] = [
    Metric::FeedAge,
    Metric::FeedNumber,
    Metric::ParkedNow,
    Metric::FlightsNow,
    Metric::HintsNow,
    Metric::SliceIndexesNow,
    Metric::SlicedNow,
    Metric::HotObjectsNow,
    Metric::HotBytesNow,
];

/// The share of one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GaugeShare {
    /// The worker.
    pub worker: WorkerId,
    /// The root context that receives the worker's messages.
    pub receiver: u32,
    /// The values, by the position in [`GAUGES`].
    pub values: [u64; GAUGES.len()],
}

/// The shares of all workers, in shared data.
#[derive(Debug)]
pub struct GaugeShares<'a> {
    store: &'a dyn SharedStore,
}

impl<'a> GaugeShares<'a> {
    /// The shares in `store`.
    pub fn new(store: &'a dyn SharedStore) -> Self {
        Self { store }
    }

    /// Replaces the share of its worker.
    ///
    /// # Errors
    /// The host refused a call, or other workers were faster too often.
    pub fn put(&self, share: &GaugeShare) -> Result<(), SharedError> {
        shared_value::update(self.store, KEY, |bytes| {
            let mut shares = decode(bytes);
            shares.retain(|other| other.worker != share.worker);
            shares.extend((share.values.iter().any(|value| *value > 0)).then_some(*share));
            (Some(encode(&shares)), ())
        })
    }

    /// Removes the share of a worker, and returns it. `None` if all its values are 0.
    ///
    /// # Errors
    /// As [`GaugeShares::put`].
    pub fn take(&self, worker: WorkerId) -> Result<Option<GaugeShare>, SharedError> {
        shared_value::update(self.store, KEY, |bytes| {
            let mut shares = decode(bytes);
            let position = shares.iter().position(|share| share.worker == worker);
            let taken = position.map(|position| shares.swap_remove(position));
            (taken.is_some().then(|| encode(&shares)), taken)
        })
    }

    /// The shares that are not 0.
    ///
    /// # Errors
    /// The host refused the call.
    pub fn all(&self) -> Result<Vec<GaugeShare>, SharedError> {
        Ok(decode(&shared_value::read(self.store, KEY)?))
    }
}

fn encode(shares: &[GaugeShare]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for share in shares {
        bytes.extend(share.worker.0.to_le_bytes());
        bytes.extend(share.receiver.to_le_bytes());
        bytes.extend(share.values.iter().flat_map(|value| value.to_le_bytes()));
    }
    bytes
}

fn decode(bytes: &[u8]) -> Vec<GaugeShare> {
    let mut reader = ByteReader(bytes);
    let mut read = || {
        let (worker, receiver) = (WorkerId(reader.u16()?), reader.u32()?);
        let mut values = [0; GAUGES.len()];
        for value in &mut values {
            *value = reader.u64()?;
        }
        Some(GaugeShare {
            worker,
            receiver,
            values,
        })
    };
    std::iter::from_fn(&mut read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::MetricKind;

    #[test]
    fn every_gauge_has_its_place() {
        let all = Metric::ALL.iter().copied();
        let gauges: Vec<_> = all
            .filter(|metric| metric.kind() == MetricKind::Gauge)
            .collect();
        assert_eq!(gauges, GAUGES);
    }

    #[test]
    fn shares_are_read_as_they_were_written() {
        let share = |worker, first| GaugeShare {
            worker: WorkerId(worker),
            receiver: 1,
            values: [first, 0, 3, 4, 5, 6, u64::MAX, 7, 8],
        };
        let shares = [share(1, 7), share(0x102, 8)];
        let mut bytes = encode(&shares);
        assert_eq!(decode(&bytes), shares);
        bytes.pop();
        assert_eq!(decode(&bytes), shares[..1]);
        assert_eq!(decode(&[]), []);
    }
}
