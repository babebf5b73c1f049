// SPDX-License-Identifier: Apache-2.0
//! Claims: the keys that are being refreshed in the background, or were a moment ago. They ensure that one refresh
//! runs per key, for any number of workers, and that a failed one is not repeated at once.
//!
//! A claim is a key and a time until which no other worker may begin. Claims are in shared data, in a fixed number of
//! slots. No request waits for a claim: a worker that does not get it does not refresh the key.

use crate::host::SharedStore;
use crate::workers::byte_reader::ByteReader;
use crate::workers::shared_table::{SharedRecord, SharedTable};
use crate::workers::shared_value::SharedError;
use crate::workers::{KeyHash, Millis};

/// Number of slots.
pub const SLOTS: u64 = 1024;
/// Most claims in one slot. A further claim replaces the one that ends first.
pub const CLAIMS_PER_SLOT: usize = 32;

const FORMAT: u8 = 1;
const CLAIM_BYTES: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    key: KeyHash,
    until: Millis,
}

/// The claims of one slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Slot {
    claims: Vec<Claim>,
}

impl SharedRecord for Slot {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = ByteReader(bytes);
        if reader.u8()? != FORMAT {
            return None;
        }
        let mut claims = Vec::new();
        while !reader.is_empty() {
            let key = KeyHash(reader.u64()?);
            let until = reader.u64()?;
            claims.push(Claim { key, until });
        }
        (claims.len() <= CLAIMS_PER_SLOT).then_some(Self { claims })
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(1 + CLAIM_BYTES * self.claims.len());
        bytes.push(FORMAT);
        for claim in &self.claims {
            bytes.extend(claim.key.0.to_le_bytes());
            bytes.extend(claim.until.to_le_bytes());
        }
        bytes
    }
}

impl Slot {
    /// Returns the end of another worker's claim, or `None` if the caller has the claim now.
    fn take(&mut self, key: KeyHash, now: Millis, until: Millis) -> Option<Millis> {
        let current = self.claims.iter().find(|claim| claim.key == key);
        if let Some(claim) = current
            && claim.until > now
        {
            return Some(claim.until);
        }
        self.set(key, now, until);
        None
    }

    fn set(&mut self, key: KeyHash, now: Millis, until: Millis) {
        self.claims
            .retain(|claim| claim.key != key && claim.until > now);
        if self.claims.len() >= CLAIMS_PER_SLOT {
            let first = (0..self.claims.len())
                .min_by_key(|index| self.claims.get(*index).map(|claim| claim.until));
            if let Some(first) = first {
                self.claims.swap_remove(first);
            }
        }
        self.claims.push(Claim { key, until });
    }
}

/// The claims in shared data.
#[derive(Debug)]
pub struct Claims<'a> {
    slots: SharedTable<'a, Slot>,
}

impl<'a> Claims<'a> {
    /// A view on the claims in `store`.
    pub fn new(store: &'a dyn SharedStore) -> Self {
        Self {
            slots: SharedTable::new(store, "sluice/refreshes", SLOTS),
        }
    }

    /// Claims `key` until `until`. If another worker has a claim, returns when that ends.
    ///
    /// # Errors
    /// Shared data cannot be used now.
    pub fn take(
        &mut self,
        key: KeyHash,
        now: Millis,
        until: Millis,
    ) -> Result<Option<Millis>, SharedError> {
        self.slots.change(key.0, |slot| slot.take(key, now, until))
    }

    /// Changes the end of the caller's claim on `key`.
    ///
    /// # Errors
    /// Shared data cannot be used now.
    pub fn set(&mut self, key: KeyHash, now: Millis, until: Millis) -> Result<(), SharedError> {
        self.slots.change(key.0, |slot| slot.set(key, now, until))
    }
}

#[cfg(test)]
mod tests {
    use crate::coalescing::shared::claims::*;

    const KEY: KeyHash = KeyHash(7);

    #[test]
    fn a_key_is_claimed_once_until_its_time() {
        let mut slot = Slot::default();
        assert_eq!(slot.take(KEY, 0, 100), None);
        assert_eq!(slot.take(KEY, 99, 500), Some(100));
        assert_eq!(slot.take(KeyHash(8), 99, 500), None);
        assert_eq!(slot.take(KEY, 100, 500), None);
    }

    #[test]
    fn a_claim_can_end_earlier_or_later() {
        let mut slot = Slot::default();
        slot.take(KEY, 0, 60_000);
        slot.set(KEY, 10, 2_000);
        assert_eq!(slot.take(KEY, 1_999, 9_000), Some(2_000));
        assert_eq!(slot.take(KEY, 2_000, 9_000), None);
    }

    #[test]
    fn a_full_slot_forgets_the_claim_that_ends_first() {
        let mut slot = Slot::default();
        for key in 0..=CLAIMS_PER_SLOT as u64 {
            assert_eq!(slot.take(KeyHash(key), 0, 1_000 + key), None);
        }
        assert_eq!(slot.claims.len(), CLAIMS_PER_SLOT);
        assert_eq!(slot.take(KeyHash(1), 0, 5), Some(1_001));
        assert_eq!(slot.take(KeyHash(0), 0, 5), None);
    }

    #[test]
    fn encoding_round_trips_and_foreign_bytes_are_refused() {
        let mut slot = Slot::default();
        slot.take(KEY, 0, 100);
        slot.take(KeyHash(u64::MAX), 0, u64::MAX);
        let bytes = slot.encode();
        assert_eq!(Slot::decode(&bytes), Some(slot));
        for length in 0..bytes.len() {
            let _ = Slot::decode(&bytes[..length]);
        }
        assert_eq!(Slot::decode(b"somebody else's"), None);
        assert_eq!(Slot::decode(b""), None);
    }
}
