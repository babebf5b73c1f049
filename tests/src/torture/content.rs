// SPDX-License-Identifier: Apache-2.0
//! Bytes that follow from key, version and offset, so that each part of a body can be checked alone.

use crate::chance::rng::mix;
use crate::http::body::{PIECE, hash, piece};
use std::ops::Range;

/// Number of versions before and after the announced one that are tried to identify bytes.
const NEIGHBOURS: u64 = 2_000;

/// The bytes of one version of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    seed: u64,
}

impl Content {
    /// The bytes of version `version` of `key`.
    #[must_use]
    pub fn new(key: &str, version: u64) -> Self {
        Self {
            seed: mix(hash(key) ^ mix(version)),
        }
    }

    /// The bytes of a range.
    #[must_use]
    pub fn slice(self, range: Range<usize>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(range.len());
        let mut at = range.start;
        while at < range.end {
            let part = self.part(at, range.end);
            bytes.extend_from_slice(part);
            at += part.len();
        }
        bytes
    }

    /// Offset of the first byte that is not this version's; the first of `bytes` is at offset `from`.
    #[must_use]
    pub fn difference(self, from: usize, bytes: &[u8]) -> Option<usize> {
        let mut at = from;
        let mut left = bytes;
        while !left.is_empty() {
            let part = self.part(at, at + left.len());
            let (these, rest) = left.split_at(part.len());
            if these != part {
                let same = these.iter().zip(part).take_while(|(a, b)| a == b);
                return Some(at + same.count());
            }
            at += part.len();
            left = rest;
        }
        None
    }

    /// The bytes from `from` to the end of their piece, or to `end`.
    fn part(self, from: usize, end: usize) -> &'static [u8] {
        let within = from % PIECE;
        let length = (PIECE - within).min(end - from);
        &piece(self.seed, from - within)[within..within + length]
    }
}

/// The version of these bytes, if it is near `near`; the first of `bytes` is at offset `from`.
#[must_use]
pub fn identify(key: &str, near: u64, from: usize, bytes: &[u8]) -> Option<u64> {
    let candidates = near.saturating_sub(NEIGHBOURS)..near + NEIGHBOURS;
    candidates
        .into_iter()
        .find(|&version| Content::new(key, version).difference(from, bytes).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_says_key_version_and_offset() {
        let content = Content::new("/a", 7);
        let whole = content.slice(0..10_000);
        assert_eq!(content.difference(0, &whole), None);
        assert_eq!(content.slice(4_000..9_000), whole[4_000..9_000]);
        assert_eq!(content.difference(4_090, &whole[4_090..4_110]), None);
        assert_eq!(content.difference(4_091, &whole[4_090..4_110]), Some(4_091));
        assert!(Content::new("/b", 7).difference(0, &whole).is_some());
        let mixed = [&whole[..5_000], &Content::new("/a", 8).slice(5_000..6_000)].concat();
        assert_eq!(content.difference(0, &mixed), Some(5_000));
        assert_eq!(identify("/a", 9, 5_000, &mixed[5_000..]), Some(8));
        assert_eq!(identify("/a", 9, 0, &mixed), None);
    }
}
