// SPDX-License-Identifier: Apache-2.0
//! The error with which a purge is refused, in words for its caller.

use std::fmt;

use serde_json::Value;

/// Error of a call or a notification: the field, its value and the values that are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderError(String);

impl fmt::Display for OrderError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl OrderError {
    /// Creates an error about a field.
    pub(in crate::purge) fn new(field: &str, message: &str) -> Self {
        Self(format!("{field}: {message}"))
    }

    /// Creates an error about a field's value, which is not accepted.
    pub(in crate::purge) fn unexpected(field: &str, value: &Value, expected: &str) -> Self {
        let value = shown(value.to_string());
        Self::new(field, &format!("{value}: expected {expected}"))
    }
}

/// Shortens a text of a caller for a message.
pub(in crate::purge) fn shown(mut text: String) -> String {
    const SHOWN: usize = 200;
    if let Some((end, _)) = text.char_indices().nth(SHOWN) {
        text.truncate(end);
        text.push('…');
    }
    text
}
