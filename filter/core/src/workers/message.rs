// SPDX-License-Identifier: Apache-2.0
//! The messages that workers send each other through their queues.

mod flight;

pub use flight::{Doubt, Event, FlightMessage, FlightOutcome};

use super::byte_reader::ByteReader;
use super::{BodyId, KeyHash, WorkerId};
use crate::key::vary::VaryNames;
use crate::policy::LargeUrl;
use crate::policy::purge::{FeedPosition, Record};

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
    /// The purge feed has lines that the sender has not read: read it now.
    FeedLines {
        /// The last line that a peer has applied; `None` if this edge has written the lines, and applied them.
        told: Option<FeedPosition>,
    },
}

/// Layout version, raised with each change, because a module that is replaced in a running process leaves messages
/// behind.
const FORMAT: u8 = 11;

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
    pub const FEED_LINES: u8 = 22;
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
            Self::FeedLines { told } => {
                bytes.push(tag::FEED_LINES);
                let told = told.map(|told| told.to_string());
                bytes.extend(told.unwrap_or_default().into_bytes());
            }
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
            tag::FEED_LINES => Self::FeedLines {
                told: match std::str::from_utf8(reader.rest()).ok()? {
                    "" => None,
                    told => Some(FeedPosition::parse(told)?),
                },
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

#[cfg(test)]
mod tests;
