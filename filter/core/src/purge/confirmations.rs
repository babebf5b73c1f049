// SPDX-License-Identifier: Apache-2.0
//! The entries that any worker has revalidated since they were purged softly.

use crate::host::SharedStore;
use crate::workers::KeyHash;
use crate::workers::shared_table::{SharedRecord, SharedTable};
use crate::workers::shared_value::SharedError;

/// Number of slots in shared data, and of keys in each slot. If a slot is full, its oldest key is dropped, so that
/// entry is revalidated once more.
const SLOTS: u64 = 64;
const KEYS_PER_SLOT: usize = 128;

/// Keys of one slot, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ConfirmationSlot(Vec<[u8; 8]>);

impl SharedRecord for ConfirmationSlot {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (keys, rest) = bytes.as_chunks();
        rest.is_empty().then(|| Self(keys.to_vec()))
    }

    fn encode(&self) -> Vec<u8> {
        self.0.concat()
    }
}

/// Revalidated keys in shared data. Only leaders read them, never a hit.
#[derive(Debug)]
pub struct Confirmations<'a> {
    slots: SharedTable<'a, ConfirmationSlot>,
}

impl<'a> Confirmations<'a> {
    /// Opens the keys in `store`.
    pub fn new(store: &'a dyn SharedStore) -> Self {
        Self {
            slots: SharedTable::new(store, "sluice/confirmed", SLOTS),
        }
    }

    /// Whether the entry has been revalidated. `key` identifies the entry and the purge.
    ///
    /// # Errors
    /// The host refused the call.
    pub fn has(&self, key: KeyHash) -> Result<bool, SharedError> {
        let slot = self.slots.read(key.0)?;
        Ok(slot.0.contains(&key.0.to_le_bytes()))
    }

    /// Records that the entry has been revalidated.
    ///
    /// # Errors
    /// The host refused a call, or other workers changed the same value too often.
    pub fn add(&mut self, key: KeyHash) -> Result<(), SharedError> {
        let bytes = key.0.to_le_bytes();
        self.slots.change(key.0, |ConfirmationSlot(keys)| {
            if !keys.contains(&bytes) {
                keys.drain(..keys.len().saturating_sub(KEYS_PER_SLOT - 1));
                keys.push(bytes);
            }
        })
    }
}
