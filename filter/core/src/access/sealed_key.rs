// SPDX-License-Identifier: Apache-2.0
//! Keys in the configuration of the filter, which anyone may see in a dump: encrypted under the secret of the store,
//! which only the environment has.
//!
//! The encryption is deterministic and authenticated, with a synthetic initialization vector (the construction of RFC
//! 5297, with HMAC-SHA-256 as its pseudorandom function). It is deterministic so that a reload with the same keys
//! changes nothing. The same key in two places has two forms.

use std::fmt;

use super::grant::write_field;
use crate::hexadecimal;
use crate::key::secret::{StoreSecret, keyed_hash};

/// Bytes of a hash.
const HASH: usize = 32;
/// The most bytes of a key of signed URLs.
pub const LONGEST_KEY: usize = 1_024;
/// The most bytes that can be sealed.
pub const LONGEST_SEALED: usize = 64 << 10;

/// The place of a sealed key. A key that is moved to another place cannot be opened.
#[derive(Clone, Copy, Debug)]
pub struct KeyPlace<'a> {
    /// The name of the site.
    pub site: &'a str,
    /// The name of the key.
    pub name: &'a str,
}

/// A sealed key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedKey {
    /// The hash of place and key, from which the encryption begins.
    vector: [u8; HASH],
    encrypted: Box<[u8]>,
}

impl SealedKey {
    /// Seals a key for its place.
    pub fn seal(secret: &StoreSecret, place: &KeyPlace<'_>, key: &[u8]) -> Self {
        let vector = vector(secret, place, key);
        let encrypted = crypt(secret, &vector, key).into();
        Self { vector, encrypted }
    }

    /// The key; `None` if it was sealed with another secret or for another place.
    pub fn open(&self, secret: &StoreSecret, place: &KeyPlace<'_>) -> Option<Vec<u8>> {
        let key = crypt(secret, &self.vector, &self.encrypted);
        (vector(secret, place, &key) == self.vector).then_some(key)
    }

    /// Reads the digits that [`fmt::Display`] writes.
    pub fn from_hex(text: &str) -> Option<Self> {
        let bytes = hexadecimal::bytes(text)?;
        let (vector, encrypted) = bytes.split_first_chunk()?;
        (1..=LONGEST_SEALED)
            .contains(&encrypted.len())
            .then(|| Self {
                vector: *vector,
                encrypted: encrypted.into(),
            })
    }
}

impl fmt::Display for SealedKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        hexadecimal::push(&mut text, &self.vector);
        hexadecimal::push(&mut text, &self.encrypted);
        out.write_str(&text)
    }
}

fn vector(secret: &StoreSecret, place: &KeyPlace<'_>, key: &[u8]) -> [u8; HASH] {
    keyed_hash(&secret.derive("sluice/sealed-key/vector"), |sink| {
        for field in [place.site.as_bytes(), place.name.as_bytes(), key] {
            write_field(field, sink);
        }
    })
}

/// Encrypts or decrypts `text`: both combine it with the same stream of hashes.
fn crypt(secret: &StoreSecret, vector: &[u8; HASH], text: &[u8]) -> Vec<u8> {
    let stream = secret.derive("sluice/sealed-key/stream");
    let blocks = text.chunks(HASH).zip(0_u32..).flat_map(|(block, number)| {
        let mask = keyed_hash(&stream, |sink| {
            sink(vector);
            sink(&number.to_be_bytes());
        });
        block
            .iter()
            .zip(mask)
            .map(|(byte, mask)| byte ^ mask)
            .collect::<Vec<_>>()
    });
    blocks.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8] = b"0123456789abcdef0123456789abcdef and more";
    const PLACE: KeyPlace<'_> = KeyPlace {
        site: "docs",
        name: "2026a",
    };

    #[test]
    fn a_sealed_key_is_opened_with_its_secret_in_its_place_alone() {
        let secret = StoreSecret::new([1, 2]);
        let sealed = SealedKey::seal(&secret, &PLACE, KEY);
        assert_eq!(sealed.open(&secret, &PLACE).as_deref(), Some(KEY));
        assert_eq!(sealed.open(&StoreSecret::new([1, 3]), &PLACE), None);
        for place in [
            KeyPlace {
                site: "other",
                ..PLACE
            },
            KeyPlace {
                name: "2026b",
                ..PLACE
            },
            KeyPlace {
                site: "doc",
                name: "s2026a",
            },
        ] {
            assert_eq!(sealed.open(&secret, &place), None, "{place:?}");
        }
    }

    #[test]
    fn the_text_of_a_sealed_key_shows_no_part_of_the_key_and_is_always_the_same() {
        let secret = StoreSecret::new([1, 2]);
        let sealed = SealedKey::seal(&secret, &PLACE, KEY);
        let text = sealed.to_string();
        assert_eq!(text, SealedKey::seal(&secret, &PLACE, KEY).to_string());
        assert_eq!(SealedKey::from_hex(&text), Some(sealed));
        let mut plain = String::new();
        hexadecimal::push(&mut plain, KEY);
        for start in 0..plain.len() - 8 {
            assert!(!text.contains(&plain[start..start + 8]));
        }
        let changed = text.replacen(['a', '0'], "1", 1);
        let changed = SealedKey::from_hex(&changed).unwrap();
        assert_eq!(changed.open(&secret, &PLACE), None);
    }

    #[test]
    fn anything_else_is_no_sealed_key() {
        for text in [
            "",
            "ab",
            "zz",
            &"a".repeat(64),
            &"A".repeat(80),
            &"a".repeat(65),
        ] {
            assert_eq!(SealedKey::from_hex(text), None, "{text}");
        }
    }
}
