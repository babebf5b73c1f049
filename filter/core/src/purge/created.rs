// SPDX-License-Identifier: Apache-2.0
//! Written objects that the edge fetches: the bounds of all workers together.

use crate::host::SharedStore;
use crate::minute_budget::MinuteBudget;
use crate::policy::purge::OnCreatedPolicy;
use crate::workers::Millis;
use crate::workers::byte_reader::ByteReader;
use crate::workers::shared_value::{self, SharedError};

const KEY: &str = "sluice/created-objects";

/// The use of the bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CreatedFetches {
    objects: MinuteBudget,
    bytes: MinuteBudget,
}

/// Takes an object of `bytes` bytes from the bounds of `policy`. Returns false if it does not fit.
///
/// # Errors
/// The host refused a call, or other workers changed the same value too often.
pub fn take_created(
    store: &dyn SharedStore,
    policy: &OnCreatedPolicy,
    bytes: u64,
    now: Millis,
) -> Result<bool, SharedError> {
    shared_value::update(store, KEY, |stored| {
        let mut fetches = CreatedFetches::decode(stored).unwrap_or_default();
        let fits = fetches.objects.has_room(1, policy.objects_per_minute, now)
            && fetches.bytes.has_room(bytes, policy.bytes_per_minute, now);
        fetches.objects.spend(1);
        fetches.bytes.spend(bytes);
        (fits.then(|| fetches.encode()), fits)
    })
}

impl CreatedFetches {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = ByteReader(bytes);
        let mut budget = || {
            let used = reader.u64()?;
            let since = reader.u64()?;
            Some(MinuteBudget { used, since })
        };
        Some(Self {
            objects: budget()?,
            bytes: budget()?,
        })
    }

    fn encode(&self) -> Vec<u8> {
        let Self { objects, bytes } = self;
        let numbers = [objects.used, objects.since, bytes.used, bytes.since];
        numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect()
    }
}
