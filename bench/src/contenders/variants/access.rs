// SPDX-License-Identifier: Apache-2.0
//! Edges with access rules, and the requests that these admit.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use sluice_core::access::grant::{Grant, GrantedResource};
use sluice_core::access::parameters::{EXPIRES, KEY, SIGNATURE};
use sluice_core::access::sealed_key::{KeyPlace, SealedKey};
use sluice_core::access::signing_key::SigningKey;
use sluice_core::hexadecimal;
use sluice_core::key::secret::StoreSecret;

/// The secret of the store, which Envoy's environment has.
pub const SECRET: &str = "000102030405060708090a0b0c0d0e0f";
/// The name of the key of signed URLs.
const NAME: &str = "2026a";
const BYTES: &[u8] = b"0123456789abcdef0123456789abcdef";
/// The change that needs signed requests.
pub const SIGNED: &str = "signed";
/// The change that sends signed requests to an edge without access rules: the cost of the longer URL alone.
pub const SIGNATURE_IGNORED: &str = "signature-ignored";

/// The rules of a site that answers clients of this machine.
pub fn allow() -> Value {
    json!({"allow": ["127.0.0.0/8"]})
}

/// The rules of a site with signed URLs.
pub fn signed() -> Value {
    let secret = StoreSecret::parse(SECRET).expect("a secret");
    let place = KeyPlace {
        site: "",
        name: NAME,
    };
    let sealed = SealedKey::seal(&secret, &place, BYTES).to_string();
    json!({"any_of": [{"signed": {"keys": {NAME: {"sealed": sealed}}}}]})
}

/// The target with a signature for the next day.
pub fn sign(target: &str, address: SocketAddr) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let expires = (now.unwrap_or_default() + Duration::from_secs(86_400)).as_secs();
    let host = address.ip().to_string();
    let grant = Grant {
        method: "GET",
        host: &host,
        resource: GrantedResource::Url(target),
        not_before: None,
        expires,
        from: None,
        key: NAME,
    };
    let mut digits = String::new();
    let key = SigningKey::new(BYTES).expect("a key of 32 bytes");
    hexadecimal::push(&mut digits, &key.sign(&grant));
    format!("{target}?{KEY}={NAME}&{EXPIRES}={expires}&{SIGNATURE}={digits}")
}
