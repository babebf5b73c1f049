// SPDX-License-Identifier: Apache-2.0
//! Problems of the settings, and of the files that the settings name.

use std::error::Error;
use std::fmt;

use crate::sites;

/// A problem of a setting, of the file that the setting names, or of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingProblem {
    /// A setting has a wrong value, or lacks a value.
    Setting {
        /// The variable's name.
        name: &'static str,
        /// The value, if it is set and not a secret.
        value: Option<String>,
        /// The accepted values, or without a value the action to take.
        accepted: String,
    },
    /// A variable is unknown, or contradicts another variable.
    Names(String),
    /// A field of a file is wrong.
    File(sites::Problem),
    /// The machine cannot do what the settings need.
    Machine(String),
}

impl fmt::Display for SettingProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting {
                name,
                value: Some(value),
                accepted,
            } => write!(out, "{name}={value:?}: expected {accepted}"),
            Self::Setting {
                name,
                value: None,
                accepted,
            } => write!(out, "{name}: {accepted}"),
            Self::File(problem) => problem.fmt(out),
            Self::Names(problem) | Self::Machine(problem) => out.write_str(problem),
        }
    }
}

/// All problems of one environment, in the order of the settings: a line for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingProblems(pub Vec<SettingProblem>);

impl fmt::Display for SettingProblems {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        out.write_str(&lines.join("\n"))
    }
}

impl Error for SettingProblems {}
