// SPDX-License-Identifier: Apache-2.0
//! An index in a message between workers.

use super::{IndexTimes, SliceIndex};
use crate::freshness::Lifetime;
use crate::workers::byte_reader::ByteReader;

impl SliceIndex {
    /// Returns the bytes that [`SliceIndex::decode`] reads.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(512);
        let lifetime = self.times.lifetime;
        for number in [
            self.length,
            self.times.validated,
            self.times.age,
            lifetime.ttl,
            lifetime.stale_while_revalidate,
            lifetime.stale_if_error,
            self.purge_number,
            self.presentation,
        ] {
            bytes.extend(number.to_le_bytes());
        }
        push(&mut bytes, self.etag.as_bytes());
        push(
            &mut bytes,
            self.last_modified.as_deref().unwrap_or_default().as_bytes(),
        );
        for (name, value) in &self.headers {
            push(&mut bytes, name.as_bytes());
            push(&mut bytes, value);
        }
        bytes
    }

    /// Reads an index; `None` if the bytes are malformed.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let reader = &mut ByteReader(bytes);
        let length = reader.u64()?;
        let times = IndexTimes {
            validated: reader.u64()?,
            age: reader.u64()?,
            lifetime: Lifetime {
                ttl: reader.u64()?,
                stale_while_revalidate: reader.u64()?,
                stale_if_error: reader.u64()?,
            },
        };
        let purge_number = reader.u64()?;
        let presentation = reader.u64()?;
        let etag = text(reader)?;
        let last_modified = Some(text(reader)?).filter(|date| !date.is_empty());
        let mut headers = Vec::new();
        while !reader.is_empty() {
            headers.push((text(reader)?, pull(reader)?.to_vec()));
        }
        Some(Self {
            etag,
            last_modified,
            length,
            headers,
            times,
            purge_number,
            presentation,
        })
    }
}

fn push(bytes: &mut Vec<u8>, field: &[u8]) {
    let length = u32::try_from(field.len()).unwrap_or(u32::MAX);
    bytes.extend(length.to_le_bytes());
    bytes.extend(field);
}

fn pull<'a>(reader: &mut ByteReader<'a>) -> Option<&'a [u8]> {
    let length = usize::try_from(reader.u32()?).ok()?;
    reader.slice(length)
}

fn text(reader: &mut ByteReader<'_>) -> Option<String> {
    String::from_utf8(pull(reader)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::SlicedLengths;
    use crate::slices::index::Described;

    #[test]
    fn an_index_is_read_as_it_was_written() {
        for last_modified in [None, Some("Tue, 15 Nov 1994 12:45:26 GMT".into())] {
            let described = Described {
                status: 200,
                etag: Some("\"v1\"".into()),
                last_modified,
                length: Some(1_000),
                accepts_ranges: true,
            };
            let headers = [("content-type", &b"video/mp4"[..]), ("x-bytes", b"\xff")];
            let lengths = SlicedLengths {
                above: 10,
                most: 10_000,
            };
            let lifetime = Lifetime {
                ttl: 9,
                stale_while_revalidate: 10,
                stale_if_error: 11,
            };
            let times = IndexTimes {
                validated: 7,
                age: 8,
                lifetime,
            };
            let index = SliceIndex::of(&described, headers.into_iter(), lengths, times, 12);
            let index = index.unwrap().presented_by(13);
            let bytes = index.encode();
            assert_eq!(SliceIndex::decode(&bytes), Some(index));
            assert_eq!(SliceIndex::decode(&bytes[..bytes.len() - 1]), None);
        }
    }
}
