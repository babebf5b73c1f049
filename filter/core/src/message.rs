// SPDX-License-Identifier: Apache-2.0
//! The news of how a flight ended, as it travels through the queue of each waiting worker.

use crate::board::{FlightId, KeyHash, Millis, WorkerId};

/// How a flight ended, from the point of view of those who wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The leader went away without a response: one of the waiting leads next.
    LeaderLost,
}

/// An outcome and the flight it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The key.
    pub key: KeyHash,
    /// Its flight.
    pub flight: FlightId,
    /// How it ended.
    pub outcome: Outcome,
}

const FORMAT: u8 = 1;
const BYTES: usize = 24;

impl Message {
    /// The bytes that [`Message::decode`] reads.
    pub fn encode(self) -> Vec<u8> {
        let (tag, argument) = match self.outcome {
            Outcome::Stored { until } => (0, until),
            Outcome::HitForMiss { until } => (1, until),
            Outcome::Failed { status } => (2, u64::from(status)),
            Outcome::LeaderLost => (3, 0),
        };
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.extend([FORMAT, tag]);
        bytes.extend(self.key.0.to_le_bytes());
        bytes.extend(self.flight.worker.0.to_le_bytes());
        bytes.extend(self.flight.sequence.to_le_bytes());
        bytes.extend(argument.to_le_bytes());
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
        let argument = u64::from_le_bytes(*rest.first_chunk()?);
        let outcome = match tag {
            0 => Outcome::Stored { until: argument },
            1 => Outcome::HitForMiss { until: argument },
            2 => Outcome::Failed {
                status: u16::try_from(argument).ok()?,
            },
            3 => Outcome::LeaderLost,
            _ => return None,
        };
        let flight = FlightId {
            worker: WorkerId(u16::from_le_bytes(*worker)),
            sequence: u32::from_le_bytes(*sequence),
        };
        let key = KeyHash(u64::from_le_bytes(*key));
        (bytes.len() == BYTES).then_some(Self {
            key,
            flight,
            outcome,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_round_trips() {
        for outcome in [
            Outcome::Stored { until: u64::MAX },
            Outcome::HitForMiss { until: 3 },
            Outcome::Failed { status: 503 },
            Outcome::LeaderLost,
        ] {
            let flight = FlightId {
                worker: WorkerId(258),
                sequence: 0x0304_0506,
            };
            let message = Message {
                key: KeyHash(0xdead_beef),
                flight,
                outcome,
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
