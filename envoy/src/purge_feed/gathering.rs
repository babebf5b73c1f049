// SPDX-License-Identifier: Apache-2.0
//! The purges that wait for the next write of the feed. All purges that arrive within a moment, or while a write is under
//! way, are one write.

use std::collections::HashSet;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use sluice_core::purge::FeedPurge;

/// The time for which purges are gathered.
const GATHERING: Duration = Duration::from_millis(200);
/// Bound on the lines that wait. One call may have more.
const MOST_LINES: usize = 4_096;

/// The outcome of a write: the number of the feed's line up to which the purges are applied, or the reason for which they
/// are not in the feed.
pub type Outcome = Result<u64, WriteError>;

/// Reason for which purges are not in the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteError {
    /// Whether a retry may succeed.
    pub may_pass: bool,
    /// The reason.
    pub reason: String,
}

/// A caller's purges.
struct Waiting {
    since: Instant,
    purges: Vec<FeedPurge>,
    answer: Sender<Outcome>,
}

/// The purges that wait.
#[derive(Default)]
pub struct Gathering {
    waiting: Mutex<Vec<Waiting>>,
    arrived: Condvar,
}

impl Gathering {
    /// Starts the thread that writes what is gathered, with `write`.
    ///
    /// # Errors
    /// The process can start no more threads.
    pub fn start(
        write: impl Fn(Vec<FeedPurge>) -> Outcome + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let gathering = Arc::new(Self::default());
        let gathered = Arc::clone(&gathering);
        let write_all = move || {
            loop {
                gathered.write_next(&write);
            }
        };
        let thread = thread::Builder::new().name("purge feed".to_owned());
        thread.spawn(write_all)?;
        Ok(gathering)
    }

    /// Adds purges. The outcome arrives after they were written. `None`: too many wait.
    pub fn add(&self, purges: Vec<FeedPurge>) -> Option<Receiver<Outcome>> {
        let mut waiting = self.waiting();
        let lines: usize = waiting.iter().map(|each| each.purges.len()).sum();
        if lines > 0 && lines + purges.len() > MOST_LINES {
            return None;
        }
        let (answer, outcome) = channel();
        waiting.push(Waiting {
            since: Instant::now(),
            purges,
            answer,
        });
        self.arrived.notify_one();
        Some(outcome)
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for purges, gathers, writes them once, and answers all callers.
    fn write_next(&self, write: &impl Fn(Vec<FeedPurge>) -> Outcome) {
        let first = {
            let waiting = self
                .arrived
                .wait_while(self.waiting(), |all| all.is_empty());
            let waiting = waiting.unwrap_or_else(PoisonError::into_inner);
            waiting.first().map_or_else(Instant::now, |each| each.since)
        };
        sleep(GATHERING.saturating_sub(first.elapsed()));
        let gathered = std::mem::take(&mut *self.waiting());
        let purges = gathered.iter().flat_map(|each| &each.purges);
        let mut seen = HashSet::new();
        let purges = purges.filter(|purge| seen.insert(purge.to_string()));
        let outcome = write(purges.cloned().collect());
        for each in gathered {
            // A caller that has gone gets no answer.
            let _ = each.answer.send(outcome.clone());
        }
    }
}
