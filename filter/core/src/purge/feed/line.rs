// SPDX-License-Identifier: Apache-2.0
//! One line of a feed: a purge with its number and its time.

use std::fmt;

use serde_json::{Map, Value, json};

use super::time;
use crate::policy::is_site_name;
use crate::policy::purge::Kind;
use crate::purge::orders::caller::Caller;
use crate::purge::orders::object::ObjectUrl;
use crate::purge::orders::order::PurgeOrder;
use crate::purge::orders::order_error::OrderError;
use crate::purge::tags::MAX_TAGS;

/// Greatest number of a line. Counting does not reach it.
pub(super) const MAX_NUMBER: u64 = 1 << 62;
/// Longest URL of a line in bytes.
const MAX_URL_BYTES: usize = 4_096;
/// Longest prefix of a line in bytes. Its canonical spelling has at most the bytes of a purge's prefix.
pub(super) const MAX_PREFIX_BYTES: usize = 600;
/// Greatest length of the surrogate keys of a line in bytes, with the spaces between them.
const MAX_KEYS_BYTES: usize = 8_192;
/// Name of the only site of an edge whose site has no name.
const NO_NAME: &str = "-";

/// Subject of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedSubject {
    /// A URL.
    Url {
        /// Name of the site; `None` if the URL names it.
        site: Option<String>,
        /// The URL, as in the field `url` of a purge call.
        url: String,
    },
    /// The beginning of URLs.
    Prefix {
        /// Name of the site; `None` if the prefix names it.
        site: Option<String>,
        /// The prefix, as in the field `prefix` of a purge call.
        prefix: String,
    },
    /// Surrogate keys of a site.
    Keys {
        /// Name of the site; `None` for the only site of an edge.
        site: Option<String>,
        /// The surrogate keys.
        keys: Vec<String>,
    },
    /// All URLs of a site.
    Everything {
        /// Name of the site; `None` for all sites.
        site: Option<String>,
    },
}

/// Error about a purge that cannot be a line: its field, and what is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectError(pub(super) &'static str);

impl fmt::Display for SubjectError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

impl FeedSubject {
    /// A URL that names its site.
    pub fn url(url: impl Into<String>) -> Self {
        let url = url.into();
        Self::Url { site: None, url }
    }

    /// A prefix that names its site.
    pub fn prefix(prefix: impl Into<String>) -> Self {
        let prefix = prefix.into();
        Self::Prefix { site: None, prefix }
    }

    /// Returns the subject in the spelling of a line. Bytes that a line cannot have are escaped in a URL, and a prefix
    /// that is too long is shortened to a directory.
    ///
    /// # Errors
    /// No line can have the subject.
    pub fn for_line(self) -> Result<Self, SubjectError> {
        let subject = match self {
            Self::Url { site, url } => Self::Url {
                site,
                url: escaped(&url),
            },
            Self::Prefix { site, prefix } => {
                let prefix = escaped(&prefix);
                let fits = prefix.len() <= MAX_PREFIX_BYTES;
                let short = (!fits).then(|| directory(&prefix, MAX_PREFIX_BYTES));
                let prefix = short.flatten().map(str::to_owned).unwrap_or(prefix);
                Self::Prefix { site, prefix }
            }
            other => other,
        };
        subject.check().map(|()| subject)
    }

    fn check(&self) -> Result<(), SubjectError> {
        let is_name = |site: Option<&str>| site.is_none_or(is_site_name);
        let expected = match self {
            Self::Url { url, .. } if !is_visible(url) || url.len() > MAX_URL_BYTES => {
                "url: expected 1 to 4096 bytes"
            }
            Self::Prefix { prefix, .. }
                if !is_visible(prefix)
                    || prefix.len() > MAX_PREFIX_BYTES
                    || prefix.contains(['?', '#']) =>
            {
                "prefix: expected 1 to 600 bytes without a query, or below a directory of at most 600"
            }
            other if !is_name(other.site()) => "site: expected the name of a site",
            Self::Keys { keys, .. } if !are_keys(keys) => {
                "surrogate_keys: expected 1 to 256 texts without spaces, of at most 8192 bytes in all"
            }
            _ => return Ok(()),
        };
        Err(SubjectError(expected))
    }

    /// Reads the words behind the kind.
    fn parse(text: &str) -> Option<Self> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let named = |name: &str| (name != NO_NAME).then(|| name.to_owned());
        let subject = match word {
            "url" => {
                let (site, url) = of_site(rest);
                Self::Url { site, url }
            }
            "prefix" => {
                let (site, prefix) = of_site(rest);
                Self::Prefix { site, prefix }
            }
            "keys" => {
                let (site, keys) = rest.split_once(' ')?;
                Self::Keys {
                    site: named(site),
                    keys: keys.split(' ').map(str::to_owned).collect(),
                }
            }
            "everything" if text == word => Self::Everything { site: None },
            "everything" => Self::Everything {
                site: Some(rest.to_owned()),
            },
            _ => return None,
        };
        subject.check().ok().map(|()| subject)
    }

    /// The name of the site, if the subject has it beside its URL.
    pub(super) fn site(&self) -> Option<&str> {
        match self {
            Self::Url { site, .. }
            | Self::Prefix { site, .. }
            | Self::Keys { site, .. }
            | Self::Everything { site } => site.as_deref(),
        }
    }

    /// The URL or the prefix.
    pub(super) fn address(&self) -> Option<&str> {
        match self {
            Self::Url { url, .. } => Some(url),
            Self::Prefix { prefix, .. } => Some(prefix),
            _ => None,
        }
    }

    /// Whether the subject belongs to one event of a bucket. Another subject may be purged again.
    pub(super) fn is_of_event(&self) -> bool {
        matches!(self, Self::Url { url, .. } if ObjectUrl::names_event(url))
    }
}

impl fmt::Display for FeedSubject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url { site, url } => write!(out, "url {}{url}", with_space(site.as_deref())),
            Self::Prefix { site, prefix } => {
                write!(out, "prefix {}{prefix}", with_space(site.as_deref()))
            }
            Self::Keys { site, keys } => {
                let site = site.as_deref().unwrap_or(NO_NAME);
                write!(out, "keys {site} {}", keys.join(" "))
            }
            Self::Everything { site: None } => write!(out, "everything"),
            Self::Everything { site: Some(site) } => write!(out, "everything {site}"),
        }
    }
}

/// A purge in a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedLine {
    /// Number, greater than the numbers of all earlier lines.
    pub number: u64,
    /// Time of its writing in seconds since 1970, by the writer's clock.
    pub time: i64,
    /// Whether the purge is hard; otherwise it is soft.
    pub hard: bool,
    /// Subject of the purge.
    pub subject: FeedSubject,
}

impl FeedLine {
    /// Reads a line in the form that [`fmt::Display`] writes.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (number, rest) = line.split_once(' ')?;
        let number = parse_number(number)?;
        let (time, rest) = rest.split_once(' ')?;
        let FeedPurge { hard, subject } = FeedPurge::parse(rest)?;
        Some(Self {
            number,
            time: time::parse(time)?,
            hard,
            subject,
        })
    }

    /// The kind of the purge.
    pub const fn kind(&self) -> Kind {
        if self.hard { Kind::Hard } else { Kind::Soft }
    }

    /// Returns the order of the line: what a purge call with the same subject orders.
    ///
    /// # Errors
    /// The edge has no such URL or site.
    pub fn order(&self, caller: Caller<'_>) -> Result<PurgeOrder, OrderError> {
        let mut document = Map::from_iter([("soft".to_owned(), Value::Bool(!self.hard))]);
        let mut field = |name: &str, value: Value| {
            document.insert(name.to_owned(), value);
        };
        match &self.subject {
            FeedSubject::Url { url, .. } => field("url", json!(url)),
            FeedSubject::Prefix { prefix, .. } => field("prefix", json!(prefix)),
            FeedSubject::Keys { keys, .. } => field("surrogate_keys", json!(keys)),
            FeedSubject::Everything { .. } => field("everything", json!(true)),
        }
        if let Some(site) = self.subject.site() {
            field("site", json!(site));
        }
        PurgeOrder::parse(caller, Value::from(document).to_string().as_bytes())
    }
}

impl fmt::Display for FeedLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let soft = soft_mark(self.hard);
        let time = time::format(self.time);
        write!(out, "{} {time} {soft}{}", self.number, self.subject)
    }
}

/// A purge that is not in a feed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedPurge {
    /// Whether the purge is hard; otherwise it is soft.
    pub hard: bool,
    /// Subject of the purge.
    pub subject: FeedSubject,
}

impl FeedPurge {
    /// Reads the end of a line, behind the number and the time.
    pub fn parse(text: &str) -> Option<Self> {
        let soft = text.strip_prefix("soft ");
        Some(Self {
            hard: soft.is_none(),
            subject: FeedSubject::parse(soft.unwrap_or(text))?,
        })
    }
}

impl fmt::Display for FeedPurge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", soft_mark(self.hard), self.subject)
    }
}

const fn soft_mark(hard: bool) -> &'static str {
    if hard { "" } else { "soft " }
}

/// The site and the URL in the words of a line.
fn of_site(words: &str) -> (Option<String>, String) {
    match words.split_once(' ') {
        Some((site, url)) => (Some(site.to_owned()), url.to_owned()),
        None => (None, words.to_owned()),
    }
}

/// The name of a site in front of a URL.
fn with_space(site: Option<&str>) -> String {
    let named = site.iter().map(|site| format!("{site} "));
    named.collect()
}

/// Reads a number of a line.
pub(super) fn parse_number(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_plain);
    number.filter(|number| *number <= MAX_NUMBER)
}

/// The directory that contains a URL and has at most `most` bytes, with its slash; `None` if that is not a directory
/// below an authority. A query is not part of it.
pub(super) fn directory(url: &str, most: usize) -> Option<&str> {
    let path_end = url.find(['?', '#']).unwrap_or(url.len());
    let authority = url.find("://").map_or(0, |scheme| scheme + 3);
    let root = authority + url.get(authority..path_end)?.find('/')?;
    let head = url.get(..path_end.min(most))?;
    let end = head.rfind('/').filter(|end| *end >= root)?;
    url.get(..=end)
}

/// Whether the text is visible ASCII.
fn is_visible(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn are_keys(keys: &[String]) -> bool {
    let is_key = |key: &String| {
        let is_odd = |each: char| each.is_whitespace() || each.is_control() || each == ',';
        !key.is_empty() && !key.contains(is_odd)
    };
    let bytes: usize = keys.iter().map(|key| key.len() + 1).sum();
    (1..=MAX_TAGS).contains(&keys.len()) && bytes <= MAX_KEYS_BYTES && keys.iter().all(is_key)
}

/// A URL with escapes for the bytes that a line cannot have.
fn escaped(url: &str) -> String {
    let mut escaped = String::with_capacity(url.len());
    for byte in url.bytes() {
        match byte.is_ascii_graphic() {
            true => escaped.push(char::from(byte)),
            false => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}
