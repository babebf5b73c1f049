// SPDX-License-Identifier: Apache-2.0
//! The policy's section on purges: its texts, and what it comes to.

#[cfg(test)]
use serde_json::Value;

use super::PurgePolicy;
use super::document::PurgeSection;
use super::field::Text;
use crate::purge::{Purges, Record, TokenHash};

impl PurgeSection {
    /// What it comes to.
    pub(super) fn compile(self) -> PurgePolicy {
        let journal = self.journal.map(|records| {
            let mut purges = Purges::default();
            records.iter().for_each(|record| purges.apply(record));
            purges
        });
        PurgePolicy {
            token: self.token_sha256,
            journal,
            recorded: self.recorded,
            warm: self.warm,
            sns: self.sns,
        }
    }
}

impl Text for TokenHash {
    fn expected() -> String {
        "the SHA-256 of the token, 64 lower-case hexadecimal digits".to_owned()
    }

    fn accept(text: &str) -> Option<Self> {
        Self::from_hex(text)
    }

    #[cfg(test)]
    fn constraint() -> (&'static str, Value) {
        ("pattern", "^[0-9a-f]{64}$".into())
    }

    #[cfg(test)]
    fn to_text(&self) -> String {
        self.to_hex()
    }
}

impl Text for Record {
    fn expected() -> String {
        "a line of the edge's journal of purges, such as 1 hard everything".to_owned()
    }

    fn accept(text: &str) -> Option<Self> {
        Self::parse(text)
    }

    #[cfg(test)]
    fn constraint() -> (&'static str, Value) {
        let scope = r"(nothing|everything|bucket [0-9]+|prefix [!-~]+)";
        ("pattern", format!("^[0-9]+ (hard|soft) {scope}$").into())
    }

    #[cfg(test)]
    fn to_text(&self) -> String {
        self.to_string()
    }
}
