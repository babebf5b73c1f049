// SPDX-License-Identifier: Apache-2.0
//! Keys: their parts and hashes, their purges, and facts that this worker has learned about their responses. The
//! coalescer keeps its hints separately.

mod hot;
mod missing;
mod purges;

use std::hash::Hasher;
use std::rc::Rc;

use sluice_core::coalescing::learnt::varying::{Lesson, Varying};
use sluice_core::coalescing::shared::board::FlightKey;
use sluice_core::hot::HotTier;
use sluice_core::http::accept_encoding::Coding;
use sluice_core::http::syntax::field_value::JoinedValue;
use sluice_core::key::CanonicalTarget;
use sluice_core::key::qualifiers;
use sluice_core::key::vary::{self, ACCEPT_ENCODING, HeaderTooLong, VaryNames};
use sluice_core::policy::{EdgePolicy, HotPolicy, Policy};
use sluice_core::purge::{FeedPosition, Purges, url_of};
use sluice_core::sites::Sites;
use sluice_core::workers::message::Message;
use sluice_core::workers::recent_keys::RecentKeys;
use sluice_core::workers::{BodyId, KeyHash, Millis};
use sluice_store::BodyLengths;

use super::identity::Identity;
use super::metrics::Metrics;
use crate::worker::roots::Roots;
use sluice_host::Host;
use sluice_host::headers::Headers;

pub use missing::MissingObject;

/// Maximum number of missing objects that are remembered.
const MOST_MISSING: usize = 4_096;

/// Maximum number of stored responses that are remembered because a 304 was about another response.
const MOST_DOUBTED: usize = 4_096;

/// The clients that may get the response to a request with `Authorization`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorizedSharing {
    /// All clients, with or without credentials.
    All,
    /// Only the client that sent the request. Until `until`, requests do not look for a shared response.
    Client {
        /// The end of that time.
        until: Millis,
    },
}

/// Facts that a worker knows of keys, by their hashes.
#[derive(Debug)]
pub struct Keys {
    pub(crate) host: Rc<dyn Host>,
    pub(crate) metrics: Rc<Metrics>,
    pub(crate) identity: Rc<Identity>,
    /// The newest sites. Their policies map keys to URLs.
    sites: Option<Rc<Sites>>,
    /// Whether any of their policies declares a soft number.
    declares_soft: bool,
    /// All purges and all changes by unsafe requests that this worker knows.
    purges: Purges,
    /// Whether the purge feed was not read yet, so that purges may be missing.
    awaits_feed: bool,
    /// The last line of the purge feed that a peer has applied.
    peers_feed: Option<FeedPosition>,
    /// Whether this worker is on the roster and thus receives every purge.
    joined: bool,
    /// The lengths of stored bodies that have no `Content-Length`.
    body_lengths: BodyLengths,
    /// The request headers that the responses of a URL vary with.
    varying: Varying,
    /// The clients that may get the response to a request with `Authorization`.
    authenticated: RecentKeys<AuthorizedSharing>,
    /// Stored responses that must not be revalidated again, because the origin's 304 was about another response.
    doubted: RecentKeys<()>,
    /// Missing objects, and how long that is known.
    missing: RecentKeys<(MissingObject, Millis)>,
    /// The hot tier.
    pub hot: HotTier,
    hot_policy: HotPolicy,
}

impl Keys {
    /// An empty table.
    pub fn new(
        host: Rc<dyn Host>,
        metrics: Rc<Metrics>,
        identity: Rc<Identity>,
        policy: &EdgePolicy,
    ) -> Self {
        Self {
            host,
            metrics,
            identity,
            purges: Purges::default(),
            awaits_feed: false,
            peers_feed: None,
            joined: false,
            body_lengths: BodyLengths::new(policy.limits.hints),
            varying: Varying::new(policy.limits.varying_urls),
            authenticated: RecentKeys::new(policy.limits.hints),
            doubted: RecentKeys::new(MOST_DOUBTED),
            missing: RecentKeys::new(MOST_MISSING),
            hot: HotTier::new(policy.hot),
            hot_policy: policy.hot,
            sites: None,
            declares_soft: false,
        }
    }

    /// Applies new sites. Their policies may change keys and headers.
    pub fn keep_to(&mut self, sites: Rc<Sites>) {
        let (limits, hot) = (sites.edge.limits, sites.edge.hot);
        self.body_lengths.set_capacity(limits.hints);
        self.varying.set_capacity(limits.varying_urls);
        self.authenticated.set_capacity(limits.hints);
        if self.hot_policy != hot {
            self.hot = HotTier::new(hot);
            self.hot_policy = hot;
        }
        self.declares_soft = sites
            .sites
            .iter()
            .any(|site| site.policy.declared.has_soft());
        self.sites = Some(sites);
    }

    /// The URL of a key, as purges name it. Returns the key itself if its site no longer exists.
    fn url_of<'a>(&self, cache_key: &'a str) -> &'a str {
        let policy = self.sites.as_ref();
        let policy = policy.and_then(|sites| sites.policy_of_key(cache_key));
        policy.map_or(cache_key, |policy| url_of(policy, cache_key))
    }

    /// The hash under which requests wait for each other and hints are kept. A soft purge changes it, because the
    /// worker must not use what it knew of the key before.
    pub fn key_hash(&self, cache_key: &str) -> KeyHash {
        self.since_soft_purge(self.entry_hash(cache_key), cache_key)
    }

    /// The hash of a cache key whose own hash is `hash`, since the newest soft purge.
    fn since_soft_purge(&self, hash: KeyHash, cache_key: &str) -> KeyHash {
        let hash = self.since_declared(hash, cache_key);
        match self.soft_generation(cache_key) {
            0 => hash,
            soft => self.identity.hash(|hasher| {
                hasher.write_u64(hash.0);
                hasher.write_u64(soft);
            }),
        }
    }

    /// The hash of a cache key whose own hash is `hash`, under the soft number that the policy declares for it.
    fn since_declared(&self, hash: KeyHash, cache_key: &str) -> KeyHash {
        match self.declared_soft(cache_key) {
            0 => hash,
            declared => self.identity.hash(|hasher| {
                hasher.write(b"declared");
                hasher.write_u64(hash.0);
                hasher.write_u64(declared);
            }),
        }
    }

    /// The hashes that identify a target on the board.
    pub fn flight_key(&self, target: &CanonicalTarget) -> FlightKey {
        let own = self.entry_hash(target.cache_key());
        let key = self.since_soft_purge(own, target.cache_key());
        let entry = if target.has_plain_key() {
            self.entry_hash(target.stored_key())
        } else {
            own
        };
        FlightKey { entry, key }
    }

    /// The hash by which workers know an object that is served in slices. Soft purges do not change it, but a
    /// declared soft number does, so that the index is requested again.
    pub fn object_hash(&self, cache_key: &str) -> KeyHash {
        self.since_declared(self.entry_hash(cache_key), cache_key)
    }

    /// The hash of the store's entry. Soft purges do not change it. Fills, hot copies, body lengths and lessons about
    /// `Vary` use it.
    fn entry_hash(&self, cache_key: &str) -> KeyHash {
        self.identity
            .hash(|hasher| hasher.write(cache_key.as_bytes()))
    }

    /// Remembers that responses for the URL of a target vary with `names`. The response that showed this was not
    /// stored.
    pub fn learn(&mut self, target: &CanonicalTarget, names: VaryNames) {
        let (plain, now) = (
            self.entry_hash(target.plain_key()),
            self.host.monotonic_millis(),
        );
        let known = self.varying.get(plain, now);
        let known = known.filter(|known| known.names == names);
        let plain_variant = known.and_then(|known| known.plain_variant);
        self.varying.learn(
            plain,
            Lesson {
                names,
                plain_variant,
            },
            now,
        );
    }

    /// Remembers which variant the store has under the plain key with hash `plain`. Returns false if that was known.
    pub fn learn_plain_variant(
        &mut self,
        plain: KeyHash,
        plain_variant: KeyHash,
        names: VaryNames,
    ) -> bool {
        let plain_variant = Some(plain_variant);
        let now = self.host.monotonic_millis();
        self.varying.learn(
            plain,
            Lesson {
                names,
                plain_variant,
            },
            now,
        )
    }

    /// Makes the next request fetch the object under a stored key again, because the origin's 304 was about another
    /// response.
    pub fn doubt(&mut self, stored_key: &str) {
        self.doubted.insert(self.entry_hash(stored_key), ());
    }

    /// Whether the object under a stored key must be fetched again. Removes the record.
    pub fn take_doubt(&mut self, stored_key: &str) -> bool {
        if self.doubted.is_empty() {
            return false;
        }
        let key = self.entry_hash(stored_key);
        let doubted = self.doubted.peek(key).is_some();
        self.doubted.remove(key);
        doubted
    }

    /// Extends the time for which the lesson about the URL of a target is kept.
    pub fn renew_lesson(&mut self, target: &CanonicalTarget) {
        if !self.varying.is_empty() {
            let plain = self.entry_hash(target.plain_key());
            self.varying.renew(plain, self.host.monotonic_millis());
        }
    }

    /// The hashes of a plain key and of a variant.
    pub fn lesson_hashes(&self, plain_key: &str, variant: &str) -> (KeyHash, KeyHash) {
        (self.entry_hash(plain_key), self.entry_hash(variant))
    }

    /// Adds the `vary-*` qualifiers that the URL of `target` is known to need. All other qualifiers must be in the
    /// key already.
    fn qualify_variant(
        &mut self,
        policy: &Policy,
        target: &mut CanonicalTarget,
        headers: &Headers,
    ) -> Result<(), HeaderTooLong> {
        if self.varying.is_empty() {
            return Ok(());
        }
        let plain = self.entry_hash(target.plain_key());
        let known = self.varying.get(plain, self.host.monotonic_millis());
        let Some(Lesson {
            names,
            plain_variant,
        }) = known
        else {
            return Ok(());
        };
        vary::qualify_variant(policy, target, &names, |name| headers.joined(name))?;
        let variant = target.variant();
        if !variant.is_empty() && plain_variant == Some(self.entry_hash(variant)) {
            target.take_plain_key();
        }
        Ok(())
    }

    /// Whether responses for the URL of a target are known to vary with the credentials of their requests.
    pub fn varies_with_credentials(&mut self, target: &CanonicalTarget) -> bool {
        if self.varying.is_empty() {
            return false;
        }
        let plain = self.entry_hash(target.plain_key());
        let known = self.varying.get(plain, self.host.monotonic_millis());
        known.is_some_and(|known| known.names.has_credentials())
    }

    /// The clients that may get the response to a request for `key` with `Authorization`, if known (RFC 9111, 3.5).
    pub fn authorized_sharing(&mut self, key: KeyHash) -> Option<AuthorizedSharing> {
        if self.authenticated.is_empty() {
            return None;
        }
        let now = self.host.monotonic_millis();
        let known = self.authenticated.get(key).copied();
        known.filter(|known| !matches!(known, AuthorizedSharing::Client { until } if *until <= now))
    }

    /// Remembers which clients may get the response to a request for `key` with `Authorization`. `None` removes the
    /// record.
    pub fn note_authorized_sharing(
        &mut self,
        key: KeyHash,
        authorized_sharing: Option<AuthorizedSharing>,
    ) {
        match authorized_sharing {
            Some(authorized_sharing) => self.authenticated.insert(key, authorized_sharing),
            None if self.authenticated.is_empty() => {}
            None => self.authenticated.remove(key),
        }
    }

    /// Adds the qualifiers for content coding, the headers of the policy's key and `Vary` to the key of `target`.
    ///
    /// # Errors
    /// The value of a header that the response varies with is too long for a key.
    pub fn qualify(
        &mut self,
        policy: &Policy,
        target: &mut CanonicalTarget,
        headers: &Headers,
    ) -> Result<(), HeaderTooLong> {
        if let Some(coding) = compressed(policy, target, headers) {
            target.qualify(qualifiers::CODING, coding.token());
        }
        vary::qualify(policy, target, |name| headers.joined(name))?;
        self.qualify_variant(policy, target, headers)
    }

    /// The number of bytes of a stored body, if a worker has counted them.
    pub fn body_length(&mut self, stored_key: &str, body: BodyId) -> Option<u64> {
        self.body_lengths.get(self.entry_hash(stored_key), body)
    }

    /// Remembers that a stored body, which has passed completely, has `bytes` bytes.
    pub fn note_body_length(&mut self, stored_key: &str, body: BodyId, bytes: u64) {
        self.learn_body_length(self.entry_hash(stored_key), body, bytes);
    }

    /// Remembers the length of a body that was stored completely, and sends it to the other workers, so that all
    /// workers answer alike. A worker that misses the message learns the length from the next whole response.
    pub fn tell_body_length(
        &mut self,
        roots: &mut Roots,
        stored_key: &str,
        body: BodyId,
        bytes: u64,
    ) {
        let (worker, key) = (self.identity.worker, self.entry_hash(stored_key));
        self.learn_body_length(key, body, bytes);
        let message = Message::BodyLength {
            worker,
            key,
            body,
            bytes,
        };
        roots.tell_others(&message, "a worker did not receive a length");
    }

    /// Remembers that the body under the key with that hash has `bytes` bytes.
    pub fn learn_body_length(&mut self, key: KeyHash, body: BodyId, bytes: u64) {
        self.body_lengths.note(key, body, bytes);
    }
}

/// The coding in which the edge compresses a response on its way into the cache.
fn compressed(policy: &Policy, target: &CanonicalTarget, headers: &Headers) -> Option<Coding> {
    let compression = &policy.compression;
    if !compression.applies(policy.client_path(target.origin_path())) {
        return None;
    }
    let accepted = headers.joined(ACCEPT_ENCODING);
    compression.negotiate(accepted.as_ref().map(JoinedValue::value))
}
