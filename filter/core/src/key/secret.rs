// SPDX-License-Identifier: Apache-2.0
//! The secret behind the names in the store. The hashes of purged URLs and surrogate keys depend on it as well.

use std::fmt;
use std::hash::Hasher as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use siphasher::{sip, sip128};

use crate::hexadecimal;

/// Variable of the VM's environment with the secret. Envoy copies it from its own environment.
pub const SECRET_VARIABLE: &str = "SLUICE_CACHE_SECRET";

/// Secret on which the names of stored responses depend, and the hashes by which purges know them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StoreSecret([u64; 2]);

impl StoreSecret {
    /// The texts that [`StoreSecret::parse`] accepts, for messages to operators.
    pub const ACCEPTED: &str = "32 hexadecimal digits";

    /// A secret of these 128 bits.
    pub const fn new(halves: [u64; 2]) -> Self {
        Self(halves)
    }

    /// Reads 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let (high, low) = text.as_bytes().split_first_chunk::<16>()?;
        let low: &[u8; 16] = low.try_into().ok()?;
        Some(Self([
            hexadecimal::number(high)?,
            hexadecimal::number(low)?,
        ]))
    }

    /// A key that depends on `label` (HMAC with SHA-256).
    pub(crate) fn derive(&self, label: &str) -> [u8; 32] {
        let [high, low] = self.0.map(u64::to_be_bytes);
        keyed_hash(&[high, low].concat(), |sink| sink(label.as_bytes()))
    }

    /// A keyed hash (SipHash-2-4) of `bytes`, the same in every version and on every machine.
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        let [high, low] = self.0;
        let mut hasher = sip::SipHasher24::new_with_keys(high, low);
        hasher.write(bytes);
        hasher.finish()
    }

    /// A keyed hash (SipHash-2-4) of `bytes` with 128 bits.
    pub fn wide_hash(&self, bytes: &[u8]) -> [u64; 2] {
        let [high, low] = self.0;
        let hash = sip128::SipHasher24::new_with_keys(high, low).hash(bytes);
        [hash.h1, hash.h2]
    }
}

impl fmt::Debug for StoreSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("StoreSecret")
    }
}

/// The hash (HMAC with SHA-256) of the bytes that `write` passes on, under `key`.
pub(crate) fn keyed_hash(key: &[u8], write: impl FnOnce(&mut dyn FnMut(&[u8]))) -> [u8; 32] {
    // A key of HMAC may have any length.
    let Ok(mut hash) = Hmac::<Sha256>::new_from_slice(key) else {
        return [0; 32];
    };
    write(&mut |part| hash.update(part));
    hash.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_is_32_hexadecimal_digits() {
        let secret = StoreSecret::new([0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f]);
        let digits = "000102030405060708090A0b0c0d0e0f";
        assert_eq!(StoreSecret::parse(digits), Some(secret));
        let short = &digits[1..];
        let signed = format!("+{short}");
        let long = format!("{digits}0");
        let line = format!("{digits}\n");
        for text in ["", short, &signed, &long, &line] {
            assert_eq!(StoreSecret::parse(text), None, "{text:?}");
        }
        assert_eq!(format!("{secret:?}"), "StoreSecret");
    }
}
