// SPDX-License-Identifier: Apache-2.0
//! The purges of this worker's callers on their way to the purge feed. The entry point writes them.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use sluice_core::metrics::Metric;
use sluice_core::purge::{FEED_PATIENCE, FeedOutcome, FeedPurge, applied_by};
use sluice_core::sites::Sites;
use sluice_host::{Host, Map};

use crate::entry_point;
use crate::worker::metrics::Metrics;

/// The cluster of the entry point's writer.
const CLUSTER: &str = "purge_feed";
const TIMEOUT: Duration = Duration::from_millis(FEED_PATIENCE);

/// The lines of a purge for the feed.
#[derive(Clone, Debug)]
pub struct FeedLines {
    purges: Vec<FeedPurge>,
    /// The time between two readings of an edge.
    every: Duration,
}

impl FeedLines {
    /// The lines of a purge, if this edge writes to the feed, and there are any.
    ///
    /// # Errors
    /// The error of `lines`.
    pub fn of<E>(
        sites: &Sites,
        lines: impl FnOnce() -> Result<Vec<FeedPurge>, E>,
    ) -> Result<Option<Self>, E> {
        let purge = &sites.edge.purge;
        let Some(feed) = purge.feed.as_ref().filter(|_| purge.writes_feed) else {
            return Ok(None);
        };
        let (purges, every) = (lines()?, feed.every);
        Ok((!purges.is_empty()).then_some(Self { purges, every }))
    }

    fn text(&self) -> String {
        let purges = self.purges.iter();
        purges.map(|purge| format!("{purge}\n")).collect()
    }
}

/// Lines, and the number of the purge that waits for them.
#[derive(Debug)]
struct FeedEntry {
    call: u32,
    lines: FeedLines,
}

/// The lines on their way.
#[derive(Debug)]
pub struct FeedWrites {
    host: Rc<dyn Host>,
    metrics: Rc<Metrics>,
    due: Vec<FeedEntry>,
    /// The entries that are being sent, by the host's number for the call.
    sent: HashMap<u32, FeedEntry>,
    /// The number of the last line that was written, until that is taken.
    written: Option<u64>,
}

impl FeedWrites {
    /// No lines yet.
    pub fn new(host: Rc<dyn Host>, metrics: Rc<Metrics>) -> Self {
        Self {
            host,
            metrics,
            due: Vec::new(),
            sent: HashMap::new(),
            written: None,
        }
    }

    /// Takes the number of the last line that was written since the last call.
    pub fn take_written(&mut self) -> Option<u64> {
        self.written.take()
    }

    /// Queues the lines of the purge with this number.
    pub fn push(&mut self, call: u32, lines: FeedLines) {
        self.due.push(FeedEntry { call, lines });
    }

    /// Queues the lines again whose answers are lost with the former root context. A line twice is harmless.
    pub fn requeue(&mut self) {
        self.due.extend(self.sent.drain().map(|(_, entry)| entry));
    }

    /// Sends the lines that are due. Returns the outcomes of lines that cannot be sent.
    pub fn send(&mut self) -> Vec<(u32, FeedOutcome)> {
        let mut failed = Vec::new();
        for entry in std::mem::take(&mut self.due) {
            let text = entry.lines.text();
            match entry_point::post(&*self.host, CLUSTER, text.as_bytes(), TIMEOUT) {
                Ok(number) => {
                    self.sent.insert(number, entry);
                }
                Err(error) => {
                    self.metrics
                        .fault("a purge was not sent to the feed", error);
                    let outcome = refused(503, "the purge could not be sent".to_owned());
                    failed.push((entry.call, self.counted(&entry.lines, outcome)));
                }
            }
        }
        failed
    }

    /// Reads the answer to the call with the host's `number`, which has a body of `size` bytes. Returns the number of the
    /// purge, and the outcome; `None` if it is another call.
    pub fn answered(
        &mut self,
        number: u32,
        answered: bool,
        size: usize,
    ) -> Option<(u32, FeedOutcome)> {
        let FeedEntry { call, lines } = self.sent.remove(&number)?;
        let outcome = match answered {
            true => self.outcome(&lines, size),
            false => FeedOutcome::unanswered(),
        };
        Some((call, self.counted(&lines, outcome)))
    }

    fn outcome(&self, lines: &FeedLines, size: usize) -> FeedOutcome {
        let status = self.host.header_number(Map::CallResponse, ":status");
        let body = self.host.call_body(size).unwrap_or_default();
        let text = String::from_utf8_lossy(&body).into_owned();
        match (status.ok().flatten(), text.trim_end().parse()) {
            (Some(200), Ok(number)) => FeedOutcome::Written {
                number,
                by: applied_by(self.host.unix_seconds(), lines.every),
            },
            (Some(503), _) => refused(503, text),
            _ => refused(502, text),
        }
    }

    fn counted(&mut self, lines: &FeedLines, outcome: FeedOutcome) -> FeedOutcome {
        match &outcome {
            FeedOutcome::Written { number, .. } => {
                self.written = self.written.max(Some(*number));
                let count = u32::try_from(lines.purges.len()).unwrap_or(u32::MAX);
                self.metrics.count(Metric::FeedWritten, count);
            }
            FeedOutcome::Failed { error, .. } => {
                self.metrics.count(Metric::FeedUnwritten, 1);
                self.metrics
                    .warn(|| format!("sluice: the purge feed was not written: {error}"));
            }
        }
        outcome
    }
}

const fn refused(status: u16, error: String) -> FeedOutcome {
    FeedOutcome::Failed { status, error }
}
