// SPDX-License-Identifier: Apache-2.0
//! A worker's part in knowing the lengths of stored bodies that no header tells.

use sluice_core::workers::BodyId;
use sluice_core::workers::message::Message;

use super::Worker;

impl Worker {
    /// The number of bytes of a stored body, if somebody has counted them.
    pub fn body_length(&mut self, cache_key: &str, body: BodyId) -> Option<u64> {
        let key = self.entry_hash(cache_key);
        self.known.body_lengths.get(key, body)
    }

    /// All of a stored body has passed.
    pub fn note_body_length(&mut self, cache_key: &str, body: BodyId, bytes: u64) {
        let key = self.entry_hash(cache_key);
        self.known.body_lengths.note(key, body, bytes);
    }

    /// All of a body has gone into the store. Other workers are told, so that all answer alike; who misses it
    /// learns it from the next whole response.
    pub fn tell_body_length(&mut self, cache_key: &str, body: BodyId, bytes: u64) {
        let key = self.entry_hash(cache_key);
        self.known.body_lengths.note(key, body, bytes);
        let message = Message::BodyLength {
            worker: self.id(),
            key,
            body,
            bytes,
        };
        let others = self.others().unwrap_or_default();
        self.spread(&others, &message, "a worker was not told of a length");
    }
}
