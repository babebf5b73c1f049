// SPDX-License-Identifier: Apache-2.0
//! The bodies of hot copies, for workers that share memory: equal copies of one object share one body.
//!
//! Each worker has its own copies, with its own facts about freshness and purges, so that a hit does not need another
//! worker. Only bodies that are equal to the last byte are shared, at the time when a copy is stored.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::workers::{KeyHash, NumberMap};

/// So many that two workers rarely use the same.
const SHARDS: usize = 16;
/// Smallest number of bodies of a shard at which unused ones are removed.
const FEW: usize = 64;

/// The bodies of one shard, as long as a worker uses them.
#[derive(Debug, Default)]
struct BodyShard {
    bodies: NumberMap<KeyHash, Weak<[u8]>>,
    /// Number of bodies at which unused ones are removed.
    most: usize,
}

/// The bodies that workers use.
#[derive(Debug, Default)]
pub struct SharedBodies {
    shards: [Mutex<BodyShard>; SHARDS],
}

impl SharedBodies {
    /// Returns the body that is already known under `key`, if it is equal to `body`. Otherwise returns `body`, which
    /// other workers share from now on.
    pub fn share(&self, key: KeyHash, body: Arc<[u8]>) -> Arc<[u8]> {
        let shard = usize::try_from(key.0 % SHARDS as u64).ok();
        let Some(shard) = shard.and_then(|shard| self.shards.get(shard)) else {
            return body;
        };
        // A panic under the lock leaves no wrong state, because bodies are compared.
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let known = shard.bodies.get(&key).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| *known == body) {
            return known;
        }
        shard.bodies.insert(key, Arc::downgrade(&body));
        shard.clear();
        body
    }

    /// Number of bodies in use.
    pub fn len(&self) -> usize {
        let shards = self.shards.iter();
        let shards = shards.map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner));
        let kept = |body: &&Weak<[u8]>| body.strong_count() > 0;
        shards
            .map(|shard| shard.bodies.values().filter(kept).count())
            .sum()
    }

    /// Whether no body is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl BodyShard {
    /// Removes unused bodies, once there are twice as many bodies as were in use the last time.
    fn clear(&mut self) {
        if self.bodies.len() <= self.most.max(FEW) {
            return;
        }
        self.bodies.retain(|_, body| body.strong_count() > 0);
        self.bodies.shrink_to(2 * self.bodies.len());
        self.most = 2 * self.bodies.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(bytes: &[u8]) -> Arc<[u8]> {
        bytes.into()
    }

    #[test]
    fn equal_bodies_of_a_key_are_one() {
        let bodies = SharedBodies::default();
        let one = bodies.share(KeyHash(1), body(b"abc"));
        let other = bodies.share(KeyHash(1), body(b"abc"));
        assert!(Arc::ptr_eq(&one, &other));
        assert_eq!(bodies.len(), 1);
    }

    #[test]
    fn a_body_that_differs_takes_the_place_of_the_one_before() {
        let bodies = SharedBodies::default();
        let before = bodies.share(KeyHash(1), body(b"abc"));
        let after = bodies.share(KeyHash(1), body(b"abd"));
        assert_eq!((&*before, &*after), (&b"abc"[..], &b"abd"[..]));
        assert!(Arc::ptr_eq(&after, &bodies.share(KeyHash(1), body(b"abd"))));
    }

    #[test]
    fn bodies_of_other_keys_are_not_mixed_up() {
        let bodies = SharedBodies::default();
        let one = bodies.share(KeyHash(1), body(b"abc"));
        let other = bodies.share(KeyHash(1 + SHARDS as u64), body(b"abc"));
        assert!(!Arc::ptr_eq(&one, &other));
    }

    #[test]
    fn what_nobody_keeps_is_forgotten() {
        let bodies = SharedBodies::default();
        let kept = bodies.share(KeyHash(0), body(b"kept"));
        for key in 1..100_000 {
            let _ = bodies.share(KeyHash(key), body(b"gone"));
        }
        assert_eq!(bodies.len(), 1);
        let known: usize = bodies
            .shards
            .iter()
            .map(|shard| shard.lock().unwrap().bodies.len())
            .sum();
        assert!(known <= SHARDS * (FEW + 1), "{known}");
        assert!(Arc::ptr_eq(&kept, &bodies.share(KeyHash(0), body(b"kept"))));
    }
}
