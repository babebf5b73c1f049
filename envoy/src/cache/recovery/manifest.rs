// SPDX-License-Identifier: Apache-2.0
//! The manifest: the fingerprints of the cache's files when they were whole.
//!
//! The manifest is a file to which records of one size are appended, each with its checksum. If a file has several
//! records, the last one counts. A torn or damaged record is ignored, which costs the one file that it names. So
//! the keeper never waits for the disk, and the removal of a file needs no record.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use twox_hash::XxHash3_64;

use super::fingerprint::Fingerprint;
use crate::system::private::{self, found};

/// Name of the file in the cache's folder.
const FILE: &str = "manifest";
/// The seed of the checksum, which makes it differ from the hash of a file. Must be changed with the meaning of a
/// record.
const SEED: u64 = 0x736c_7569_6365_0001;
/// The manifest is rewritten when it has more than this many records for each file plus [`FEW_RECORDS`].
const STALE_RECORDS: u64 = 2;
/// A manifest with fewer records is never rewritten because of their number.
const FEW_RECORDS: u64 = 10_000;
/// The time between two attempts to rewrite the manifest.
const RETRY: Duration = Duration::from_secs(5);

/// The fingerprints of files, by the numbers in their names.
pub type Fingerprints = HashMap<u64, Fingerprint>;

/// A file's number, length and hash, and the checksum of these.
type Record = [[u8; 8]; 4];

/// The manifest of one cache, kept up to date while the cache runs.
#[derive(Debug)]
pub struct Manifest {
    folder: PathBuf,
    /// `None`: the file has not been written yet, or could not be written.
    file: Option<File>,
    /// The number of records in the file, including outdated ones.
    records: u64,
    written: Option<Instant>,
}

impl Manifest {
    /// The manifest in `folder`, which is rewritten at the first record.
    pub const fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            file: None,
            records: 0,
            written: None,
        }
    }

    /// The cache's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads the manifest in `folder`. A missing manifest reads as an empty one.
    ///
    /// # Errors
    /// The manifest exists and cannot be read.
    pub fn read(folder: &Path) -> io::Result<Fingerprints> {
        let mut fingerprints = Fingerprints::new();
        let Some(file) = found(File::open(folder.join(FILE)))? else {
            return Ok(fingerprints);
        };
        let mut record = Record::default();
        let mut file = BufReader::with_capacity(size_of::<Record>() << 10, file);
        loop {
            match file.read_exact(record.as_flattened_mut()) {
                Ok(()) => fingerprints.extend(decode(record)),
                // The file ends with a torn record, or after the last one.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error),
            }
        }
        Ok(fingerprints)
    }

    /// Removes the manifest in `folder`, if there is one.
    ///
    /// # Errors
    /// The manifest exists and cannot be removed.
    pub fn remove(folder: &Path) -> io::Result<()> {
        found(fs::remove_file(folder.join(FILE))).map(drop)
    }

    /// Appends the entries that have been `stored`. Now and then rewrites the manifest instead, with `files`, all
    /// entries in use, and `unchecked`, the entries that are not in use yet.
    ///
    /// # Errors
    /// The manifest cannot be written. A call after a while rewrites it.
    pub fn record(
        &mut self,
        stored: &[(u64, Fingerprint)],
        files: &Fingerprints,
        unchecked: &Fingerprints,
    ) -> io::Result<()> {
        let most = (files.len() + unchecked.len()) as u64 * STALE_RECORDS + FEW_RECORDS;
        let written = match &self.file {
            Some(file) if self.records <= most => {
                let appended = append(file, self.records, stored);
                self.records += stored.len() as u64;
                appended
            }
            _ if self.written.is_some_and(|last| last.elapsed() < RETRY) => return Ok(()),
            _ => self.write_anew(unchecked.iter().chain(files)),
        };
        written.inspect_err(|_| self.file = None)
    }

    /// Replaces the file by one with records of `files`. If this fails, the former file remains.
    fn write_anew<'a>(
        &mut self,
        files: impl Iterator<Item = (&'a u64, &'a Fingerprint)>,
    ) -> io::Result<()> {
        self.written = Some(Instant::now());
        let path = self.folder.join(FILE);
        let new = path.with_extension("new");
        let mut file = BufWriter::new(private::create(&new)?);
        let mut records = 0;
        for (number, fingerprint) in files {
            file.write_all(encode(*number, *fingerprint).as_flattened())?;
            records += 1;
        }
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        // NB: before the rename. Otherwise a power loss could leave the name without the records, which would cost
        // the whole cache.
        file.sync_all()?;
        fs::rename(&new, &path)?;
        (self.file, self.records) = (Some(file), records);
        Ok(())
    }
}

/// Appends records to a file that has this many `records`. The system writes them to the disk later.
fn append(file: &File, records: u64, files: &[(u64, Fingerprint)]) -> io::Result<()> {
    let new = files.iter().map(|(number, file)| encode(*number, *file));
    let offset = records * size_of::<Record>() as u64;
    file.write_all_at(
        new.collect::<Vec<_>>().as_flattened().as_flattened(),
        offset,
    )
}

fn encode(number: u64, file: Fingerprint) -> Record {
    let [number, bytes, hash] = [number, file.bytes, file.hash].map(u64::to_le_bytes);
    let values = [number, bytes, hash];
    let checksum = XxHash3_64::oneshot_with_seed(SEED, values.as_flattened());
    [number, bytes, hash, checksum.to_le_bytes()]
}

/// Reads a record; `None`: its checksum is wrong.
fn decode(record: Record) -> Option<(u64, Fingerprint)> {
    let [number, bytes, hash, _] = record.map(u64::from_le_bytes);
    let file = Fingerprint { bytes, hash };
    (encode(number, file) == record).then_some((number, file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const RECORD: usize = size_of::<Record>();

    fn print(hash: u64) -> Fingerprint {
        Fingerprint { bytes: 3, hash }
    }

    fn record(manifest: &mut Manifest, files: &[(u64, Fingerprint)]) {
        let none = Fingerprints::new();
        manifest.record(files, &none, &none).unwrap();
    }

    fn written(folder: &Path, files: &[(u64, Fingerprint)]) -> Manifest {
        let mut manifest = Manifest::new(folder.to_owned());
        record(&mut manifest, &[]);
        record(&mut manifest, files);
        manifest
    }

    fn read(folder: &Path) -> Fingerprints {
        Manifest::read(folder).unwrap()
    }

    #[test]
    fn what_is_appended_is_read_and_the_last_of_a_name_counts() {
        let dir = TempDir::new().unwrap();
        assert_eq!(read(dir.path()), Fingerprints::new());
        let mut manifest = written(dir.path(), &[(1, print(1)), (u64::MAX, print(2))]);
        record(&mut manifest, &[(1, print(3))]);
        let expected = Fingerprints::from([(1, print(3)), (u64::MAX, print(2))]);
        assert_eq!((read(dir.path()), manifest.records), (expected, 3));
    }

    #[test]
    fn a_record_that_is_torn_is_none() {
        let dir = TempDir::new().unwrap();
        written(dir.path(), &[(1, print(1)), (2, print(2))]);
        let file = File::options().write(true).open(dir.path().join(FILE));
        file.unwrap().set_len(2 * RECORD as u64 - 1).unwrap();
        assert_eq!(read(dir.path()), Fingerprints::from([(1, print(1))]));
    }

    #[test]
    fn a_record_with_a_wrong_bit_is_none_and_those_after_it_count() {
        let files = [(1, print(1)), (2, print(2)), (3, print(3))];
        for bit in 0..8 * RECORD {
            let dir = TempDir::new().unwrap();
            written(dir.path(), &files);
            let mut bytes = fs::read(dir.path().join(FILE)).unwrap();
            *bytes.get_mut(RECORD + bit / 8).unwrap() ^= 1 << (bit % 8);
            fs::write(dir.path().join(FILE), bytes).unwrap();
            let expected = Fingerprints::from([(1, print(1)), (3, print(3))]);
            assert_eq!(read(dir.path()), expected, "bit {bit}");
        }
    }

    #[test]
    fn zeros_and_text_are_no_records() {
        let dir = TempDir::new().unwrap();
        for bytes in [vec![0; 10 * RECORD], b"no manifest ".repeat(100)] {
            fs::write(dir.path().join(FILE), bytes).unwrap();
            assert_eq!(read(dir.path()), Fingerprints::new());
        }
    }

    #[test]
    fn a_manifest_that_is_written_anew_has_each_name_once() {
        let dir = TempDir::new().unwrap();
        written(dir.path(), &[(1, print(1)); 100]);
        let files = read(dir.path());
        let mut manifest = Manifest::new(dir.path().to_owned());
        manifest.write_anew(files.iter()).unwrap();
        assert_eq!(manifest.records, 1);
        record(&mut manifest, &[(2, print(2))]);
        let expected = Fingerprints::from([(1, print(1)), (2, print(2))]);
        assert_eq!(read(dir.path()), expected);
        Manifest::remove(dir.path()).unwrap();
        Manifest::remove(dir.path()).unwrap();
        assert_eq!(read(dir.path()), Fingerprints::new());
    }

    #[test]
    fn a_manifest_of_files_that_are_gone_is_written_anew() {
        let dir = TempDir::new().unwrap();
        let mut manifest = Manifest::new(dir.path().to_owned());
        let (files, none) = (
            Fingerprints::from([(1, Fingerprint::default())]),
            Fingerprints::new(),
        );
        manifest.record(&[], &files, &none).unwrap();
        let stored: Vec<_> = (2..1_002).map(|n| (n, Fingerprint::default())).collect();
        for _ in 0..FEW_RECORDS / 1_000 + 2 {
            let mut more = files.clone();
            more.extend(stored.iter().copied());
            manifest.record(&stored, &more, &none).unwrap();
            // Pretend that the last attempt was long ago.
            manifest.written = None;
            manifest.record(&[], &files, &none).unwrap();
        }
        assert!(manifest.records < FEW_RECORDS);
        assert!(Manifest::read(dir.path()).unwrap().contains_key(&1));
    }
}
