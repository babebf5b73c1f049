// SPDX-License-Identifier: Apache-2.0
//! Key-value data that all workers of a process share, for a host without such data. It follows the rules of Envoy's
//! shared data: keys cannot be deleted.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::host::Token;

/// So many that two workers rarely use the same.
const SHARDS: usize = 64;

type Shard = HashMap<String, (Vec<u8>, Token)>;

/// The data of the process.
#[derive(Debug)]
pub struct SharedData {
    hashes: RandomState,
    shards: [Mutex<Shard>; SHARDS],
    last: AtomicU32,
}

impl SharedData {
    /// Empty shared data.
    #[must_use]
    pub fn new() -> Self {
        Self {
            hashes: RandomState::new(),
            shards: std::array::from_fn(|_| Mutex::default()),
            last: AtomicU32::new(0),
        }
    }

    /// Implements [`crate::host::SharedStore::get`].
    pub fn get(&self, key: &str) -> Option<(Vec<u8>, Token)> {
        self.shard(key)?.get(key).cloned()
    }

    /// Implements [`crate::host::SharedStore::compare_and_set`].
    pub fn compare_and_set(&self, key: &str, value: &[u8], token: Option<Token>) -> bool {
        let Some(mut shard) = self.shard(key) else {
            return false;
        };
        let new = Token(self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1));
        match shard.get_mut(key) {
            Some((_, current)) if token != Some(*current) => return false,
            Some(known) => *known = (value.to_vec(), new),
            None => {
                shard.insert(key.to_owned(), (value.to_vec(), new));
            }
        }
        true
    }

    fn shard(&self, key: &str) -> Option<MutexGuard<'_, Shard>> {
        let hash = self.hashes.hash_one(key);
        let shard = usize::try_from(hash % SHARDS as u64).ok()?;
        let shard = self.shards.get(shard)?.lock();
        // A panic under the lock leaves the data whole, because a value is replaced in one step.
        Some(shard.unwrap_or_else(PoisonError::into_inner))
    }
}

impl Default for SharedData {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_key_is_created_once() {
        let data = SharedData::new();
        assert_eq!(data.get("key"), None);
        assert!(data.compare_and_set("key", b"one", None));
        assert!(!data.compare_and_set("key", b"two", None));
        assert_eq!(data.get("key").unwrap().0, b"one");
    }

    #[test]
    fn only_the_current_version_is_replaced() {
        let data = SharedData::new();
        assert!(data.compare_and_set("key", b"one", None));
        let (_, first) = data.get("key").unwrap();
        assert!(data.compare_and_set("key", b"two", Some(first)));
        assert!(!data.compare_and_set("key", b"three", Some(first)));
        assert_eq!(data.get("key").unwrap().0, b"two");
    }

    #[test]
    fn of_workers_that_write_at_one_time_none_is_lost() {
        const TIMES: u32 = 500;
        let data = SharedData::new();
        data.compare_and_set("sum", &0_u32.to_le_bytes(), None);
        let add_one = || {
            let (value, token) = data.get("sum").unwrap();
            let sum = u32::from_le_bytes(value.try_into().unwrap()) + 1;
            data.compare_and_set("sum", &sum.to_le_bytes(), Some(token))
        };
        let work = || (0..TIMES).for_each(|_| while !add_one() {});
        thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
        assert_eq!(data.get("sum").unwrap().0, (4 * TIMES).to_le_bytes());
    }
}
