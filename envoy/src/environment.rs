// SPDX-License-Identifier: Apache-2.0
//! Reads settings out of environment variables and collects every problem on the way.

use std::ffi::OsString;
use std::fmt;

use crate::setting_docs::{self, Fallback};

/// Everything that is wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    /// At least one problem, in the order of the settings.
    pub problems: Vec<Problem>,
}

/// What is wrong with one setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The environment variable.
    pub name: &'static str,
    /// What it says, unless that is secret or nothing.
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

/// Looks variables up and keeps the problems found.
pub struct Environment<'a> {
    lookup: &'a dyn Fn(&str) -> Option<OsString>,
    problems: Vec<Problem>,
}

impl<'a> Environment<'a> {
    /// An environment in which `lookup` finds the variables.
    pub fn new(lookup: &'a dyn Fn(&str) -> Option<OsString>) -> Self {
        Self {
            lookup,
            problems: Vec::new(),
        }
    }

    /// What the user set; an empty variable counts as unset.
    pub fn set(&mut self, name: &'static str) -> Option<String> {
        let value = (self.lookup)(name).filter(|value| !value.is_empty())?;
        match value.into_string() {
            Ok(value) => Some(value),
            Err(value) => {
                self.refuse(
                    name,
                    Some(value.to_string_lossy().into_owned()),
                    "valid UTF-8",
                );
                None
            }
        }
    }

    /// What the user set, else the setting's default where that is a value.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        self.set(name)
            .or_else(|| match setting_docs::find(name)?.default {
                Fallback::Value(text) => Some(text.to_owned()),
                Fallback::Derived(_) => None,
            })
    }

    /// Like [`Self::text`], and refuses what `parse` does not take. `None`: nothing set, or refused.
    pub fn parse<T>(
        &mut self,
        name: &'static str,
        accepted: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(name)?;
        let parsed = parse(&text);
        if parsed.is_none() {
            self.refuse(name, Some(text), accepted);
        }
        parsed
    }

    /// Notes a problem.
    pub fn refuse(
        &mut self,
        name: &'static str,
        value: Option<String>,
        accepted: impl Into<String>,
    ) {
        self.problems.push(Problem {
            name,
            value,
            accepted: accepted.into(),
        });
    }

    /// The value read, unless there was a problem with any setting.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, SettingsError> {
        match value {
            Some(value) if self.problems.is_empty() => Ok(value),
            _ => Err(SettingsError {
                problems: self.problems,
            }),
        }
    }
}
