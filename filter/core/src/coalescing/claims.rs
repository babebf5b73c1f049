// SPDX-License-Identifier: Apache-2.0
//! Claims: which keys are being refreshed in the background, or have been a moment ago, so that one
//! refresh runs per key whatever the number of workers, and one that failed is not repeated at once.
//!
//! A claim is a key and a time until which nobody else may begin. Claims live in shared data, as a
//! fixed number of slots. Nothing waits for one: whoever does not get it leaves the key alone.

use std::fmt::Write;

use crate::host::SharedStore;
use crate::workers::shared_value::{self, SharedError};
use crate::workers::{KeyHash, Millis};

/// Slots of claims.
pub const SLOTS: u64 = 1024;
/// Claims in one slot. One more takes the place of the one that ends first.
pub const CLAIMS_PER_SLOT: usize = 32;

const FORMAT: u8 = 1;
const CLAIM_BYTES: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    key: KeyHash,
    until: Millis,
}

/// The claims of one slot. What this code did not write is an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Slot {
    claims: Vec<Claim>,
}

impl Slot {
    fn decode(bytes: &[u8]) -> Self {
        let Some((&FORMAT, rest)) = bytes.split_first() else {
            return Self::default();
        };
        let (chunks, tail) = rest.as_chunks::<CLAIM_BYTES>();
        if !tail.is_empty() || chunks.len() > CLAIMS_PER_SLOT {
            return Self::default();
        }
        let claim = |chunk: &[u8; CLAIM_BYTES]| {
            let (key, until) = chunk.split_first_chunk::<8>()?;
            Some(Claim {
                key: KeyHash(u64::from_le_bytes(*key)),
                until: u64::from_le_bytes(*until.first_chunk()?),
            })
        };
        Self {
            claims: chunks.iter().filter_map(claim).collect(),
        }
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

    /// When the claim of somebody else ends, or `None` once the caller has one.
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
pub struct Claims<'a, S: SharedStore + ?Sized> {
    store: &'a mut S,
}

impl<'a, S: SharedStore + ?Sized> Claims<'a, S> {
    /// A view on the claims in `store`.
    pub fn new(store: &'a mut S) -> Self {
        Self { store }
    }

    /// Claims `key` until then, or says until when somebody else has claimed it.
    ///
    /// # Errors
    /// Shared data cannot be used now.
    pub fn take(
        &mut self,
        key: KeyHash,
        now: Millis,
        until: Millis,
    ) -> Result<Option<Millis>, SharedError> {
        self.update(key, |slot| slot.take(key, now, until))
    }

    /// Changes when the caller's claim on `key` ends.
    ///
    /// # Errors
    /// Shared data cannot be used now.
    pub fn set(&mut self, key: KeyHash, now: Millis, until: Millis) -> Result<(), SharedError> {
        self.update(key, |slot| slot.set(key, now, until))
    }

    fn update<R>(
        &mut self,
        key: KeyHash,
        mut change: impl FnMut(&mut Slot) -> R,
    ) -> Result<R, SharedError> {
        let mut name = String::with_capacity(24);
        // Writing into a String cannot fail.
        let _ = write!(name, "sluice/refreshes/{}", key.0 % SLOTS);
        shared_value::update(self.store, &name, |bytes| {
            let before = Slot::decode(bytes);
            let mut after = before.clone();
            let result = change(&mut after);
            ((after != before).then(|| after.encode()), result)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn encoding_round_trips_and_foreign_bytes_are_empty() {
        let mut slot = Slot::default();
        slot.take(KEY, 0, 100);
        slot.take(KeyHash(u64::MAX), 0, u64::MAX);
        let bytes = slot.encode();
        assert_eq!(Slot::decode(&bytes), slot);
        for length in 0..bytes.len() {
            let _ = Slot::decode(&bytes[..length]);
        }
        assert_eq!(Slot::decode(b"somebody else's"), Slot::default());
        assert_eq!(Slot::decode(b""), Slot::default());
    }
}
