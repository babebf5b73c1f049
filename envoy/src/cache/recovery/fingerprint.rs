// SPDX-License-Identifier: Apache-2.0
//! Fingerprints, which distinguish a whole file from a damaged one.

use std::hash::Hasher as _;
use std::io::{self, Read};

use twox_hash::XxHash3_64;

use crate::cache::entries::Entries;

/// Number of bytes that are read in one call.
const CHUNK: usize = 32 << 10;

/// The length of a file and the XXH3 of its bytes. A fingerprint reveals faults of disks and crashes, but no
/// attack: a user who can write to the folder can forge it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    /// The length in bytes.
    pub bytes: u64,
    /// The hash.
    pub hash: u64,
}

impl Fingerprint {
    /// Takes the fingerprint of an entry, which does not count as a use; `None`: the entry does not exist.
    ///
    /// # Errors
    /// The entry cannot be read.
    pub fn of(entries: &Entries, number: u64) -> io::Result<Option<Self>> {
        let file = entries.open_without_use(number)?;
        file.map(Self::read).transpose()
    }

    /// Takes the fingerprint of `file`, from its current position to its end.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(mut file: impl Read) -> io::Result<Self> {
        let (mut bytes, mut hasher) = (0, XxHash3_64::new());
        let mut chunk = [0; CHUNK];
        loop {
            let length = match file.read(&mut chunk) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            hasher.write(chunk.get(..length).unwrap_or_default());
            bytes += length as u64;
        }
        let hash = hasher.finish();
        Ok(Self { bytes, hash })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Fingerprint {
        Fingerprint::read(bytes).unwrap()
    }

    #[test]
    fn files_that_differ_in_a_byte_or_their_length_have_other_fingerprints() {
        let whole = vec![7; 3 * CHUNK + 5];
        let mut changed = whole.clone();
        *changed.get_mut(CHUNK + 9).unwrap() = 8;
        assert_eq!(of(&whole).bytes, whole.len() as u64);
        assert_eq!(of(&whole), of(&whole.clone()));
        assert_ne!(of(&whole).hash, of(&changed).hash);
        assert_ne!(of(&whole), of(whole.split_last().unwrap().1));
        assert_ne!(of(&[]), of(&[0]));
    }

    #[test]
    fn the_hash_is_xxh3_with_64_bits() {
        assert_eq!(of(b"").hash, 0x2d06_8005_38d3_94c2);
    }
}
