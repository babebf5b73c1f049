// SPDX-License-Identifier: Apache-2.0
//! Maps with numbers as keys that clients cannot choose.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by a number that the filter counts itself, or by a [`super::KeyHash`], which depends on a secret. A client
/// cannot make many of its keys collide. So the map hashes them by one multiplication, instead of std's SipHash.
pub type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Hashes one number.
#[derive(Clone, Copy, Debug, Default)]
pub struct NumberHasher(u64);

/// The fraction of the golden ratio in 64 bits, used for Fibonacci hashing.
const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * u128::from(GOLDEN_RATIO);
        // The low half depends on the low bits alone, the high half on all.
        self.0 = low_half(product) ^ low_half(product >> 64);
    }
}

#[allow(clippy::cast_possible_truncation)]
const fn low_half(product: u128) -> u64 {
    product as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workers::{KeyHash, StreamId};
    use std::collections::HashSet;
    use std::hash::{BuildHasher, Hash};

    fn hash(number: impl Hash) -> u64 {
        BuildHasherDefault::<NumberHasher>::default().hash_one(number)
    }

    #[test]
    fn numbers_that_follow_each_other_have_places_of_their_own() {
        let places: HashSet<_> = (0..1_000).map(|n| hash(StreamId(n)) % 1_024).collect();
        assert!(places.len() > 500, "{}", places.len());
    }

    #[test]
    fn numbers_that_differ_in_high_bits_only_have_places_of_their_own() {
        let places: HashSet<_> = (0..1_000).map(|n| hash(KeyHash(n << 48)) % 1_024).collect();
        assert!(places.len() > 500, "{}", places.len());
    }

    #[test]
    fn an_entry_is_found_by_its_number() {
        let map: NumberMap<u32, u32> = (0..100).map(|number| (number, number * 2)).collect();
        assert_eq!(map.get(&7), Some(&14));
        assert_eq!(map.get(&100), None);
    }
}
