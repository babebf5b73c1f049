// SPDX-License-Identifier: Apache-2.0
//! The path under which Envoy's store knows a response: `/path#HASH;name=value`. The hash of the whole cache key, under
//! a secret, stands before the qualifiers.
//!
//! Envoy names the file of a response by XXH64, with a seed that everybody knows, over cluster, host, path and scheme.
//! Clients choose path and query, and often the host, and can compute a second key with the name of a given one within
//! seconds. With the hash in the path, nobody without the secret can foresee a name.
//!
//! The hash is a pseudorandom function (SipHash-2-4 with 128 bits) of the whole key, and not the secret itself. XXH64 reads
//! its input in invertible steps. Two keys that lead to one inner state therefore have one name, whatever the same bytes
//! behind them are. The hashes of two keys differ in bits that nobody foresees, so it does not matter where they stand, nor
//! what a client has chosen before or behind them: each attempt meets a given name with a probability of about 2⁻⁶⁴.
//!
//! EDGE adds the hash, and ORIGIN removes it. All else knows a response by its cache key, which does not have it. A hit
//! from the hot tier does not need it.

use std::borrow::Cow;
use std::fmt;
use std::hash::Hasher as _;

use siphasher::sip;
use siphasher::sip128::SipHasher24;

use super::CanonicalTarget;
use crate::hexadecimal;

/// The variable of the VM's environment with the secret, which Envoy takes from its own.
pub const SECRET_VARIABLE: &str = "SLUICE_CACHE_SECRET";

/// The secret on which the names of stored responses depend, and the hashes by which purges know them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StoreSecret([u64; 2]);

impl StoreSecret {
    /// What [`StoreSecret::parse`] takes, for messages to users.
    pub const ACCEPTED: &str = "32 hexadecimal digits";

    /// The secret of these 128 bits.
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

    /// A keyed hash (SipHash-2-4) of `bytes`, the same in every version and on every machine.
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        let [high, low] = self.0;
        let mut hasher = sip::SipHasher24::new_with_keys(high, low);
        hasher.write(bytes);
        hasher.finish()
    }

    /// `:path` of `target` towards the store.
    pub fn store_path(&self, target: &CanonicalTarget) -> String {
        let [high, low] = self.0;
        let key = target.stored_key();
        let hash = SipHasher24::new_with_keys(high, low).hash(key.as_bytes());
        let path = target.origin_path();
        let qualifiers = key.get(target.url().len()..).unwrap_or_default();
        let mut stored = String::with_capacity(path.len() + qualifiers.len() + 34);
        stored.push_str(path);
        stored.push('#');
        for half in [hash.h1, hash.h2] {
            hexadecimal::push(&mut stored, &half.to_be_bytes());
        }
        if let Some(qualifiers) = qualifiers.strip_prefix('#') {
            stored.push(';');
            stored.push_str(qualifiers);
        }
        stored
    }
}

impl fmt::Debug for StoreSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("StoreSecret")
    }
}

/// A store's `:path` without the hash: path, query and qualifiers.
pub fn without_hash(path: &str) -> Cow<'_, str> {
    let Some((plain, list)) = path.split_once('#') else {
        return Cow::Borrowed(path);
    };
    // Each qualifier has a name.
    match list.split_once(';') {
        Some((hash, qualifiers)) if !hash.contains('=') => {
            Cow::Owned([plain, "#", qualifiers].concat())
        }
        None if !list.contains('=') => Cow::Borrowed(plain),
        _ => Cow::Borrowed(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Target, canonicalize};
    use crate::policy::Policy;

    const SECRET: StoreSecret = StoreSecret::new([0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f]);

    fn target(path: &str) -> CanonicalTarget {
        let policy = br#"{"origin": {"kind": "http"}}"#;
        let target = Target {
            scheme: Some("http"),
            authority: b"edge.test",
            path: path.as_bytes(),
        };
        canonicalize(&Policy::parse(policy).unwrap(), &target).unwrap()
    }

    #[test]
    fn hash_stands_before_the_qualifiers_and_is_removed() {
        let mut target = target("/a/b?c=d;e");
        for qualifier in ["", "g", "ae", "vary-x"] {
            if !qualifier.is_empty() {
                target.qualify(qualifier, "1;#=");
            }
            for target in [target.clone(), target.for_headers()] {
                let stored = SECRET.store_path(&target);
                let (path, list) = stored.split_once('#').unwrap();
                assert_eq!(path, target.origin_path());
                let hash = list.split(';').next().unwrap();
                assert_eq!(hash.len(), 32, "{stored}");
                assert!(
                    hash.bytes().all(|digit| digit.is_ascii_hexdigit()),
                    "{stored}"
                );
                assert_eq!(without_hash(&stored), target.path());
                assert_eq!(without_hash(target.path()), target.path());
            }
        }
    }

    #[test]
    fn hash_depends_on_secret_host_path_and_qualifiers() {
        let hash = |secret: StoreSecret, target: &CanonicalTarget| {
            let stored = secret.store_path(target);
            stored.split(['#', ';']).nth(1).unwrap().to_owned()
        };
        let one = target("/a");
        let mut qualified = one.clone();
        qualified.qualify("g", "1");
        let other = StoreSecret::new([0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e10]);
        let hashes = [
            hash(SECRET, &one),
            hash(other, &one),
            hash(SECRET, &qualified),
            hash(SECRET, &target("/b")),
            hash(SECRET, &target("/a?")),
        ];
        let different: std::collections::BTreeSet<_> = hashes.iter().collect();
        assert_eq!(different.len(), hashes.len(), "{hashes:?}");
        assert_eq!(hash(SECRET, &one), hash(SECRET, &one));
    }

    #[test]
    fn secret_is_32_hexadecimal_digits() {
        let digits = "000102030405060708090A0b0c0d0e0f";
        assert_eq!(StoreSecret::parse(digits), Some(SECRET));
        let short = &digits[1..];
        let signed = format!("+{short}");
        let long = format!("{digits}0");
        let line = format!("{digits}\n");
        for text in ["", short, &signed, &long, &line] {
            assert_eq!(StoreSecret::parse(text), None, "{text:?}");
        }
        assert_eq!(format!("{SECRET:?}"), "StoreSecret");
    }
}
