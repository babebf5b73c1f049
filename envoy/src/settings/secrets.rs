// SPDX-License-Identifier: Apache-2.0
//! The secrets that the edge has read from files.

use std::ffi::OsString;
use std::fmt;

use crate::sites::find_secret;

/// Secrets from files, by the names of their settings. Envoy gets them as variables of its environment.
#[derive(Clone, Default)]
pub struct FileSecrets(Vec<(String, String)>);

impl FileSecrets {
    /// Adds the secret of a setting, or of a variable that only Envoy has.
    pub fn add(&mut self, name: impl Into<String>, text: String) {
        self.0.push((name.into(), text));
    }

    /// The variables of Envoy's environment, and their values.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.0.iter();
        all.map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// Finds a variable among these secrets, in this process's environment, and then in the file that the environment
    /// names for it. The start has refused a file that cannot be read.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        let own = self.variables().find(|(known, _)| *known == name);
        let of_environment = || find_secret(&|name| std::env::var_os(name), name).ok()?;
        own.map(|(_, text)| text.into()).or_else(of_environment)
    }
}

impl fmt::Debug for FileSecrets {
    // NB: the texts are secrets.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list()
            .entries(self.variables().map(|(name, _)| name))
            .finish()
    }
}
