// SPDX-License-Identifier: Apache-2.0
//! Bounds on the headers of one message, and what an origin may send at most.

/// Bound on the header section of one message, and on its trailer section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderBound {
    /// Lines. HTTP/2 counts pseudo-header fields as well.
    pub lines: u32,
    /// KiB of names and values. HTTP/1.1 counts separators and the first line as well.
    pub kib: u32,
}

/// The most that the edge takes of an origin's response.
pub const RESPONSE: HeaderBound = HeaderBound {
    lines: 200,
    kib: 96,
};

/// The most that Envoy adds to a response behind the origin's server: its own `Date`, a coding and its `Vary`,
/// `Transfer-Encoding`, and what tells ORIGIN of the origin's connection and of a bucket's error.
pub const HOP_ADDS: HeaderBound = HeaderBound { lines: 16, kib: 16 };

/// The fewest bytes of a line of HTTP/1.1: a name, a colon and the line's end.
const LINE_BYTES: u32 = 4;

impl HeaderBound {
    /// The bound on what has passed this one when so much may have been added.
    #[must_use]
    pub const fn plus(self, added: Self) -> Self {
        Self {
            lines: self.lines + added.lines,
            kib: self.kib + added.kib,
        }
    }

    /// The bound by bytes alone: as many lines as so many bytes can have in HTTP/1.1.
    #[must_use]
    pub const fn by_bytes(self) -> Self {
        Self {
            lines: self.kib * 1024 / LINE_BYTES,
            ..self
        }
    }

    /// Bytes.
    pub const fn bytes(self) -> u64 {
        self.kib as u64 * 1024
    }
}
