// SPDX-License-Identifier: Apache-2.0
//! Keys that sign and verify grants (HMAC with SHA-256, RFC 2104).

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::grant::Grant;
use super::sealed_key::{KeyPlace, SealedKey};
use crate::key::secret::StoreSecret;
use crate::policy::{KeyEntry, KeySource, Policy, PolicyError};

/// Fewest bytes of a key: those of the hash (RFC 2104, 3).
pub const SHORTEST_KEY: usize = 32;

/// Bytes of most texts that are signed.
const USUAL_TEXT: usize = 256;

/// A signature of a grant.
pub type Signature = [u8; 32];

/// A key of signed URLs.
#[derive(Clone)]
pub struct SigningKey(Hmac<Sha256>);

impl SigningKey {
    /// Creates a key from its bytes; `None` if there are fewer than [`SHORTEST_KEY`].
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let long = Some(bytes).filter(|bytes| bytes.len() >= SHORTEST_KEY)?;
        Hmac::new_from_slice(long).ok().map(Self)
    }

    /// The signature of a grant.
    pub fn sign(&self, grant: &Grant<'_>) -> Signature {
        self.hash(grant).finalize().into_bytes().into()
    }

    /// Whether a signature is that of the grant. The time does not depend on how much of it is right.
    pub fn verifies(&self, grant: &Grant<'_>, signature: &Signature) -> bool {
        self.hash(grant).verify_slice(signature).is_ok()
    }

    fn hash(&self, grant: &Grant<'_>) -> Hmac<Sha256> {
        // One update of a whole text costs less than one for each part.
        let mut text = Vec::with_capacity(USUAL_TEXT);
        grant.write(|part| text.extend_from_slice(part));
        self.0.clone().chain_update(text)
    }
}

impl fmt::Debug for SigningKey {
    // NB: the key is a secret.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SigningKey")
    }
}

/// The keys of a site's signed URLs, by their names.
#[derive(Clone, Debug, Default)]
pub struct SigningKeys(Vec<(String, SigningKey)>);

impl SigningKeys {
    /// Creates the keys.
    pub const fn new(keys: Vec<(String, SigningKey)>) -> Self {
        Self(keys)
    }

    /// Opens the sealed keys of a policy with the secret of the store.
    ///
    /// # Errors
    /// A key is not sealed, or was sealed with another secret. The error names the key, and shows no part of it.
    pub fn open(policy: &Policy, secret: &StoreSecret) -> Result<Self, PolicyError> {
        let signed = policy.access.as_ref().and_then(|access| access.signed());
        let entries = signed.into_iter().flat_map(|signed| &signed.keys);
        let open = |entry: &KeyEntry| {
            let place = KeyPlace {
                site: &policy.site.name,
                name: &entry.name,
            };
            let opened = match &entry.source {
                KeySource::Sealed(text) => {
                    SealedKey::from_hex(text).and_then(|sealed| sealed.open(secret, &place))
                }
                KeySource::Environment(_) | KeySource::File(_) => None,
            };
            let key = opened.as_deref().and_then(SigningKey::new);
            let key = key.ok_or_else(|| {
                let path = format!("access.any_of.signed.keys.{}", entry.name);
                PolicyError::new(&path, "expected a key that this edge has sealed")
            })?;
            Ok((entry.name.clone(), key))
        };
        entries.map(open).collect::<Result<_, _>>().map(Self)
    }

    /// The key of that name.
    pub fn get(&self, name: &str) -> Option<&SigningKey> {
        let mut keys = self.0.iter();
        keys.find(|(known, _)| known == name).map(|(_, key)| key)
    }
}
