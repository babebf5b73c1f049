// SPDX-License-Identifier: Apache-2.0
//! The board: the leader of each key, and the workers that wait for it.
//!
//! The board is a fixed number of slots in shared data. A slot holds the flights of all keys that hash to it, so
//! different keys share a slot only for the time of a compare-and-swap. Any worker may write any slot. Only the owner
//! of a flight renews or ends it, and any worker may take over a flight whose lease has run out. The bytes of a slot
//! may be from another writer (in Istio all plugins without a `vm_id` share one namespace). A slot that does not
//! decode counts as empty.
//!
//! [`Slot`] is pure; [`Board`] is the table of slots.

use crate::host::SharedStore;
use crate::workers::byte_reader::ByteReader;
use crate::workers::shared_table::{SharedRecord, SharedTable};
use crate::workers::shared_value::SharedError;
use crate::workers::{FlightId, KeyHash, Millis, WorkerId};

/// Number of slots. More keys in flight than this share slots. A fill without followers stays on the board until its
/// lease ends, so the board holds the misses of some seconds.
pub const SLOTS: u64 = 4096;
/// Most flights in one slot. A key that finds its slot full is not coalesced.
pub const FLIGHTS_PER_SLOT: usize = 32;
/// Most workers that may wait for one flight.
pub const WAITING_WORKERS: usize = 255;
/// Layout version, raised with each change of the layout or of [`SLOTS`], because a module that is replaced in a
/// running process leaves its slots behind.
const FORMAT: u8 = 3;
const HEAD_BYTES: usize = 1;
const FLIGHT_BYTES: usize = 8 + 8 + 2 + 4 + 8 + 8 + 1;

/// The key of a flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlightKey {
    /// Hash of the key under which the store has one entry.
    pub entry: KeyHash,
    /// Hash of the cache key, and of the newest soft purge that covers it. The plain variant of a URL has another
    /// cache key. Requests with the same hash wait for each other, so that none shares a response that was fetched
    /// before a purge.
    pub key: KeyHash,
}

impl FlightKey {
    /// Whether the entry has only this key: it is not a variant, and was not purged softly.
    pub fn is_sole(self) -> bool {
        self.entry == self.key
    }
}

/// A key that is being fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Flight {
    entry: KeyHash,
    key: KeyHash,
    id: FlightId,
    /// Time at which the lease runs out.
    expires: Millis,
    /// When the leader last made progress.
    progress: Millis,
    /// Workers that get a message about its end.
    waiting: Vec<WorkerId>,
}

/// Result of an attempt to become the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// The caller is the leader.
    Lead,
    /// Another flight has the key. The caller's worker gets a message when it ends.
    Follow {
        /// The key of that flight. It differs from the caller's if the entry was purged softly since that flight
        /// began, or if the URL was not known to vary then. The caller becomes the leader after that flight, because
        /// with two fills of one entry Envoy's cache would write the headers of one response over those of the other.
        key: KeyHash,
        /// The flight of the leader.
        leader: FlightId,
        /// When that leader last made progress.
        progress: Millis,
    },
    /// The board has no room for the flight.
    Full,
}

/// One slot, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    flights: Vec<Flight>,
}

impl Slot {
    /// Whether the slot has no flights.
    pub fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// Makes `id` the leader of the key. If there is a flight of this key or of another key of the entry, its worker
    /// is put on the waiting list of that flight instead. A flight whose lease has run out is taken over with its
    /// waiting list.
    pub fn acquire(
        &mut self,
        FlightKey { entry, key }: FlightKey,
        id: FlightId,
        now: Millis,
        lease: Millis,
    ) -> Acquired {
        if let Some(followed) = self.follow(key, id.worker, now) {
            return followed;
        }
        let older = |flight: &&mut Flight| flight.entry == entry && flight.key != key;
        let mut others = self.flights.iter_mut().filter(older);
        if let Some(other) = others.find(|flight| flight.expires > now) {
            return other.enlist(id.worker);
        }
        if let Some(flight) = self.find(key) {
            flight.id = id;
            flight.expires = now + lease;
            flight.progress = now;
            return Acquired::Lead;
        }
        // Resting fills without followers end here.
        self.flights
            .retain(|flight| flight.expires > now || !flight.waiting.is_empty());
        if self.flights.len() >= FLIGHTS_PER_SLOT {
            // The keys of dead workers must not fill the slot forever.
            self.flights.retain(|flight| flight.expires > now);
            if self.flights.len() >= FLIGHTS_PER_SLOT {
                return Acquired::Full;
            }
        }
        self.flights.push(Flight {
            entry,
            key,
            id,
            expires: now + lease,
            progress: now,
            waiting: Vec::new(),
        });
        Acquired::Lead
    }

    /// Puts `worker` on the waiting list of `key`. Returns `None` if no other worker has its leader.
    pub fn follow(&mut self, key: KeyHash, worker: WorkerId, now: Millis) -> Option<Acquired> {
        let flight = self.find(key)?;
        if flight.expires <= now || flight.id.worker == worker {
            return None;
        }
        Some(flight.enlist(worker))
    }

    /// Extends the lease. Returns false if `id` is not the leader of `key` any more.
    pub fn renew(&mut self, key: KeyHash, id: FlightId, expires: Millis, progress: Millis) -> bool {
        match self.find(key) {
            Some(flight) if flight.id == id => {
                flight.expires = expires;
                flight.progress = progress;
                true
            }
            _ => false,
        }
    }

    /// Ends the flight and returns the workers that wait for it, or `None` if `id` is not the leader of `key` any
    /// more.
    pub fn finish(&mut self, key: KeyHash, id: FlightId) -> Option<Vec<WorkerId>> {
        let index = self
            .flights
            .iter()
            .position(|flight| flight.key == key && flight.id == id)?;
        Some(self.flights.swap_remove(index).waiting)
    }

    /// The key, the flight and the end of the lease of each leader.
    pub fn leases(&self) -> impl Iterator<Item = (FlightKey, FlightId, Millis)> {
        self.flights.iter().map(|flight| {
            let (entry, key) = (flight.entry, flight.key);
            (FlightKey { entry, key }, flight.id, flight.expires)
        })
    }

    fn find(&mut self, key: KeyHash) -> Option<&mut Flight> {
        self.flights.iter_mut().find(|flight| flight.key == key)
    }
}

impl SharedRecord for Slot {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = ByteReader(bytes);
        if reader.u8()? != FORMAT {
            return None;
        }
        let mut flights = Vec::new();
        while !reader.is_empty() {
            flights.push(Flight::decode(&mut reader)?);
        }
        (flights.len() <= FLIGHTS_PER_SLOT).then_some(Self { flights })
    }

    fn encode(&self) -> Vec<u8> {
        let waiting: usize = self.flights.iter().map(|flight| flight.waiting.len()).sum();
        let mut bytes =
            Vec::with_capacity(HEAD_BYTES + FLIGHT_BYTES * self.flights.len() + 2 * waiting);
        bytes.push(FORMAT);
        for flight in &self.flights {
            bytes.extend(flight.entry.0.to_le_bytes());
            bytes.extend(flight.key.0.to_le_bytes());
            bytes.extend(flight.id.worker.0.to_le_bytes());
            bytes.extend(flight.id.sequence.to_le_bytes());
            bytes.extend(flight.expires.to_le_bytes());
            bytes.extend(flight.progress.to_le_bytes());
            bytes.push(u8::try_from(flight.waiting.len()).unwrap_or(u8::MAX));
            for worker in flight.waiting.iter().take(WAITING_WORKERS) {
                bytes.extend(worker.0.to_le_bytes());
            }
        }
        bytes
    }
}

impl Flight {
    /// Puts a worker on the waiting list.
    fn enlist(&mut self, worker: WorkerId) -> Acquired {
        if !self.waiting.contains(&worker) {
            if self.waiting.len() >= WAITING_WORKERS {
                return Acquired::Full;
            }
            self.waiting.push(worker);
        }
        Acquired::Follow {
            key: self.key,
            leader: self.id,
            progress: self.progress,
        }
    }

    fn decode(reader: &mut ByteReader<'_>) -> Option<Self> {
        let (entry, key) = (KeyHash(reader.u64()?), KeyHash(reader.u64()?));
        let worker = WorkerId(reader.u16()?);
        let sequence = reader.u32()?;
        let (expires, progress) = (reader.u64()?, reader.u64()?);
        let count = reader.u8()?;
        let waiting = (0..count).map(|_| reader.u16().map(WorkerId));
        let waiting = waiting.collect::<Option<_>>()?;
        Some(Self {
            entry,
            key,
            id: FlightId { worker, sequence },
            expires,
            progress,
            waiting,
        })
    }
}

/// The slots in shared data.
#[derive(Debug)]
pub struct Board<'a> {
    slots: SharedTable<'a, Slot>,
}

impl<'a> Board<'a> {
    /// A view on the slots in `store`.
    pub fn new(store: &'a dyn SharedStore) -> Self {
        Self {
            slots: SharedTable::new(store, "sluice/flights", SLOTS),
        }
    }

    /// Number of compare-and-swaps that other workers have won, for the caller to count.
    pub const fn conflicts(&self) -> u32 {
        self.slots.conflicts
    }

    /// See [`Slot::acquire`].
    ///
    /// # Errors
    /// The board cannot be used now.
    pub fn acquire(
        &mut self,
        key: FlightKey,
        id: FlightId,
        now: Millis,
        lease: Millis,
    ) -> Result<Acquired, SharedError> {
        self.slots
            .change(key.entry.0, |slot| slot.acquire(key, id, now, lease))
    }

    /// See [`Slot::follow`].
    ///
    /// # Errors
    /// The board cannot be used now.
    pub fn follow(
        &mut self,
        key: FlightKey,
        worker: WorkerId,
        now: Millis,
    ) -> Result<Option<Acquired>, SharedError> {
        self.slots
            .change(key.entry.0, |slot| slot.follow(key.key, worker, now))
    }

    /// See [`Slot::renew`].
    ///
    /// # Errors
    /// The board cannot be used now.
    pub fn renew(
        &mut self,
        key: FlightKey,
        id: FlightId,
        expires: Millis,
        progress: Millis,
    ) -> Result<bool, SharedError> {
        self.slots.change(key.entry.0, |slot| {
            slot.renew(key.key, id, expires, progress)
        })
    }

    /// See [`Slot::finish`].
    ///
    /// # Errors
    /// The board cannot be used now.
    pub fn finish(
        &mut self,
        key: FlightKey,
        id: FlightId,
    ) -> Result<Option<Vec<WorkerId>>, SharedError> {
        self.slots
            .change(key.entry.0, |slot| slot.finish(key.key, id))
    }
}

#[cfg(test)]
mod tests;
