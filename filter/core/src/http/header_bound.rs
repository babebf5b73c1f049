// SPDX-License-Identifier: Apache-2.0
//! Bounds on the headers of one message, and the bound on an origin's response.

/// Bound on the header section of one message, and on its trailer section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderBound {
    /// Number of lines. HTTP/2 also counts pseudo-header fields.
    pub lines: u32,
    /// Size of names and values in KiB. HTTP/1.1 also counts separators and the first line.
    pub kib: u32,
}

/// Bound on a response that the edge accepts from an origin.
pub const RESPONSE: HeaderBound = HeaderBound {
    lines: 200,
    kib: 96,
};

/// Bound on the fields that Envoy adds to an origin's response: its own `Date`, a coding and its `Vary`,
/// `Transfer-Encoding`, and the fields that describe the origin's connection and a bucket's error to ORIGIN.
pub const HOP_ADDS: HeaderBound = HeaderBound { lines: 16, kib: 16 };

/// Smallest size of a line of HTTP/1.1: a name, a colon and the end of the line.
const LINE_BYTES: u32 = 4;

impl HeaderBound {
    /// Returns the bound on a message that is within `self` and to which up to `added` was added.
    #[must_use]
    pub const fn plus(self, added: Self) -> Self {
        Self {
            lines: self.lines + added.lines,
            kib: self.kib + added.kib,
        }
    }

    /// Returns the same bound in bytes, with as many lines as these bytes can have in HTTP/1.1.
    #[must_use]
    pub const fn by_bytes(self) -> Self {
        Self {
            lines: self.kib * 1024 / LINE_BYTES,
            ..self
        }
    }

    /// Size in bytes.
    pub const fn bytes(self) -> u64 {
        self.kib as u64 * 1024
    }
}
