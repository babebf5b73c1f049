// SPDX-License-Identifier: Apache-2.0
//! A worker's part in keeping readers of the v2 store from the bytes of another response.

use std::collections::HashMap;
use std::rc::Rc;

use sluice_core::board::{KeyHash, Millis, WorkerId};
use sluice_core::changes::{Changes, Settled};
use sluice_core::metrics::Metric;
use sluice_core::purge::News;

use super::Worker;
use crate::answer::Answer;
use crate::host::{self, Half};
use crate::stream::Stream;

/// What a worker knows of those who read.
#[derive(Debug, Default)]
pub struct Readers {
    changes: Changes,
    /// What ORIGIN answers by itself, once nobody reads.
    answers: Vec<(u32, Answer)>,
    validations: Validations,
}

/// What the store asks the origin about, in ORIGIN's contexts. It asks once for a key.
#[derive(Debug, Default)]
struct Validations {
    contexts: HashMap<KeyHash, u32>,
    keys: HashMap<u32, KeyHash>,
}

impl Validations {
    fn begin(&mut self, context: u32, key: KeyHash) {
        self.contexts.insert(key, context);
        self.keys.insert(context, key);
    }

    fn end(&mut self, context: u32) {
        if let Some(key) = self.keys.remove(&context)
            && self.contexts.get(&key) == Some(&context)
        {
            self.contexts.remove(&key);
        }
    }
}

impl Readers {
    /// The timer period that changes need.
    pub fn tick_period(&self) -> Option<Millis> {
        self.changes.tick_period()
    }
}

impl Worker {
    /// ORIGIN's response in `context`, or its own `answer`, takes the place of a stored one of that key.
    /// True if it has to wait until nobody reads that one.
    ///
    /// # Errors
    /// Nobody can tell.
    pub fn replace(
        &mut self,
        context: u32,
        cache_key: &str,
        answer: Option<Answer>,
    ) -> host::Result<bool> {
        let mut workers = self.members()?;
        let key = self.url_hash(cache_key);
        if !workers.contains(&self.id()) {
            workers.push(self.id());
        }
        if workers.len() == 1 && !self.is_read(key) {
            return Ok(false);
        }
        let now = host::monotonic_millis();
        let call = self.readers.changes.wait(context, workers.clone(), now);
        if let Some(answer) = answer {
            self.readers.answers.push((context, answer));
        }
        let caller = self.id();
        let news = News::Changing { caller, call, key }.encode();
        for worker in workers {
            if worker == caller {
                self.readers.changes.announce(caller, call, key, now);
            } else if let Err(error) = self.enqueue_for(worker, &news) {
                self.fault("a worker was not told of a change", error);
            }
        }
        self.wake_root();
        self.keep_time();
        self.come_back(context);
        Ok(true)
    }

    /// Another worker wants to replace what may be read here.
    pub(super) fn announce_change(&mut self, caller: WorkerId, call: u32, key: KeyHash) {
        self.stay_listed();
        self.hot.remove(key);
        let now = host::monotonic_millis();
        self.readers.changes.announce(caller, call, key, now);
    }

    /// Nobody reads there any more.
    pub(super) fn change_acknowledged(&mut self, worker: WorkerId, call: u32) {
        self.readers.changes.acknowledge(call, worker);
    }

    /// The store asks in `context` about what it has.
    pub fn begin_validation(&mut self, context: u32, cache_key: &str) {
        let key = self.url_hash(cache_key);
        self.readers.validations.begin(context, key);
    }

    /// The store has its answer.
    pub fn end_validation(&mut self, context: u32) {
        self.readers.validations.end(context);
    }

    /// Whether what the store has may be replaced at this very moment, as far as this worker knows.
    pub fn may_change(&self, cache_key: &str) -> bool {
        let readers = &self.readers;
        let validations = &readers.validations.contexts;
        if validations.is_empty() && !readers.changes.is_waited_for() {
            return false;
        }
        let key = self.url_hash(cache_key);
        validations.contains_key(&key) || readers.changes.is_announced(key)
    }

    /// The response that may have waited has gone.
    pub fn forget_change(&mut self, context: u32) {
        self.readers.changes.forget(context);
        self.readers.answers.retain(|(of, _)| *of != context);
        self.end_validation(context);
    }

    /// One who read has read all.
    pub fn has_read(&mut self, stream: &Stream) {
        if stream.reading.replace(false) && self.readers.changes.is_waited_for() {
            self.wake_root();
        }
    }

    /// Goes on with changes. For the root context's turn.
    pub(super) fn end_changes(&mut self) {
        self.release_readers();
        let settled = self.readers.changes.take_settled(host::monotonic_millis());
        for settled in settled {
            self.go_on(settled);
        }
        self.keep_time();
        self.come_back(self.root());
    }

    /// Lets others know of what nobody reads here, and ends those who have had their time.
    fn release_readers(&mut self) {
        if !self.readers.changes.is_waited_for() {
            return;
        }
        let mut changes = std::mem::take(&mut self.readers.changes);
        let due = changes.take_due(host::monotonic_millis(), |key| self.is_read(key));
        self.readers.changes = changes;
        for key in due.ended {
            self.end_readers(key);
        }
        let worker = self.id();
        for (caller, call) in due.acknowledged {
            if caller == worker {
                self.readers.changes.acknowledge(call, worker);
                continue;
            }
            let news = News::Unread { worker, call };
            if let Err(error) = self.enqueue_for(caller, &news.encode()) {
                self.fault("a change waits for nobody", error);
            }
        }
    }

    fn is_read(&self, key: KeyHash) -> bool {
        self.streams.values().any(|stream| self.reads(stream, key))
    }

    fn reads(&self, stream: &Stream, key: KeyHash) -> bool {
        stream.reading.get() && self.url_hash(stream.target.cache_key()) == key
    }

    /// Cuts those off who still read: better a part than a mixture.
    fn end_readers(&mut self, key: KeyHash) {
        let readers: Vec<Rc<Stream>> = self
            .streams
            .values()
            .filter(|stream| self.reads(stream, key))
            .cloned()
            .collect();
        for reader in readers {
            reader.reading.set(false);
            // One who has just left is no fault.
            if self.redirect(reader.id.0).is_ok() {
                self.metrics.count(Metric::ReadersEnded, 1);
                let ended = host::reset(Half::Response);
                self.check(ended);
            }
        }
    }

    /// Takes workers off the list that have not said whether they read.
    fn expel_unread(&mut self, missing: &[WorkerId]) {
        if !missing.is_empty() {
            self.warn(|| format!("sluice: workers {missing:?} did not answer to a change"));
        }
        self.expel(missing);
    }

    /// Lets the changed response into the store.
    fn go_on(&mut self, settled: Settled) {
        self.expel_unread(&settled.missing);
        let context = settled.context;
        let mut answers = self.readers.answers.iter();
        if let Some(at) = answers.position(|(of, _)| *of == context) {
            let (_, answer) = self.readers.answers.swap_remove(at);
            self.answer_later(context, answer);
            return;
        }
        self.end_validation(context);
        if self.redirect(context).is_ok() {
            let resumed = host::resume(Half::Response);
            self.check(resumed);
        }
    }
}
