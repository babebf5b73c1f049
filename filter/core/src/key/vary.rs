// SPDX-License-Identifier: Apache-2.0
//! Variants: which request headers the responses of a URL depend on (`Vary`, RFC 9111, 4.1).
//!
//! The stores know no `Vary`. The first response with one says which headers matter, and is not
//! stored; from then on requests for its URL are keyed by the values of those headers, so that each
//! variant is an entry of its own. The headers that the policy lists are in every key. The origin is asked with the very values that the key has.

use std::borrow::Cow;
use std::rc::Rc;

use crate::key::CanonicalTarget;
use crate::key::qualifiers::{self, qualifiers};
use crate::policy::Policy;
use crate::policy::forward_header;

/// The header that selects a content coding. Its values are few: it is keyed by what it comes to.
pub const ACCEPT_ENCODING: &str = "accept-encoding";

/// Names of request headers that select among the responses of a URL: in lower case, sorted, none
/// twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaryNames(Rc<str>);

impl VaryNames {
    fn of(mut names: Vec<Cow<'_, str>>) -> Self {
        names.sort_unstable();
        names.dedup();
        Self(names.join(",").into())
    }

    /// Reads what [`VaryNames::as_str`] gives.
    pub fn parse(text: &str) -> Self {
        Self::of(members(text).map(Cow::Owned).collect())
    }

    /// The names with commas between them.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split(',').filter(|name| !name.is_empty())
    }
}

/// What the `Vary` of a response means for the key under which it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The key has all that the response depends on.
    Keyed,
    /// From now on the URL's keys should have these.
    Unkeyed(VaryNames),
    /// Its variants cannot be told apart, or the policy does not want it.
    Refused,
}

/// What `vary`, the lines of the header joined by commas, means for a response asked for under `key`.
///
/// A header that no cacheable request takes to the origin makes no difference, nor does one that every
/// key has. `Accept-Encoding`
/// makes one only where it goes on and the key does not have its coding.
pub fn fit(policy: &Policy, key: &str, vary: Option<&str>) -> Fit {
    let Some(vary) = vary else {
        return Fit::Keyed;
    };
    let mut keyed = keyed_names(key);
    keyed.retain(|name| !policy.key.has_header(name));
    let mut needed = Vec::new();
    for name in members(vary) {
        if policy.key.has_header(&name) || policy.response.ignore_vary.contains(&name) {
            continue;
        }
        let bucket = policy.origin.is_bucket();
        if name == ACCEPT_ENCODING && (bucket || policy.compression.enabled) {
            continue;
        }
        if bucket || name == "*" || policy.vary.forbid.contains(&name) {
            return Fit::Refused;
        }
        if forward_header(policy, true, &name) {
            needed.push(name);
        }
    }
    if needed.iter().all(|name| keyed.contains(name)) {
        return Fit::Keyed;
    }
    let of = |names: &[String]| VaryNames::of(names.iter().map(Cow::from).collect());
    // Of a URL whose responses differ in what they depend on, keys have it all, if they may.
    let (alone, all) = (of(&needed), of(&[keyed, needed].concat()));
    [all, alone]
        .into_iter()
        .find(|names| names.iter().count() <= policy.vary.max_headers)
        .map_or(Fit::Refused, Fit::Unkeyed)
}

/// The request headers whose values are in `key`.
pub(crate) fn keyed_names(key: &str) -> Vec<String> {
    let named = |(name, _): (String, _)| match name.strip_prefix(qualifiers::VARY) {
        Some(header) => Some(header.to_owned()),
        None => (name == qualifiers::CODING).then(|| ACCEPT_ENCODING.to_owned()),
    };
    qualifiers(key).filter_map(named).collect()
}

fn members(vary: &str) -> impl Iterator<Item = String> {
    vary.split(',')
        .map(|member| member.trim().to_ascii_lowercase())
        .filter(|member| !member.is_empty())
}

/// A request header is too long to be in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// Qualifies `target` by the values that a request has for the headers of the policy's key, and for
/// those that the URL's responses are known to vary with; `value` gives the lines of a header joined by
/// commas.
///
/// # Errors
/// One of them is longer than the policy allows.
pub fn qualify<'a>(
    policy: &Policy,
    target: &mut CanonicalTarget,
    known: Option<&VaryNames>,
    value: impl Fn(&str) -> Option<Cow<'a, str>>,
) -> Result<(), TooLong> {
    let always = policy.key.headers.iter().map(String::as_str);
    // Another policy's key may not have had what this one's has.
    let known = known.into_iter().flat_map(VaryNames::iter);
    let known = known.filter(|name| !policy.key.has_header(name));
    for name in always.chain(known) {
        let value = value(name);
        if policy.key.has_header(name) && is_usual(name, value.as_deref()) {
            continue;
        }
        if name == ACCEPT_ENCODING && policy.compression.enabled {
            // Learnt before it was.
            continue;
        }
        if name == ACCEPT_ENCODING {
            let coding = policy.compression.negotiate(value.as_deref());
            let token = coding.map_or("identity", |coding| coding.token());
            target.qualify(qualifiers::CODING, token);
            continue;
        }
        let value = value.as_deref().map(|value| normalize(name, value));
        if value
            .as_ref()
            .is_some_and(|value| value.len() > policy.vary.max_value_bytes)
        {
            return Err(TooLong);
        }
        let qualifier = [qualifiers::VARY, name].concat();
        target.qualify(&qualifier, keyed_value(value.as_deref()));
    }
    Ok(())
}

/// No header is not an empty one: no header contains a NUL.
fn keyed_value(value: Option<&str>) -> &str {
    match value {
        None => "",
        Some("") => "\0",
        Some(value) => value,
    }
}

/// A request header as the key says that the origin is asked with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// Its name.
    pub name: String,
    /// Its value; `None` where there is no such header.
    pub value: Option<String>,
}

/// Whether a header of the policy's key is as most requests have it, and adds nothing to the key: it is not there, or
/// says that the client came without TLS. So most keys are the paths that the store is asked for.
fn is_usual(name: &str, value: Option<&str>) -> bool {
    value.is_none_or(|value| name == "x-forwarded-proto" && value.eq_ignore_ascii_case("http"))
}

/// The request headers that `path` towards the store selects a variant by.
pub fn selected(path: &str) -> impl Iterator<Item = Selected> {
    qualifiers(path).filter_map(|(name, value)| {
        let value = String::from_utf8(value).ok()?;
        if name == qualifiers::CODING {
            return Some(Selected {
                name: ACCEPT_ENCODING.to_owned(),
                value: (value != "identity").then_some(value),
            });
        }
        let name = name.strip_prefix(qualifiers::VARY)?.to_owned();
        let value = match value.as_str() {
            "" => None,
            "\0" => Some(String::new()),
            _ => Some(value),
        };
        Some(Selected { name, value })
    })
}

/// The value in one of its spellings, as far as all of them surely mean the same (RFC 9111, 4.1):
/// without white space around it, in the negotiation of content also around separators, and in lower
/// case where case says nothing.
fn normalize(name: &str, value: &str) -> String {
    let value = value.trim_matches([' ', '\t']);
    match name {
        "accept-language" | "accept-charset" | "x-forwarded-proto" => {
            tighten(value).to_ascii_lowercase()
        }
        "accept" if !value.contains('"') => tighten(value),
        _ => value.to_owned(),
    }
}

/// Takes out the white space around `,`, `;` and `=`.
fn tighten(value: &str) -> String {
    let mut tight = String::with_capacity(value.len());
    let mut space = false;
    for character in value.chars() {
        match character {
            ' ' | '\t' => space = true,
            ',' | ';' | '=' => {
                space = false;
                tight.push(character);
            }
            _ => {
                if std::mem::take(&mut space) && !tight.ends_with([',', ';', '=']) {
                    tight.push(' ');
                }
                tight.push(character);
            }
        }
    }
    tight
}

/// What a client is told of `vary`, with which a response was stored, beside what it is told already:
/// all of it, but for what makes no difference in a bucket; and `Accept-Encoding` where the edge
/// chooses a coding.
pub fn told(
    policy: &Policy,
    vary: Option<&str>,
    already: Option<&str>,
    chooses_coding: bool,
) -> Option<String> {
    let bucket = policy.origin.is_bucket();
    let ignored = |name: &str| {
        let ignored = &policy.response.ignore_vary;
        bucket
            && ignored
                .iter()
                .any(|listed| listed.eq_ignore_ascii_case(name))
    };
    let mut known: Vec<String> = members(already.unwrap_or_default()).collect();
    let mut told = Vec::new();
    let chosen = chooses_coding.then_some("Accept-Encoding");
    let stored = vary.unwrap_or_default().split(',').map(str::trim);
    let stored = stored.filter(|name| !name.is_empty() && !ignored(name));
    for name in stored.chain(chosen) {
        let lower = name.to_ascii_lowercase();
        if !known.contains(&lower) && !known.iter().any(|known| known == "*") {
            told.push(name);
            known.push(lower);
        }
    }
    (!told.is_empty()).then(|| told.join(", "))
}
