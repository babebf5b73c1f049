// SPDX-License-Identifier: Apache-2.0
//! The policy's section on purges: its texts, and the values that they are read as.

mod declared;
mod feed;
mod feed_position;
mod on_created;
mod record;
mod token;

use serde_json::Value;

use crate::policy::forms::duration;
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form;
use crate::policy::forms::form::{Form, read_text};
use crate::policy::forms::section::section;

pub use declared::{DeclaredPurge, DeclaredPurges, MAX_DECLARED};
pub use feed::{FEED_NAME, FeedPolicy, USUAL_EVERY, applied_within};
pub use feed_position::{FeedId, FeedPosition};
pub use on_created::OnCreatedPolicy;
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
        /// Whether purges are written to the purge feed too. The entry point writes them. The entry point fills this in.
        writes_feed: bool = false,
        /// Numbers in the keys of URLs: a purge that a change of the policy makes. At most 64.
        declared: Vec<DeclaredPurge> = Vec::new(),
        /// The purge feed. Default: no feed is read.
        feed: Option<FeedPolicy>,
        /// The fetch of an object after a bucket has said that it was written. Default: no such fetch.
        on_created: Option<OnCreatedPolicy>,
    }
}

impl PurgePolicy {
    /// Checks the section for an edge with sites of these names; none if its only site has no name.
    ///
    /// # Errors
    /// The field, its value and the accepted values.
    pub(crate) fn check(&self, names: &[&str]) -> Result<(), PolicyError> {
        self.check_declared(names)?;
        let Some(feed) = &self.feed else {
            return Ok(());
        };
        let refuse = |field: &str, text: &str, expected| {
            PolicyError::text(&format!("purge.feed.{field}"), text, expected)
        };
        if feed.every > feed::MOST_EVERY {
            let every = duration::format(feed.every);
            return Err(refuse("every", &every, "at most 1h"));
        }
        match feed.site.as_deref() {
            Some(site) if !names.contains(&site) => Err(refuse("site", site, "the name of a site")),
            None if names.len() > 1 => Err(PolicyError::new(
                "purge.feed.site",
                "missing: expected the name of the site whose bucket has the feed",
            )),
            _ => Ok(()),
        }
    }

    fn check_declared(&self, names: &[&str]) -> Result<(), PolicyError> {
        let count = self.declared.len();
        if count > MAX_DECLARED {
            let message = format!("{count} prefixes: expected at most {MAX_DECLARED}");
            return Err(PolicyError::new("purge.declared", message));
        }
        for (index, purge) in self.declared.iter().enumerate() {
            if let Some(site) = purge.site.as_deref().filter(|site| !names.contains(site)) {
                let path = format!("purge.declared[{index}].site");
                return Err(PolicyError::text(&path, site, "the name of a site"));
            }
        }
        Ok(())
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
