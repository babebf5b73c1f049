// SPDX-License-Identifier: Apache-2.0
//! What workers share: data with compare-and-set, and queues.

use sluice_core::host::{HostError, SharedStore, Token};

use super::imports::{
    proxy_dequeue_shared_queue, proxy_enqueue_shared_queue, proxy_get_shared_data,
    proxy_register_shared_queue, proxy_resolve_shared_queue, proxy_set_shared_data,
};
use super::{OK, Result, check, receive};

const CAS_MISMATCH: u32 = 8;

/// A token that the host does not hand out: with it, `set` creates an absent key and fails on any
/// other, while 0 would overwrite whatever is there.
const CREATE: u32 = u32::MAX;

/// The data that all workers share.
#[derive(Debug, Default)]
pub struct SharedData;

impl SharedStore for SharedData {
    fn get(&self, key: &str) -> Result<Option<(Vec<u8>, Token)>> {
        let mut token = 0;
        let value = receive(|data, size| unsafe {
            proxy_get_shared_data(key.as_ptr(), key.len(), data, size, &raw mut token)
        })?;
        Ok(value.map(|value| (value, Token(token))))
    }

    fn compare_and_set(&self, key: &str, value: &[u8], token: Option<Token>) -> Result<bool> {
        let token = token.map_or(CREATE, |token| token.0);
        match unsafe {
            proxy_set_shared_data(key.as_ptr(), key.len(), value.as_ptr(), value.len(), token)
        } {
            OK => Ok(true),
            CAS_MISMATCH => Ok(false),
            status => Err(HostError { status }),
        }
    }
}

/// A queue of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue(pub u32);

/// Makes this root context the receiver of the queue.
pub fn register_queue(name: &str) -> Result<Queue> {
    let mut queue = 0;
    check(unsafe { proxy_register_shared_queue(name.as_ptr(), name.len(), &raw mut queue) })?;
    Ok(Queue(queue))
}

/// The queue that another worker of the VM `vm_id` has registered.
pub fn resolve_queue(vm_id: &str, name: &str) -> Result<Queue> {
    let mut queue = 0;
    check(unsafe {
        proxy_resolve_shared_queue(
            vm_id.as_ptr(),
            vm_id.len(),
            name.as_ptr(),
            name.len(),
            &raw mut queue,
        )
    })?;
    Ok(Queue(queue))
}

/// Puts a message into a queue and wakes its receiver.
pub fn enqueue(queue: Queue, message: &[u8]) -> Result<()> {
    check(unsafe { proxy_enqueue_shared_queue(queue.0, message.as_ptr(), message.len()) })
}

/// The next message, if there is one.
pub fn dequeue(queue: Queue) -> Result<Option<Vec<u8>>> {
    const EMPTY: u32 = 7;
    let received = receive(|data, size| unsafe { proxy_dequeue_shared_queue(queue.0, data, size) });
    match received {
        Err(HostError { status: EMPTY }) => Ok(None),
        received => received,
    }
}
