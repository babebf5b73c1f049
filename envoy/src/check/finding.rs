// SPDX-License-Identifier: Apache-2.0
//! A result of a check, for people and for programs.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::settings::SettingProblem;

/// A result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The weight of the finding.
    pub level: Level,
    /// The place of the finding.
    #[serde(flatten)]
    pub place: Place,
    /// The finding as a line for people, with its place and its remedy.
    pub message: String,
}

/// The weight of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A problem that must be fixed.
    Error,
    /// A problem to come, or a check that was not possible.
    Warning,
    /// A setting that works, but is better written in another way.
    Note,
}

/// The place of a finding, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The setting, or the path of the field in the file, such as `sites[1].hosts[0]`.
    pub field: Option<String>,
    /// The file, as the user has named it.
    pub file: Option<String>,
    /// The line of the field in the file, from 1.
    pub line: Option<u64>,
}

impl Finding {
    /// A problem that must be fixed.
    pub fn problem(message: impl Into<String>) -> Self {
        Self {
            level: Level::Error,
            place: Place::default(),
            message: message.into(),
        }
    }

    /// A problem to come, or a check that was not possible.
    pub fn warning(message: impl Into<String>) -> Self {
        Self {
            level: Level::Warning,
            ..Self::problem(message)
        }
    }

    /// A setting that works, but is better written in another way.
    pub fn note(message: impl Into<String>) -> Self {
        Self {
            level: Level::Note,
            ..Self::problem(message)
        }
    }

    /// The finding at this place.
    pub fn at(self, place: Place) -> Self {
        Self { place, ..self }
    }

    /// Whether this is a problem that must be fixed.
    pub fn is_problem(&self) -> bool {
        self.level == Level::Error
    }
}

impl From<&SettingProblem> for Finding {
    fn from(problem: &SettingProblem) -> Self {
        let place = match problem {
            SettingProblem::Setting { name, .. } => Place::of_setting(name),
            SettingProblem::File(problem) => Place {
                field: Some(problem.field.clone()).filter(|field| !field.is_empty()),
                file: Some(problem.file.clone()),
                line: problem.line,
            },
            SettingProblem::Names(_) | SettingProblem::Machine(_) => Place::default(),
        };
        Self::problem(problem.to_string()).at(place)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.level {
            Level::Error => out.write_str(&self.message),
            Level::Warning => write!(out, "warning: {}", self.message),
            Level::Note => write!(out, "note: {}", self.message),
        }
    }
}

impl Place {
    /// The place of a setting's value.
    pub fn of_setting(name: &str) -> Self {
        Self {
            field: Some(name.to_owned()),
            ..Self::default()
        }
    }

    /// The place of a file as a whole.
    pub fn of_file(file: &Path) -> Self {
        Self {
            file: Some(file.display().to_string()),
            ..Self::default()
        }
    }
}
