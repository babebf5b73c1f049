// SPDX-License-Identifier: Apache-2.0
//! The secrets that the edge has read at its start.

use std::ffi::OsString;
use std::fmt;

use crate::sites::find_secret;

/// Secrets by the names of their settings.
#[derive(Clone, Default)]
pub struct FileSecrets {
    /// Secrets from files that Envoy gets as variables of its environment.
    of_envoy: Vec<(String, String)>,
    /// Secrets that Envoy gets in a file of the edge, if at all.
    of_edge: Vec<(String, String)>,
}

impl FileSecrets {
    /// Adds the secret of a setting, or of a variable that only Envoy has.
    pub fn add(&mut self, name: impl Into<String>, text: String) {
        self.of_envoy.push((name.into(), text));
    }

    /// Adds a secret that Envoy does not get as a variable.
    pub fn hold(&mut self, name: impl Into<String>, text: String) {
        self.of_edge.push((name.into(), text));
    }

    /// The variables of Envoy's environment, and their values.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.of_envoy.iter();
        all.map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// Finds a variable among these secrets, in this process's environment, and then in the file that the environment
    /// names for it. The start has refused a file that cannot be read.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        let mut own = self.of_envoy.iter().chain(&self.of_edge);
        let own = own.find(|(known, _)| known == name);
        let of_environment = || find_secret(&|name| std::env::var_os(name), name).ok()?;
        own.map(|(_, text)| text.into()).or_else(of_environment)
    }
}

impl fmt::Debug for FileSecrets {
    // NB: the texts are secrets.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list()
            .entries(
                self.of_envoy
                    .iter()
                    .chain(&self.of_edge)
                    .map(|(name, _)| name),
            )
            .finish()
    }
}
