// SPDX-License-Identifier: Apache-2.0
//! The value of `SLUICE_POLICY`: a policy that comes with the edge, or a file.

use std::path::{Path, PathBuf};

use super::environment::Environment;
use crate::sites::{maintenance_page, read_yaml, ready_made};

/// The policy that a user has chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyChoice {
    /// The name of a policy that comes with the edge, or the path of a file.
    pub name: String,
    /// The policy, in YAML or JSON.
    pub text: String,
}

impl PolicyChoice {
    /// Reads `SLUICE_POLICY`: the name of a policy that comes with the edge, or else a file.
    pub fn read(env: &mut Environment<'_>) -> Option<Self> {
        let name = env.set("SLUICE_POLICY")?;
        let text = match ready_made(&name) {
            Some(text) => text.to_owned(),
            None => env.file_text("SLUICE_POLICY")?,
        };
        Some(Self { name, text })
    }

    /// The file of the maintenance page, if the policy names one.
    pub fn maintenance_page(&self) -> Option<PathBuf> {
        let (policy, _) = read_yaml(&self.text).ok()?;
        maintenance_page::file(&policy)
    }

    /// The file of the policy. `None`: the policy comes with the edge.
    pub fn file(&self) -> Option<&Path> {
        let is_file = ready_made(&self.name).is_none();
        is_file.then_some(Path::new(&self.name))
    }
}
