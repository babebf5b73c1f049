// SPDX-License-Identifier: Apache-2.0
//! Usage of a set of files.

/// The size in bytes and the number of a set of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The bytes of all files.
    pub bytes: u64,
    /// The number of files.
    pub files: u64,
}

impl Usage {
    /// The usage with one more file of this many `bytes`.
    #[must_use]
    pub const fn with(self, bytes: u64) -> Self {
        self.and(Self { bytes, files: 1 })
    }

    /// The usage without one of its files, which has this many `bytes`.
    #[must_use]
    pub const fn without(self, bytes: u64) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(bytes),
            files: self.files.saturating_sub(1),
        }
    }

    /// The usage of both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            files: self.files.saturating_add(other.files),
        }
    }

    /// The usage reduced by one `part`-th.
    #[must_use]
    pub const fn less_part(self, part: u64) -> Self {
        Self {
            bytes: self.bytes - self.bytes / part,
            files: self.files - self.files / part,
        }
    }

    /// Whether the set is within `bound` by bytes and by number.
    pub const fn is_within(self, bound: Self) -> bool {
        self.bytes <= bound.bytes && self.files <= bound.files
    }
}
