// SPDX-License-Identifier: Apache-2.0
//! The files of the edges: a policy, and access rules with their keys. A reload reads the next generation of them.

use super::generations::GENERATION;
use super::pass::{key_name, key_text};
use crate::edge::Builder;
use std::path::PathBuf;
use tempfile::TempDir;

/// Files with an error, by name.
const WRONG: [(&str, &str); 4] = [
    ("policy.yaml", "origin: {kind: http}\nrules: 7\n"),
    ("access.yaml", "any_of: []\n"),
    ("policy.yaml", "origin: ["),
    (
        "access.yaml",
        "any_of: [{signed: {keys: {k0: {file: none}}}}]\n",
    ),
];

/// The files.
pub struct Files {
    folder: TempDir,
    /// Whether there are access rules.
    pub access: bool,
    /// `purge.feed.every`, if the edges read a feed.
    pub feed: Option<&'static str>,
}

impl Files {
    /// Writes the first generation.
    ///
    /// # Panics
    /// When the files cannot be written.
    #[must_use]
    pub fn new(access: bool, feed: Option<&'static str>) -> Self {
        let folder = TempDir::with_prefix("sluice-torture-").unwrap();
        let files = Self {
            folder,
            access,
            feed,
        };
        files.write(0);
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let part = self.path("part");
        std::fs::write(&part, text).unwrap();
        std::fs::rename(part, self.path(name)).unwrap();
    }

    /// Has an edge read these files.
    pub fn open(&self, edge: Builder) -> Builder {
        let path = |name| self.path(name).display().to_string();
        let edge = edge.env("SLUICE_POLICY", path("policy.yaml"));
        match self.access {
            true => edge.env("SLUICE_ACCESS", path("access.yaml")),
            false => edge,
        }
    }

    /// Writes a generation.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write(&self, generation: u64) {
        let keys = [generation, generation + 1].map(|number| {
            let name = key_name(number);
            self.put(&name, &key_text(number));
            format!("{name}: {{file: {name}}}")
        });
        let rules = format!("any_of: [{{signed: {{keys: {{{}}}}}}}]\n", keys.join(", "));
        self.put("access.yaml", &rules);
        let feed = self
            .feed
            .map(|every| format!("purge: {{feed: {{every: {every}}}}}\n"));
        let policy = format!(
            "origin: {{kind: http}}\n{}rules: [{{match: [\"/*\"], headers: {{{GENERATION}: \"{generation}\"}}}}]\n",
            feed.unwrap_or_default()
        );
        self.put("policy.yaml", &policy);
    }

    /// Writes an error into one of the files.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn spoil(&self, number: u64) {
        let wrong: Vec<_> = WRONG
            .iter()
            .filter(|(name, _)| self.access || *name == "policy.yaml")
            .collect();
        let (name, text) = wrong[number as usize % wrong.len()];
        self.put(name, text);
    }
}
