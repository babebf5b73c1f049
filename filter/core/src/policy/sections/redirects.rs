// SPDX-License-Identifier: Apache-2.0
//! The section `redirects`: URLs that have moved.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::http::url::authority::append_authority;
use crate::http::url::escaping::{Escaping, append_literal};
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{Form, Kind};
use crate::policy::forms::section::section;

/// The greatest number of redirects of one site.
const MAX_REDIRECTS: usize = 1_000;
/// The greatest number of places between redirects that the search for a loop visits.
const MAX_PLACES: usize = 10_000;
/// The statuses of a redirect that names one URL (RFC 9110, 15.4).
pub(in crate::policy) const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

/// A path, or with a `*` at its end the beginning of paths.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathPattern {
    /// The path in its canonical spelling. A beginning ends with a slash.
    pub path: String,
    /// Whether it is a beginning.
    pub is_prefix: bool,
}

impl PathPattern {
    /// Reads a path of whole segments in which only the last one may be `*`; `None` if it is none.
    fn parse(text: &str, escaping: Escaping) -> Option<Self> {
        let (path, is_prefix) = match text.strip_suffix("/*") {
            Some(path) => (format!("{path}/"), true),
            None => (text.to_owned(), false),
        };
        let mut canonical = Vec::with_capacity(path.len());
        let is_raw =
            |byte: u8| !matches!(byte, b'*' | b'?' | b'#' | b'\\') && !byte.is_ascii_control();
        append_literal(&mut canonical, path.as_bytes(), escaping)
            .filter(|()| path.bytes().all(is_raw))?;
        let path = String::from_utf8(canonical).ok()?;
        let segments = path.strip_prefix('/')?;
        let inner = segments.strip_suffix('/').unwrap_or(segments);
        let is_segment = |segment: &str| !matches!(segment, "" | "." | "..");
        let whole = segments.is_empty() || inner.split('/').all(is_segment);
        whole.then_some(Self { path, is_prefix })
    }

    /// The part of `path` that the `*` stands for, empty without one; `None` if the pattern does not match.
    pub fn rest<'a>(&self, path: &'a str) -> Option<&'a str> {
        let rest = path.strip_prefix(&self.path)?;
        (self.is_prefix || rest.is_empty()).then_some(rest)
    }

    /// The paths that both patterns match; `None` if there are none.
    fn meet(&self, other: &Self) -> Option<Self> {
        if other.rest(&self.path).is_some() {
            return Some(if other.is_prefix { self } else { other }.clone());
        }
        self.rest(&other.path).map(|_| other.clone())
    }

    /// Whether the pattern matches each path that `other` matches.
    fn covers(&self, other: &Self) -> bool {
        match other.is_prefix {
            true => self.is_prefix && other.path.starts_with(&self.path),
            false => self.rest(&other.path).is_some(),
        }
    }
}

/// The URLs of a redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectSource {
    /// The host in lower case, without a port; `None`: all hosts of the site.
    pub host: Option<String>,
    /// The paths.
    pub path: PathPattern,
}

/// The URL to which a redirect leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectTarget {
    /// Scheme and authority, such as `https://example.com`; `None`: the same as those of the request.
    pub origin: Option<String>,
    /// The path. If it is a beginning, the part that the source's `*` stands for follows.
    pub path: PathPattern,
}

impl RedirectTarget {
    /// The name of the host, without a port.
    pub fn host(&self) -> Option<&str> {
        let (_, authority) = self.origin.as_deref()?.split_once("://")?;
        let port = authority.rfind(':');
        let port = port.filter(|colon| authority.rfind(']') < Some(*colon));
        authority.get(..port.unwrap_or(authority.len()))
    }
}

section! {
    /// Redirects of URLs that have moved. The first one that matches counts.
    pub struct Redirect {
        /// The URLs that have moved: a path such as /old.html, or /old/* for all paths below it, with or without a
        /// host in front: www.example.com/*. Without a host, all hosts of the site.
        from: RedirectSource,
        /// The new URL: a path on the same host, or a URL with a host, http or https. With * at its end, it keeps the
        /// part of the path that the * of from stands for. The query stays.
        to: RedirectTarget,
        /// The status of the response: 301, 302, 303, 307 or 308. For methods other than GET and HEAD, 301 becomes
        /// 308, and 302 becomes 307, so that the method stays.
        status: u16 as RedirectStatus = 301,
    }
}

/// URLs between two redirects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// The host; `None`: any host of the site.
    host: Option<String>,
    path: PathPattern,
}

impl RedirectSource {
    /// Whether it matches each of these URLs.
    fn covers(&self, place: &Place) -> bool {
        let same_host = self.host.is_none() || self.host == place.host;
        same_host && self.path.covers(&place.path)
    }

    /// The URLs of `place` that it matches; `None` if there are none.
    fn meet(&self, place: &Place) -> Option<Place> {
        let host = match (&place.host, &self.host) {
            (Some(one), Some(other)) if one != other => return None,
            (one, other) => one.as_ref().or(other.as_ref()).cloned(),
        };
        let path = place.path.meet(&self.path)?;
        Some(Place { host, path })
    }

    fn place(&self) -> Place {
        Place {
            host: self.host.clone(),
            path: self.path.clone(),
        }
    }
}

impl Redirect {
    /// The path to which it leads from `path`, which it must match. Two slashes at the beginning of a path would begin
    /// a host (RFC 3986, 4.2), so the slashes at the start of the kept part are left out behind the slash of the
    /// target.
    pub fn new_path(&self, path: &str) -> Option<String> {
        let rest = self.from.path.rest(path)?;
        let to = &self.to.path;
        Some(match to.is_prefix {
            true => format!("{}{}", to.path, rest.trim_start_matches('/')),
            false => to.path.clone(),
        })
    }

    /// The URLs to which it leads from these.
    fn follow(&self, place: &Place) -> Option<Place> {
        let host = self.to.host().map(str::to_owned);
        Some(Place {
            host: host.or_else(|| place.host.clone()),
            path: PathPattern {
                path: self.new_path(&place.path.path)?,
                is_prefix: place.path.is_prefix && self.to.path.is_prefix,
            },
        })
    }

    /// The number of bytes by which it lengthens a path if it keeps a part of the path.
    fn growth(&self) -> isize {
        let length =
            |pattern: &PathPattern| isize::try_from(pattern.path.len()).unwrap_or_default();
        length(&self.to.path) - length(&self.from.path)
    }
}

/// Checks the redirects of a site together.
pub(in crate::policy) fn check(redirects: &[Redirect]) -> Result<(), PolicyError> {
    let at = |index: usize, field: &str| format!("redirects[{index}].{field}");
    if redirects.len() > MAX_REDIRECTS {
        let message = format!("{}: expected at most {MAX_REDIRECTS}", redirects.len());
        return Err(PolicyError::new("redirects", message));
    }
    for (index, redirect) in redirects.iter().enumerate() {
        if redirect.to.path.is_prefix && !redirect.from.path.is_prefix {
            let message = "expected a URL without *, because from has none";
            return Err(PolicyError::new(&at(index, "to"), message));
        }
        let mut earlier = redirects.iter().take(index);
        if let Some(other) = earlier.position(|earlier| earlier.from.covers(&redirect.from.place()))
        {
            let message = format!("expected URLs that redirects[{other}] does not match already");
            return Err(PolicyError::new(&at(index, "from"), message));
        }
    }
    let back = (0..redirects.len()).find(|start| leads_back(redirects, *start));
    match back {
        Some(index) => {
            let message =
                "expected a URL from which no redirect leads back: another path, or a host in from";
            Err(PolicyError::new(&at(index, "to"), message))
        }
        None => Ok(()),
    }
}

/// Whether a client that follows the redirect at `start`, and all others, may come back to it without an end. A
/// redirect that makes each path shorter is left at some time.
fn leads_back(redirects: &[Redirect], start: usize) -> bool {
    let Some(first) = redirects.get(start) else {
        return false;
    };
    let from = first.from.place();
    let Some(to) = first.follow(&from).filter(|to| *to != from) else {
        return true;
    };
    let mut open = vec![(to, first.growth())];
    let mut seen: BTreeMap<Place, isize> = BTreeMap::new();
    while let Some((place, growth)) = open.pop() {
        let is_known = seen.get(&place).is_some_and(|known| *known >= growth);
        if is_known || seen.len() >= MAX_PLACES {
            continue;
        }
        for (index, next) in redirects.iter().enumerate() {
            let Some((met, led)) = step(redirects, index, next, &place) else {
                continue;
            };
            if index == start && led != met {
                if growth >= 0 || !first.to.path.is_prefix {
                    return true;
                }
            } else if led != met && (next.to.path.is_prefix || !place.path.is_prefix) {
                open.push((led, growth + next.growth()));
            }
        }
        seen.insert(place, growth);
    }
    false
}

/// The URLs of `place` that the redirect `next` takes, and the URLs to which it leads from them. An earlier redirect
/// may take them all.
fn step(
    redirects: &[Redirect],
    index: usize,
    next: &Redirect,
    place: &Place,
) -> Option<(Place, Place)> {
    let met = next.from.meet(place)?;
    let mut earlier = redirects.iter().take(index);
    if earlier.any(|earlier| earlier.from.covers(&met)) {
        return None;
    }
    let led = next.follow(&met)?;
    Some((met, led))
}

const fn escaping(kind: Kind) -> Escaping {
    match kind {
        Kind::Bucket => Escaping::Strict,
        Kind::Http => Escaping::Unreserved,
    }
}

/// Splits a text in front of its first slash.
fn split_path(text: &str) -> Option<(&str, &str)> {
    text.split_at_checked(text.find('/')?)
}

impl Form<Self> for RedirectSource {
    fn read(value: &Value, kind: Kind) -> Result<Self, PolicyError> {
        let read = |text: &str| {
            let (host, path) = split_path(text)?;
            let host = match host {
                "" => None,
                host => Some(canonical_host(host, None).filter(|host| !host.contains(':'))?),
            };
            let path = PathPattern::parse(path, escaping(kind))?;
            Some(Self { host, path })
        };
        let expected = "a path such as /old.html or /old/*, or a host without a port and a path such as \
                        www.example.com/*";
        let read = value.as_str().and_then(read);
        read.ok_or_else(|| PolicyError::unexpected(value, expected))
    }
}

impl Form<Self> for RedirectTarget {
    fn read(value: &Value, kind: Kind) -> Result<Self, PolicyError> {
        let read = |text: &str| {
            let (scheme, rest) = match text.split_once("://") {
                Some((scheme @ ("http" | "https"), rest)) => (Some(scheme), rest),
                Some(_) => return None,
                None => (None, text),
            };
            let (authority, path) = split_path(rest)?;
            let origin = match scheme {
                Some(scheme) => Some(canonical_host(authority, Some(scheme))?),
                None if authority.is_empty() => None,
                None => return None,
            };
            let origin = origin.zip(scheme);
            let path = PathPattern::parse(path, escaping(kind))?;
            Some(Self {
                origin: origin.map(|(authority, scheme)| format!("{scheme}://{authority}")),
                path,
            })
        };
        let expected = "a path such as /new.html or /new/*, or a URL such as https://example.com/*, without a query";
        let read = value.as_str().and_then(read);
        read.ok_or_else(|| PolicyError::unexpected(value, expected))
    }
}

fn canonical_host(text: &str, scheme: Option<&str>) -> Option<String> {
    let mut canonical = Vec::new();
    append_authority(&mut canonical, text.as_bytes(), scheme).ok()?;
    String::from_utf8(canonical).ok()
}

/// The status of a redirect.
pub(in crate::policy) struct RedirectStatus;

impl Form<u16> for RedirectStatus {
    fn read(value: &Value, _: Kind) -> Result<u16, PolicyError> {
        let known = STATUSES.into_iter();
        let read = known
            .clone()
            .find(|status| value.as_f64() == Some(f64::from(*status)));
        read.ok_or_else(|| PolicyError::unexpected(value, "301, 302, 303, 307 or 308"))
    }
}
