// SPDX-License-Identifier: Apache-2.0
//! Problems of a user's file, with their place.

use std::fmt;

use serde_json::Value;

/// Longest part of a value that a message repeats, in characters.
const LONGEST: usize = 80;

/// A problem of a field of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file, as the user has named it.
    pub file: String,
    /// The line of the field, from 1; `None`: the file as a whole.
    pub line: Option<u64>,
    /// The path of the field, such as `sites[1].hosts[0]`; empty for the document itself.
    pub field: String,
    /// The value and the accepted values, or the action to take.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:", self.file)?;
        if let Some(line) = self.line {
            write!(out, "{line}:")?;
        }
        match self.field.as_str() {
            "" => write!(out, " {}", self.message),
            field => write!(out, " {field}: {}", self.message),
        }
    }
}

/// A value in a message: on one line, and shortened if it is long.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping of fields".to_owned(),
        other => {
            let text = other.to_string();
            match text.char_indices().nth(LONGEST) {
                Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
                None => text,
            }
        }
    }
}

/// `a, b or c`.
pub fn one_of(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
