// SPDX-License-Identifier: Apache-2.0
//! Reasons to refuse a policy, in words for its author.

use std::fmt::{self, Write as _};

use serde_json::Value;

/// Error in a policy: its place, and the expected value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    path: String,
    message: String,
}

impl PolicyError {
    /// An error in the field of this path.
    pub(crate) fn new(path: &str, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            message: message.into(),
        }
    }

    /// An error for a value that its field does not accept.
    pub(in crate::policy) fn unexpected(value: &Value, expected: &str) -> Self {
        Self::new("", format!("{}: expected {expected}", shown(value)))
    }

    /// An error for a text that the field of this path does not accept.
    pub(crate) fn text(path: &str, text: &str, expected: &str) -> Self {
        Self::new(path, format!("{}: expected {expected}", quoted(text)))
    }

    /// Puts the name of the enclosing field in front of the path.
    pub(crate) fn within(mut self, outer: &str) -> Self {
        self.path = match self.path.as_str() {
            "" => outer.to_owned(),
            inner if inner.starts_with('[') => format!("{outer}{inner}"),
            inner => format!("{outer}.{inner}"),
        };
        self
    }

    /// The path of the field (`cache.ttl.200`), empty if it is the document itself.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = match self.path.as_str() {
            "" => "policy",
            path => path,
        };
        write!(formatter, "{}: {}", OneLine(path), self.message)
    }
}

impl std::error::Error for PolicyError {}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", OneLine(text))
}

/// The author's text on one line, cut if it is too long.
struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 80;
        for (index, character) in self.0.chars().enumerate() {
            if index == LONGEST {
                return formatter.write_char('…');
            }
            if character.is_control() {
                write!(formatter, "{}", character.escape_default())?;
            } else {
                formatter.write_char(character)?;
            }
        }
        Ok(())
    }
}
