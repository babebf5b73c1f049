// SPDX-License-Identifier: Apache-2.0
//! The edges of a run, for disturbances that outlive the process of an edge.

use crate::edge::Edge;
use crate::machine::process;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::OwnedMutexGuard;

/// The most edges of a run.
pub const EDGES: usize = 3;
/// Lines of the log after a SIGHUP, and whether the files were accepted.
const LINES: [(&str, bool); 2] = [("sluice: reloaded: ", true), ("reload refused", false)];
/// The line of a reload of unchanged files.
const UNCHANGED: &str = "sluice: reloaded: nothing has changed";
/// Period of looking at a log.
const PERIOD: Duration = Duration::from_millis(20);
/// Longest time of a reload.
const LONGEST: Duration = Duration::from_secs(30);

/// The effect of a SIGHUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// The changed files are in force.
    Changed,
    /// The files are the former ones.
    Unchanged,
    /// The files are wrong.
    Refused,
    /// The log has no line about it.
    Unanswered,
}

/// The processes and the logs of the edges.
#[derive(Default)]
pub struct Fleet {
    edges: Mutex<Vec<(u32, PathBuf)>>,
    /// Held while an edge is down, and while a SIGHUP has not been answered. So no edge starts with wrong files, and
    /// each line of a log is the answer to the last SIGHUP.
    quiet: Arc<tokio::sync::Mutex<()>>,
}

impl Fleet {
    /// Records the processes of an edge that has just started.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn started(&self, number: usize, edge: &Edge) {
        let mut edges = self.edges.lock().unwrap();
        let known = (edge.pid(), edge.folder().join("edge.log"));
        match edges.get_mut(number) {
            Some(place) => *place = known,
            None => edges.push(known),
        }
    }

    /// Number of edges.
    ///
    /// # Panics
    /// When another thread has panicked.
    #[must_use]
    pub fn size(&self) -> usize {
        self.edges.lock().unwrap().len()
    }

    /// Waits until no edge is down and no SIGHUP is unanswered, and keeps it so.
    pub async fn quiet(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.quiet).lock_owned().await
    }

    /// Sends SIGHUP to an edge, and waits for its answer.
    ///
    /// # Panics
    /// When the log cannot be read.
    pub async fn hang_up(&self, number: usize, _quiet: &OwnedMutexGuard<()>) -> Reload {
        let (pid, log) = self.edges.lock().unwrap()[number].clone();
        let from = std::fs::metadata(&log).unwrap().len();
        process::send(pid, libc::SIGHUP);
        let begun = Instant::now();
        while begun.elapsed() < LONGEST {
            tokio::time::sleep(PERIOD).await;
            let told = since(&log, from);
            let answer = LINES.iter().find(|(line, _)| told.contains(line));
            match answer {
                Some((_, false)) => return Reload::Refused,
                Some(_) if told.contains(UNCHANGED) => return Reload::Unchanged,
                Some(_) => return Reload::Changed,
                None => {}
            }
        }
        Reload::Unanswered
    }
}

/// The whole lines of a log from this byte on.
fn since(log: &Path, from: u64) -> String {
    let mut bytes = Vec::new();
    let mut file = File::open(log).unwrap();
    file.seek(SeekFrom::Start(from)).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    let end = bytes.iter().rposition(|&byte| byte == b'\n').unwrap_or(0);
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
