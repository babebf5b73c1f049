// SPDX-License-Identifier: Apache-2.0
//! The values of headers, for tests.

use crate::HeaderMap;

/// Reads values that are known to be text.
pub trait HeaderTexts {
    /// Returns the first value with this name, if it is text.
    fn get(&self, name: &str) -> Option<&str>;

    /// Returns the first value with this name, with any bytes.
    fn bytes(&self, name: &str) -> Option<&[u8]>;
}

impl HeaderTexts for HeaderMap {
    fn get(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.bytes(name)?).ok()
    }

    fn bytes(&self, name: &str) -> Option<&[u8]> {
        let mut lines = self.iter();
        lines
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }
}
