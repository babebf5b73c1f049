// SPDX-License-Identifier: Apache-2.0
//! What tells a whole file from a damaged one.

use std::io::{self, Read};

use std::hash::Hasher as _;
use twox_hash::XxHash3_64;

/// Bytes that are read at once.
const CHUNK: usize = 128 << 10;

/// A file's length and the XXH3 of its bytes. Whoever can write to the folder can forge it: it is for faults of disks and
/// for crashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    /// The length.
    pub bytes: u64,
    /// The hash.
    pub hash: u64,
}

/// Takes fingerprints.
#[derive(Debug)]
pub struct Reader {
    chunk: Vec<u8>,
}

impl Reader {
    /// With a buffer of its own.
    pub fn new() -> Self {
        Self {
            chunk: vec![0; CHUNK],
        }
    }

    /// Reads `file` to its end.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&mut self, mut file: impl Read) -> io::Result<Fingerprint> {
        let mut hasher = XxHash3_64::new();
        let mut bytes = 0;
        loop {
            let length = match file.read(&mut self.chunk) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            hasher.write(self.chunk.get(..length).unwrap_or_default());
            bytes += length as u64;
        }
        Ok(Fingerprint {
            bytes,
            hash: hasher.finish(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Fingerprint {
        Reader::new().read(bytes).unwrap()
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
    fn it_is_xxh3_with_64_bits() {
        assert_eq!(of(b"").hash, 0x2d06_8005_38d3_94c2);
    }
}
