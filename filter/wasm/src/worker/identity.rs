// SPDX-License-Identifier: Apache-2.0
//! What tells this worker from the others, and what all of them agree on, by way of shared data.

use sluice_core::host::{HostError, SharedStore};
use sluice_core::workers::WorkerId;

use crate::host::{self, SharedData};

/// Attempts to take a number; each failure means that another worker has taken one.
const NUMBER_ATTEMPTS: usize = 1_024;

/// Name of a worker's queue.
pub fn queue_name(worker: WorkerId) -> String {
    format!("sluice/worker/{}", worker.0)
}

/// A number that no VM of this process has had before.
///
/// # Errors
/// The host refused a call.
pub fn take_number(store: &mut SharedData) -> host::Result<WorkerId> {
    const KEY: &str = "sluice/workers";
    for _ in 0..NUMBER_ATTEMPTS {
        let current = store.get(KEY)?;
        let taken = current
            .as_ref()
            .and_then(|(bytes, _)| bytes.first_chunk::<2>());
        let number = taken
            .map_or(0, |bytes| u16::from_le_bytes(*bytes))
            .wrapping_add(1);
        let token = current.map(|(_, token)| token);
        if store.compare_and_set(KEY, &number.to_le_bytes(), token)? {
            return Ok(WorkerId(number));
        }
    }
    Err(HostError { status: u32::MAX })
}

/// The key of [`crate::worker::Worker::key_hash`], which the first worker makes up for all.
///
/// # Errors
/// The host refused a call.
pub fn hash_key(store: &mut SharedData) -> host::Result<[u64; 2]> {
    made_up_once(store, "sluice/hash-key")
}

/// What all VMs of this process know and nobody else, so that one is believed by its successor.
///
/// # Errors
/// The host refused a call.
pub fn process_secret(store: &mut SharedData) -> host::Result<u64> {
    made_up_once(store, "sluice/secret").map(|[secret, _]| secret)
}

/// Random numbers that the first who asks makes up for all.
fn made_up_once(store: &mut SharedData, key: &str) -> host::Result<[u64; 2]> {
    store.compare_and_set(key, &host::random::<16>()?, None)?;
    let bytes = store.get(key)?.map(|(bytes, _)| bytes).unwrap_or_default();
    let half = |index: usize| {
        let chunk = bytes
            .get(index * 8..)
            .and_then(|rest| rest.first_chunk::<8>());
        chunk.map_or(0, |chunk| u64::from_le_bytes(*chunk))
    };
    Ok([half(0), half(1)])
}
