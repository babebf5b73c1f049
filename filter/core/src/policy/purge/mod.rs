// SPDX-License-Identifier: Apache-2.0
//! The policy's section on purges: its texts, and what it comes to.

mod record;
mod token;

#[cfg(test)]
use serde_json::Value;

use super::field::Text;

pub(crate) use record::hash;
pub use record::{Kind, Record, Scope, bucket_of};
pub use token::TokenHash;

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
