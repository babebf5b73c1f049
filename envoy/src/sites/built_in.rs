// SPDX-License-Identifier: Apache-2.0
//! The policies that come with the edge, in YAML.

/// The policy for a bucket, unless the user chooses another.
pub const BUCKET: &str = include_str!("../../policies/bucket.yaml");
/// The policy for an HTTP origin, unless the user chooses another.
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

/// The text of the policy with this name that comes with the edge.
pub fn ready_made(name: &str) -> Option<&'static str> {
    let (_, text) = READY_MADE.iter().find(|(known, _)| *known == name)?;
    Some(text)
}
