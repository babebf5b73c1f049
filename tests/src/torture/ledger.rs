// SPDX-License-Identifier: Apache-2.0
//! The counts and complaints of a run.

use super::clock::Moment;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

/// A fault of the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    /// A wrong response.
    Answer,
    /// A response that did not end within its time.
    Stuck,
    /// A response that took as long as that of a follower whose wait has timed out.
    Late,
    /// A response that was cut, or an error, without a fault that explains it.
    Cut,
    /// More than one fetch of a key at one time, without an explanation.
    Fetches,
    /// The edge has died.
    Crash,
    /// A line of the log above `warning`.
    Log,
    /// A reload that had another effect than it must have.
    Reload,
    /// An edge that does not reach a peer.
    Peers,
}

const ALL: [(Wrong, &str); 9] = [
    (Wrong::Answer, "wrong"),
    (Wrong::Stuck, "stuck"),
    (Wrong::Late, "late"),
    (Wrong::Cut, "cut"),
    (Wrong::Fetches, "fetched twice"),
    (Wrong::Crash, "crashed"),
    (Wrong::Log, "log lines"),
    (Wrong::Reload, "reloads with another effect"),
    (Wrong::Peers, "peers out of reach"),
];

/// Number of complaints of each kind and reason that are printed in full.
const TOLD: usize = 3;

/// A client's request for which the edge asked the origin.
#[derive(Clone, Debug)]
pub struct LeadingAsk {
    /// Time just before it was sent.
    pub asked: Moment,
    /// The request and its response, for a complaint.
    pub told: String,
}

#[derive(Default)]
struct Record {
    counts: BTreeMap<&'static str, u64>,
    /// Number, total and longest time of each kind of event.
    times: BTreeMap<&'static str, (u32, Duration, Duration)>,
    wrong: BTreeMap<Wrong, usize>,
    /// Number of complaints by fault, without the numbers in it.
    reasons: BTreeMap<String, usize>,
    first: Option<String>,
    /// The requests for which fetches were made, if their clients have stayed.
    leaders: BTreeMap<usize, Vec<LeadingAsk>>,
    /// The longest time of a response, and which one it was.
    longest: (Duration, String),
    /// Fetches whose responses are for one client only.
    private: HashSet<usize>,
}

/// The counts and complaints of a run.
#[derive(Default)]
pub struct Ledger(Mutex<Record>);

impl Ledger {
    /// Increments a counter by one.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn count(&self, what: &'static str) {
        self.add(what, 1);
    }

    /// Increments a counter by `number`.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn add(&self, what: &'static str, number: u64) {
        *self.0.lock().unwrap().counts.entry(what).or_default() += number;
    }

    /// Records how long an event took.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn lasted(&self, what: &'static str, time: Duration) {
        let mut record = self.0.lock().unwrap();
        let (number, total, longest) = record.times.entry(what).or_default();
        *number += 1;
        *total += time;
        *longest = time.max(*longest);
    }

    /// The value of a counter.
    ///
    /// # Panics
    /// When another thread has panicked.
    #[must_use]
    pub fn counted(&self, what: &str) -> u64 {
        let record = self.0.lock().unwrap();
        record.counts.get(what).copied().unwrap_or(0)
    }

    /// Records a fault, and prints it at once.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn complain(&self, wrong: Wrong, at: Moment, what: &str) {
        let reason = what.split(';').next().unwrap_or_default();
        let reason: String = reason.chars().filter(|c| !c.is_ascii_digit()).collect();
        let mut record = self.0.lock().unwrap();
        *record.wrong.entry(wrong).or_default() += 1;
        let number = record
            .reasons
            .entry(format!("{wrong:?}: {reason}"))
            .or_default();
        *number += 1;
        if *number <= TOLD {
            let text = format!("{wrong:?} at {:.3} s: {what}", at.as_secs_f64());
            println!("{text}");
            record.first.get_or_insert(text);
        }
    }

    /// Records the request for which a fetch was made.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn led(&self, fetch: usize, asked: Moment, told: String) {
        let mut record = self.0.lock().unwrap();
        let leaders = record.leaders.entry(fetch).or_default();
        leaders.push(LeadingAsk { asked, told });
    }

    /// The requests for which a fetch was made.
    ///
    /// # Panics
    /// When another thread has panicked.
    #[must_use]
    pub fn leaders(&self, fetch: usize) -> Vec<LeadingAsk> {
        let record = self.0.lock().unwrap();
        record.leaders.get(&fetch).cloned().unwrap_or_default()
    }

    /// Records the time of a response; `told` describes the response, if it is the longest.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn took(&self, time: Duration, told: impl FnOnce() -> String) {
        let mut record = self.0.lock().unwrap();
        if time > record.longest.0 {
            record.longest = (time, told());
        }
    }

    /// Whether this is the first client that gets the response of a fetch.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn is_first(&self, fetch: usize) -> bool {
        self.0.lock().unwrap().private.insert(fetch)
    }

    /// Number of faults of this kind.
    ///
    /// # Panics
    /// When another thread has panicked.
    #[must_use]
    pub fn wrongs(&self, wrong: Wrong) -> usize {
        self.0
            .lock()
            .unwrap()
            .wrong
            .get(&wrong)
            .copied()
            .unwrap_or(0)
    }

    /// The first complaint.
    ///
    /// # Panics
    /// When another thread has panicked.
    #[must_use]
    pub fn first(&self) -> Option<String> {
        self.0.lock().unwrap().first.clone()
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, number) in &self.0.lock().unwrap().counts {
            writeln!(f, "{what:<48} {number:>9}")?;
        }
        for (wrong, what) in ALL {
            writeln!(f, "{what:<48} {:>9}", self.wrongs(wrong))?;
        }
        let record = self.0.lock().unwrap();
        for (what, (number, total, longest)) in &record.times {
            let mean = *total / *number;
            writeln!(
                f,
                "{what:<48} {number:>9} in {mean:?} each, {longest:?} at most"
            )?;
        }
        writeln!(
            f,
            "the longest took {:?}: {}",
            record.longest.0, record.longest.1
        )?;
        drop(record);
        for (reason, number) in &self.0.lock().unwrap().reasons {
            writeln!(f, "  {number} x {reason}")?;
        }
        Ok(())
    }
}
