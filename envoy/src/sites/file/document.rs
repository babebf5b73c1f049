// SPDX-License-Identifier: Apache-2.0
//! A user's file in YAML or JSON, as a value whose fields have line numbers.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::problem::Problem;
use super::yaml::{self, Lines};

/// A file that has been read.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file, as messages name it.
    pub name: String,
    /// The folder to which relative paths in the file refer.
    pub folder: PathBuf,
    /// The value of the file.
    pub value: Value,
    lines: Lines,
}

impl Document {
    /// Reads a file. `name` is its name in messages.
    ///
    /// # Errors
    /// The file cannot be read, or is not valid YAML.
    pub fn read(path: &Path, name: &str) -> Result<Self, Problem> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let message = format!("expected a file that can be read ({error})");
            whole(name, None, message)
        })?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Self::parse(&text, name, folder)
    }

    /// Reads a text. `name` is its name in messages, and `folder` is the one to which its relative paths refer.
    ///
    /// # Errors
    /// The text is not valid YAML.
    pub fn parse(text: &str, name: &str, folder: PathBuf) -> Result<Self, Problem> {
        let (value, lines) =
            yaml::read(text).map_err(|fault| whole(name, fault.line, fault.to_string()))?;
        Ok(Self {
            name: name.to_owned(),
            folder,
            value,
            lines,
        })
    }

    /// A problem of the field with this path.
    pub fn problem(&self, field: &str, message: impl Into<String>) -> Problem {
        Problem {
            file: self.name.clone(),
            line: self.lines.line(field),
            field: field.to_owned(),
            message: message.into(),
        }
    }

    /// The name in messages of a file in the same folder.
    pub fn beside(&self, text: &str) -> String {
        let name = Path::new(&self.name).with_file_name("").join(text);
        name.display().to_string()
    }

    /// The file that a field names.
    pub fn path(&self, text: &str) -> PathBuf {
        let path = self.folder.join(text);
        std::path::absolute(&path).unwrap_or(path)
    }
}

fn whole(name: &str, line: Option<u64>, message: String) -> Problem {
    Problem {
        file: name.to_owned(),
        line,
        field: String::new(),
        message,
    }
}
