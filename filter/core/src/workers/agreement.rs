// SPDX-License-Identifier: Apache-2.0
//! Agreement of workers at their start: on a number for each, and on random values that one worker generates for all.

use crate::host::{HostError, SharedStore};
use crate::workers::WorkerId;
use crate::workers::shared_value::{self, ATTEMPTS, SharedError};

/// Attempts to take a number. Each failed attempt means that another worker has taken one.
pub const NUMBER_ATTEMPTS: u32 = 1_024;

/// Takes a number that no VM of this process has had before.
///
/// # Errors
/// The host refused a call, or other workers won every attempt.
pub fn take_number(store: &dyn SharedStore) -> Result<WorkerId, SharedError> {
    const KEY: &str = "sluice/workers";
    for _ in 0..NUMBER_ATTEMPTS / ATTEMPTS {
        let taken = shared_value::update(store, KEY, |bytes| {
            let last = bytes.first_chunk::<2>();
            let number = last
                .map_or(0, |last| u16::from_le_bytes(*last))
                .wrapping_add(1);
            (Some(number.to_le_bytes().to_vec()), WorkerId(number))
        });
        if taken != Err(SharedError::Contended) {
            return taken;
        }
    }
    Err(SharedError::Contended)
}

/// Returns the two numbers under `key` that all workers know. If this worker is the first to ask, they are
/// `proposal`.
///
/// # Errors
/// The host refused a call.
pub fn agree_on(
    store: &dyn SharedStore,
    key: &str,
    proposal: [u8; 16],
) -> Result<[u64; 2], HostError> {
    store.compare_and_set(key, &proposal, None)?;
    let bytes = store.get(key)?.map(|(bytes, _)| bytes).unwrap_or_default();
    let half = |index: usize| {
        let chunk = bytes
            .get(index * 8..)
            .and_then(|rest| rest.first_chunk::<8>());
        chunk.map_or(0, |chunk| u64::from_le_bytes(*chunk))
    };
    Ok([half(0), half(1)])
}
