// SPDX-License-Identifier: Apache-2.0
//! The page of a listing that a client selects by the query of its URL.

use crate::http::url::escaping::{escape_key, unescaped};
use crate::key::CanonicalTarget;
use crate::key::qualifiers::{LISTING, is_for_listing, qualifiers};

/// The most bytes of a name in the query, which is the longest key of an object.
const MAX_NAME_BYTES: usize = 1_024;

/// The media type of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFormat {
    /// `text/html`.
    Html,
    /// `application/json`.
    Json,
}

impl PageFormat {
    /// Value of `Content-Type`.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Json => "application/json",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Json => "json",
        }
    }

    fn of(word: &[u8]) -> Option<Self> {
        let formats = [Self::Html, Self::Json].into_iter();
        formats
            .into_iter()
            .find(|format| format.word().as_bytes() == word)
    }
}

/// The page that a client selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The media type.
    pub format: PageFormat,
    /// The last name of the page in front of it, with a slash if it is a directory. Empty for the first page.
    pub after: String,
}

impl Selection {
    /// The first page in HTML.
    pub const FIRST: Self = Self {
        format: PageFormat::Html,
        after: String::new(),
    };

    /// Reads the query of a client's `path` as it was sent: `format=html`, `format=json` and `after=NAME`. Other
    /// parameters have no effect. `None` for a value that is not valid.
    pub fn of_path(path: &[u8]) -> Option<Self> {
        let mut selection = Self::FIRST;
        let query = path.splitn(2, |&byte| byte == b'?').nth(1);
        for parameter in query.unwrap_or_default().split(|&byte| byte == b'&') {
            if let Some(word) = parameter.strip_prefix(b"format=") {
                selection.format = PageFormat::of(word)?;
            } else if let Some(name) = parameter.strip_prefix(b"after=") {
                selection.after = name_of(name)?;
            }
        }
        Some(selection)
    }

    /// Reads the selection from a cache key, or from a store's `:path`. `None` if it is not that of a listing.
    pub fn of_key(key: &str) -> Option<Self> {
        let mut first = is_for_listing(key)
            .then(|| qualifiers(key))
            .into_iter()
            .flatten();
        let (_, value) = first.next()?;
        let mut halves = value.splitn(2, |&byte| byte == b'/');
        Some(Self {
            format: PageFormat::of(halves.next()?)?,
            after: String::from_utf8(halves.next()?.to_vec()).ok()?,
        })
    }

    /// Adds the selection to the key of a directory's index document.
    pub(super) fn qualify(&self, target: &mut CanonicalTarget) {
        target.qualify(LISTING, [self.format.word(), "/", &self.after].concat());
    }

    /// The query of the page behind the page with the last name `after`.
    pub(super) fn next_query(&self, after: &str) -> String {
        let format = match self.format {
            PageFormat::Html => "",
            PageFormat::Json => "format=json&",
        };
        // A slash stays as it is in a query.
        format!("?{format}after={}", escape_key(after))
    }
}

/// The name in a query, as the filter writes it. `None` if it can be none.
fn name_of(escaped: &[u8]) -> Option<String> {
    let name = String::from_utf8(unescaped(escaped).collect()).ok()?;
    let segment = name.strip_suffix('/').unwrap_or(&name);
    let fits = !segment.contains('/') && !name.is_empty() && name.len() <= MAX_NAME_BYTES;
    (fits && !name.contains('\0')).then_some(name)
}
