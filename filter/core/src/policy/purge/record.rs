// SPDX-License-Identifier: Apache-2.0
//! The record of one purge, and its text.

use std::fmt;

use crate::hexadecimal;
use crate::policy::purge::feed_position::{FeedId, FeedPosition};

/// End of a site's name in a record, as in a key.
const NAME_END: char = '!';

/// Greatest number that is accepted. Counting cannot reach it, so the edge has not written a record with a greater
/// number. Such a record would leave no numbers for later purges.
const MAX_NUMBER: u64 = u64::MAX / 2;

/// Number of the parts of a site's URLs. The first byte of a URL's hash is its part.
pub const PARTS: u64 = 256;

/// How a purge takes stored responses out of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A request with an unsafe method has changed the responses (RFC 9111, 4.4). The next request revalidates them.
    /// No client gets an earlier response, even if the origin fails.
    Changed,
    /// The responses count as stale: the next request revalidates them.
    Soft,
    /// The responses are gone.
    Hard,
}

/// The hash by which purges know a URL, as [`crate::purge::url_of`] returns it. The hash is keyed with the store's
/// secret: without the secret it is not possible to find a second URL with the hash of a given one. The hash is the
/// same in every version and on every machine, because the journal holds such hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UrlHash(pub u64);

impl UrlHash {
    /// The part of its site's URLs to which the URL belongs: one of [`PARTS`].
    pub const fn part(self) -> u8 {
        let [part, ..] = self.0.to_be_bytes();
        part
    }
}

/// The URLs that a purge covers. Each scope except [`Scope::Everything`] is bound to one site. The site's name is
/// empty if the edge has one site without a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// No URL: the record only uses a number.
    Nothing,
    /// One URL.
    Url {
        /// The name of its site.
        site: String,
        /// Its hash.
        hash: UrlHash,
    },
    /// One part of the URLs of a site.
    Part {
        /// The name of the site.
        site: String,
        /// The part, see [`UrlHash::part`].
        part: u8,
    },
    /// All URLs that begin with this text: a site's name, an authority and a canonical path.
    Prefix(String),
    /// All URLs of the site with that name, which is not empty.
    Site(String),
    /// All URLs of all sites.
    Everything,
    /// No URL: all lines of the purge feed up to this one have been applied.
    Feed(FeedPosition),
}

impl Scope {
    /// All URLs of the site with that name, which may be empty.
    pub fn all_of(site: &str) -> Self {
        match site {
            "" => Self::Everything,
            name => Self::Site(name.to_owned()),
        }
    }
}

/// A purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Number of the purge, greater than the numbers of all earlier purges.
    pub number: u64,
    /// Effect of the purge on the stored responses.
    pub kind: Kind,
    /// The URLs that the purge covers.
    pub scope: Scope,
}

impl Record {
    /// Reads one line, in the form that [`fmt::Display`] writes.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(4, ' ');
        let number = words.next()?.parse().ok();
        let number = number.filter(|number| *number <= MAX_NUMBER)?;
        let kind = match words.next()? {
            "hard" => Kind::Hard,
            "soft" => Kind::Soft,
            "changed" => Kind::Changed,
            _ => return None,
        };
        let scope = match (words.next()?, words.next()) {
            ("nothing", None) => Scope::Nothing,
            ("everything", None) => Scope::Everything,
            ("url", Some(text)) => {
                let (site, hash) = parse_in_site(text, 16)?;
                let hash = UrlHash(hash);
                Scope::Url { site, hash }
            }
            ("part", Some(text)) => {
                let (site, part) = parse_in_site(text, 2)?;
                let part = u8::try_from(part).ok()?;
                Scope::Part { site, part }
            }
            ("site", Some(name)) if !name.is_empty() && is_name(name) => {
                Scope::Site(name.to_owned())
            }
            ("feed", Some(text)) => {
                let (id, number) = text.split_once(':')?;
                let number = number.parse().ok().filter(|number| *number <= MAX_NUMBER)?;
                let id = FeedId::parse(id)?;
                Scope::Feed(FeedPosition { id, number })
            }
            ("prefix", Some(prefix)) if is_prefix(prefix) => Scope::Prefix(prefix.to_owned()),
            _ => return None,
        };
        Some(Self {
            number,
            kind,
            scope,
        })
    }
}

/// Reads `NAME!DIGITS`, or the digits alone if the site has no name.
fn parse_in_site(text: &str, digits: usize) -> Option<(String, u64)> {
    let (site, number) = text.split_once(NAME_END).unwrap_or(("", text));
    let valid = is_name(site) && number.len() == digits;
    let number = hexadecimal::number(number.as_bytes()).filter(|_| valid)?;
    Some((site.to_owned(), number))
}

/// Whether the text can be the name of a site, or is empty.
fn is_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'!' | b'/');
    text.bytes().all(is_inner)
}

/// Whether the text can be part of a line: visible ASCII, like every canonical target.
fn is_prefix(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl fmt::Display for Record {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Hard => "hard",
            Kind::Soft => "soft",
            Kind::Changed => "changed",
        };
        let end = |site: &str| if site.is_empty() { "" } else { "!" };
        write!(out, "{} {kind} ", self.number)?;
        match &self.scope {
            Scope::Nothing => write!(out, "nothing"),
            Scope::Url { site, hash } => write!(out, "url {site}{}{:016x}", end(site), hash.0),
            Scope::Part { site, part } => write!(out, "part {site}{}{part:02x}", end(site)),
            Scope::Site(site) => write!(out, "site {site}"),
            Scope::Prefix(prefix) => write!(out, "prefix {prefix}"),
            Scope::Everything => write!(out, "everything"),
            Scope::Feed(FeedPosition { id, number }) => write!(out, "feed {id}:{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        let mut scopes = vec![
            Scope::Nothing,
            Scope::Prefix("example.com:8080/a%20b/".into()),
            Scope::Site("assets".into()),
            Scope::Everything,
            Scope::Feed(FeedPosition {
                id: FeedId(0x9f),
                number: 122,
            }),
        ];
        for site in ["", "assets"].map(str::to_owned) {
            for number in [0, 7, u64::MAX] {
                let hash = UrlHash(number);
                scopes.push(Scope::Url {
                    site: site.clone(),
                    hash,
                });
                scopes.push(Scope::Part {
                    site: site.clone(),
                    part: hash.part(),
                });
            }
        }
        for kind in [Kind::Hard, Kind::Soft, Kind::Changed] {
            for scope in scopes.clone() {
                let record = Record {
                    number: MAX_NUMBER,
                    kind,
                    scope,
                };
                assert_eq!(Record::parse(&record.to_string()), Some(record));
            }
        }
    }

    #[test]
    fn anything_else_is_no_record() {
        for line in [
            "",
            "1",
            "1 hard",
            "x hard everything",
            "1 firm everything",
            "1 hard everything else",
            "1 hard bucket 7",
            "1 hard url",
            "1 hard url ",
            "1 hard url 0123456789abcde",
            "1 hard url 0123456789abcdefa",
            "1 hard url 0123456789abcdeg",
            "1 hard url a/b!0123456789abcdef",
            "1 hard url a b!0123456789abcdef",
            "1 hard url a!b!0123456789abcdef",
            "1 hard part 100",
            "1 hard part a!1",
            "1 hard site ",
            "1 hard site a!",
            "1 hard prefix ",
            "1 hard feed 9f:1",
            "1 hard feed 0000009f",
            "1 hard feed 0000009f:",
            "1 hard prefix a b",
            "-1 hard everything",
            "18446744073709551615 hard everything",
        ] {
            assert_eq!(Record::parse(line), None, "{line}");
        }
    }
}
