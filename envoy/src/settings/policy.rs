// SPDX-License-Identifier: Apache-2.0
//! The policies that `POLICY` can name: those that come with the edge, or a file.

use std::path::PathBuf;

use super::environment::Environment;

/// The policy for a bucket, unless the user chooses another, in YAML.
pub const BUCKET: &str = include_str!("../../policies/bucket.yaml");
/// The policy for an HTTP origin, unless the user chooses another, in YAML.
pub const HTTP: &str = include_str!("../../policies/http.yaml");
/// The names and texts of the policies that come with the edge.
pub const READY_MADE: [(&str, &str); 5] = [
    ("bucket", BUCKET),
    ("http", HTTP),
    ("spa", include_str!("../../policies/spa.yaml")),
    ("downloads", include_str!("../../policies/downloads.yaml")),
    (
        "versioned-assets",
        include_str!("../../policies/versioned-assets.yaml"),
    ),
];

/// The policy that a user has chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyChoice {
    /// One that comes with the edge: its name and its text.
    ReadyMade(&'static str, &'static str),
    /// A file.
    File(PathBuf),
}

impl PolicyChoice {
    /// Reads `POLICY`: the name of a policy that comes with the edge, or else a file.
    pub fn read(env: &mut Environment<'_>) -> Option<Self> {
        let text = env.set("POLICY")?;
        match READY_MADE.into_iter().find(|(name, _)| *name == text) {
            Some((name, text)) => Some(Self::ReadyMade(name, text)),
            None => env.file("POLICY").map(Self::File),
        }
    }
}
