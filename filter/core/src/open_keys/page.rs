// SPDX-License-Identifier: Apache-2.0
//! A part of all keys that the store was asked for.

/// Of what a page may have, the part that is left for keys that were turned away before: `1 / SPARE`.
const SPARE: usize = 4;

const FORMAT: u8 = 2;
const FINGERPRINT_BYTES: usize = 4;

/// What becomes of a request for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The store may have a session for it.
    Open,
    /// The store will have one more.
    Opens,
    /// The store has no room for another key.
    Full,
}

/// The keys whose hashes choose this page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The instance of the store that was asked for them.
    instance: u32,
    /// What of the keys' hashes does not choose the page. Two keys of a page with one fingerprint count as one.
    fingerprints: Vec<[u8; FINGERPRINT_BYTES]>,
}

impl Page {
    /// Reads a page; anything that this code did not write is an empty one.
    pub fn decode(bytes: &[u8]) -> Self {
        Self::read(bytes).unwrap_or_default()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let ([FORMAT], rest) = bytes.split_first_chunk()? else {
            return None;
        };
        let (instance, rest) = rest.split_first_chunk()?;
        let (fingerprints, []) = rest.as_chunks() else {
            return None;
        };
        Some(Self {
            instance: u32::from_le_bytes(*instance),
            fingerprints: fingerprints.to_vec(),
        })
    }

    /// The bytes that [`Page::decode`] reads.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(5 + FINGERPRINT_BYTES * self.fingerprints.len());
        bytes.push(FORMAT);
        bytes.extend(self.instance.to_le_bytes());
        bytes.extend(self.fingerprints.as_flattened());
        bytes
    }

    /// The store is to be asked for the key with this fingerprint, in its `instance`, the first request to which finds an
    /// empty page. A page may have `most` keys; the last of them are for keys that come `again` after they were turned
    /// away, so that a flood of keys that are asked for once leaves room for others.
    pub fn ask(
        &mut self,
        fingerprint: [u8; FINGERPRINT_BYTES],
        instance: u32,
        most: usize,
        again: bool,
    ) -> Asked {
        if instance > self.instance {
            self.instance = instance;
            self.fingerprints.clear();
        }
        // Of a former instance nothing is counted any more: it ends with the requests that it has.
        if instance < self.instance || self.fingerprints.contains(&fingerprint) {
            return Asked::Open;
        }
        let limit = if again { most } else { most - most / SPARE };
        if self.fingerprints.len() >= limit {
            return Asked::Full;
        }
        self.fingerprints.push(fingerprint);
        Asked::Opens
    }

    /// Keys that the store was asked for.
    pub fn open(&self) -> usize {
        self.fingerprints.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 64;

    fn ask(page: &mut Page, key: u32, again: bool) -> Asked {
        page.ask(key.to_le_bytes(), 0, MOST, again)
    }

    #[test]
    fn a_page_takes_as_many_keys_as_it_may_have_and_knows_them() {
        let mut page = Page::default();
        for key in 0..MOST as u32 {
            assert_eq!(ask(&mut page, key, true), Asked::Opens);
        }
        assert_eq!(ask(&mut page, 999, true), Asked::Full);
        for key in 0..MOST as u32 {
            assert_eq!(ask(&mut page, key, false), Asked::Open);
        }
        assert_eq!(page.open(), MOST);
    }

    #[test]
    fn what_comes_again_finds_room_that_a_flood_has_left() {
        let mut page = Page::default();
        let opened = (0..1_000).filter(|key| ask(&mut page, *key, false) == Asked::Opens);
        assert_eq!(opened.count(), MOST - MOST / 4);
        assert_eq!(ask(&mut page, 999, true), Asked::Opens);
    }

    #[test]
    fn another_instance_of_the_store_has_no_key_open() {
        let mut page = Page::default();
        let ask =
            |page: &mut Page, key: u32, instance| page.ask(key.to_le_bytes(), instance, MOST, true);
        for key in 0..MOST as u32 {
            ask(&mut page, key, 3);
        }
        assert_eq!(ask(&mut page, 999, 3), Asked::Full);
        assert_eq!(ask(&mut page, 999, 4), Asked::Opens);
        assert_eq!(page.open(), 1);
        // Who still has the former one.
        assert_eq!(ask(&mut page, 1_000, 3), Asked::Open);
        assert_eq!(page.open(), 1);
        assert_eq!(Page::decode(&page.encode()), page);
    }

    #[test]
    fn encoding_round_trips_and_foreign_bytes_are_empty() {
        let mut page = Page::default();
        for key in 0..20 {
            ask(&mut page, key, false);
        }
        let bytes = page.encode();
        assert_eq!(Page::decode(&bytes), page);
        assert_eq!(
            Page::decode(bytes.get(..bytes.len() - 1).unwrap()),
            Page::default()
        );
        assert_eq!(Page::decode(b"somebody else's"), Page::default());
        assert_eq!(Page::decode(b""), Page::default());
    }
}
