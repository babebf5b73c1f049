// SPDX-License-Identifier: Apache-2.0
//! Identity of a worker, and the values on which all workers agree through shared data.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;
use sluice_core::admission::write_own_headers;
use sluice_core::http::caching::cache_name::{CacheName, NAME_VARIABLE, VIA_VARIABLE};
use sluice_core::key::CanonicalTarget;
use sluice_core::key::secret::{SECRET_VARIABLE, StoreSecret};
use sluice_core::policy::{LargeUrl, Policy};
use sluice_core::switch;
use sluice_core::workers::agreement::{agree_on, take_number};
use sluice_core::workers::{KeyHash, OwnHeaders, WorkerId};
use sluice_store::{Vouching, store_path};

use sluice_host::headers::Headers;
use sluice_host::{self as host, Host, Level};

/// The number of a worker, its secrets and its name.
#[derive(Debug)]
pub struct Identity {
    /// The number of this worker. The numbers of past workers are not used again.
    pub worker: WorkerId,
    /// The secrets with which this VM vouches for requests.
    pub vouching: Vouching,
    /// The key of all hashes of keys. All workers have the same one.
    hash_key: [u64; 2],
    /// The secret of the file names in the store, and of the hashes by which purges identify URLs.
    pub store_secret: StoreSecret,
    /// The name of the cache in `Cache-Status` and `Via`.
    pub name: CacheName,
    /// Whether requests to HTTP origins name the edge in `Via`.
    pub tells_via: bool,
}

impl Identity {
    /// Creates an identity, and agrees with the other workers on the shared values.
    ///
    /// # Errors
    /// The host refused a call.
    pub fn new(host: &dyn Host) -> host::Result<Self> {
        let worker = take_number(host)?;
        let hash_key = agree_on(host, "sluice/hash-key", host.random()?)?;
        Ok(Self {
            worker,
            vouching: Vouching::new(host)?,
            hash_key,
            store_secret: store_secret(host)?,
            name: cache_name(host)?,
            tells_via: tells_via(host)?,
        })
    }

    /// The `:path` of `target` in requests to the store.
    pub fn store_path(&self, target: &CanonicalTarget) -> String {
        store_path(&self.store_secret, target)
    }

    /// The URL of `target`, as the edge remembers it of an object that is stored in slices.
    pub fn large_url(&self, target: &CanonicalTarget) -> LargeUrl {
        LargeUrl::of(target.url(), &self.store_secret)
    }

    /// The headers that a request takes to the origin beside those of `key`, as a hash.
    pub fn own_headers(&self, policy: &Policy, key: &str, headers: &Headers) -> OwnHeaders {
        let mut any = false;
        let hash = self.hash(|hasher| {
            any = write_own_headers(policy, key, headers.iter(), hasher);
        });
        if any {
            OwnHeaders::of(hash)
        } else {
            OwnHeaders::NONE
        }
    }

    /// A keyed hash, so that clients cannot choose URLs whose requests wait for each other.
    pub fn hash(&self, write: impl FnOnce(&mut SipHasher13)) -> KeyHash {
        let [low, high] = self.hash_key;
        let mut hasher = SipHasher13::new_with_keys(low, high);
        write(&mut hasher);
        KeyHash(hasher.finish())
    }
}

/// The name of the cache. It is that of the environment, which the edges of a fleet share, or else the usual name
/// with a number on which the workers of this process agree.
fn cache_name(host: &dyn Host) -> host::Result<CacheName> {
    let given = host.environment(NAME_VARIABLE)?;
    let given = given.filter(|given| !given.is_empty());
    if let Some(name) = given.as_deref().and_then(CacheName::parse) {
        return Ok(name);
    }
    if let Some(given) = given {
        let accepted = CacheName::ACCEPTED;
        let message = format!("sluice: {NAME_VARIABLE}={given:?}: expected {accepted}");
        host.log(Level::Warn, &message);
    }
    let [number, _] = agree_on(host, "sluice/cache-name", host.random()?)?;
    Ok(CacheName::usual(number as u32))
}

/// Whether the edge sends `Via` to HTTP origins, from the environment. The default is on.
fn tells_via(host: &dyn Host) -> host::Result<bool> {
    let given = host.environment(VIA_VARIABLE)?;
    let given = given.filter(|given| !given.is_empty());
    let told = given.as_deref().and_then(switch::parse);
    if let (Some(given), None) = (&given, told) {
        let accepted = switch::ACCEPTED;
        let message = format!("sluice: {VIA_VARIABLE}={given:?}: expected {accepted}");
        host.log(Level::Warn, &message);
    }
    Ok(told.unwrap_or(true))
}

/// The secret of the file names in the store. It is that of the environment, with which a cache outlives this
/// process, or else one on which the workers of this process agree.
fn store_secret(host: &dyn Host) -> host::Result<StoreSecret> {
    let given = host.environment(SECRET_VARIABLE)?;
    let secret = given.as_deref().and_then(StoreSecret::parse);
    if let Some(secret) = secret {
        return Ok(secret);
    }
    if given.is_some() {
        let accepted = StoreSecret::ACCEPTED;
        let message =
            format!("sluice: {SECRET_VARIABLE}: expected {accepted}: the cache starts empty");
        host.log(Level::Warn, &message);
    }
    let agreed = agree_on(host, "sluice/store-secret", host.random()?)?;
    Ok(StoreSecret::new(agreed))
}
