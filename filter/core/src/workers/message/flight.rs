// SPDX-License-Identifier: Apache-2.0
//! News of flights.

use super::tag;
use crate::freshness::UncacheableReason;
use crate::key::vary::VaryNames;
use crate::workers::byte_reader::ByteReader;
use crate::workers::{FlightId, KeyHash, Millis, OwnHeaders, WorkerId};

/// The end of a flight, in the form that its followers receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlightOutcome {
    /// The store has the response. The followers are sent to the store.
    Stored {
        /// Time until which it is fresh.
        until: Millis,
        /// Whether a call can fetch it.
        small: bool,
    },
    /// Stored before this flight began, so followers count as hits.
    Found {
        /// Time until which it is fresh.
        until: Millis,
        /// Whether a call can fetch it.
        small: bool,
    },
    /// The store has the response, which is validated at each use. Each follower is sent to the store, unless its
    /// request arrived after `at`.
    Validated {
        /// Time at which the origin answered.
        at: Millis,
    },
    /// The response cannot be stored. Each follower continues alone.
    HitForMiss {
        /// Time until which no request should wait for this key.
        until: Millis,
        /// The reason why it cannot be stored.
        reason: UncacheableReason,
    },
    /// The origin is in trouble. The followers get the status that the leader got.
    Failed {
        /// The status.
        status: u16,
    },
    /// The origin is in trouble, and the store serves the entry that it has. The followers are sent to the store.
    Kept {
        /// Time until which the entry may be served.
        until: Millis,
    },
    /// No response for the followers: the leader's client has disconnected, the response is for that client only, or
    /// the store has not made it readable. One of the followers becomes the next leader.
    NothingShared,
    /// The leader's own headers may have caused its response. One of the followers becomes the next leader.
    Own {
        /// The kind of the response.
        doubt: Doubt,
        /// The leader's own headers.
        own_headers: OwnHeaders,
    },
    /// The store has no room for the response now. Each follower continues alone.
    NoRoom,
    /// The object is served in slices. Each follower continues in slices.
    Sliced,
    /// The response is one of several of its URL. Each follower continues under the key of its variant.
    Varies {
        /// The request headers that select among these responses.
        names: VaryNames,
    },
}

/// A kind of response that a request's own headers may have caused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The origin has failed.
    Failed,
    /// The response is not stored.
    NotStored,
}

impl FlightOutcome {
    /// Whether one of the followers becomes the next leader.
    pub const fn needs_heir(&self) -> bool {
        matches!(self, Self::NothingShared | Self::Own { .. })
    }
}

/// News of a flight: `Awaited` is sent to the leader's worker, `Ended` to the waiting workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The flight has ended.
    Ended(FlightOutcome),
    /// Requests of another worker wait for the flight.
    Awaited,
}

/// An event and its flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlightMessage {
    /// The key.
    pub key: KeyHash,
    /// Its flight.
    pub flight: FlightId,
    /// The event.
    pub event: Event,
}

impl FlightMessage {
    /// Appends what follows after the format.
    pub(super) fn encode(&self, bytes: &mut Vec<u8>) {
        let nothing: &[u8] = &[];
        let byte;
        let (tag, argument, rest) = match &self.event {
            Event::Ended(FlightOutcome::Stored { until, small }) => {
                byte = [u8::from(*small)];
                (tag::STORED, *until, byte.as_slice())
            }
            Event::Ended(FlightOutcome::Found { until, small }) => {
                byte = [u8::from(*small)];
                (tag::FOUND, *until, byte.as_slice())
            }
            Event::Ended(FlightOutcome::HitForMiss { until, reason }) => {
                byte = [reason.code()];
                (tag::HIT_FOR_MISS, *until, byte.as_slice())
            }
            Event::Ended(FlightOutcome::Failed { status }) => {
                (tag::FAILED, u64::from(*status), nothing)
            }
            Event::Ended(FlightOutcome::NothingShared) => (tag::NOTHING_SHARED, 0, nothing),
            Event::Ended(FlightOutcome::Own { doubt, own_headers }) => {
                let tag = match doubt {
                    Doubt::Failed => tag::OWN_FAILURE,
                    Doubt::NotStored => tag::OWN_RESPONSE,
                };
                (tag, own_headers.0, nothing)
            }
            Event::Ended(FlightOutcome::Kept { until }) => (tag::KEPT, *until, nothing),
            Event::Ended(FlightOutcome::Validated { at }) => (tag::VALIDATED, *at, nothing),
            Event::Ended(FlightOutcome::Varies { names }) => {
                (tag::VARIES, 0, names.as_str().as_bytes())
            }
            Event::Ended(FlightOutcome::NoRoom) => (tag::NO_ROOM, 0, nothing),
            Event::Ended(FlightOutcome::Sliced) => (tag::SLICED, 0, nothing),
            Event::Awaited => (tag::AWAITED, 0, nothing),
        };
        bytes.push(tag);
        bytes.extend(self.key.0.to_le_bytes());
        bytes.extend(self.flight.worker.0.to_le_bytes());
        bytes.extend(self.flight.sequence.to_le_bytes());
        bytes.extend(argument.to_le_bytes());
        bytes.extend(rest);
    }

    /// Reads what follows after the tag.
    pub(super) fn decode(tag: u8, reader: &mut ByteReader<'_>) -> Option<Self> {
        let key = KeyHash(reader.u64()?);
        let flight = FlightId {
            worker: WorkerId(reader.u16()?),
            sequence: reader.u32()?,
        };
        let argument = reader.u64()?;
        let outcome = match tag {
            tag::STORED => FlightOutcome::Stored {
                until: argument,
                small: reader.u8()? != 0,
            },
            tag::FOUND => FlightOutcome::Found {
                until: argument,
                small: reader.u8()? != 0,
            },
            tag::HIT_FOR_MISS => FlightOutcome::HitForMiss {
                until: argument,
                reason: UncacheableReason::of_code(reader.u8()?)?,
            },
            tag::FAILED => FlightOutcome::Failed {
                status: u16::try_from(argument).ok()?,
            },
            tag::NOTHING_SHARED => FlightOutcome::NothingShared,
            tag::OWN_FAILURE => FlightOutcome::Own {
                doubt: Doubt::Failed,
                own_headers: OwnHeaders(argument),
            },
            tag::OWN_RESPONSE => FlightOutcome::Own {
                doubt: Doubt::NotStored,
                own_headers: OwnHeaders(argument),
            },
            tag::KEPT => FlightOutcome::Kept { until: argument },
            tag::VALIDATED => FlightOutcome::Validated { at: argument },
            tag::VARIES => FlightOutcome::Varies {
                names: VaryNames::parse(std::str::from_utf8(reader.rest()).ok()?),
            },
            tag::NO_ROOM => FlightOutcome::NoRoom,
            tag::SLICED => FlightOutcome::Sliced,
            tag::AWAITED => {
                let event = Event::Awaited;
                return Some(Self { key, flight, event });
            }
            _ => return None,
        };
        let event = Event::Ended(outcome);
        Some(Self { key, flight, event })
    }
}
