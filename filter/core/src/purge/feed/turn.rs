// SPDX-License-Identifier: Apache-2.0
//! The worker that reads the feed: one of each process. Another one takes over when it stops.

use crate::host::SharedStore;
use crate::workers::byte_reader::ByteReader;
use crate::workers::shared_value::{self, SharedError};
use crate::workers::{Millis, WorkerId};

const KEY: &str = "sluice/feed-reader";

/// State of the readings, of all workers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedReadings {
    /// Time of the last reading, or of the first attempt, in milliseconds of the monotonic clock; 0 if there was none.
    pub read: Millis,
    /// Whether the feed was read.
    pub known: bool,
    /// Whether everything was revalidated since then, because a reading is missing.
    pub validated: bool,
}

impl FeedReadings {
    /// A reading at this time.
    pub const fn at(read: Millis) -> Self {
        Self {
            read,
            known: true,
            validated: false,
        }
    }

    /// The first attempt at this time.
    pub const fn starting(now: Millis) -> Self {
        Self {
            read: now,
            known: false,
            validated: false,
        }
    }

    /// Whether purges may be missing because no reading has arrived.
    pub const fn is_awaited(self) -> bool {
        !self.known && !self.validated
    }

    /// Whether there was no attempt yet.
    pub const fn is_first(self) -> bool {
        self.read == 0
    }
}

/// A worker's turn to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn {
    worker: WorkerId,
    until: Millis,
    readings: FeedReadings,
}

impl Turn {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = ByteReader(bytes);
        Some(Self {
            worker: WorkerId(reader.u16()?),
            until: reader.u64()?,
            readings: FeedReadings {
                read: reader.u64()?,
                known: reader.u8()? != 0,
                validated: reader.u8()? != 0,
            },
        })
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.worker.0.to_le_bytes().to_vec();
        bytes.extend(self.until.to_le_bytes());
        bytes.extend(self.readings.read.to_le_bytes());
        bytes.push(u8::from(self.readings.known));
        bytes.push(u8::from(self.readings.validated));
        bytes
    }
}

/// The turn to read, in shared data.
#[derive(Debug)]
pub struct FeedTurn<'a> {
    store: &'a dyn SharedStore,
    worker: WorkerId,
}

impl<'a> FeedTurn<'a> {
    /// Opens the turn in `store` for a worker.
    pub fn new(store: &'a dyn SharedStore, worker: WorkerId) -> Self {
        Self { store, worker }
    }

    /// Takes or keeps the turn until `until`, unless it is another worker's turn at the time `now`. Returns whether it
    /// is this worker's turn, and the state of the readings.
    ///
    /// # Errors
    /// The host refused a call, or other workers changed the same value too often.
    pub fn take(&self, now: Millis, until: Millis) -> Result<(bool, FeedReadings), SharedError> {
        shared_value::update(self.store, KEY, |bytes| {
            let turn = self.turn(bytes);
            let mine = turn.worker == self.worker || turn.until <= now;
            let worker = self.worker;
            let taken = Turn {
                worker,
                until,
                ..turn
            };
            (mine.then(|| taken.encode()), (mine, turn.readings))
        })
    }

    /// Returns the state of the readings.
    ///
    /// # Errors
    /// The host refused the call.
    pub fn readings(&self) -> Result<FeedReadings, SharedError> {
        Ok(self.turn(&shared_value::read(self.store, KEY)?).readings)
    }

    /// Changes the state of the readings, if it is still the worker's turn.
    ///
    /// # Errors
    /// As [`FeedTurn::take`].
    pub fn note(&self, readings: FeedReadings) -> Result<(), SharedError> {
        self.change(|turn| Turn { readings, ..turn })
    }

    /// Gives the turn up, so that another worker takes it.
    ///
    /// # Errors
    /// As [`FeedTurn::take`].
    pub fn give_up(&self) -> Result<(), SharedError> {
        self.change(|turn| Turn { until: 0, ..turn })
    }

    /// Changes the turn, if it is this worker's.
    fn change(&self, change: impl Fn(Turn) -> Turn) -> Result<(), SharedError> {
        shared_value::update(self.store, KEY, |bytes| {
            let turn = self.turn(bytes);
            let mine = turn.worker == self.worker;
            (mine.then(|| change(turn).encode()), ())
        })
    }

    /// The turn, which any worker may take if there is none yet.
    fn turn(&self, bytes: &[u8]) -> Turn {
        Turn::decode(bytes).unwrap_or(Turn {
            worker: self.worker,
            until: 0,
            readings: FeedReadings::default(),
        })
    }
}
