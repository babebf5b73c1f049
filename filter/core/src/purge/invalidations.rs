// SPDX-License-Identifier: Apache-2.0
//! What clients have changed by requests with unsafe methods (RFC 9111, 4.4): the stored responses of these URLs must be
//! revalidated. Clients write this table, so it is apart from that of purges.
//!
//! A URL is known by a keyed hash of 64 bits, so that no client can have a URL revalidated but its own. The table is
//! bounded. Where a slot is full, it forgets the older half of its URLs, and counts all its URLs as changed when the
//! newest of those was: they are revalidated once more than they need to be, and none is revalidated too late.

use crate::host::SharedStore;
use crate::workers::KeyHash;
use crate::workers::shared_table::{SharedRecord, SharedTable};
use crate::workers::shared_value::SharedError;

const SLOTS: u64 = 256;
const URLS_PER_SLOT: usize = 256;

/// The changes of one slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Slot {
    /// The number of the newest change that was forgotten.
    forgotten: u64,
    /// URLs, and the number of the newest change of each; in the order of their hashes.
    changes: Vec<(KeyHash, u64)>,
}

impl Slot {
    fn note(&mut self, url: KeyHash, number: u64) {
        if self.changes.len() >= URLS_PER_SLOT {
            self.forget_half();
        }
        match self.changes.binary_search_by_key(&url, |(url, _)| *url) {
            Ok(place) => {
                if let Some((_, newest)) = self.changes.get_mut(place) {
                    *newest = number.max(*newest);
                }
            }
            Err(place) => self.changes.insert(place, (url, number)),
        }
    }

    fn forget_half(&mut self) {
        let mut numbers: Vec<u64> = self.changes.iter().map(|(_, number)| *number).collect();
        numbers.sort_unstable();
        let newest = numbers.get(numbers.len() / 2).copied().unwrap_or(0);
        self.changes.retain(|(_, number)| *number > newest);
        self.forgotten = self.forgotten.max(newest);
    }

    fn newest(&self, url: KeyHash) -> u64 {
        let found = self.changes.binary_search_by_key(&url, |(url, _)| *url);
        let change = found.ok().and_then(|place| self.changes.get(place));
        change.map_or(self.forgotten, |(_, number)| (*number).max(self.forgotten))
    }
}

impl SharedRecord for Slot {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks::<8>();
        let mut numbers = numbers.iter().copied().map(u64::from_le_bytes);
        let forgotten = numbers.next()?;
        let mut changes = Vec::with_capacity(numbers.len() / 2);
        while let Some(url) = numbers.next() {
            changes.push((KeyHash(url), numbers.next()?));
        }
        let sorted = changes.is_sorted_by(|(one, _), (next, _)| one < next);
        let whole = rest.is_empty() && sorted && changes.len() <= URLS_PER_SLOT;
        whole.then_some(Self { forgotten, changes })
    }

    fn encode(&self) -> Vec<u8> {
        let changes = self.changes.iter();
        let numbers = changes.flat_map(|(url, number)| [url.0, *number]);
        let numbers = std::iter::once(self.forgotten).chain(numbers);
        numbers.flat_map(u64::to_le_bytes).collect()
    }
}

/// All changes that one worker knows: asked at every request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invalidations {
    /// Empty before the first change.
    slots: Vec<Slot>,
}

impl Invalidations {
    /// Whether nothing has been changed.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The URL was changed, as the change with that number.
    pub fn note(&mut self, url: KeyHash, number: u64) {
        if self.slots.is_empty() {
            self.slots.resize(SLOTS as usize, Slot::default());
        }
        if let Some(slot) = self.slots.get_mut((url.0 % SLOTS) as usize) {
            slot.note(url, number);
        }
    }

    /// The number of the newest change that covers the URL; 0 is none.
    pub fn newest(&self, url: KeyHash) -> u64 {
        let slot = self.slots.get((url.0 % SLOTS) as usize);
        slot.map_or(0, |slot| slot.newest(url))
    }

    /// How many URLs it knows.
    pub fn len(&self) -> usize {
        self.slots.iter().map(|slot| slot.changes.len()).sum()
    }
}

/// The changes in shared data.
#[derive(Debug)]
pub struct SharedInvalidations<'a> {
    slots: SharedTable<'a, Slot>,
}

impl<'a> SharedInvalidations<'a> {
    /// The changes in `store`.
    pub fn new(store: &'a dyn SharedStore) -> Self {
        Self {
            slots: SharedTable::new(store, "sluice/invalidations", SLOTS),
        }
    }

    /// Every change so far.
    ///
    /// # Errors
    /// The host refused a call.
    pub fn load(&self) -> Result<Invalidations, SharedError> {
        let slots: Result<Vec<Slot>, SharedError> =
            (0..SLOTS).map(|slot| self.slots.read(slot)).collect();
        let mut slots = slots?;
        if slots.iter().all(|slot| *slot == Slot::default()) {
            slots.clear();
        }
        Ok(Invalidations { slots })
    }

    /// The URL was changed, as the change with that number.
    ///
    /// # Errors
    /// The host refused a call, or other workers were faster too often.
    pub fn note(&mut self, url: KeyHash, number: u64) -> Result<(), SharedError> {
        self.slots.change(url.0, |slot| slot.note(url, number))
    }
}
