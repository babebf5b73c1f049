// SPDX-License-Identifier: Apache-2.0
//! The journal of purges, which lets purges outlive Envoy. The filter cannot write files.
//!
//! The filter posts the records of each purge to a Unix socket, and answers its caller when the records are on
//! disk. At the next start the entry point passes the records to the filter with its policy. If the journal is
//! lost, or cannot be written, the next start keeps no entries, so that no purged object returns.

use std::fs::{self, File};
use std::io::ErrorKind::{InvalidData, NotFound};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use sluice_core::policy::LargeUrl;
use sluice_core::policy::purge::Record;
use sluice_core::purge::Purges;
use ureq::http::StatusCode;

use crate::log::warn;
use crate::net::local_socket::{self, Answer, LocalSocket};
use crate::system::private;

/// Name of the file in the cache's folder.
const FILE: &str = "purges";
/// Number of appended bytes after which the file is rewritten without the records that later ones have replaced.
const REWRITE_BYTES: usize = 1 << 20;

/// The journal of one cache folder.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    /// All purges that still count.
    pub purges: Purges,
    appended: usize,
}

impl Journal {
    /// Reads the journal of `folder`; `None` if there is none, or it is damaged.
    ///
    /// # Errors
    /// The file exists but cannot be read, or cannot be rewritten.
    pub fn read(folder: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read_to_string(folder.join(FILE)) {
            Err(error) if matches!(error.kind(), NotFound | InvalidData) => return Ok(None),
            text => text?,
        };
        // An unfinished last line has not been acknowledged.
        let end = text.rfind('\n').map_or(0, |end| end + 1);
        let whole = text.get(..end).unwrap_or_default();
        let mut purges = Purges::default();
        if !purges.apply_text(whole) {
            return Ok(None);
        }
        Self::begin(folder, purges).map(Some)
    }

    /// Creates an empty journal in `folder`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(folder: &Path) -> io::Result<Self> {
        Self::begin(folder, Purges::default())
    }

    fn begin(folder: &Path, purges: Purges) -> io::Result<Self> {
        let mut journal = Self {
            path: folder.join(FILE),
            purges,
            appended: 0,
        };
        journal.rewrite()?;
        Ok(journal)
    }

    /// Adds records, and returns when they are on disk.
    ///
    /// # Errors
    /// The text has no records, or they could not be written. In the second case the journal is removed, so that the
    /// next start keeps no entries.
    fn append(&mut self, text: &str) -> anyhow::Result<()> {
        let records: Option<Vec<Record>> = text.lines().map(Record::parse).collect();
        let records = records.filter(|_| text.ends_with('\n'));
        let records = records.context("expected records of purges")?;
        for record in &records {
            self.purges.apply(record);
        }
        self.appended += text.len();
        let written = if self.appended > REWRITE_BYTES {
            self.rewrite()
        } else {
            self.append_text(text)
        };
        if written.is_err() {
            // If this fails too, nothing more can be done: the caller gets the first error.
            let _ = fs::remove_file(&self.path);
        }
        Ok(written?)
    }

    /// Writes the records that the filter posts to a socket in `state`, until the socket is dropped.
    ///
    /// # Errors
    /// The socket cannot be bound.
    pub fn serve(self, state: &Path) -> io::Result<LocalSocket> {
        let journal = Mutex::new(self);
        local_socket::serve("journal", state, move |call| record(&call.body, &journal))
    }

    fn append_text(&self, text: &str) -> io::Result<()> {
        let mut file = private::append(&self.path)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()
    }

    /// Replaces the file by one with the purges that still count.
    fn rewrite(&mut self) -> io::Result<()> {
        let new = self.path.with_extension("new");
        let mut file = private::create(&new)?;
        file.write_all(self.purges.to_text().as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        if let Some(folder) = self.path.parent() {
            File::open(folder)?.sync_all()?;
        }
        self.appended = 0;
        Ok(())
    }
}

/// The facts about earlier runs that the filter must know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EarlierRuns {
    /// The purges of earlier runs, one record on each line; `None`: unknown.
    pub purges: Option<String>,
    /// Whether earlier runs have left entries.
    pub warm: bool,
    /// The URLs of objects that earlier runs have stored in slices, the newest last.
    pub large_urls: Vec<LargeUrl>,
    /// The socket to which the filter posts purges for the journal.
    pub socket: Option<PathBuf>,
}

fn record(body: &[u8], journal: &Mutex<Journal>) -> Answer {
    let text = std::str::from_utf8(body).context("expected UTF-8");
    let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
    match text.and_then(|text| journal.append(text)) {
        Ok(()) => (StatusCode::OK, String::new()),
        Err(error) => {
            warn(&format!("the journal of purges: {error:#}"));
            (StatusCode::INTERNAL_SERVER_ERROR, String::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;
    use sluice_core::key::secret::StoreSecret;
    use tempfile::TempDir;

    /// Longest wait for an answer before the test fails.
    const PATIENCE: Duration = Duration::from_secs(120);

    fn call(path: &Path, body: &str) -> String {
        call_on(UnixStream::connect(path).unwrap(), body)
    }

    fn call_on(mut stream: UnixStream, body: &str) -> String {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        write!(
            stream,
            "POST / HTTP/1.1\r\nhost: x\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn a_connection_without_a_call_has_no_call_wait() {
        let dir = TempDir::new().unwrap();
        let journal = Journal::create(dir.path()).unwrap();
        let socket = journal.serve(dir.path()).unwrap();
        let silent = UnixStream::connect(socket.path()).unwrap();
        assert!(call(socket.path(), "1 hard url a!0123456789abcdef\n").starts_with("HTTP/1.1 200"));
        // The silent connection was not closed meanwhile.
        assert!(call_on(silent, "2 hard url a!0123456789abcdee\n").starts_with("HTTP/1.1 200"));
    }

    #[test]
    fn what_is_acknowledged_is_read_at_the_next_start() {
        let dir = TempDir::new().unwrap();
        let journal = Journal::create(dir.path()).unwrap();
        let socket = journal.serve(dir.path()).unwrap();
        assert!(call(socket.path(), "1 hard url a!0123456789abcdef\n").starts_with("HTTP/1.1 200"));
        assert!(
            call(socket.path(), "2 soft prefix a/b\n3 hard nothing\n").starts_with("HTTP/1.1 200")
        );
        let journal = Journal::read(dir.path()).unwrap().unwrap();
        assert_eq!(journal.purges.newest(), 3);
        let secret = StoreSecret::new([0, 0]);
        assert_eq!(journal.purges.generations("a/bc", &secret).soft, 2);
        assert!(
            journal
                .purges
                .to_text()
                .contains("1 hard url a!0123456789abcdef\n")
        );
    }

    #[test]
    fn a_call_that_is_none_is_refused_and_changes_nothing() {
        let dir = TempDir::new().unwrap();
        let socket = Journal::create(dir.path())
            .unwrap()
            .serve(dir.path())
            .unwrap();
        for body in [
            "",
            "1 hard",
            "1 hard everything",
            "1 hard url x\n",
            "1 hard bucket 7\n",
        ] {
            assert!(
                call(socket.path(), body).starts_with("HTTP/1.1 500"),
                "{body}"
            );
        }
        let journal = Journal::read(dir.path()).unwrap().unwrap();
        assert_eq!(journal.purges.newest(), 0);
    }

    #[test]
    fn a_line_that_was_not_finished_is_dropped_and_a_broken_journal_is_none() {
        let dir = TempDir::new().unwrap();
        assert!(Journal::read(dir.path()).unwrap().is_none());
        let read = |text: &str| {
            fs::write(dir.path().join(FILE), text).unwrap();
            Journal::read(dir.path()).unwrap()
        };
        let journal = read("4 hard everything\n5 hard ur").unwrap();
        assert_eq!(journal.purges.newest(), 4);
        // The second record was written by a release that knew URLs by another hash.
        for text in ["4 hard everything\n\0\0\n", "4 hard bucket 7\n"] {
            assert!(read(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn a_journal_that_cannot_be_written_is_gone() {
        let dir = TempDir::new().unwrap();
        let mut journal = Journal::create(dir.path()).unwrap();
        fs::remove_file(dir.path().join(FILE)).unwrap();
        assert!(journal.append("1 hard everything\n").is_err());
        assert!(Journal::read(dir.path()).unwrap().is_none());
    }

    #[test]
    fn a_long_journal_is_written_anew() {
        let dir = TempDir::new().unwrap();
        let mut journal = Journal::create(dir.path()).unwrap();
        journal.appended = REWRITE_BYTES;
        journal.append("1 hard url 0123456789abcdef\n").unwrap();
        journal.append("2 hard url 0123456789abcdef\n").unwrap();
        let text = fs::read_to_string(dir.path().join(FILE)).unwrap();
        let first = "1 hard nothing\n1 hard url 0123456789abcdef\n";
        assert_eq!(text, format!("{first}2 hard url 0123456789abcdef\n"));
    }
}
