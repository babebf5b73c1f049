// SPDX-License-Identifier: Apache-2.0
//! Purges under way: the journal and the other workers are awaited before the caller has its receipt.

use std::time::Duration;

use sluice_core::board::WorkerId;
use sluice_core::metrics::Metric;
use sluice_core::purge::{
    JOURNAL_PATIENCE, News, Order, Receipt, Record, Roster, carry_out, invalidate,
};

use super::Worker;
use super::purging::{JournalEntry, NO_CALL, host_error};
use crate::host::{self, SharedData};
use crate::reply::receipt::answer_receipt;

/// The entry point's journal.
const JOURNAL_CLUSTER: &str = "purge_journal";

const JOURNAL_TIMEOUT: Duration = Duration::from_millis(JOURNAL_PATIENCE);

/// Why a purge has not been carried out.
#[derive(Clone, Copy, Debug)]
pub enum Unavailable {
    /// Too many calls are under way.
    Busy,
    /// Shared data could not be written.
    Failed,
}

impl Worker {
    /// Carries out a call whose answer goes to `context`, later.
    ///
    /// # Errors
    /// It cannot be, now.
    pub fn purge(&mut self, context: u32, order: &Order) -> Result<(), Unavailable> {
        self.join_roster();
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
        self.join_roster();
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

    fn tell(&mut self, others: &[WorkerId], call: u32, records: Vec<Record>) {
        let caller = self.id();
        let news = News::Purged {
            caller,
            call,
            records,
        };
        self.spread(others, &news, "a worker was not told of a purge");
    }

    pub(super) fn acknowledge(&mut self, caller: WorkerId, call: u32) {
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
    pub(super) fn requeue_journal(&mut self) {
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
                    .act_as(receipt.context)
                    .and_then(|()| answer_receipt(&receipt));
                if let Err(error) = answered {
                    self.fault("a purge was not answered", error);
                }
            }
        }
        self.arm_timer();
        self.restore_context(self.root());
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
