// SPDX-License-Identifier: Apache-2.0
//! A large object, whose bytes are made where they are needed and need no disk.

use sluice_tests::chance::rng::mix;
use sluice_tests::http::body::{PIECE, piece};

/// An object. Its bytes follow from its path and their positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its path, `/SIZE/NAME`.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    seed: u64,
}

impl Object {
    /// Makes an object of this size in bytes. Objects with different names have different bytes.
    ///
    /// # Panics
    /// Never: the path has a size.
    pub fn new(name: &str, size: u64) -> Self {
        Self::of(&format!("/{size}/{name}.iso")).expect("a path with a size")
    }

    /// Finds the object of a path; `None` if the path has no size.
    pub fn of(path: &str) -> Option<Self> {
        let (size, _) = path.strip_prefix('/')?.split_once('/')?;
        let add = |seed, byte| mix(seed ^ u64::from(byte));
        Some(Self {
            path: path.to_owned(),
            size: size.parse().ok()?,
            seed: path.bytes().fold(1, add),
        })
    }

    /// Its strong entity tag, in quotes.
    pub fn tag(&self) -> String {
        format!("\"{:016x}\"", self.seed)
    }

    /// The bytes from this position to the end of a piece; empty at the end of the object.
    pub fn bytes_at(&self, position: u64) -> &'static [u8] {
        let left = usize::try_from(self.size.saturating_sub(position)).unwrap();
        let position = usize::try_from(position).unwrap();
        let within = position % PIECE;
        let bytes = &piece(self.seed, position - within)[within..];
        &bytes[..bytes.len().min(left)]
    }

    /// The bytes from one position to another, the end of the object at most.
    pub fn read(&self, from: u64, to: u64) -> Vec<u8> {
        let (mut bytes, mut position) = (Vec::new(), from);
        while position < to.min(self.size) {
            let some = self.bytes_at(position);
            let length = some.len().min(usize::try_from(to - position).unwrap());
            bytes.extend_from_slice(&some[..length]);
            position += length as u64;
        }
        bytes
    }

    /// Whether the object has these bytes at this position.
    pub fn has(&self, mut position: u64, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let expected = self.bytes_at(position);
            let length = expected.len().min(bytes.len());
            if length == 0 || bytes[..length] != expected[..length] {
                return false;
            }
            position += length as u64;
            bytes = &bytes[length..];
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_follows_from_its_path() {
        let object = Object::new("a", 10_000);
        assert_eq!(Object::of(&object.path), Some(object.clone()));
        assert_ne!(object.tag(), Object::new("b", 10_000).tag());
        for path in ["/", "/a", "/a/b", "10/a"] {
            assert_eq!(Object::of(path), None, "{path}");
        }
    }

    #[test]
    fn a_part_has_the_bytes_of_the_whole() {
        let object = Object::new("a", 10_000);
        let whole = object.read(0, 10_000);
        assert!(object.has(0, &whole));
        for from in [1, 4_095, 4_096, 9_999] {
            let part = object.read(from, 20_000);
            assert_eq!(part, whole[usize::try_from(from).unwrap()..]);
            assert!(object.has(from, &part));
        }
        assert!(object.bytes_at(10_000).is_empty());
    }

    #[test]
    fn other_bytes_are_noticed() {
        let object = Object::new("a", 10_000);
        let mut bytes = object.read(5_000, 7_000);
        assert!(!object.has(5_001, &bytes));
        assert!(!Object::new("b", 10_000).has(5_000, &bytes));
        bytes[1_999] ^= 1;
        assert!(!object.has(5_000, &bytes));
        let beyond = [object.read(9_000, 10_000), vec![0]].concat();
        assert!(!object.has(9_000, &beyond));
    }

    #[test]
    fn an_object_may_be_larger_than_memory() {
        let object = Object::new("a", 1 << 50);
        let position = (1 << 50) - 10;
        assert_eq!(object.bytes_at(position).len(), 10);
        assert!(object.has(position, object.bytes_at(position)));
    }
}
