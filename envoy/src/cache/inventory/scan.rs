// SPDX-License-Identifier: Apache-2.0
//! A bounded pass over the files of the cache, which reads their heads and never their bodies.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use crate::cache::entries::{Entries, Head, HeadBuffer};

/// A file of the cache.
#[derive(Debug)]
pub struct ScannedFile<'a> {
    /// The length of the file, in bytes.
    pub bytes: u64,
    /// The time of the last use: a read or a write.
    pub used: SystemTime,
    /// The head of the file.
    pub head: Head<'a>,
}

/// The result of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Whether the scan has ended early, because it has used up its time or its caller had enough.
    pub is_cut: bool,
    /// The number of files that do not have the form of Envoy's store.
    pub unreadable: u64,
}

/// Passes each file in `folder` to `each`, until `each` returns `false` or `patience` is over. A file that is removed
/// meanwhile is left out. The scan does not count as a use of the files.
///
/// # Errors
/// The folder cannot be read.
pub fn scan(
    folder: &Path,
    patience: Duration,
    each: &mut dyn FnMut(&ScannedFile<'_>) -> bool,
) -> io::Result<Scanned> {
    let start = Instant::now();
    let entries = Entries::open(folder)?;
    let mut buffer = HeadBuffer::default();
    let mut scanned = Scanned::default();
    for number in entries.numbers()? {
        if start.elapsed() > patience {
            scanned.is_cut = true;
            break;
        }
        match read(&entries, number?, &mut buffer) {
            Ok(Some(file)) if !each(&file) => {
                scanned.is_cut = true;
                break;
            }
            Ok(Some(_)) => {}
            Ok(None) => scanned.unreadable += 1,
            // The file has been removed meanwhile, or cannot be read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => scanned.unreadable += 1,
        }
    }
    Ok(scanned)
}

/// Reads one file. `None`: the file does not have the form of Envoy's store.
fn read<'a>(
    entries: &Entries,
    number: u64,
    buffer: &'a mut HeadBuffer,
) -> io::Result<Option<ScannedFile<'a>>> {
    let file = entries.open_without_use(number)?;
    let file = file.ok_or(io::ErrorKind::NotFound)?;
    let about = file.metadata()?;
    let used = about.accessed()?.max(about.modified()?);
    let head = buffer.read(&file)?;
    Ok(head.map(|head| ScannedFile {
        bytes: about.len(),
        used,
        head,
    }))
}
