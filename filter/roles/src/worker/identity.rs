// SPDX-License-Identifier: Apache-2.0
//! What tells this worker from the others, and what all of them agree on, by way of shared data.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;
use sluice_core::link::{Link, Secrets, Vouched};
use sluice_core::store::entry::FillId;
use sluice_core::workers::agreement::{agree_on, take_number};
use sluice_core::workers::{KeyHash, StreamId, WorkerId};

use crate::host::{self, Host};

/// What a worker is known by, and what its marks are made with.
#[derive(Debug)]
pub struct Identity {
    /// The number of this worker, past ones included.
    pub worker: WorkerId,
    /// Distinguishes this VM's fills from all others, past ones included.
    nonce: u64,
    secrets: Secrets,
    /// The key of all hashes of keys, which is the same in all workers.
    hash_key: [u64; 2],
}

impl Identity {
    /// A new identity, and what the workers have agreed on.
    ///
    /// # Errors
    /// The host refused a call.
    pub fn new(host: &dyn Host) -> host::Result<Self> {
        let worker = take_number(host)?;
        let hash_key = agree_on(host, "sluice/hash-key", host.random()?)?;
        // What all VMs of this process know and nobody else, so that one is believed by its successor.
        let [process, _] = agree_on(host, "sluice/secret", host.random()?)?;
        let [nonce, vm] = [host.random()?, host.random()?].map(u64::from_le_bytes);
        Ok(Self {
            worker,
            nonce,
            secrets: Secrets { process, vm },
            hash_key,
        })
    }

    /// The value of the link header for `link`.
    pub fn encode_link(&self, link: Link) -> String {
        link.encode(self.secrets)
    }

    /// What a link header says, if it is the filter's.
    pub fn decode_link(&self, value: &[u8]) -> Option<Vouched> {
        Link::decode(value, self.secrets)
    }

    /// The name of this VM's fill on behalf of a request.
    pub fn fill_id(&self, stream: StreamId) -> FillId {
        FillId {
            nonce: self.nonce,
            stream: stream.0,
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
