// SPDX-License-Identifier: Apache-2.0
//! The URL of a request as its client knows it, in the one canonical spelling: in front of index documents, of
//! stripped prefixes and of the bucket's prefix.

use super::query::append_query;
use super::{Target, TargetDraft, is_below};
use crate::http::url::rejection::Rejection;
use crate::policy::Policy;

/// A canonical path, and the query as the cache key has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientUrl {
    text: String,
    path_len: usize,
}

impl ClientUrl {
    /// The URL of `target`, by the functions with which [`super::canonicalize`] makes the key.
    ///
    /// # Errors
    /// The reason to refuse the request.
    pub fn of(policy: &Policy, target: &Target<'_>) -> Result<Self, Rejection> {
        let mut draft = TargetDraft::of(policy, target)?;
        let (root, halves) = (draft.out.len(), draft.halves());
        draft.append_path(halves.path)?;
        let path_len = draft.out.len() - root;
        if !is_below(draft.out.get(root..).unwrap_or_default(), &policy.site.path) {
            return Err(Rejection::NoSite);
        }
        if let Some(query) = halves.query {
            append_query(&mut draft.out, query, &policy.key.query, draft.escaping)?;
        }
        let text = String::from_utf8(draft.out.split_off(root));
        let text = text.map_err(|_| Rejection::InvalidUtf8)?;
        Ok(Self { text, path_len })
    }

    /// The path and the query.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The path.
    pub fn path(&self) -> &str {
        self.text.get(..self.path_len).unwrap_or_default()
    }
}
