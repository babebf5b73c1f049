// SPDX-License-Identifier: Apache-2.0
//! The path of a response in Envoy's store: `/path#HASH;name=value`. The hash of the whole cache key, under a secret,
//! is in front of the qualifiers.
//!
//! Envoy names the file of a response by XXH64, with a public seed, over cluster, host, path and scheme. Clients
//! choose the path and the query, and often the host. A client can compute a second key with the same name as a given
//! one within seconds. With the hash in the path, an attacker without the secret cannot foresee a name.
//!
//! The hash is a pseudorandom function (SipHash-2-4 with 128 bits) of the whole key, and not the secret itself. The
//! secret alone would not help, because XXH64 reads its input in invertible steps. So two keys that lead to one inner
//! state have one name, with any bytes behind them. The hashes of two keys differ in unpredictable bits. So neither
//! the place of the hash matters, nor the bytes that a client has chosen in front of it or behind it. Each attempt
//! matches a given name with a probability of about 2⁻⁶⁴.
//!
//! EDGE adds the hash, and ORIGIN removes it. All other parts know a response by its cache key, which does not have
//! the hash. A hit from the hot tier does not need the hash.

use std::borrow::Cow;

use sluice_core::hexadecimal;
use sluice_core::key::CanonicalTarget;
use sluice_core::key::secret::StoreSecret;

/// Returns the `:path` of `target` towards the store.
pub fn store_path(secret: &StoreSecret, target: &CanonicalTarget) -> String {
    let key = target.stored_key();
    let path = target.origin_path();
    let qualifiers = key.get(target.url().len()..).unwrap_or_default();
    let mut stored = String::with_capacity(path.len() + qualifiers.len() + 34);
    stored.push_str(path);
    stored.push('#');
    for half in secret.wide_hash(key.as_bytes()) {
        hexadecimal::push(&mut stored, &half.to_be_bytes());
    }
    if let Some(qualifiers) = qualifiers.strip_prefix('#') {
        stored.push(';');
        stored.push_str(qualifiers);
    }
    stored
}

/// Returns the store's `:path` without the hash: path, query and qualifiers.
pub fn without_hash(path: &str) -> Cow<'_, str> {
    let Some((plain, list)) = path.split_once('#') else {
        return Cow::Borrowed(path);
    };
    // Each qualifier has a name, and the hash has none.
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
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::subsequence;
    use sluice_core::key::qualifiers::{is_for_headers, qualifiers, unqualified};
    use sluice_core::key::{Target, canonicalize};
    use sluice_core::policy::Policy;

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
                let stored = store_path(&SECRET, &target);
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
            let stored = store_path(&secret, target);
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

    proptest! {
        #[test]
        fn path_has_all_of_the_key_and_only_its_hash_is_removed(
            path in "/[ -~]{0,40}",
            names in subsequence(vec!["g", "ae", "vary-accept", "vary-x"], 0..=4),
            values in vec(any::<String>(), 4),
            secret in any::<[u64; 2]>(),
        ) {
            let policy = Policy::parse(br#"{"origin": {"kind": "http"}}"#).unwrap();
            let target = Target { scheme: Some("http"), authority: b"edge.test", path: path.as_bytes() };
            let Ok(mut target) = canonicalize(&policy, &target) else { return Ok(()) };
            for (name, value) in names.iter().zip(&values) {
                target.qualify(name, value);
            }
            for target in [target.for_headers(), target] {
                let stored = store_path(&StoreSecret::new(secret), &target);
                prop_assert_eq!(stored.matches('#').count(), 1);
                prop_assert_eq!(&without_hash(&stored), target.path());
                prop_assert_eq!(&without_hash(target.path()), target.path());
                prop_assert_eq!(unqualified(&stored), target.origin_path());
                prop_assert_eq!(is_for_headers(&stored), target.is_for_headers());
                prop_assert!(qualifiers(&stored).eq(qualifiers(target.path())));
            }
        }
    }
}
