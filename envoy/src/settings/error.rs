// SPDX-License-Identifier: Apache-2.0
//! Why the settings cannot be used.

use std::fmt;

/// Every problem with the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    /// At least one problem, in the order of the settings.
    pub problems: Vec<Problem>,
}

/// The problem with one setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The environment variable.
    pub name: &'static str,
    /// The variable's value; `None` where it is unset or secret.
    pub value: Option<String>,
    /// What would be accepted.
    pub accepted: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(out, "{}={value:?}: expected {}", self.name, self.accepted),
            None => write!(out, "{}: {}", self.name, self.accepted),
        }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.problems.iter().map(Problem::to_string).collect();
        out.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for SettingsError {}
