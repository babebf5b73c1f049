// SPDX-License-Identifier: Apache-2.0
//! What a purge call asks for.

use std::fmt;

use serde_json::Value;

use super::table::MAX_PREFIX_BYTES;
use super::tags::{MAX_TAGS, TagHash, tags_of};
use super::url::{self, UrlError};
use crate::policy::Policy;
use crate::policy::purge::{Kind, Scope, bucket_of};

const SUBJECTS: &str = "url, prefix, surrogate_keys or everything";

/// What is to be purged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// This.
    Scopes(Vec<Scope>),
    /// The URLs that have one of these surrogate keys.
    Tags(Vec<TagHash>),
}

/// A purge, ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// What.
    pub what: What,
    /// How.
    pub kind: Kind,
}

/// Why a call is refused: the field, its value and what is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderError(String);

impl fmt::Display for OrderError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl OrderError {
    fn field(name: &str, value: &Value, expected: &str) -> Self {
        let value = shown(value.to_string());
        Self(format!("{name}: {value}: expected {expected}"))
    }
}

/// The beginning of what a caller has sent, for a message.
fn shown(mut text: String) -> String {
    const SHOWN: usize = 200;
    if let Some((end, _)) = text.char_indices().nth(SHOWN) {
        text.truncate(end);
        text.push('…');
    }
    text
}

impl Order {
    /// A hard purge of one URL.
    ///
    /// # Errors
    /// It is no URL of this edge.
    pub fn of_url(policy: &Policy, url: &str) -> Result<Self, OrderError> {
        Ok(Self {
            what: read_url(policy, &Value::from(url))?,
            kind: Kind::Hard,
        })
    }

    /// Reads the body of a call: `{"url": …}`, `{"prefix": …}`, `{"surrogate_keys": […]}` or
    /// `{"everything": true}`, each with `"soft": true` or without.
    ///
    /// # Errors
    /// It is none of these.
    pub fn parse(policy: &Policy, body: &[u8]) -> Result<Self, OrderError> {
        let document: Value = serde_json::from_slice(body)
            .map_err(|error| OrderError(format!("the body: {error}: expected a JSON object")))?;
        let Some(fields) = document.as_object() else {
            return Err(OrderError::field("the body", &document, "a JSON object"));
        };
        let (mut kind, mut what) = (Kind::Hard, None);
        for (name, value) in fields {
            let subject = match name.as_str() {
                "soft" => {
                    kind = read_kind(value)?;
                    continue;
                }
                "url" => read_url(policy, value)?,
                "prefix" => read_prefix(policy, value)?,
                "surrogate_keys" => read_tags(value)?,
                "everything" if *value == Value::Bool(true) => {
                    What::Scopes(vec![Scope::Everything])
                }
                "everything" => return Err(OrderError::field(name, value, "true")),
                _ => {
                    let name = shown(name.clone());
                    return Err(OrderError(format!(
                        "{name}: unknown field: expected {SUBJECTS}, and soft"
                    )));
                }
            };
            if what.replace(subject).is_some() {
                return Err(OrderError(format!(
                    "{name}: one too many: expected one of {SUBJECTS}"
                )));
            }
        }
        let missing = || OrderError(format!("the body: {{}}: expected one of {SUBJECTS}"));
        Ok(Self {
            what: what.ok_or_else(missing)?,
            kind,
        })
    }
}

fn read_kind(value: &Value) -> Result<Kind, OrderError> {
    match value {
        Value::Bool(true) => Ok(Kind::Soft),
        Value::Bool(false) => Ok(Kind::Hard),
        _ => Err(OrderError::field("soft", value, "true or false")),
    }
}

fn read_url(policy: &Policy, value: &Value) -> Result<What, OrderError> {
    let url = value.as_str().ok_or(UrlError::Form);
    let url = url.and_then(|text| url::parse_url(policy, text));
    let url = url.map_err(|error| url_error("url", policy, value, error))?;
    Ok(What::Scopes(vec![Scope::Bucket(bucket_of(&url))]))
}

fn read_prefix(policy: &Policy, value: &Value) -> Result<What, OrderError> {
    let prefix = value.as_str().ok_or(UrlError::Form);
    let prefix = prefix.and_then(|text| url::parse_prefix(policy, text));
    let prefix = prefix.map_err(|error| url_error("prefix", policy, value, error))?;
    if prefix.len() > MAX_PREFIX_BYTES {
        let expected = format!("at most {MAX_PREFIX_BYTES} bytes");
        return Err(OrderError::field("prefix", value, &expected));
    }
    Ok(What::Scopes(vec![Scope::Prefix(prefix)]))
}

fn url_error(name: &str, policy: &Policy, value: &Value, error: UrlError) -> OrderError {
    match error {
        UrlError::Form => OrderError::field(name, value, url::accepted(policy)),
        UrlError::Rejected(rejection) => {
            let accepted = format!("{} ({})", url::accepted(policy), rejection.reason());
            OrderError::field(name, value, &accepted)
        }
    }
}

fn read_tags(value: &Value) -> Result<What, OrderError> {
    let refuse = || {
        let expected = format!("a list of 1 to {MAX_TAGS} texts without spaces or commas");
        OrderError::field("surrogate_keys", value, &expected)
    };
    let is_tag = |tag: &&str| !tag.is_empty() && !tag.contains([' ', ',', '\t']);
    let items = value.as_array().filter(|items| !items.is_empty());
    let tags: Option<Vec<&str>> = items
        .ok_or_else(refuse)?
        .iter()
        .map(|item| item.as_str().filter(is_tag))
        .collect();
    let tags = tags_of(&tags.ok_or_else(refuse)?).ok_or_else(refuse)?;
    Ok(What::Tags(tags))
}
