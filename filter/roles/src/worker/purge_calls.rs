// SPDX-License-Identifier: Apache-2.0
//! Purges under way: the journal and the other workers are awaited before the caller has its receipt.

use std::time::Duration;

use sluice_core::metrics::Metric;
use sluice_core::policy::purge::{Kind, Record, bucket_of};
use sluice_core::purge::{JOURNAL_PATIENCE, Order, Receipt, carry_out, invalidate, url_of};
use sluice_core::workers::Roster;
use sluice_core::workers::WorkerId;
use sluice_core::workers::message::Message;

use super::Worker;
use super::purging::{JournalEntry, NO_CALL, host_error};
use crate::reply::receipt::answer_receipt;
use crate::request::EdgeRequest;

/// The cluster of the entry point's journal.
const JOURNAL_CLUSTER: &str = "purge_journal";

const JOURNAL_TIMEOUT: Duration = Duration::from_millis(JOURNAL_PATIENCE);

/// Why a purge is not carried out.
#[derive(Clone, Copy, Debug)]
pub enum Unavailable {
    /// Too many purges are under way.
    Busy,
    /// Shared data could not be written.
    Failed,
}

impl Worker {
    /// Carries out a purge. Its receipt goes to `context`, once all workers and the journal have answered.
    ///
    /// # Errors
    /// The purge cannot be carried out now.
    pub fn purge(&mut self, context: u32, order: &Order) -> Result<(), Unavailable> {
        self.join_roster();
        if !self.purging.desk.has_room() {
            return Err(Unavailable::Busy);
        }
        let failed = |worker: &mut Self, error| {
            worker.metrics.fault("a purge failed", host_error(error));
            Unavailable::Failed
        };
        let records = carry_out(&*self.host, order).map_err(|error| failed(self, error))?;
        let others = self.others().map_err(|error| failed(self, error))?;
        self.metrics.count(Metric::Purges, 1);
        self.apply(&records);
        let number = records.last().map_or(0, |record| record.number);
        let now = self.host.monotonic_millis();
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

    /// Has the stored responses of these buckets revalidated: an unsafe request has changed them (RFC 9111, 4.4).
    pub fn invalidate(&mut self, buckets: &[u16]) {
        if let Some(records) = self.purge_unasked(Kind::Soft, buckets) {
            self.metrics.count(Metric::Invalidations, 1);
            self.record_change(&records);
        }
    }

    /// Puts a stored response out of reach that the store has spoilt.
    pub fn discard(&mut self, stream: &EdgeRequest) {
        let url = url_of(&stream.policy.policy, stream.target.url());
        self.purge_unasked(Kind::Hard, &[bucket_of(url)]);
    }

    fn purge_unasked(&mut self, kind: Kind, buckets: &[u16]) -> Option<Vec<Record>> {
        self.join_roster();
        let written = invalidate(&*self.host, kind, buckets)
            .and_then(|records| Ok((records, self.others()?)));
        match written {
            Ok((records, others)) => {
                self.apply(&records);
                self.tell(&others, NO_CALL, records.clone());
                Some(records)
            }
            Err(error) => {
                self.metrics
                    .fault("a change was not noted", host_error(error));
                None
            }
        }
    }

    /// Notes in the journal, once, that stored responses must be revalidated after a restart.
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

    /// Forgets a caller that has gone.
    pub fn purge_caller_left(&mut self, context: u32) {
        self.purging.callers.remove(&context);
    }

    fn tell(&mut self, others: &[WorkerId], call: u32, records: Vec<Record>) {
        let caller = self.id();
        let message = Message::Purged {
            caller,
            call,
            records,
        };
        self.spread(others, &message, "a worker was not told of a purge");
    }

    pub(super) fn acknowledge(&mut self, caller: WorkerId, call: u32) {
        let worker = self.id();
        self.stay_listed();
        let message = Message::Acknowledged { worker, call };
        if let Err(error) = self.roots.send(&*self.host, caller, &message.encode()) {
            self.metrics.fault("a purge was not acknowledged", error);
        }
    }

    /// Goes on with the purges under way. For the root context's turn.
    pub(super) fn end_purges(&mut self) {
        self.write_journal();
        self.answer_purges();
    }

    /// Sends the due entries to the journal.
    fn write_journal(&mut self) {
        for entry in std::mem::take(&mut self.purging.due_entries) {
            let headers = [
                (":method", "POST"),
                (":scheme", "http"),
                (":authority", JOURNAL_CLUSTER),
                (":path", "/"),
            ];
            let text = entry.text.as_bytes();
            match self
                .host
                .call(JOURNAL_CLUSTER, &headers, Some(text), JOURNAL_TIMEOUT)
            {
                Ok(number) => {
                    self.purging.entries.insert(number, entry);
                }
                Err(error) => {
                    self.metrics.fault("a purge was not recorded", error);
                    self.purging.desk.journaled(entry.call, false);
                }
            }
        }
    }

    /// Handles the journal's answer; `recorded` is false if there is none.
    pub(super) fn journal_answered(&mut self, number: u32, recorded: bool) {
        if let Some(entry) = self.purging.entries.remove(&number) {
            self.purging.desk.journaled(entry.call, recorded);
            self.end_purges();
        }
    }

    /// Has entries sent again whose answers are lost with the former root context. The same record twice does no harm.
    pub(super) fn requeue_journal(&mut self) {
        let lost = self.purging.entries.drain().map(|(_, entry)| entry);
        self.purging.due_entries.extend(lost);
    }

    /// Sends the receipts of the purges that wait for nobody any more.
    fn answer_purges(&mut self) {
        if self.purging.desk.is_empty() {
            return;
        }
        for receipt in self.purging.desk.take_done(self.host.monotonic_millis()) {
            self.expel_missing(&receipt);
            if !receipt.recorded {
                self.metrics.count(Metric::PurgesUnrecorded, 1);
            }
            if self.purging.callers.remove(&receipt.context) {
                let answered = self
                    .act_as(receipt.context)
                    .and_then(|()| answer_receipt(&*self.host, &receipt));
                if let Err(error) = answered {
                    self.metrics.fault("a purge was not answered", error);
                }
            }
        }
        self.arm_timer();
        self.restore_context(self.roots.newest());
    }

    /// Takes the workers off the roster that have not acknowledged a purge. Such a worker has lost its VM, and the next
    /// VM reads all purges before it serves. If it lives all the same, it joins again when it reads the news.
    fn expel_missing(&mut self, receipt: &Receipt) {
        if receipt.missing.is_empty() {
            return;
        }
        self.metrics.count(Metric::PurgesUnacknowledged, 1);
        self.metrics.warn(|| {
            format!(
                "sluice: workers {:?} did not acknowledge a purge",
                receipt.missing
            )
        });
        if let Err(error) = Roster::new(&*self.host).expel(&receipt.missing) {
            self.metrics
                .fault("a silent worker stays on the list", host_error(error));
        }
    }
}
