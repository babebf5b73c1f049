// SPDX-License-Identifier: Apache-2.0
//! An issuer of tokens (RFC 7519) with its keys.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use serde_json::{Value, json};

/// The name of the issuer, as tokens have it.
pub const ISSUER: &str = "https://id.test";
/// The audience of its tokens.
pub const AUDIENCE: &str = "docs";

/// A key that signs tokens.
#[derive(Debug)]
enum Key {
    Edwards(Ed25519KeyPair),
    Elliptic(EcdsaKeyPair),
}

/// An issuer with one key.
#[derive(Debug)]
pub struct TokenIssuer {
    name: String,
    key: Key,
}

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// The present time in seconds.
#[must_use]
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

impl TokenIssuer {
    /// An issuer that signs with EdDSA, and a key of this name.
    ///
    /// # Panics
    /// When the system gives no random bytes.
    #[must_use]
    pub fn edwards(name: &str) -> Self {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let key = Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap();
        let (name, key) = (name.to_owned(), Key::Edwards(key));
        Self { name, key }
    }

    /// An issuer that signs with ES256, and a key of this name.
    ///
    /// # Panics
    /// When the system gives no random bytes.
    #[must_use]
    pub fn elliptic(name: &str) -> Self {
        let (random, kind) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let made = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(kind, made.as_ref(), &random).unwrap();
        let (name, key) = (name.to_owned(), Key::Elliptic(key));
        Self { name, key }
    }

    /// The public key as a JWK (RFC 7517).
    #[must_use]
    pub fn jwk(&self) -> Value {
        match &self.key {
            Key::Edwards(key) => json!({
                "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "kid": self.name,
                "x": encoded(key.public_key()),
            }),
            Key::Elliptic(key) => {
                // The first byte says that both coordinates follow.
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                json!({
                    "kty": "EC", "crv": "P-256", "alg": "ES256", "kid": self.name,
                    "x": encoded(x), "y": encoded(y),
                })
            }
        }
    }

    /// A token with these claims beside the claims of a valid token. A claim that is null is left out.
    #[must_use]
    pub fn token(&self, claims: &Value) -> String {
        let mut all = json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": now() + 600 });
        for (name, value) in claims.as_object().into_iter().flatten() {
            all[name] = value.clone();
        }
        if let Some(all) = all.as_object_mut() {
            all.retain(|_, value| !value.is_null());
        }
        let algorithm = match &self.key {
            Key::Edwards(_) => "EdDSA",
            Key::Elliptic(_) => "ES256",
        };
        self.sign(&json!({ "alg": algorithm, "kid": self.name }), &all)
    }

    /// A token with this header and these claims.
    ///
    /// # Panics
    /// When the system gives no random bytes.
    #[must_use]
    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        let signed = format!(
            "{}.{}",
            encoded(header.to_string()),
            encoded(claims.to_string())
        );
        let signature = match &self.key {
            Key::Edwards(key) => encoded(key.sign(signed.as_bytes())),
            Key::Elliptic(key) => {
                let made = key.sign(&SystemRandom::new(), signed.as_bytes());
                encoded(made.unwrap())
            }
        };
        format!("{signed}.{signature}")
    }
}

/// The JWK Set with the keys of these issuers.
#[must_use]
pub fn key_set(issuers: &[&TokenIssuer]) -> String {
    let keys: Vec<_> = issuers.iter().map(|issuer| issuer.jwk()).collect();
    json!({ "keys": keys }).to_string()
}
