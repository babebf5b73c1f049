// SPDX-License-Identifier: Apache-2.0
//! A worker's part in purges: what it knows of them, and what it tells the others.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sluice_core::host::HostError;
use sluice_core::key::CanonicalTarget;
use sluice_core::metrics::Metric;
use sluice_core::policy::Policy;
use sluice_core::policy::purge::{Record, bucket_of};
use sluice_core::purge::{
    Confirmations, Initial, Noted, Order, Purges, SharedPurges, TagHash, Tags, carry_out,
    invalidate, url_of,
};
use sluice_core::purge::{JOURNAL_PATIENCE, PendingPurges, Receipt};
use sluice_core::store::entry::Entry;
use sluice_core::workers::shared_value::SharedError;
use sluice_core::workers::{KeyHash, Millis, WorkerId};
use sluice_core::workers::{News, Roster};

use super::Worker;
use sluice_core::key::qualifiers::GENERATION;

use crate::host::{self, SharedData};
use crate::purge::answer_receipt;
use crate::stream::Stream;

/// The entry point's journal.
const JOURNAL_CLUSTER: &str = "purge_journal";
const JOURNAL_TIMEOUT: Duration = Duration::from_millis(JOURNAL_PATIENCE);
/// Timer period while calls are under way.
const CALL_MILLIS: Millis = 100;
/// The call number of news that nobody waits for.
const NO_CALL: u32 = 0;

/// What a worker knows of purges.
#[derive(Debug, Default)]
pub struct Purging {
    /// What has been purged.
    replica: Purges,
    /// Whether it hears of every purge.
    joined: bool,
    /// Whether the entry point keeps a journal.
    journal: bool,
    desk: PendingPurges,
    /// The callers that are there.
    callers: HashSet<u32>,
    /// Whether the journal says that requests have changed resources.
    changes_recorded: bool,
    due_entries: Vec<JournalEntry>,
    /// Those on their way into the journal, by Envoy's number for the call.
    entries: HashMap<u32, JournalEntry>,
}

impl Purging {
    /// The timer period that calls need.
    pub fn tick_period(&self) -> Option<Millis> {
        (!self.desk.is_empty()).then_some(CALL_MILLIS)
    }
}

/// Records for the journal.
#[derive(Debug)]
struct JournalEntry {
    /// Who waits for it.
    call: u32,
    text: String,
}

/// Why a purge has not been carried out.
#[derive(Clone, Copy, Debug)]
pub enum Unavailable {
    /// Too many calls are under way.
    Busy,
    /// Shared data could not be written.
    Failed,
}

impl Worker {
    /// Writes what holds at the start of the process, unless it has been.
    pub fn begin_purging(&mut self, policy: &Policy) -> host::Result<()> {
        self.purging.journal = policy.purge.recorded;
        let now = u64::try_from(host::unix_seconds()).unwrap_or(0);
        let started = SharedPurges::new(&mut SharedData).start(&Initial::of(policy, now));
        started.map_err(host_error)
    }

    /// Makes sure that this worker knows every purge, and hears of those to come.
    pub fn attend(&mut self) {
        if self.purging.joined {
            return;
        }
        let mut store = SharedData;
        let joined = Roster::new(&mut store)
            .join(self.id())
            .and_then(|_| SharedPurges::new(&mut store).load());
        match joined {
            Ok(purges) => {
                self.purging.replica = purges;
                self.purging.joined = true;
            }
            Err(error) => self.fault("purges could not be read", host_error(error)),
        }
    }

    /// The newest purge that this worker knows.
    pub fn newest_purge(&self) -> u64 {
        self.purging.replica.newest()
    }

    /// Puts the newest hard purge that covers a URL into its key.
    pub fn qualify_generation(&mut self, policy: &Policy, target: &mut CanonicalTarget) {
        self.attend();
        if self.purging.replica.is_empty() {
            return;
        }
        let url = url_of(policy, target.url());
        match self.purging.replica.generations(url).hard {
            0 => {}
            number => target.qualify(GENERATION, number.to_string()),
        }
    }

    /// Number of the newest soft purge that covers the URL of a key; 0 is none.
    pub(super) fn soft_generation(&self, cache_key: &str) -> u64 {
        match self.policies.back() {
            Some(policy) if !self.purging.replica.is_empty() => {
                let url = url_of(&policy.policy, cache_key);
                self.purging.replica.generations(url).soft
            }
            _ => 0,
        }
    }

    /// Whether a response was asked for before it was purged softly.
    pub fn is_outdated(&self, entry: &Entry<'_>) -> bool {
        self.was_purged_since(entry.key, entry.purge)
    }

    /// Whether a response was purged softly that was asked for when `began` was the newest purge.
    pub fn was_purged_since(&self, cache_key: &str, began: u64) -> bool {
        self.soft_generation(cache_key) > began
    }

    /// Whether the stored response may only be used after the origin has been asked.
    pub(super) fn must_revalidate(&self, stream: &Stream) -> bool {
        if self.soft_generation(stream.target.cache_key()) == 0 {
            return false;
        }
        let confirmed = Confirmations::new(&mut SharedData).has(stream.key);
        if confirmed.is_err() {
            self.metrics.count(Metric::HostErrors, 1);
        }
        !confirmed.unwrap_or(false)
    }

    /// The response has come from the origin, or was found valid by it.
    pub fn confirm(&mut self, key: KeyHash) {
        if let Err(error) = Confirmations::new(&mut SharedData).add(key) {
            self.fault("a response will be revalidated again", host_error(error));
        }
    }

    /// Indexes the surrogate keys of a response whose request was sent when `began` was the newest
    /// purge. False if it may be one that has been purged since.
    pub fn note_tags(&mut self, url: &str, tags: Option<&[TagHash]>, began: u64) -> bool {
        let epoch = self.purging.replica.everything().hard;
        let mut store = SharedData;
        let noted = match tags {
            Some(tags) => Tags::new(&mut store, epoch).note(tags, bucket_of(url), began),
            None => SharedPurges::new(&mut store)
                .lose_index()
                .map(|()| Noted::Indexed),
        };
        match noted {
            Ok(noted) => noted == Noted::Indexed,
            Err(error) => {
                self.fault("a response was not indexed", host_error(error));
                // What cannot be found cannot be purged.
                false
            }
        }
    }

    /// Carries out a call whose answer goes to `context`, later.
    ///
    /// # Errors
    /// It cannot be, now.
    pub fn purge(&mut self, context: u32, order: &Order) -> Result<(), Unavailable> {
        self.attend();
        if !self.purging.desk.has_room() {
            return Err(Unavailable::Busy);
        }
        let failed = |worker: &mut Self, error| {
            worker.fault("a purge failed", host_error(error));
            Unavailable::Failed
        };
        let records = carry_out(&mut SharedData, order).map_err(|error| failed(self, error))?;
        let others = self.others().map_err(|error| failed(self, error))?;
        self.metrics.count(Metric::Purges, 1);
        self.apply(&records);
        let number = records.last().map_or(0, |record| record.number);
        let now = host::monotonic_millis();
        let journal = self.purging.journal && !records.is_empty();
        self.purging.callers.insert(context);
        let call = self
            .purging
            .desk
            .open(context, number, others.clone(), journal, now)
            .ok_or(Unavailable::Busy)?;
        if journal {
            let text = records.iter().map(|record| format!("{record}\n")).collect();
            self.purging.due_entries.push(JournalEntry { call, text });
        }
        self.tell(&others, call, records);
        self.wake_root();
        Ok(())
    }

    /// An unsafe request has changed what these buckets' URLs stand for.
    pub fn invalidate(&mut self, buckets: &[u16]) {
        self.attend();
        let written =
            invalidate(&mut SharedData, buckets).and_then(|records| Ok((records, self.others()?)));
        match written {
            Ok((records, others)) => {
                self.metrics.count(Metric::Invalidations, 1);
                self.apply(&records);
                self.record_change(&records);
                self.tell(&others, NO_CALL, records);
            }
            Err(error) => self.fault("a change was not noted", host_error(error)),
        }
    }

    /// Leaves a note in the journal, once, that what is stored has to be revalidated after a restart.
    fn record_change(&mut self, records: &[Record]) {
        if !self.purging.journal || self.purging.changes_recorded {
            return;
        }
        if let Some(Record { number, .. }) = records.last() {
            self.purging.changes_recorded = true;
            let text = format!("{number} soft everything\n");
            self.purging.due_entries.push(JournalEntry {
                call: NO_CALL,
                text,
            });
            self.wake_root();
        }
    }

    /// The caller has gone.
    pub fn purge_caller_left(&mut self, context: u32) {
        self.purging.callers.remove(&context);
    }

    /// The other workers that have served anything.
    ///
    /// # Errors
    /// Shared data could not be read.
    pub(super) fn others(&mut self) -> Result<Vec<WorkerId>, SharedError> {
        let mut members = Roster::new(&mut SharedData).members()?;
        members.retain(|member| *member != self.id());
        Ok(members)
    }

    fn apply(&mut self, records: &[Record]) {
        for record in records {
            self.purging.replica.apply(record);
        }
    }

    fn tell(&mut self, others: &[WorkerId], call: u32, records: Vec<Record>) {
        let caller = self.id();
        let news = News::Purged {
            caller,
            call,
            records,
        };
        self.spread(others, &news, "a worker was not told of a purge");
    }

    /// Brings news to other workers; `fault` is said of those whom it does not reach.
    pub(super) fn spread(&mut self, others: &[WorkerId], news: &News, fault: &'static str) {
        let bytes = news.encode();
        for &other in others {
            if let Err(error) = self.enqueue_for(other, &bytes) {
                self.fault(fault, error);
            }
        }
    }

    /// News from another worker.
    pub fn receive_news(&mut self, news: News) {
        match news {
            News::Purged {
                caller,
                call,
                records,
            } => {
                self.apply(&records);
                if call != NO_CALL {
                    self.acknowledge(caller, call);
                }
            }
            News::Acknowledged { worker, call } => {
                self.purging.desk.acknowledge(call, worker);
            }
            News::Length {
                key, body, bytes, ..
            } => self.body_lengths.note(key, body, bytes),
        }
    }

    /// Another worker waits for this one. If this one was too slow once, it has been taken off the list, hears of nothing
    /// more, and has to catch up.
    pub(super) fn stay_listed(&mut self) {
        if !matches!(Roster::new(&mut SharedData).join(self.id()), Ok(false)) {
            self.purging.joined = false;
            self.attend();
        }
    }

    fn acknowledge(&mut self, caller: WorkerId, call: u32) {
        let worker = self.id();
        self.stay_listed();
        let news = News::Acknowledged { worker, call };
        if let Err(error) = self.enqueue_for(caller, &news.encode()) {
            self.fault("a purge was not acknowledged", error);
        }
    }

    /// Goes on with the calls under way. For the root context's turn.
    pub(super) fn end_purges(&mut self) {
        self.write_journal();
        self.answer_purges();
    }

    /// Writes into the journal what is due.
    fn write_journal(&mut self) {
        for entry in std::mem::take(&mut self.purging.due_entries) {
            let headers = [
                (":method", "POST"),
                (":scheme", "http"),
                (":authority", JOURNAL_CLUSTER),
                (":path", "/"),
            ];
            let text = entry.text.as_bytes();
            match host::http_post(JOURNAL_CLUSTER, &headers, text, JOURNAL_TIMEOUT) {
                Ok(number) => {
                    self.purging.entries.insert(number, entry);
                }
                Err(error) => {
                    self.fault("a purge was not recorded", error);
                    self.purging.desk.journaled(entry.call, false);
                }
            }
        }
    }

    /// The journal has answered, or will not.
    pub(super) fn journal_answered(&mut self, number: u32, recorded: bool) {
        if let Some(entry) = self.purging.entries.remove(&number) {
            self.purging.desk.journaled(entry.call, recorded);
            self.end_purges();
        }
    }

    /// The root context that has sent these entries is not this one: they are sent again, as the same record twice is
    /// the same as once.
    pub(super) fn lose_entries(&mut self) {
        let lost = self.purging.entries.drain().map(|(_, entry)| entry);
        self.purging.due_entries.extend(lost);
    }

    /// Answers the calls that wait for nothing any more.
    fn answer_purges(&mut self) {
        if self.purging.desk.is_empty() {
            return;
        }
        for receipt in self.purging.desk.take_done(host::monotonic_millis()) {
            self.expel_missing(&receipt);
            if !receipt.recorded {
                self.metrics.count(Metric::PurgesUnrecorded, 1);
            }
            if self.purging.callers.remove(&receipt.context) {
                let answered = self
                    .redirect(receipt.context)
                    .and_then(|()| answer_receipt(&receipt));
                if let Err(error) = answered {
                    self.fault("a purge was not answered", error);
                }
            }
        }
        self.keep_time();
        self.come_back(self.root());
    }

    /// A worker that does not answer has lost its VM, which will read the purges before it serves. If it
    /// lives all the same, it joins again when it reads the news that it has not answered.
    fn expel_missing(&mut self, receipt: &Receipt) {
        if receipt.missing.is_empty() {
            return;
        }
        self.metrics.count(Metric::PurgesUnacknowledged, 1);
        self.warn(|| {
            format!(
                "sluice: workers {:?} did not acknowledge a purge",
                receipt.missing
            )
        });
        if let Err(error) = Roster::new(&mut SharedData).expel(&receipt.missing) {
            self.fault("a silent worker stays on the list", host_error(error));
        }
    }
}

fn host_error(error: SharedError) -> HostError {
    match error {
        SharedError::Host(error) => error,
        SharedError::Contended => HostError { status: u32::MAX },
    }
}
