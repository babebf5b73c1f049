// SPDX-License-Identifier: Apache-2.0
//! What tells this worker from the others, and what all of them agree on, by way of shared data.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;
use sluice_core::admission::write_own_headers;
use sluice_core::http::caching::cache_name::{CacheName, NAME_VARIABLE, VIA_OFF, VIA_VARIABLE};
use sluice_core::key::CanonicalTarget;
use sluice_core::key::secret::{SECRET_VARIABLE, StoreSecret};
use sluice_core::policy::Policy;
use sluice_core::workers::agreement::{agree_on, take_number};
use sluice_core::workers::{KeyHash, OwnHeaders, WorkerId};
use sluice_store::{Vouching, store_path};

use sluice_host::headers::Headers;
use sluice_host::{self as host, Host, Level};

/// What a worker is known by, and what its marks are made with.
#[derive(Debug)]
pub struct Identity {
    /// The number of this worker, past ones included.
    pub worker: WorkerId,
    /// The secrets of this VM, by which it vouches for requests.
    pub vouching: Vouching,
    /// The key of all hashes of keys, which is the same in all workers.
    hash_key: [u64; 2],
    /// The secret of the names in the store, and of the hashes by which purges know URLs.
    pub store_secret: StoreSecret,
    /// The name by which the cache calls itself.
    pub name: CacheName,
    /// Whether HTTP origins are told of the edge in `Via`.
    pub tells_via: bool,
}

impl Identity {
    /// A new identity, and what the workers have agreed on.
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
            tells_via: host.environment(VIA_VARIABLE)?.as_deref() != Some(VIA_OFF),
        })
    }

    /// `:path` of `target` towards the store.
    pub fn store_path(&self, target: &CanonicalTarget) -> String {
        store_path(&self.store_secret, target)
    }

    /// What a request with these headers takes to the origin beside those of `key`.
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

    /// A keyed hash, so that nobody can choose URLs that wait for each other.
    pub fn hash(&self, write: impl FnOnce(&mut SipHasher13)) -> KeyHash {
        let [low, high] = self.hash_key;
        let mut hasher = SipHasher13::new_with_keys(low, high);
        write(&mut hasher);
        KeyHash(hasher.finish())
    }
}

/// The name of the cache: that of the environment, which the edges of a fleet share, else the usual one with a number that
/// all workers of this process know.
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

/// The secret of the names in the store: that of the environment, with which a cache outlives this process, else one
/// that all workers of this process know.
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
