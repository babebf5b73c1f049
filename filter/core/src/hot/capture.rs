// SPDX-License-Identifier: Apache-2.0
//! A copy that is being made while the response passes to its client.

use super::copy::HotCopy;

/// A response whose headers have passed, and whose body is being copied.
#[derive(Debug)]
pub struct Capture {
    copy: HotCopy,
    /// The part of its body that has arrived.
    body: Vec<u8>,
    length: usize,
    /// Whether the body may be shorter.
    at_most: bool,
    /// Whether more has arrived than expected.
    broken: bool,
}

impl Capture {
    /// A capture of `copy`, whose body of `length` bytes is still to arrive.
    pub fn new(copy: HotCopy, length: usize) -> Self {
        Self {
            copy,
            body: Vec::new(),
            length,
            at_most: false,
            broken: false,
        }
    }

    /// A capture of `copy`, whose body of unknown length is worth a copy up to `most` bytes.
    pub fn at_most(copy: HotCopy, most: usize) -> Self {
        Self {
            at_most: true,
            ..Self::new(copy, most)
        }
    }

    /// Whether more has arrived than expected.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Length of the body in bytes, or its upper limit.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Adds the next bytes of the body, unless they exceed the length.
    pub fn take(&mut self, bytes: Vec<u8>) {
        let body = &mut self.body;
        self.broken |= bytes.len() > self.length.saturating_sub(body.len());
        if self.broken {
            *body = Vec::new();
        } else if body.is_empty() {
            // Usually the whole body, which then is not copied again.
            *body = bytes;
        } else {
            if !self.at_most {
                body.reserve_exact(self.length - body.len());
            }
            body.extend_from_slice(&bytes);
        }
    }

    /// Returns the copy, if the whole body has arrived.
    pub fn finish(mut self) -> Option<HotCopy> {
        let whole = self.at_most || self.body.len() == self.length;
        self.copy.body = self.body.into();
        (whole && !self.broken).then_some(self.copy)
    }
}

#[cfg(test)]
mod tests {
    use super::super::store_check::StoreCheck;
    use super::*;
    use crate::workers::KeyHash;

    fn capture(length: usize) -> Capture {
        let copy = HotCopy {
            key: "a/b".to_owned(),
            known_as: KeyHash(1),
            policy: 1,
            sighting: StoreCheck {
                lifetime: Default::default(),
                age: 0,
                seen: 0,
                left: 0,
            },
            status: 200,
            headers: Vec::new(),
            aged: true,
            typed: true,
            body: [].into(),
        };
        Capture::new(copy, length)
    }

    #[test]
    fn pieces_make_a_whole() {
        let mut capture = capture(5);
        capture.take(b"ab".to_vec());
        capture.take(Vec::new());
        capture.take(b"cde".to_vec());
        assert_eq!(&*capture.finish().unwrap().body, b"abcde");
    }

    #[test]
    fn what_is_cut_short_is_no_copy() {
        let mut capture = capture(5);
        capture.take(b"abcd".to_vec());
        assert_eq!(capture.finish(), None);
    }

    #[test]
    fn a_body_of_unknown_length_is_copied_up_to_a_bound() {
        let open = || Capture::at_most(capture(0).copy, 5);
        let mut short = open();
        short.take(b"abc".to_vec());
        assert_eq!(&*short.finish().unwrap().body, b"abc");
        let mut long = open();
        long.take(b"abc".to_vec());
        assert!(!long.is_broken());
        long.take(b"def".to_vec());
        assert!(long.is_broken());
        assert_eq!(long.finish(), None);
    }

    #[test]
    fn what_is_longer_than_was_announced_is_no_copy() {
        let mut capture = capture(5);
        capture.take(b"abc".to_vec());
        capture.take(b"def".to_vec());
        capture.take(b"ghijk".to_vec());
        assert_eq!(capture.finish(), None);
    }
}
