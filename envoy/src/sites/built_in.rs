// SPDX-License-Identifier: Apache-2.0
//! The policies that `POLICY` can name: those that come with the edge, or a file.

use super::environment::Environment;

/// The policy for a bucket, unless the user chooses another, in YAML.
pub const BUCKET: &str = include_str!("../../policies/bucket.yaml");
/// The policy for an HTTP origin, unless the user chooses another, in YAML.
pub const HTTP: &str = include_str!("../../policies/http.yaml");
/// The names and texts of the policies that come with the edge.
pub const READY_MADE: [(&str, &str); 6] = [
    ("bucket", BUCKET),
    ("http", HTTP),
    ("microcache", include_str!("../../policies/microcache.yaml")),
    ("spa", include_str!("../../policies/spa.yaml")),
    ("downloads", include_str!("../../policies/downloads.yaml")),
    (
        "versioned-assets",
        include_str!("../../policies/versioned-assets.yaml"),
    ),
];

/// The policy that a user has chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyChoice {
    /// The name of a policy that comes with the edge, or the path of a file.
    pub name: String,
    /// The policy, in YAML or JSON.
    pub text: String,
}

impl PolicyChoice {
    /// Reads `POLICY`: the name of a policy that comes with the edge, or else a file.
    pub fn read(env: &mut Environment<'_>) -> Option<Self> {
        let name = env.set("POLICY")?;
        let text = match READY_MADE
            .iter()
            .find(|(ready_made, _)| *ready_made == name)
        {
            Some((_, text)) => (*text).to_owned(),
            None => env.file_text("POLICY")?,
        };
        Some(Self { name, text })
    }
}
