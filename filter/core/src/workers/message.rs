// SPDX-License-Identifier: Apache-2.0
//! The messages that workers send each other through their queues.

use super::byte_reader::ByteReader;
use super::{BodyId, FlightId, KeyHash, Millis, OwnHeaders, WorkerId};
use crate::freshness::UncacheableReason;
use crate::key::vary::VaryNames;
use crate::policy::LargeUrl;
use crate::policy::purge::Record;

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

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// News of a flight.
    Flight(FlightMessage),
    /// Apply these purges, and acknowledge them.
    Purged {
        /// The worker that waits for the acknowledgment.
        caller: WorkerId,
        /// The caller's number for the call.
        call: u32,
        /// The purges.
        records: Vec<Record>,
    },
    /// The purges of a call have been applied.
    Acknowledged {
        /// The worker that has applied them.
        worker: WorkerId,
        /// The caller's number for the call.
        call: u32,
    },
    /// A URL has been found to vary.
    Varies {
        /// Its plain key, hashed without purges.
        plain: KeyHash,
        /// The flight that has shown it, by its key.
        flight: KeyHash,
        /// The hash of the variant that the store has under the plain key.
        plain_variant: KeyHash,
        /// The request headers that select among its responses.
        names: VaryNames,
    },
    /// The length of a stored body without a `Content-Length`.
    BodyLength {
        /// The worker that has counted the bytes.
        worker: WorkerId,
        /// The key, hashed without purges.
        key: KeyHash,
        /// The body among those of that key.
        body: BodyId,
        /// Its length in bytes.
        bytes: u64,
    },
    /// An object is served in slices.
    SliceIndex {
        /// The key of the object, hashed without purges.
        key: KeyHash,
        /// The URL of the object.
        url: LargeUrl,
        /// The index of the object, as bytes of
        /// [`SliceIndex::encode`](crate::slices::index::SliceIndex::encode).
        index: Vec<u8>,
    },
    /// The origin does not have a version of a sliced object any more.
    SlicesChanged {
        /// The key of the object, hashed without purges.
        key: KeyHash,
        /// The entity tag of that version.
        etag: String,
    },
    /// Answer a question of an operator.
    Asked {
        /// The worker that waits for the answer.
        asker: WorkerId,
        /// The asker's number for the question.
        call: u32,
        /// The question as text.
        question: String,
    },
    /// The answer to a question.
    Answered {
        /// The worker that has answered.
        worker: WorkerId,
        /// The asker's number for the question.
        call: u32,
        /// The answer as text.
        answer: String,
    },
}

/// Layout version, raised with each change, because a module that is replaced in a running process leaves messages
/// behind.
const FORMAT: u8 = 10;

/// The byte after [`FORMAT`].
mod tag {
    pub const STORED: u8 = 0;
    pub const HIT_FOR_MISS: u8 = 1;
    pub const FAILED: u8 = 2;
    pub const NOTHING_SHARED: u8 = 3;
    pub const KEPT: u8 = 4;
    pub const VARIES: u8 = 5;
    pub const AWAITED: u8 = 6;
    pub const NO_ROOM: u8 = 7;
    pub const PURGED: u8 = 8;
    pub const ACKNOWLEDGED: u8 = 9;
    pub const BODY_LENGTH: u8 = 10;
    pub const VARIANT_STORED: u8 = 12;
    pub const VALIDATED: u8 = 13;
    pub const FOUND: u8 = 14;
    pub const OWN_FAILURE: u8 = 15;
    pub const OWN_RESPONSE: u8 = 16;
    pub const ASKED: u8 = 17;
    pub const ANSWERED: u8 = 18;
    pub const SLICED: u8 = 19;
    pub const SLICE_INDEX: u8 = 20;
    pub const SLICES_CHANGED: u8 = 21;
}

impl Message {
    /// Returns the bytes that [`Message::decode`] reads.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(32);
        bytes.push(FORMAT);
        match self {
            Self::Flight(message) => message.encode(&mut bytes),
            Self::Purged {
                caller,
                call,
                records,
            } => {
                bytes.push(tag::PURGED);
                bytes.extend(caller.0.to_le_bytes());
                bytes.extend(call.to_le_bytes());
                for record in records {
                    bytes.extend(format!("{record}\n").into_bytes());
                }
            }
            Self::Acknowledged { worker, call } => {
                bytes.push(tag::ACKNOWLEDGED);
                bytes.extend(worker.0.to_le_bytes());
                bytes.extend(call.to_le_bytes());
            }
            Self::Varies {
                plain,
                flight,
                plain_variant,
                names,
            } => {
                bytes.push(tag::VARIANT_STORED);
                for hash in [plain, flight, plain_variant] {
                    bytes.extend(hash.0.to_le_bytes());
                }
                bytes.extend(names.as_str().as_bytes());
            }
            Self::BodyLength {
                worker,
                key,
                body,
                bytes: length,
            } => {
                bytes.push(tag::BODY_LENGTH);
                bytes.extend(worker.0.to_le_bytes());
                for number in [key.0, body.0, *length] {
                    bytes.extend(number.to_le_bytes());
                }
            }
            Self::SliceIndex { key, url, index } => {
                bytes.push(tag::SLICE_INDEX);
                bytes.extend(key.0.to_le_bytes());
                bytes.extend(url.0.to_le_bytes());
                bytes.extend(index);
            }
            Self::SlicesChanged { key, etag } => {
                bytes.push(tag::SLICES_CHANGED);
                bytes.extend(key.0.to_le_bytes());
                bytes.extend(etag.as_bytes());
            }
            Self::Asked {
                asker,
                call,
                question,
            } => push_text(&mut bytes, tag::ASKED, *asker, *call, question),
            Self::Answered {
                worker,
                call,
                answer,
            } => push_text(&mut bytes, tag::ANSWERED, *worker, *call, answer),
        }
        bytes
    }

    /// Reads a message; `None` for bytes that this version has not written.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = ByteReader(bytes);
        if reader.u8()? != FORMAT {
            return None;
        }
        let message = match reader.u8()? {
            tag::PURGED => {
                let (caller, call) = (WorkerId(reader.u16()?), reader.u32()?);
                let text = std::str::from_utf8(reader.rest()).ok()?;
                Self::Purged {
                    caller,
                    call,
                    records: text.lines().map(Record::parse).collect::<Option<_>>()?,
                }
            }
            tag::ACKNOWLEDGED => Self::Acknowledged {
                worker: WorkerId(reader.u16()?),
                call: reader.u32()?,
            },
            tag::VARIANT_STORED => Self::Varies {
                plain: KeyHash(reader.u64()?),
                flight: KeyHash(reader.u64()?),
                plain_variant: KeyHash(reader.u64()?),
                names: VaryNames::parse(std::str::from_utf8(reader.rest()).ok()?),
            },
            tag::BODY_LENGTH => Self::BodyLength {
                worker: WorkerId(reader.u16()?),
                key: KeyHash(reader.u64()?),
                body: BodyId(reader.u64()?),
                bytes: reader.u64()?,
            },
            tag::SLICE_INDEX => Self::SliceIndex {
                key: KeyHash(reader.u64()?),
                url: LargeUrl(reader.u64()?),
                index: reader.rest().to_vec(),
            },
            tag::SLICES_CHANGED => Self::SlicesChanged {
                key: KeyHash(reader.u64()?),
                etag: std::str::from_utf8(reader.rest()).ok()?.to_owned(),
            },
            tag::ASKED => Self::Asked {
                asker: WorkerId(reader.u16()?),
                call: reader.u32()?,
                question: std::str::from_utf8(reader.rest()).ok()?.to_owned(),
            },
            tag::ANSWERED => Self::Answered {
                worker: WorkerId(reader.u16()?),
                call: reader.u32()?,
                answer: std::str::from_utf8(reader.rest()).ok()?.to_owned(),
            },
            tag => Self::Flight(FlightMessage::decode(tag, &mut reader)?),
        };
        reader.is_empty().then_some(message)
    }
}

/// Appends a message that ends with a text.
fn push_text(bytes: &mut Vec<u8>, tag: u8, worker: WorkerId, call: u32, text: &str) {
    bytes.push(tag);
    bytes.extend(worker.0.to_le_bytes());
    bytes.extend(call.to_le_bytes());
    bytes.extend(text.as_bytes());
}

impl FlightMessage {
    fn encode(&self, bytes: &mut Vec<u8>) {
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

    fn decode(tag: u8, reader: &mut ByteReader<'_>) -> Option<Self> {
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

#[cfg(test)]
mod tests;
