// SPDX-License-Identifier: Apache-2.0
//! Variants: the request headers on which the responses of a URL depend (`Vary`, RFC 9111, 4.1).
//!
//! The store does not evaluate `Vary`. The first response with a `Vary` shows which headers matter: it is stored
//! under the plain key of its URL, and its entry has the name of its variant. From then on the worker keys requests
//! for the URL by the values of these headers, so that each variant has its own entry. Requests for the first
//! variant, the plain one, still use the plain key. A worker that does not know yet that the URL varies finds the
//! plain entry, and learns from it.
//!
//! The headers that the policy lists are in every key. The origin gets exactly the values that the key has.

use std::borrow::Cow;
use std::rc::Rc;

use crate::freshness::UncacheableReason;
use crate::http::accept_encoding::weight_of;
use crate::http::syntax::field_value::{FieldValue, JoinedValue};
use crate::key::CanonicalTarget;
use crate::key::qualifiers::{self, qualifiers};
use crate::policy::sections::known_headers;
use crate::policy::{Cookies, Policy, forward_header};

/// The header that selects a content coding. The key has only the policy's codings that the header accepts, so there
/// are few different values.
pub const ACCEPT_ENCODING: &str = "accept-encoding";
/// The value in a key of an `Accept-Encoding` that accepts no coding.
const IDENTITY: &str = "identity";

/// The header with a client's credentials, which no key has.
const AUTHORIZATION: &str = "authorization";

/// Names of request headers that select among the responses of a URL: in lower case, sorted, without duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VaryNames(Rc<str>);

impl VaryNames {
    fn of(mut names: Vec<Cow<'_, str>>) -> Self {
        names.sort_unstable();
        names.dedup();
        Self(names.join(",").into())
    }

    /// Reads the text that [`VaryNames::as_str`] returns.
    pub fn parse(text: &str) -> Self {
        Self::of(members(text).map(Cow::Owned).collect())
    }

    /// The names that `key` has beyond `plain`, the plain key of its URL; `None` if it is not the key of a variant.
    pub fn beyond(plain: &str, key: &str) -> Option<Self> {
        let variant = variant_of(plain, key).filter(|variant| !variant.is_empty())?;
        let names = variant.split(';').map(|pair| {
            let (name, _) = qualifiers::parse(pair)?;
            header_of(&name).map(Cow::Owned)
        });
        names.collect::<Option<Vec<_>>>().map(Self::of)
    }

    /// The names with commas between them.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether responses differ by the credentials of their requests.
    pub fn has_credentials(&self) -> bool {
        self.iter().any(|name| name == AUTHORIZATION)
    }

    /// The names.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split(',').filter(|name| !name.is_empty())
    }
}

/// The request headers that later keys of the URL should have, by `vary`, the lines of the response's header joined by
/// commas, for a request under `key`. There are none if the key has all headers on which the response depends.
///
/// A header makes no difference if no cacheable request sends it to the origin, or if every key has it.
/// `Accept-Encoding` makes a difference only if it is sent to the origin and the key does not have its coding.
///
/// # Errors
/// [`UncacheableReason::Vary`] if the key cannot distinguish the response's variants, or the policy forbids a header;
/// [`UncacheableReason::UnreadableHeader`] if `vary` is not text, so that its headers are not known.
pub fn fit(
    policy: &Policy,
    key: &str,
    vary: Option<FieldValue<'_>>,
) -> Result<VaryNames, UncacheableReason> {
    let vary = vary.map(FieldValue::text).transpose()?.unwrap_or_default();
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
        // The response to a request with cookies is not shared, or the request loses its cookies.
        if name == "cookie" && !bucket && policy.request.cookies != Cookies::Ignore {
            continue;
        }
        if bucket || name == "*" || policy.vary.forbid.contains(&name) {
            return Err(UncacheableReason::Vary);
        }
        if forward_header(policy, true, &name) {
            needed.push(name);
        }
    }
    if needed.iter().all(|name| keyed.contains(name)) {
        return Ok(VaryNames::default());
    }
    let of = |names: &[String]| VaryNames::of(names.iter().map(Cow::from).collect());
    // If responses of one URL name different headers in `Vary`, the key has the union, up to `vary.max_headers`.
    let (alone, all) = (of(&needed), of(&[keyed, needed].concat()));
    [all, alone]
        .into_iter()
        .find(|names| names.iter().count() <= policy.vary.max_headers)
        .ok_or(UncacheableReason::Vary)
}

/// The request headers whose values are in `key`.
pub(crate) fn keyed_names(key: &str) -> Vec<String> {
    let named = |(name, _): (String, _)| header_of(&name);
    qualifiers(key).filter_map(named).collect()
}

/// The request header whose value a qualifier holds.
fn header_of(qualifier: &str) -> Option<String> {
    match qualifier.strip_prefix(qualifiers::VARY) {
        Some(header) => Some(header.to_owned()),
        None => (qualifier == qualifiers::CODING).then(|| ACCEPT_ENCODING.to_owned()),
    }
}

/// The qualifiers that `key` has beyond `plain`, the plain key of its URL; `None` if the key is not one of this URL.
pub fn variant_of<'a>(plain: &str, key: &'a str) -> Option<&'a str> {
    let rest = key.strip_prefix(plain)?;
    if rest.is_empty() {
        return Some(rest);
    }
    let separator = if plain.contains('#') { ';' } else { '#' };
    rest.strip_prefix(separator)
}

/// Whether `vary`, the lines of the header joined by commas, names `Authorization`, so that a response is for certain
/// credentials.
pub fn names_credentials(vary: Option<FieldValue<'_>>) -> bool {
    members_of(vary).any(|name| name.eq_ignore_ascii_case(AUTHORIZATION))
}

/// The request's [`SELECTORS`](crate::policy::sections::known_headers::SELECTORS) that are not in its `key`. `names`
/// are the names of the request's headers. Selectors that the policy forwards make no difference.
pub fn unkeyed_selectors<'a>(
    policy: &Policy,
    key: &str,
    names: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let selects = |name: &&str| {
        let listed = || policy.request.forward_headers.iter();
        known_headers::selects(name)
            && forward_header(policy, true, name)
            && !policy.key.has_header(name)
            && !listed().any(|listed| listed == name)
    };
    let mut selectors: Vec<_> = names.filter(selects).map(str::to_owned).collect();
    if !selectors.is_empty() {
        let keyed = keyed_names(key);
        selectors.retain(|name| !keyed.contains(name));
    }
    selectors
}

/// Whether `vary`, the lines of the header joined by commas, names all these headers.
pub fn names_all(vary: Option<FieldValue<'_>>, headers: &[String]) -> bool {
    let names =
        |header: &String| members_of(vary).any(|member| member.eq_ignore_ascii_case(header));
    headers.iter().all(names)
}

/// Whether the key has request headers that the origin's `Vary` has named, so that it is one of several variants.
pub fn is_of_variant(policy: &Policy, key: &str) -> bool {
    let learnt = |(name, _): (String, _)| {
        let header = name.strip_prefix(qualifiers::VARY);
        header.is_some_and(|header| !policy.key.has_header(header))
    };
    qualifiers(key).any(learnt)
}

/// The readable members of a list.
fn members_of(value: Option<FieldValue<'_>>) -> impl Iterator<Item = &str> {
    value.into_iter().flat_map(FieldValue::members).flatten()
}

fn members(vary: &str) -> impl Iterator<Item = String> {
    vary.split(',')
        .map(|member| member.trim().to_ascii_lowercase())
        .filter(|member| !member.is_empty())
}

/// The key of a variant of the URL with the plain key `plain`.
pub fn key_of_variant(plain: &str, variant: &str) -> String {
    let separator = if plain.contains('#') { ";" } else { "#" };
    [plain, separator, variant].concat()
}

/// Error for a request header that is too long for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderTooLong;

/// Adds the values of a request's headers to `target`, as qualifiers, for the headers in the policy's key. `value`
/// returns the lines of a header joined by commas.
///
/// # Errors
/// A value is longer than the policy allows.
pub fn qualify<'a>(
    policy: &Policy,
    target: &mut CanonicalTarget,
    value: impl Fn(&str) -> Option<JoinedValue<'a>>,
) -> Result<(), HeaderTooLong> {
    for name in &policy.key.headers {
        let value = value(name);
        let value = value.as_ref().map(JoinedValue::value);
        if is_usual(name, value) {
            continue;
        }
        let (qualifier, value) = qualifier(policy, name, value)?;
        target.qualify(&qualifier, value);
    }
    Ok(())
}

/// Adds the values of a request's headers to `target`, as qualifiers, for the headers that the URL is `known` to vary
/// with.
///
/// # Errors
/// A value is longer than the policy allows.
pub fn qualify_variant<'a>(
    policy: &Policy,
    target: &mut CanonicalTarget,
    known: &VaryNames,
    value: impl Fn(&str) -> Option<JoinedValue<'a>>,
) -> Result<(), HeaderTooLong> {
    for name in known.iter() {
        // The worker learned the header under an earlier policy, which did not decide about it.
        let decided = name == ACCEPT_ENCODING && policy.compression.enabled;
        if decided || policy.key.has_header(name) {
            continue;
        }
        let value = value(name);
        let value = value.as_ref().map(JoinedValue::value);
        let (qualifier, value) = qualifier(policy, name, value)?;
        target.qualify_variant(&qualifier, value);
    }
    Ok(())
}

/// The qualifier for a request header; the value may have any bytes.
fn qualifier(
    policy: &Policy,
    name: &str,
    value: Option<FieldValue<'_>>,
) -> Result<(String, Vec<u8>), HeaderTooLong> {
    if name == ACCEPT_ENCODING && !policy.compression.enabled {
        let codings = policy.compression.accepted(value);
        let codings = codings.unwrap_or_else(|| IDENTITY.to_owned());
        return Ok((qualifiers::CODING.to_owned(), codings.into()));
    }
    let value = if name == "accept" && !policy.vary.accept.is_empty() {
        Some(reduce_accept(&policy.vary.accept, value).into_bytes())
    } else {
        value.map(|value| normalize(name, value))
    };
    if value
        .as_ref()
        .is_some_and(|value| value.len() > policy.vary.max_value_bytes)
    {
        return Err(HeaderTooLong);
    }
    let qualifier = [qualifiers::VARY, name].concat();
    Ok((qualifier, keyed_value(value)))
}

/// Distinguishes a missing header from an empty one. No header contains a NUL.
fn keyed_value(value: Option<Vec<u8>>) -> Vec<u8> {
    match value {
        None => Vec::new(),
        Some(value) if value.is_empty() => vec![0],
        Some(value) => value,
    }
}

/// A request header that the origin gets, according to the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectingHeader {
    /// Its name.
    pub name: String,
    /// Its value; `None` if the request has no such header.
    pub value: Option<Vec<u8>>,
}

impl SelectingHeader {
    /// Whether a client's request selects the same variant: its lines of this name, joined by commas as `sent`, are
    /// the value in one of its spellings. A value that the policy has reduced is not a spelling of the whole value.
    pub fn is_asked_by(&self, sent: Option<FieldValue<'_>>) -> bool {
        let spelt = sent.map(|sent| normalize(&self.name, sent));
        self.value == spelt
    }
}

/// The codings of a key in the form that the origin gets.
fn with_spaces(codings: &[u8]) -> Vec<u8> {
    let codings: Vec<_> = codings.split(|byte| *byte == b',').collect();
    codings.join(&b", "[..])
}

/// Whether a header of the policy's key has its usual value, and adds nothing to the key: the header is missing, or
/// says that the client's connection has no TLS. For this reason most keys are plain paths.
fn is_usual(name: &str, value: Option<FieldValue<'_>>) -> bool {
    let is_http = |value: FieldValue<'_>| value.bytes().eq_ignore_ascii_case(b"http");
    value.is_none_or(|value| name == "x-forwarded-proto" && is_http(value))
}

/// The request headers by which `path` towards the store selects a variant.
pub fn selected(path: &str) -> impl Iterator<Item = SelectingHeader> {
    qualifiers(path).filter_map(|(name, value)| {
        if name == qualifiers::CODING {
            return Some(SelectingHeader {
                name: ACCEPT_ENCODING.to_owned(),
                value: (value != IDENTITY.as_bytes()).then(|| with_spaces(&value)),
            });
        }
        let name = name.strip_prefix(qualifiers::VARY)?.to_owned();
        let value = match value.as_slice() {
            b"" => None,
            b"\0" => Some(Vec::new()),
            _ => Some(value),
        };
        Some(SelectingHeader { name, value })
    })
}

/// Normalizes a value where all spellings are certain to mean the same (RFC 9111, 4.1): without white space around
/// the value, for content negotiation also without white space around separators, in lower case if case has no
/// meaning, and languages by their weight.
fn normalize(name: &str, value: FieldValue<'_>) -> Vec<u8> {
    let value = without_blanks(value.bytes());
    match name {
        "accept-language" => by_weight(&tighten(value).to_ascii_lowercase()),
        "accept-charset" | "x-forwarded-proto" => tighten(value).to_ascii_lowercase(),
        "accept" if !value.contains(&b'"') => tighten(value),
        _ => value.to_owned(),
    }
}

/// The value without the spaces and tabs around it, which are not part of it (RFC 9110, 5.5).
fn without_blanks(value: &[u8]) -> &[u8] {
    let is_inner = |byte: &u8| !matches!(byte, b' ' | b'\t');
    let first = value.iter().position(is_inner).unwrap_or(value.len());
    let end = value
        .iter()
        .rposition(is_inner)
        .map_or(first, |last| last + 1);
    value.get(first..end).unwrap_or_default()
}

/// The `listed` media types that `accept` names (RFC 9110, 12.5.1), followed by `*/*`. A wildcard names none of them:
/// browsers name the types that other clients may not support.
fn reduce_accept(listed: &[String], accept: Option<FieldValue<'_>>) -> String {
    let named = |media_type: &String| {
        members_of(accept).any(|member| {
            let name = member.split(';').next().unwrap_or_default().trim();
            name.eq_ignore_ascii_case(media_type)
                && weight_of(member).is_some_and(|weight| weight > 0)
        })
    };
    let mut reduced = String::new();
    for media_type in listed.iter().filter(|media_type| named(media_type)) {
        reduced.push_str(media_type);
        reduced.push(',');
    }
    reduced + "*/*"
}

/// The members of an `Accept-Language` (RFC 9110, 12.5.4), the preferred ones first. Members of equal weight stay in
/// their order, because servers take the first of them. A list with a member whose weight cannot be read is
/// unchanged.
fn by_weight(languages: &[u8]) -> Vec<u8> {
    let mut members: Vec<&[u8]> = languages.split(|byte| *byte == b',').collect();
    members.retain(|member| !member.is_empty());
    let weight = |member: &&[u8]| weight_of(FieldValue::new(member).text().ok()?);
    let weights: Option<Vec<_>> = members.iter().map(weight).collect();
    let Some(weights) = weights else {
        return languages.to_owned();
    };
    let mut weighed: Vec<_> = weights.into_iter().zip(members).collect();
    weighed.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let ordered: Vec<_> = weighed.into_iter().map(|(_, member)| member).collect();
    ordered.join(&b',')
}

/// Removes the white space around `,`, `;` and `=`.
fn tighten(value: &[u8]) -> Vec<u8> {
    let mut tight = Vec::with_capacity(value.len());
    let mut space = false;
    for &byte in value {
        match byte {
            b' ' | b'\t' => space = true,
            b',' | b';' | b'=' => {
                space = false;
                tight.push(byte);
            }
            _ => {
                let parted = matches!(tight.last(), Some(b',' | b';' | b'='));
                if std::mem::take(&mut space) && !parted {
                    tight.push(b' ');
                }
                tight.push(byte);
            }
        }
    }
    tight
}

/// The fields to add to the client's `Vary`, beside `already`: all of `vary`, with which the response was stored,
/// except the fields that make no difference in a bucket; and `Accept-Encoding` if the edge chooses a coding.
pub fn told(
    policy: &Policy,
    vary: Option<FieldValue<'_>>,
    already: Option<FieldValue<'_>>,
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
    let known = members_of(already).map(str::to_ascii_lowercase);
    let mut known: Vec<String> = known.collect();
    let mut told = Vec::new();
    let chosen = chooses_coding.then_some("Accept-Encoding");
    let stored = members_of(vary).filter(|name| !name.is_empty() && !ignored(name));
    for name in stored.chain(chosen) {
        let lower = name.to_ascii_lowercase();
        if !known.contains(&lower) && !known.iter().any(|known| known == "*") {
            told.push(name);
            known.push(lower);
        }
    }
    (!told.is_empty()).then(|| told.join(", "))
}
