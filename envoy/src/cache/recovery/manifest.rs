// SPDX-License-Identifier: Apache-2.0
//! The manifest: the fingerprints of the cache's files when they were whole.
//!
//! The manifest is a file to which records of one size are appended, each with a checksum of its own. Of several
//! records of one file the last counts. A record that is torn or damaged does not count, which costs the one file that
//! it names. So nothing waits for the disk, and the removal of a file needs no record.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_64;

use super::fingerprint::Fingerprint;
use crate::system::private;

/// Name of the file in the cache's folder.
const FILE: &str = "manifest";
/// The bytes of a record: a file's number, length and hash, and the checksum of these.
const RECORD: usize = 4 * size_of::<u64>();
/// The seed of the checksum, which tells it from the hash of a file. To be changed with the meaning of a record.
const SEED: u64 = 0x736c_7569_6365_0001;

/// The fingerprints of files, by the numbers in their names.
pub type Fingerprints = HashMap<u64, Fingerprint>;

/// The manifest of one cache, open for records to be appended.
#[derive(Debug)]
pub struct Manifest {
    file: File,
    records: u64,
}

impl Manifest {
    /// Reads the manifest in `folder`. A manifest that does not exist reads as an empty one.
    ///
    /// # Errors
    /// The manifest is there and cannot be read.
    pub fn read(folder: &Path) -> io::Result<Fingerprints> {
        let mut fingerprints = Fingerprints::new();
        let file = match File::open(path_in(folder)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(fingerprints),
            Err(error) => return Err(error),
        };
        let mut file = BufReader::with_capacity(RECORD << 10, file);
        let mut record = [0; RECORD];
        loop {
            match file.read_exact(&mut record) {
                Ok(()) => fingerprints.extend(decode(&record)),
                // The file ends with a torn record, or after the last one.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error),
            }
        }
        Ok(fingerprints)
    }

    /// Replaces the manifest in `folder` by one of `files`.
    ///
    /// # Errors
    /// The manifest cannot be written. The one before is still there.
    pub fn write<'a>(
        folder: &Path,
        files: impl Iterator<Item = (&'a u64, &'a Fingerprint)>,
    ) -> io::Result<Self> {
        let path = path_in(folder);
        let new = path.with_extension("new");
        let mut file = BufWriter::new(private::create(&new)?);
        let mut records = 0;
        for (&number, &fingerprint) in files {
            file.write_all(&encode(number, fingerprint))?;
            records += 1;
        }
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        // NB: before the file has its name. A power loss could leave the name without the records, which would cost the
        // whole cache.
        file.sync_all()?;
        fs::rename(&new, &path)?;
        Ok(Self { file, records })
    }

    /// Appends records. The system writes them to the disk when it sees fit.
    ///
    /// # Errors
    /// The records cannot be written. The next ones take their place.
    pub fn append(&mut self, files: &[(u64, Fingerprint)]) -> io::Result<()> {
        let records: Vec<u8> = files
            .iter()
            .flat_map(|&(number, fingerprint)| encode(number, fingerprint))
            .collect();
        let offset = self.records * RECORD as u64;
        self.file.write_all_at(&records, offset)?;
        self.records += files.len() as u64;
        Ok(())
    }

    /// The number of records, including those that do not count any more.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Removes the manifest in `folder`, if there is one.
    ///
    /// # Errors
    /// The manifest is there and cannot be removed.
    pub fn remove(folder: &Path) -> io::Result<()> {
        match fs::remove_file(path_in(folder)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

fn path_in(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

fn encode(number: u64, file: Fingerprint) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    let (values, checksum) = record.split_at_mut(RECORD - size_of::<u64>());
    for (place, value) in values
        .chunks_exact_mut(size_of::<u64>())
        .zip([number, file.bytes, file.hash])
    {
        place.copy_from_slice(&value.to_le_bytes());
    }
    checksum.copy_from_slice(&XxHash3_64::oneshot_with_seed(SEED, values).to_le_bytes());
    record
}

/// Reads a record; `None`: its checksum is wrong.
fn decode(record: &[u8; RECORD]) -> Option<(u64, Fingerprint)> {
    let (words, _) = record.as_chunks();
    let &[number, bytes, hash, _] = words else {
        return None;
    };
    let number = u64::from_le_bytes(number);
    let file = Fingerprint {
        bytes: u64::from_le_bytes(bytes),
        hash: u64::from_le_bytes(hash),
    };
    (encode(number, file) == *record).then_some((number, file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn print(hash: u64) -> Fingerprint {
        Fingerprint { bytes: 3, hash }
    }

    fn written(folder: &Path, files: &[(u64, Fingerprint)]) -> Manifest {
        let none = Fingerprints::new();
        let mut manifest = Manifest::write(folder, none.iter()).unwrap();
        manifest.append(files).unwrap();
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
        manifest.append(&[(1, print(3))]).unwrap();
        let expected = Fingerprints::from([(1, print(3)), (u64::MAX, print(2))]);
        assert_eq!((read(dir.path()), manifest.records()), (expected, 3));
    }

    #[test]
    fn a_record_that_is_torn_is_none() {
        let dir = TempDir::new().unwrap();
        written(dir.path(), &[(1, print(1)), (2, print(2))]);
        let file = File::options().write(true).open(path_in(dir.path()));
        file.unwrap().set_len(2 * RECORD as u64 - 1).unwrap();
        assert_eq!(read(dir.path()), Fingerprints::from([(1, print(1))]));
    }

    #[test]
    fn a_record_with_a_wrong_bit_is_none_and_those_after_it_count() {
        let files = [(1, print(1)), (2, print(2)), (3, print(3))];
        for bit in 0..8 * RECORD {
            let dir = TempDir::new().unwrap();
            written(dir.path(), &files);
            let mut bytes = fs::read(path_in(dir.path())).unwrap();
            *bytes.get_mut(RECORD + bit / 8).unwrap() ^= 1 << (bit % 8);
            fs::write(path_in(dir.path()), bytes).unwrap();
            let expected = Fingerprints::from([(1, print(1)), (3, print(3))]);
            assert_eq!(read(dir.path()), expected, "bit {bit}");
        }
    }

    #[test]
    fn zeros_and_text_are_no_records() {
        let dir = TempDir::new().unwrap();
        for bytes in [vec![0; 10 * RECORD], b"no manifest ".repeat(100)] {
            fs::write(path_in(dir.path()), bytes).unwrap();
            assert_eq!(read(dir.path()), Fingerprints::new());
        }
    }

    #[test]
    fn a_manifest_that_is_written_anew_has_each_name_once() {
        let dir = TempDir::new().unwrap();
        written(dir.path(), &[(1, print(1)); 100]);
        let files = read(dir.path());
        let mut manifest = Manifest::write(dir.path(), files.iter()).unwrap();
        assert_eq!(manifest.records(), 1);
        manifest.append(&[(2, print(2))]).unwrap();
        let expected = Fingerprints::from([(1, print(1)), (2, print(2))]);
        assert_eq!(read(dir.path()), expected);
        Manifest::remove(dir.path()).unwrap();
        Manifest::remove(dir.path()).unwrap();
        assert_eq!(read(dir.path()), Fingerprints::new());
    }
}
