// SPDX-License-Identifier: Apache-2.0
//! The lines of purges that a caller has ordered at an edge. They mean the same on every other edge of the feed.

use serde_json::Value;

use super::line::{FeedPurge, FeedSubject, SubjectError};
use crate::purge::orders::caller::Caller;

impl FeedPurge {
    /// The line of a purge call, whose document is an order of this caller.
    ///
    /// # Errors
    /// No line can have the subject.
    pub fn of_order(caller: Caller<'_>, document: &[u8]) -> Result<Self, SubjectError> {
        let document: Value = serde_json::from_slice(document).unwrap_or_default();
        let text = |name: &str| {
            let text = document.get(name).and_then(Value::as_str);
            text.map(str::to_owned)
        };
        let named = document.get("site").and_then(Value::as_str);
        let limited = named.and_then(|name| caller.for_site(name).ok());
        let site = name_of_site(limited.unwrap_or(caller));
        let keys = document.get("surrogate_keys").and_then(Value::as_array);
        let subject = if let Some(url) = text("url") {
            FeedSubject::Url { site, url }
        } else if let Some(prefix) = text("prefix") {
            FeedSubject::Prefix { site, prefix }
        } else if let Some(keys) = keys {
            let keys = keys.iter().filter_map(Value::as_str);
            let keys = keys.map(str::to_owned).collect();
            FeedSubject::Keys { site, keys }
        } else {
            FeedSubject::Everything { site }
        };
        Ok(Self {
            hard: document.get("soft") != Some(&Value::Bool(true)),
            subject: subject.for_line()?,
        })
    }

    /// The line of a hard purge of one URL.
    ///
    /// # Errors
    /// No line can have the URL.
    pub fn of_url(caller: Caller<'_>, url: &str) -> Result<Self, SubjectError> {
        let site = name_of_site(caller);
        let url = url.to_owned();
        let subject = FeedSubject::Url { site, url }.for_line()?;
        let hard = true;
        Ok(Self { hard, subject })
    }

    /// The lines of the objects that events of buckets have named. A name that is too long for a line is a reading of a
    /// key that no bucket has.
    pub fn of_objects(caller: Caller<'_>, objects: &[String]) -> Vec<Self> {
        let purges = objects.iter();
        purges
            .filter_map(|object| Self::of_url(caller, object).ok())
            .collect()
    }
}

/// The name of the one site that a caller may purge; `None` if there are several, or the site has no name.
fn name_of_site(caller: Caller<'_>) -> Option<String> {
    let policy = caller.policy()?;
    Some(policy.site.name.clone()).filter(|name| !name.is_empty())
}
