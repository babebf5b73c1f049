// SPDX-License-Identifier: Apache-2.0
//! What a worker knows of purges, and how that decides about keys and stored responses.

use std::collections::{HashMap, HashSet};

use sluice_core::host::HostError;
use sluice_core::key::CanonicalTarget;
use sluice_core::key::qualifiers::GENERATION;
use sluice_core::metrics::Metric;
use sluice_core::policy::Policy;
use sluice_core::policy::purge::{Record, bucket_of};
use sluice_core::purge::{
    Confirmations, Initial, Noted, PendingPurges, Purges, SharedPurges, TagHash, Tags, url_of,
};
use sluice_core::store::entry::Entry;
use sluice_core::workers::Roster;
use sluice_core::workers::message::Message;
use sluice_core::workers::shared_value::SharedError;
use sluice_core::workers::{KeyHash, Millis, WorkerId};

use super::Worker;
use crate::host;
use crate::request::EdgeRequest;

/// The call number of news that nobody acknowledges.
pub(super) const NO_CALL: u32 = 0;
/// Timer period while purges are under way, in milliseconds.
const CALL_MILLIS: Millis = 100;

/// Records for the journal.
#[derive(Debug)]
pub(super) struct JournalEntry {
    /// The number of the purge that waits for them, or [`NO_CALL`].
    pub call: u32,
    pub text: String,
}

/// What a worker knows of purges.
#[derive(Debug, Default)]
pub struct Purging {
    /// All purges that this worker knows.
    pub(super) replica: Purges,
    /// Whether this worker is on the roster, so that it is told of every purge.
    pub(super) joined: bool,
    /// Whether the entry point keeps a journal.
    pub(super) journal: bool,
    pub(super) desk: PendingPurges,
    /// The contexts of callers that still wait.
    pub(super) callers: HashSet<u32>,
    /// Whether the journal says that unsafe requests have changed resources.
    pub(super) changes_recorded: bool,
    pub(super) due_entries: Vec<JournalEntry>,
    /// The entries on their way into the journal, by Envoy's number for the call.
    pub(super) entries: HashMap<u32, JournalEntry>,
}

impl Purging {
    /// The timer period that purges under way need.
    pub fn tick_period(&self) -> Option<Millis> {
        (!self.desk.is_empty()).then_some(CALL_MILLIS)
    }
}

impl Worker {
    /// Writes the purges that hold at the start of the process into shared data, unless another worker has.
    pub fn begin_purging(&mut self, policy: &Policy) -> host::Result<()> {
        self.purging.journal = policy.purge.recorded;
        let now = u64::try_from(self.host.unix_seconds()).unwrap_or(0);
        let started = SharedPurges::new(&*self.host).start(&Initial::of(policy, now));
        started.map_err(host_error)
    }

    /// Joins the roster and loads all purges, once.
    pub fn join_roster(&mut self) {
        if self.purging.joined {
            return;
        }
        let store = &*self.host;
        let joined = Roster::new(store)
            .join(self.id())
            .and_then(|_| SharedPurges::new(store).load());
        match joined {
            Ok(purges) => {
                self.purging.replica = purges;
                self.purging.joined = true;
            }
            Err(error) => self
                .metrics
                .fault("purges could not be read", host_error(error)),
        }
    }

    /// The newest purge that this worker knows.
    pub fn newest_purge(&self) -> u64 {
        self.purging.replica.newest()
    }

    /// Adds the number of the newest hard purge that covers a URL to its key.
    pub fn qualify_generation(&mut self, policy: &Policy, target: &mut CanonicalTarget) {
        self.join_roster();
        if self.purging.replica.is_empty() {
            return;
        }
        let url = url_of(policy, target.url());
        match self.purging.replica.generations(url).hard {
            0 => {}
            number => target.qualify(GENERATION, number.to_string()),
        }
    }

    /// The number of the newest soft purge that covers the URL of a key; 0 is none.
    pub(super) fn soft_generation(&self, cache_key: &str) -> u64 {
        match self.policies.newest() {
            Some(policy) if !self.purging.replica.is_empty() => {
                let url = url_of(&policy.policy, cache_key);
                self.purging.replica.generations(url).soft
            }
            _ => 0,
        }
    }

    /// Whether a response was asked for before the newest soft purge of its URL.
    pub fn predates_soft_purge(&self, entry: &Entry<'_>) -> bool {
        self.was_purged_since(entry.key, entry.purge)
    }

    /// Whether a URL was purged softly since `began` was the newest purge.
    pub fn was_purged_since(&self, cache_key: &str, began: u64) -> bool {
        self.soft_generation(cache_key) > began
    }

    /// Whether the stored response may be used only after the origin has been asked: a soft purge covers it, and no
    /// worker has confirmed it since.
    pub(super) fn must_revalidate(&self, stream: &EdgeRequest) -> bool {
        // A hard purge takes the place of a soft one, but not for a request that has come between them and still has
        // the key from before the hard one.
        let purged = stream.key != stream.entry;
        if !purged && self.soft_generation(stream.target.cache_key()) == 0 {
            return false;
        }
        let confirmed = Confirmations::new(&*self.host).has(stream.key);
        if confirmed.is_err() {
            self.metrics.count(Metric::HostErrors, 1);
        }
        !confirmed.unwrap_or(false)
    }

    /// Tells all workers that the response has come from the origin since the soft purge, or was found valid by it.
    pub fn confirm(&mut self, key: KeyHash) {
        if let Err(error) = Confirmations::new(&*self.host).add(key) {
            self.metrics
                .fault("a response will be revalidated again", host_error(error));
        }
    }

    /// Indexes the surrogate keys of a response whose request was sent when `began` was the newest
    /// purge. False if it may be one that has been purged since.
    pub fn note_tags(&mut self, url: &str, tags: Option<&[TagHash]>, began: u64) -> bool {
        let epoch = self.purging.replica.everything().hard;
        let store = &*self.host;
        let noted = match tags {
            Some(tags) => Tags::new(store, epoch).note(tags, bucket_of(url), began),
            None => SharedPurges::new(store)
                .lose_index()
                .map(|()| Noted::Indexed),
        };
        match noted {
            Ok(noted) => noted == Noted::Indexed,
            Err(error) => {
                self.metrics
                    .fault("a response was not indexed", host_error(error));
                // What cannot be found cannot be purged.
                false
            }
        }
    }

    /// The other workers on the roster.
    ///
    /// # Errors
    /// Shared data could not be read.
    pub(super) fn others(&mut self) -> Result<Vec<WorkerId>, SharedError> {
        let mut members = Roster::new(&*self.host).members()?;
        members.retain(|member| *member != self.id());
        Ok(members)
    }

    pub(super) fn apply(&mut self, records: &[Record]) {
        for record in records {
            self.purging.replica.apply(record);
        }
    }

    /// Sends a message to other workers; `fault` is logged for each that it does not reach.
    pub(super) fn spread(&mut self, others: &[WorkerId], message: &Message, fault: &'static str) {
        let bytes = message.encode();
        for &other in others {
            if let Err(error) = self.roots.send(&*self.host, other, &bytes) {
                self.metrics.fault(fault, error);
            }
        }
    }

    /// Applies the purges of another worker, who wants to know.
    pub(super) fn receive_purges(&mut self, caller: WorkerId, call: u32, records: &[Record]) {
        self.apply(records);
        if call != NO_CALL {
            self.acknowledge(caller, call);
        }
    }

    /// Joins the roster again if this worker was expelled for being slow; it has missed purges since, and loads them.
    pub(super) fn stay_listed(&mut self) {
        if !matches!(Roster::new(&*self.host).join(self.id()), Ok(false)) {
            self.purging.joined = false;
            self.join_roster();
        }
    }
}

pub(super) fn host_error(error: SharedError) -> HostError {
    match error {
        SharedError::Host(error) => error,
        SharedError::Contended => HostError { status: u32::MAX },
    }
}
