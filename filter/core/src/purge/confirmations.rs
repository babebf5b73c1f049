// SPDX-License-Identifier: Apache-2.0
//! Which entries have been revalidated since they were purged softly, on whichever worker.

use crate::host::SharedStore;
use crate::workers::KeyHash;
use crate::workers::shared_value;
use crate::workers::shared_value::SharedError;

/// Values in shared data, and keys in each. Of more keys the oldest are forgotten: they are revalidated
/// once more.
const SLOTS: u64 = 64;
const KEYS_PER_SLOT: usize = 128;

/// The revalidated keys in `store`. Asked by leaders only, never on a hit.
#[derive(Debug)]
pub struct Confirmations<'a, S: SharedStore + ?Sized> {
    store: &'a mut S,
}

impl<'a, S: SharedStore + ?Sized> Confirmations<'a, S> {
    /// The keys in `store`.
    pub fn new(store: &'a mut S) -> Self {
        Self { store }
    }

    /// Whether the entry has been revalidated. `key` stands for the entry and the purge.
    ///
    /// # Errors
    /// The host refused the call.
    pub fn has(&self, key: KeyHash) -> Result<bool, SharedError> {
        let bytes = shared_value::read(self.store, &slot_name(key))?;
        Ok(decode(&bytes).contains(&key.0.to_le_bytes()))
    }

    /// The entry has been revalidated.
    ///
    /// # Errors
    /// The host refused a call, or other workers were faster too often.
    pub fn add(&mut self, key: KeyHash) -> Result<(), SharedError> {
        shared_value::update(self.store, &slot_name(key), |bytes| {
            let keys = decode(bytes);
            if keys.contains(&key.0.to_le_bytes()) {
                return (None, ());
            }
            let oldest = keys.len().saturating_sub(KEYS_PER_SLOT - 1);
            let kept = keys.get(oldest..).unwrap_or_default();
            (Some([kept, &[key.0.to_le_bytes()]].concat().concat()), ())
        })
    }
}

/// The keys of a slot; none in what this code did not write.
fn decode(bytes: &[u8]) -> &[[u8; 8]] {
    match bytes.as_chunks() {
        (keys, []) => keys,
        _ => &[],
    }
}

fn slot_name(key: KeyHash) -> String {
    format!("sluice/confirmed/{}", key.0 % SLOTS)
}
