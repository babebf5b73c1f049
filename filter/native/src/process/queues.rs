// SPDX-License-Identifier: Apache-2.0
//! Queues through which workers send each other messages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use sluice_host::Queue;

use crate::process::inbox::{Inbox, Wakes};

/// The messages for one worker.
#[derive(Debug)]
struct Messages {
    name: String,
    /// The inbox of the worker that receives them.
    inbox: Arc<Inbox>,
    /// The messages; `None` if the worker has been lost and receives no more messages.
    waiting: Mutex<Option<VecDeque<Vec<u8>>>>,
}

/// All queues of the process.
#[derive(Debug, Default)]
pub struct Queues {
    all: RwLock<Vec<Arc<Messages>>>,
}

impl Queues {
    /// The queue with that name. Creates it if it does not exist.
    pub fn register(&self, name: &str, inbox: &Arc<Inbox>) -> Option<Queue> {
        if let Some(known) = self.resolve(name) {
            return Some(known);
        }
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::new(Messages {
            name: name.to_owned(),
            inbox: Arc::clone(inbox),
            waiting: Mutex::new(Some(VecDeque::new())),
        }));
        u32::try_from(all.len() - 1).ok().map(Queue)
    }

    /// The queue with that name.
    pub fn resolve(&self, name: &str) -> Option<Queue> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let position = all.iter().position(|queue| queue.name == name)?;
        u32::try_from(position).ok().map(Queue)
    }

    /// Puts a message into a queue and wakes its receiver. Returns false if the queue does not exist.
    pub fn enqueue(&self, queue: Queue, message: &[u8]) -> bool {
        let Some(queue) = self.get(queue) else {
            return false;
        };
        let mut waiting = queue.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = &mut *waiting {
            waiting.push_back(message.to_vec());
        }
        drop(waiting);
        queue.inbox.wake(Wakes::MESSAGES);
        true
    }

    /// Removes the next message and returns it.
    pub fn dequeue(&self, queue: Queue) -> Option<Vec<u8>> {
        let queue = self.get(queue)?;
        let mut waiting = queue.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.as_mut()?.pop_front()
    }

    /// Drops the messages for a worker that has been lost, and all later ones.
    pub fn close(&self, inbox: &Arc<Inbox>) {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        for queue in all.iter().filter(|queue| Arc::ptr_eq(&queue.inbox, inbox)) {
            *queue.waiting.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    fn get(&self, queue: Queue) -> Option<Arc<Messages>> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all.get(usize::try_from(queue.0).ok()?).cloned()
    }
}
