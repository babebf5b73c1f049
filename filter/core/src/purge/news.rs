// SPDX-License-Identifier: Apache-2.0
//! What workers tell each other of purges, through their queues.

use super::record::Record;
use crate::board::WorkerId;

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
}

const PURGED: u8 = b'P';
const ACKNOWLEDGED: u8 = b'A';

impl News {
    /// The bytes that [`News::decode`] reads. Other messages begin otherwise.
    pub fn encode(&self) -> Vec<u8> {
        let (tag, worker, call, records) = match self {
            Self::Purged {
                caller,
                call,
                records,
            } => (PURGED, caller, call, records.as_slice()),
            Self::Acknowledged { worker, call } => (ACKNOWLEDGED, worker, call, &[][..]),
        };
        let mut bytes = vec![tag];
        bytes.extend(worker.0.to_le_bytes());
        bytes.extend(call.to_le_bytes());
        for record in records {
            bytes.extend(format!("{record}\n").into_bytes());
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
        let text = std::str::from_utf8(rest).ok()?;
        match *tag {
            PURGED => Some(Self::Purged {
                caller: worker,
                call,
                records: text.lines().map(Record::parse).collect::<Option<_>>()?,
            }),
            ACKNOWLEDGED if text.is_empty() => Some(Self::Acknowledged { worker, call }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::purge::{Kind, Scope};

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
        ] {
            assert_eq!(News::decode(&news.encode()), Some(news));
        }
    }

    #[test]
    fn foreign_bytes_are_no_news() {
        for bytes in [&b""[..], b"P", b"P1234567890", b"A123456x", b"X123456"] {
            assert_eq!(News::decode(bytes), None);
        }
    }
}
