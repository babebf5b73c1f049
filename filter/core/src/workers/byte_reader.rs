// SPDX-License-Identifier: Apache-2.0
//! Reads numbers, little-endian, from bytes that another worker, or other software, has written.

/// The bytes that are not read yet. Each method returns `None` if there are too few bytes.
#[derive(Clone, Copy, Debug)]
pub struct ByteReader<'a>(pub &'a [u8]);

impl<'a> ByteReader<'a> {
    /// The next `N` bytes.
    pub fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    /// The next `count` bytes.
    pub fn slice(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    /// The next byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }

    /// The next 16 bits.
    pub fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    /// The next 32 bits.
    pub fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    /// The next 64 bits.
    pub fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    /// The remaining bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// Whether no bytes remain.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_order_and_none_is_made_up() {
        let mut reader = ByteReader(&[1, 2, 0, 3, 0, 0, 0, 9]);
        assert_eq!((reader.u8(), reader.u16()), (Some(1), Some(2)));
        assert_eq!((reader.u32(), reader.u64()), (Some(3), None));
        assert_eq!((reader.slice(2), reader.slice(1)), (None, Some(&[9][..])));
        assert!(reader.is_empty());
    }
}
