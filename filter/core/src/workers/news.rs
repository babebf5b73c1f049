// SPDX-License-Identifier: Apache-2.0
//! What workers tell each other of purges and stored responses, through their queues.

use crate::policy::purge::Record;
use crate::workers::BodyId;
use crate::workers::{KeyHash, WorkerId};

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Apply these, and say so.
    Purged {
        /// Who wants to know.
        caller: WorkerId,
        /// Its number for the call.
        call: u32,
        /// The purges.
        records: Vec<Record>,
    },
    /// They have been applied.
    Acknowledged {
        /// By whom.
        worker: WorkerId,
        /// The caller's number for the call.
        call: u32,
    },
    /// The length of a body that no header tells.
    Length {
        /// Who has counted.
        worker: WorkerId,
        /// The key, hashed without what is known of purges.
        key: KeyHash,
        /// Which body of that key.
        body: BodyId,
        /// Its bytes.
        bytes: u64,
    },
}

const PURGED: u8 = b'P';
const ACKNOWLEDGED: u8 = b'A';
const LENGTH: u8 = b'L';

impl News {
    /// The bytes that [`News::decode`] reads. Other messages begin otherwise.
    pub fn encode(&self) -> Vec<u8> {
        let (tag, worker, call) = match self {
            Self::Purged { caller, call, .. } => (PURGED, caller, call),
            Self::Acknowledged { worker, call } => (ACKNOWLEDGED, worker, call),
            Self::Length { worker, .. } => (LENGTH, worker, &0),
        };
        let mut bytes = vec![tag];
        bytes.extend(worker.0.to_le_bytes());
        bytes.extend(call.to_le_bytes());
        match self {
            Self::Purged { records, .. } => {
                for record in records {
                    bytes.extend(format!("{record}\n").into_bytes());
                }
            }
            Self::Length {
                key,
                body,
                bytes: length,
                ..
            } => {
                for number in [key.0, body.0, *length] {
                    bytes.extend(number.to_le_bytes());
                }
            }
            Self::Acknowledged { .. } => {}
        }
        bytes
    }

    /// Reads a message; `None` for what this code did not write.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let ([tag], rest) = bytes.split_first_chunk::<1>()?;
        let (worker, rest) = rest.split_first_chunk()?;
        let (call, rest) = rest.split_first_chunk()?;
        let worker = WorkerId(u16::from_le_bytes(*worker));
        let call = u32::from_le_bytes(*call);
        match (*tag, rest) {
            (PURGED, text) => {
                let lines = std::str::from_utf8(text).ok()?.lines();
                Some(Self::Purged {
                    caller: worker,
                    call,
                    records: lines.map(Record::parse).collect::<Option<_>>()?,
                })
            }
            (ACKNOWLEDGED, []) => Some(Self::Acknowledged { worker, call }),
            (LENGTH, numbers) => decode_length(worker, numbers),
            _ => None,
        }
    }
}

fn decode_length(worker: WorkerId, numbers: &[u8]) -> Option<News> {
    let (key, rest) = numbers.split_first_chunk()?;
    let (body, rest) = rest.split_first_chunk()?;
    Some(News::Length {
        worker,
        key: KeyHash(u64::from_le_bytes(*key)),
        body: BodyId(u64::from_le_bytes(*body)),
        bytes: u64::from_le_bytes(rest.try_into().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::purge::{Kind, Scope};

    #[test]
    fn news_round_trip() {
        let record = |number, scope| Record {
            number,
            kind: Kind::Hard,
            scope,
        };
        for news in [
            News::Purged {
                caller: WorkerId(7),
                call: 9,
                records: vec![
                    record(1, Scope::Everything),
                    record(2, Scope::Prefix("a/b".into())),
                ],
            },
            News::Acknowledged {
                worker: WorkerId(u16::MAX),
                call: u32::MAX,
            },
            News::Length {
                worker: WorkerId(8),
                key: KeyHash(1),
                body: BodyId(u64::MAX),
                bytes: 1 << 40,
            },
        ] {
            assert_eq!(News::decode(&news.encode()), Some(news));
        }
    }

    #[test]
    fn foreign_bytes_are_no_news() {
        for bytes in [
            &b""[..],
            b"P",
            b"P1234567890",
            b"A123456x",
            b"X123456",
            b"L123456",
        ] {
            assert_eq!(News::decode(bytes), None);
        }
    }
}
