// SPDX-License-Identifier: Apache-2.0
//! The right, or the false right, by which a client asks for an object at edges with access rules.

use super::generations::Generations;
use crate::chance::rng::Rng;
use sluice_core::access::credentials::COOKIE;
use sluice_core::access::grant::{Grant, GrantedResource};
use sluice_core::access::parameters::{EXPIRES, KEY, PREFIX, SIGNATURE};
use sluice_core::access::signing_key::SigningKey;
use sluice_core::hexadecimal;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The host in the clients' requests.
const HOST: &str = "edge.test";
/// Time for which a right signature is valid.
const VALID: u64 = 3_600;
/// Time since an expired signature was valid. The clocks may differ by a minute.
const EXPIRED: u64 = 120;

/// How a request is signed. The number is that of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// The edges have no access rules.
    Open,
    /// A signed link.
    Link(u64),
    /// A signed cookie for the folder of the object.
    Cookie(u64),
    /// No signature.
    Unsigned,
    /// A signed link that has expired.
    Expired(u64),
    /// A signed link with another signature.
    Forged(u64),
    /// A link that was signed for another URL.
    Elsewhere(u64),
}

impl Pass {
    /// Draws a pass for a request that is sent while this generation is in force.
    #[must_use]
    pub fn draw(generation: u64, rng: &mut Rng) -> Self {
        let key = generation + rng.below(2) as u64;
        match rng.below(40) {
            0 => Self::Unsigned,
            1 => Self::Expired(key),
            2 => Self::Forged(key),
            3 => Self::Elsewhere(key),
            // A key that is no longer valid, or not yet.
            4 => Self::Link(generation.saturating_sub(1)),
            5 => Self::Link(generation + 4),
            6..=15 => Self::Cookie(key),
            _ => Self::Link(key),
        }
    }

    /// The key whose validity decides; `None` if the request must be refused in any case.
    #[must_use]
    pub const fn key(self) -> Option<u64> {
        match self {
            Self::Link(key) | Self::Cookie(key) => Some(key),
            _ => None,
        }
    }

    /// The target of a request for a path.
    #[must_use]
    pub fn target(self, path: &str) -> String {
        let url = GrantedResource::Url(path);
        let parameters = match self {
            Self::Link(key) => signed(key, url, expiry(VALID)),
            Self::Expired(key) => signed(key, url, now() - EXPIRED),
            Self::Elsewhere(key) => signed(key, GrantedResource::Url("/other"), expiry(VALID)),
            Self::Forged(key) => forged(signed(key, url, expiry(VALID))),
            Self::Open | Self::Unsigned | Self::Cookie(_) => return path.to_owned(),
        };
        format!("{path}?{parameters}")
    }

    /// The cookie of a request for a path.
    #[must_use]
    pub fn cookie(self, path: &str) -> Option<String> {
        let Self::Cookie(key) = self else { return None };
        let folder = path.rfind('/').map_or(path, |end| &path[..=end]);
        let prefix = format!("{folder}*");
        let parameters = signed(key, GrantedResource::Prefix(&prefix), expiry(VALID));
        Some(format!("{COOKIE}={parameters}"))
    }
}

/// The text of a key, as in its file.
#[must_use]
pub fn key_text(number: u64) -> String {
    format!("the-key-of-generation-{number:010}-of-a-run")
}

/// The name of a key.
#[must_use]
pub fn key_name(number: u64) -> String {
    format!("k{number}")
}

/// The current time in seconds since the Unix epoch.
#[must_use]
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or(Duration::ZERO).as_secs()
}

fn expiry(seconds: u64) -> u64 {
    now() + seconds
}

/// The parameters of a signature.
fn signed(key: u64, resource: GrantedResource<'_>, expires: u64) -> String {
    let name = key_name(key);
    let grant = Grant {
        method: "GET",
        host: HOST,
        resource,
        not_before: None,
        expires,
        from: None,
        key: &name,
    };
    let secret = SigningKey::new(key_text(key).as_bytes()).expect("a key that is long enough");
    let mut text = format!("{KEY}={name}&{EXPIRES}={expires}");
    if let GrantedResource::Prefix(prefix) = resource {
        text.push_str(&format!("&{PREFIX}={prefix}"));
    }
    text.push_str(&format!("&{SIGNATURE}="));
    hexadecimal::push(&mut text, &secret.sign(&grant));
    text
}

/// Changes the last digit of a signature.
fn forged(mut parameters: String) -> String {
    let last = parameters.pop();
    parameters.push(if last == Some('0') { '1' } else { '0' });
    parameters
}

/// The generation that is surely in force.
#[must_use]
pub fn generation(generations: &Generations, now: super::clock::Moment) -> u64 {
    *generations.possible(now, now).start()
}
