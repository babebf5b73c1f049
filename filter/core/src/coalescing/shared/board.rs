// SPDX-License-Identifier: Apache-2.0
//! The board: who leads which key, and which workers wait for it.
//!
//! It lives in shared data, as a fixed number of slots. A slot holds the flights of all keys that
//! hash to it, so different keys share a slot for the time of a compare-and-swap only. Any worker may
//! write any slot; only the owner of a flight renews or ends it, and anyone may take over a flight
//! whose lease has run out. Slots hold bytes that somebody else may have written (in Istio all
//! plugins without a `vm_id` share one namespace): what does not decode counts as empty.
//!
//! [`Slot`] is pure; [`Board`] is the table of them.

use crate::host::SharedStore;
use crate::workers::byte_reader::ByteReader;
use crate::workers::shared_table::{SharedRecord, SharedTable};
use crate::workers::shared_value::SharedError;
use crate::workers::{FlightId, KeyHash, Millis, WorkerId};

/// Slots of the board. More keys in flight than this share slots. A fill that nobody waits for stays on the board until
/// its lease ends, so there are some seconds of misses on it.
pub const SLOTS: u64 = 4096;
/// Flights in one slot; a key that finds it full is not coalesced.
pub const FLIGHTS_PER_SLOT: usize = 32;
/// Workers that may wait for one flight.
pub const WAITING_WORKERS: usize = 255;
/// Rises with each change of the layout or of [`SLOTS`]: a module that is replaced in a running process leaves its slots
/// behind.
const FORMAT: u8 = 3;
const HEAD_BYTES: usize = 1;
const FLIGHT_BYTES: usize = 8 + 8 + 2 + 4 + 8 + 8 + 1;

/// What is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlightKey {
    /// Hash of the key under which the store has one entry.
    pub entry: KeyHash,
    /// Hash of the cache key, which is another for the plain variant of a URL, and of the newest soft purge that covers
    /// it. Requests that have it in common wait for each other, so none shares a response that was fetched before a purge.
    pub key: KeyHash,
}

impl FlightKey {
    /// Whether the entry has no other key: it is no variant, and was not purged softly.
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
    /// When the lease runs out.
    expires: Millis,
    /// When the leader last made progress.
    progress: Millis,
    /// Workers to tell how it ended.
    waiting: Vec<WorkerId>,
}

/// What became of a request to lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// The caller leads.
    Lead,
    /// Another flight has the key; the caller's worker will be told how it ends.
    Follow {
        /// The key of that flight. It is another than the caller's where the entry was purged softly since that flight
        /// began, or where the entry's URL was not known to vary then: the caller leads after it. Two fills of one entry
        /// would let Envoy's cache write the headers of one response over those of the other.
        key: KeyHash,
        /// Who leads.
        leader: FlightId,
        /// When that leader last made progress.
        progress: Millis,
    },
    /// No room on the board.
    Full,
}

/// One slot, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    flights: Vec<Flight>,
}

impl Slot {
    /// Whether no key of this slot is being fetched.
    pub fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// Leads the key, or waits for who does, or for who leads another key of the entry. A lease that has run out is taken
    /// over with its waiting list.
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
        // The fills that nobody has waited for end so.
        self.flights
            .retain(|flight| flight.expires > now || !flight.waiting.is_empty());
        if self.flights.len() >= FLIGHTS_PER_SLOT {
            // The keys of dead workers must not fill the slot for ever.
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

    /// Waits for the worker that leads `key`, or `None` where no other does.
    pub fn follow(&mut self, key: KeyHash, worker: WorkerId, now: Millis) -> Option<Acquired> {
        let flight = self.find(key)?;
        if flight.expires <= now || flight.id.worker == worker {
            return None;
        }
        Some(flight.enlist(worker))
    }

    /// Extends the lease. False when `id` does not lead `key` any more.
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

    /// Ends the flight and says which workers wait for the news, or `None` when `id` does not lead
    /// `key` any more.
    pub fn finish(&mut self, key: KeyHash, id: FlightId) -> Option<Vec<WorkerId>> {
        let index = self
            .flights
            .iter()
            .position(|flight| flight.key == key && flight.id == id)?;
        Some(self.flights.swap_remove(index).waiting)
    }

    /// Who leads which key, and when the lease runs out.
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

    /// How many compare-and-swaps other workers have won, for the caller to count.
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
