// SPDX-License-Identifier: Apache-2.0
//! What workers tell each other of a flight: who leads is told that others wait, and these how it ended.

use crate::key::vary::VaryNames;
use crate::workers::{FlightId, KeyHash, Millis, WorkerId};

/// How a flight ended, from the point of view of those who wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The store has the response: ask it.
    Stored {
        /// Until when it is fresh.
        until: Millis,
    },
    /// The response cannot be stored: go on, each by itself.
    HitForMiss {
        /// Until when nobody should wait for this key.
        until: Millis,
    },
    /// The origin is in trouble: answer with the status that the leader got.
    Failed {
        /// That status.
        status: u16,
    },
    /// The origin is in trouble, and the store serves what it has: ask it.
    Kept {
        /// Until when it may be served.
        until: Millis,
    },
    /// The leader went away without a response: one of the waiting leads next.
    LeaderLost,
    /// The store has no room for the response now: go on, each by itself.
    NoRoom,
    /// The response is one of several of its URL: those who wait go on, each under the key of its own.
    Varies {
        /// The request headers that select among them.
        names: VaryNames,
    },
}

/// Something new of a flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It has ended.
    Ended(Outcome),
    /// Requests of another worker wait for it.
    Awaited,
}

/// An event and the flight it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The key.
    pub key: KeyHash,
    /// Its flight.
    pub flight: FlightId,
    /// What is new.
    pub event: Event,
}

const FORMAT: u8 = 1;
/// Without the names of an outcome that has some.
const BYTES: usize = 24;

impl Message {
    /// The bytes that [`Message::decode`] reads.
    pub fn encode(&self) -> Vec<u8> {
        let (tag, argument, names) = match &self.event {
            Event::Ended(Outcome::Stored { until }) => (0, *until, ""),
            Event::Ended(Outcome::HitForMiss { until }) => (1, *until, ""),
            Event::Ended(Outcome::Failed { status }) => (2, u64::from(*status), ""),
            Event::Ended(Outcome::LeaderLost) => (3, 0, ""),
            Event::Ended(Outcome::Kept { until }) => (4, *until, ""),
            Event::Ended(Outcome::Varies { names }) => (5, 0, names.as_str()),
            Event::Awaited => (6, 0, ""),
            Event::Ended(Outcome::NoRoom) => (7, 0, ""),
        };
        let mut bytes = Vec::with_capacity(BYTES + names.len());
        bytes.extend([FORMAT, tag]);
        bytes.extend(self.key.0.to_le_bytes());
        bytes.extend(self.flight.worker.0.to_le_bytes());
        bytes.extend(self.flight.sequence.to_le_bytes());
        bytes.extend(argument.to_le_bytes());
        bytes.extend(names.as_bytes());
        bytes
    }

    /// Reads a message; `None` for what this code did not write.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let ([FORMAT, tag], rest) = bytes.split_first_chunk::<2>()? else {
            return None;
        };
        let (key, rest) = rest.split_first_chunk()?;
        let (worker, rest) = rest.split_first_chunk()?;
        let (sequence, rest) = rest.split_first_chunk()?;
        let (argument, names) = rest.split_first_chunk()?;
        let argument = u64::from_le_bytes(*argument);
        let event = match tag {
            0 => Event::Ended(Outcome::Stored { until: argument }),
            1 => Event::Ended(Outcome::HitForMiss { until: argument }),
            2 => Event::Ended(Outcome::Failed {
                status: u16::try_from(argument).ok()?,
            }),
            3 => Event::Ended(Outcome::LeaderLost),
            4 => Event::Ended(Outcome::Kept { until: argument }),
            5 => Event::Ended(Outcome::Varies {
                names: VaryNames::parse(std::str::from_utf8(names).ok()?),
            }),
            6 => Event::Awaited,
            7 => Event::Ended(Outcome::NoRoom),
            _ => return None,
        };
        let flight = FlightId {
            worker: WorkerId(u16::from_le_bytes(*worker)),
            sequence: u32::from_le_bytes(*sequence),
        };
        let key = KeyHash(u64::from_le_bytes(*key));
        (names.is_empty() || *tag == 5).then_some(Self { key, flight, event })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_round_trips() {
        let outcomes = [
            Outcome::Stored { until: u64::MAX },
            Outcome::HitForMiss { until: 3 },
            Outcome::Failed { status: 503 },
            Outcome::LeaderLost,
            Outcome::Kept { until: 9 },
            Outcome::NoRoom,
            Outcome::Varies {
                names: VaryNames::parse("accept,x-plan"),
            },
        ];
        for event in outcomes
            .map(Event::Ended)
            .into_iter()
            .chain([Event::Awaited])
        {
            let flight = FlightId {
                worker: WorkerId(258),
                sequence: 0x0304_0506,
            };
            let message = Message {
                key: KeyHash(0xdead_beef),
                flight,
                event,
            };
            assert_eq!(Message::decode(&message.encode()), Some(message));
        }
    }

    #[test]
    fn foreign_bytes_are_no_message() {
        assert_eq!(Message::decode(b""), None);
        assert_eq!(Message::decode(b"wake up!"), None);
        assert_eq!(Message::decode(&[FORMAT; 40]), None);
        let mut unknown = [0; BYTES];
        unknown[..2].copy_from_slice(&[FORMAT, 9]);
        assert_eq!(Message::decode(&unknown), None);
    }
}
