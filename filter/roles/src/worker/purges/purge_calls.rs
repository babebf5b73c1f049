// SPDX-License-Identifier: Apache-2.0
//! Purges under way: the caller gets its receipt after the journal and the other workers have answered.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::Duration;

use sluice_core::metrics::Metric;
use sluice_core::policy::Policy;
use sluice_core::policy::purge::{Kind, Record, Scope};
use sluice_core::purge::{
    Awaited, FeedPosition, InitialPurges, JOURNAL_PATIENCE, PendingPurges, PurgeOrder,
    PurgeReceipt, SharedPurges, TagHash, carry_out, invalidate_groups, url_of,
};
use sluice_core::sites::Sites;
use sluice_core::workers::message::Message;
use sluice_core::workers::shared_value::SharedError;
use sluice_core::workers::{Millis, Roster, WorkerId};

use super::feed_writes::{FeedLines, FeedWrites};
use crate::entry_point;
use crate::reply::receipt::{answer_receipt, log_receipt};
use crate::request::EdgeRequest;
use crate::worker::{keys::Keys, metrics::Metrics, roots::Roots};
use sluice_host::{self as host, Host};
use sluice_store::has_succeeded;

/// The cluster of the entry point's journal.
const JOURNAL_CLUSTER: &str = "purge_journal";
const JOURNAL_TIMEOUT: Duration = Duration::from_millis(JOURNAL_PATIENCE);
/// The context of purges without a caller. No stream has it.
const NO_CONTEXT: u32 = 0;
/// The call number of messages that need no acknowledgement.
const NO_CALL: u32 = 0;
/// Timer period while purges are under way, in milliseconds.
const CALL_MILLIS: Millis = 100;

/// The reason why a purge is not carried out.
#[derive(Clone, Copy, Debug)]
pub enum Unavailable {
    /// Too many purges are under way.
    Busy,
    /// Shared data could not be written.
    Failed,
}

/// Records for the journal.
#[derive(Debug)]
struct JournalEntry {
    /// The number of the purge that waits for them, or [`NO_CALL`].
    call: u32,
    text: String,
}

/// The purges that this worker carries out.
#[derive(Debug)]
pub struct PurgeCalls {
    host: Rc<dyn Host>,
    metrics: Rc<Metrics>,
    /// This worker.
    worker: WorkerId,
    /// Whether the entry point keeps a journal.
    journal: bool,
    pending: PendingPurges,
    /// The contexts of callers that still wait.
    callers: HashSet<u32>,
    /// The sites for which the journal already records that unsafe requests have changed resources.
    changes_recorded: HashSet<String>,
    due_entries: Vec<JournalEntry>,
    /// The entries that are being sent to the journal, by the host's number for the call.
    entries: HashMap<u32, JournalEntry>,
    feed_writes: FeedWrites,
}

impl PurgeCalls {
    /// The calls of `worker`, without any purge yet.
    pub fn new(host: Rc<dyn Host>, metrics: Rc<Metrics>, worker: WorkerId) -> Self {
        Self {
            feed_writes: FeedWrites::new(Rc::clone(&host), Rc::clone(&metrics)),
            host,
            metrics,
            worker,
            journal: false,
            pending: PendingPurges::default(),
            callers: HashSet::new(),
            changes_recorded: HashSet::new(),
            due_entries: Vec::new(),
            entries: HashMap::new(),
        }
    }

    /// Writes the purges that apply at the start of the process into shared data, unless another worker has done so.
    ///
    /// # Errors
    /// Shared data could not be written.
    pub fn begin(&mut self, sites: &Sites) -> host::Result<()> {
        self.journal = sites.edge.purge.recorded;
        let now = u64::try_from(self.host.unix_seconds()).unwrap_or(0);
        let mut shared = SharedPurges::new(&*self.host, sites.sites.len());
        Ok(shared.start(&InitialPurges::of(sites, now))?)
    }

    /// The timer period that purges under way need.
    pub fn tick_period(&self) -> Option<Millis> {
        (!self.pending.is_empty()).then_some(CALL_MILLIS)
    }

    /// Carries out a purge, and has its `lines` written to the purge feed. `context` gets the receipt after all workers,
    /// the journal and the feed have answered.
    ///
    /// # Errors
    /// The purge cannot be carried out now.
    pub fn purge(
        &mut self,
        keys: &mut Keys,
        roots: &mut Roots,
        context: u32,
        order: &PurgeOrder,
        lines: Option<FeedLines>,
    ) -> Result<(), Unavailable> {
        let orders = std::slice::from_ref(order);
        self.carry_out_all(keys, roots, context, orders, None, lines)
    }

    /// Carries out the purges of the purge feed, and records the position up to which it is applied. They have no
    /// caller.
    ///
    /// # Errors
    /// The purges cannot be carried out now. Some of them may be carried out, and the position is not recorded.
    pub fn learn(
        &mut self,
        keys: &mut Keys,
        roots: &mut Roots,
        orders: &[PurgeOrder],
        position: Option<FeedPosition>,
    ) -> Result<(), Unavailable> {
        self.carry_out_all(keys, roots, NO_CONTEXT, orders, position, None)
    }

    fn carry_out_all(
        &mut self,
        keys: &mut Keys,
        roots: &mut Roots,
        context: u32,
        orders: &[PurgeOrder],
        position: Option<FeedPosition>,
        lines: Option<FeedLines>,
    ) -> Result<(), Unavailable> {
        keys.join_roster();
        if !self.pending.has_room() {
            return Err(Unavailable::Busy);
        }
        let written = self.write_all(keys, orders, position);
        let written = written.and_then(|records| Ok((records, roots.others()?)));
        let (records, others) = written.map_err(|error| {
            self.metrics.fault("a purge failed", error.into());
            Unavailable::Failed
        })?;
        let count = u32::try_from(orders.len()).unwrap_or(u32::MAX);
        self.metrics.count(Metric::Purges, count);
        keys.apply(&records);
        let number = newest(&records);
        let now = self.host.monotonic_millis();
        let journal = self.journal && !records.is_empty();
        if context != NO_CONTEXT {
            self.callers.insert(context);
        }
        let awaited = Awaited {
            journal,
            feed: lines.is_some(),
        };
        let call = self
            .pending
            .open(context, number, others.clone(), awaited, now)
            .ok_or(Unavailable::Busy)?;
        if journal {
            let text = records.iter().map(|record| format!("{record}\n")).collect();
            self.due_entries.push(JournalEntry { call, text });
        }
        if let Some(lines) = lines {
            self.feed_writes.push(call, lines);
        }
        self.tell(roots, &others, call, records);
        roots.wake();
        Ok(())
    }

    /// Writes purges, and then the position in the purge feed, to shared data.
    fn write_all(
        &self,
        keys: &Keys,
        orders: &[PurgeOrder],
        position: Option<FeedPosition>,
    ) -> Result<Vec<Record>, SharedError> {
        let mut records = Vec::new();
        for order in orders {
            records.extend(carry_out(&*self.host, order, keys.site_count())?);
        }
        if let Some(position) = position {
            // NB: the position is last, because it means that all purges up to it are written.
            let mut shared = SharedPurges::new(&*self.host, keys.site_count());
            records.extend(shared.commit(Kind::Hard, &[Scope::Feed(position)])?);
        }
        Ok(records)
    }

    /// Makes the store revalidate the responses of these URLs of a site, because an unsafe request has changed them
    /// (RFC 9111, 4.4).
    pub fn invalidate(
        &mut self,
        keys: &mut Keys,
        roots: &mut Roots,
        policy: &Policy,
        urls: &[String],
    ) {
        let mut scopes: Vec<_> = urls.iter().map(|url| keys.scope_of(url)).collect();
        scopes.sort_unstable();
        scopes.dedup();
        keys.join_roster();
        let mut shared = SharedPurges::new(&*self.host, keys.site_count());
        let written = shared.commit(Kind::Changed, &scopes);
        let lost = "a change was not noted";
        let Some(records) = self.spread(keys, roots, written, lost) else {
            return;
        };
        self.metrics.count(Metric::Invalidations, 1);
        self.record_changes(roots, policy.site.name.as_str(), newest(&records));
    }

    /// Makes the store revalidate the responses of these cache groups of a site, because an unsafe request has
    /// changed them (RFC 9875, 3). The caller has already invalidated the request's own URL.
    pub fn invalidate_groups(
        &self,
        keys: &mut Keys,
        roots: &mut Roots,
        policy: &Policy,
        groups: &[TagHash],
    ) {
        let site = policy.site.name.as_str();
        let written = invalidate_groups(&*self.host, site, groups, keys.site_count());
        let lost = "a change of a cache group was not noted";
        self.spread(keys, roots, written, lost);
    }

    /// Records in the journal, once per site, that the site's stored responses must be revalidated after a restart.
    fn record_changes(&mut self, roots: &mut Roots, site: &str, number: u64) {
        if self.journal && !self.changes_recorded.contains(site) {
            self.changes_recorded.insert(site.to_owned());
            let record = Record {
                number,
                kind: Kind::Soft,
                scope: Scope::all_of(site),
            };
            self.due_entries.push(JournalEntry {
                call: NO_CALL,
                text: format!("{record}\n"),
            });
            roots.wake();
        }
    }

    /// Purges the stored response to a request, which the store has damaged.
    pub fn discard(&mut self, keys: &mut Keys, roots: &mut Roots, stream: &EdgeRequest) {
        let url = url_of(&stream.policy.policy, stream.target.url());
        let url = keys.scope_of(url);
        keys.join_roster();
        let mut shared = SharedPurges::new(&*self.host, keys.site_count());
        let written = shared.commit(Kind::Hard, &[url]);
        let lost = "a damaged response may be served again";
        self.spread(keys, roots, written, lost);
    }

    /// Applies purges that were written to shared data, and tells the other workers. If they were not written, logs
    /// `lost`, the consequence, and returns `None`.
    fn spread(
        &self,
        keys: &mut Keys,
        roots: &mut Roots,
        written: Result<Vec<Record>, SharedError>,
        lost: &str,
    ) -> Option<Vec<Record>> {
        match written.and_then(|records| Ok((records, roots.others()?))) {
            Ok((records, others)) => {
                keys.apply(&records);
                self.tell(roots, &others, NO_CALL, records.clone());
                Some(records)
            }
            Err(error) => {
                self.metrics.fault(lost, error.into());
                None
            }
        }
    }

    fn tell(&self, roots: &mut Roots, others: &[WorkerId], call: u32, records: Vec<Record>) {
        let message = Message::Purged {
            caller: self.worker,
            call,
            records,
        };
        roots.spread(others, &message, "a worker did not receive a purge");
    }

    /// Applies the purges of another worker, and acknowledges them if that worker waits for it.
    pub fn receive(
        &self,
        keys: &mut Keys,
        roots: &mut Roots,
        caller: WorkerId,
        call: u32,
        records: &[Record],
    ) {
        keys.apply(records);
        keys.stay_listed();
        if call == NO_CALL {
            return;
        }
        let message = Message::Acknowledged {
            worker: self.worker,
            call,
        };
        if let Err(error) = roots.send(caller, &message) {
            self.metrics.fault("a purge was not acknowledged", error);
        }
    }

    /// Records that another worker has acknowledged a purge.
    pub fn acknowledge(&mut self, worker: WorkerId, call: u32) {
        self.pending.acknowledge(call, worker);
    }

    /// Forgets a caller that has left.
    pub fn forget(&mut self, context: u32) {
        self.callers.remove(&context);
    }

    /// Handles the answer of the journal or of the feed's writer, which has a body of `size` bytes. `answered` is false if
    /// there is none. Returns true if `number` is a call to one of them.
    pub fn call_answered(&mut self, number: u32, answered: bool, size: usize) -> bool {
        if let Some(entry) = self.entries.remove(&number) {
            let recorded = answered && has_succeeded(&*self.host);
            self.pending.journaled(entry.call, recorded);
        } else if let Some((call, outcome)) = self.feed_writes.answered(number, answered, size) {
            self.pending.fed(call, outcome);
        } else {
            return false;
        }
        true
    }

    /// Takes the number of the last line of the purge feed that was written since the last call.
    pub fn take_written(&mut self) -> Option<u64> {
        self.feed_writes.take_written()
    }

    /// Queues the calls again whose answers are lost with the former root context. Writing a record twice is harmless.
    pub fn requeue(&mut self) {
        let lost = self.entries.drain().map(|(_, entry)| entry);
        self.due_entries.extend(lost);
        self.feed_writes.requeue();
    }

    /// Continues the purges under way. For the root context's turn.
    pub fn go_on(&mut self, roots: &mut Roots) {
        for entry in std::mem::take(&mut self.due_entries) {
            self.write(entry);
        }
        for (call, outcome) in self.feed_writes.send() {
            self.pending.fed(call, outcome);
        }
        if self.pending.is_empty() {
            return;
        }
        for receipt in self.pending.take_done(self.host.monotonic_millis()) {
            self.answer(roots, &receipt);
        }
        roots.restore(roots.serving());
    }

    /// Sends an entry to the journal.
    fn write(&mut self, entry: JournalEntry) {
        let text = entry.text.as_bytes();
        match entry_point::post(&*self.host, JOURNAL_CLUSTER, text, JOURNAL_TIMEOUT) {
            Ok(number) => {
                self.entries.insert(number, entry);
            }
            Err(error) => {
                self.metrics.fault("a purge was not recorded", error);
                self.pending.journaled(entry.call, false);
            }
        }
    }

    /// Sends the receipt of a purge that has all its answers or has waited long enough.
    fn answer(&mut self, roots: &mut Roots, receipt: &PurgeReceipt) {
        if !receipt.missing.is_empty() {
            self.expel(roots, &receipt.missing);
        }
        if !receipt.recorded {
            self.metrics.count(Metric::PurgesUnrecorded, 1);
        }
        if self.callers.remove(&receipt.context) {
            let answered = roots.act_as(receipt.context).and_then(|host| {
                if let Err(error) = log_receipt(host, receipt) {
                    let lacks = "the log of a purge lacks its receipt";
                    self.metrics.fault(lacks, error);
                }
                answer_receipt(host, receipt)
            });
            if let Err(error) = answered {
                self.metrics.fault("a purge was not answered", error);
            }
        }
    }

    /// Removes workers that have not acknowledged a purge from the roster. Such a worker has lost its VM, and the
    /// next VM reads all purges before it serves. If the VM is alive nevertheless, it joins the roster again and reads
    /// all purges when it gets the message that follows, which has no purge. It may have read the purge's message just
    /// in front of its removal, so that message does not suffice.
    fn expel(&self, roots: &mut Roots, missing: &[WorkerId]) {
        self.metrics.count(Metric::PurgesUnacknowledged, 1);
        self.metrics
            .warn(|| format!("sluice: workers {missing:?} did not acknowledge a purge"));
        match Roster::new(&*self.host).expel(missing) {
            Ok(()) => self.tell(roots, missing, NO_CALL, Vec::new()),
            Err(error) => {
                let consequence = "a silent worker stays on the roster";
                self.metrics.fault(consequence, error.into());
            }
        }
    }
}

/// The greatest number of these purges.
fn newest(records: &[Record]) -> u64 {
    let numbers = records.iter().map(|record| record.number);
    numbers.max().unwrap_or(0)
}
