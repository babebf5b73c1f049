// SPDX-License-Identifier: Apache-2.0
//! The policy's section on purges: its texts, and the values that they are read as.

mod record;
mod token;

use serde_json::Value;

use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form;
use crate::policy::forms::form::{Form, read_text};
use crate::policy::forms::section::section;

pub use record::{Kind, PARTS, Record, Scope, UrlHash};
pub use token::TokenHash;

section! {
    /// Authorization of purges, and the purges by former processes.
    pub struct PurgePolicy {
        /// SHA-256 of the token that a purge carries, in hexadecimal. Default: purges are off.
        token as "token_sha256": Option<TokenHash>,
        /// The purges of the store's entries by former processes, which the entry point records. Default: unknown.
        /// Then a start that could bring back a purged entry begins with an empty store. The entry point fills this in.
        journal: Option<Vec<Record>>,
        /// Whether the entry point records purges. The entry point fills this in.
        recorded: bool = false,
        /// Whether the store holds entries of former processes. The entry point fills this in.
        warm: bool = true,
        /// Whether messages of Amazon SNS are accepted. The entry point verifies them. The entry point fills this in.
        sns: bool = false,
    }
}

impl Form<Self> for TokenHash {
    fn read(value: &Value, _: form::Kind) -> Result<Self, PolicyError> {
        let expected = "the SHA-256 of the token, 64 lower-case hexadecimal digits";
        read_text(value, expected, Self::from_hex)
    }
}

impl Form<Self> for Record {
    fn read(value: &Value, _: form::Kind) -> Result<Self, PolicyError> {
        let expected = "a line of the edge's journal of purges, such as 1 hard everything";
        read_text(value, expected, Self::parse)
    }
}
