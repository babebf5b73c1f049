// SPDX-License-Identifier: Apache-2.0
//! The query string: its parameters, their order and their spelling.
//!
//! Only `&` separates parameters. They are compared by their decoded name, so that `%75tm_source` is `utm_source`.

use std::borrow::Cow;

use crate::http::url::escaping::{
    Escaping, check_raw, push_escape, push_strict, split_escape, unescaped,
};
use crate::http::url::rejection::Rejection;
use crate::policy::{NamePattern, QueryRule};

/// Appends `?` and the part of the query that `rule` keeps, or nothing; `query` is the text behind the `?`.
///
/// A bucket ([`Escaping::Strict`]) gets only parameters on an allow-list, in S3's spelling, because S3 reads an open
/// set of names as sub-resources (`acl`, `versions`, `uploads`…). The other rules keep nothing for a bucket. For any
/// other origin the kept parameters keep their bytes, except bytes beyond ASCII, which are encoded.
pub(crate) fn append_query(
    out: &mut Vec<u8>,
    query: &[u8],
    rule: &QueryRule,
    escaping: Escaping,
) -> Result<(), Rejection> {
    query.iter().try_for_each(|&byte| check_raw(byte))?;
    match (rule, escaping) {
        (QueryRule::Drop { allow }, _) if allow.is_empty() => Ok(()),
        (QueryRule::Drop { allow }, Escaping::Strict) => append_allowed_strict(out, query, allow),
        (QueryRule::Drop { allow }, Escaping::Unreserved) => {
            append_sorted(out, query, |name| {
                allow.iter().any(|allowed| allowed.as_bytes() == name)
            });
            Ok(())
        }
        (QueryRule::Keep { .. } | QueryRule::Sort { .. }, Escaping::Strict) => Ok(()),
        (QueryRule::Keep { remove }, Escaping::Unreserved) => {
            append_kept(out, query, remove);
            Ok(())
        }
        (QueryRule::Sort { remove }, Escaping::Unreserved) => {
            append_sorted(out, query, |name| !is_removed(remove, name));
            Ok(())
        }
    }
}

fn append_kept(out: &mut Vec<u8>, query: &[u8], remove: &[NamePattern]) {
    let start = out.len();
    let mut some_removed = false;
    for part in query.split(|&byte| byte == b'&') {
        if !remove.is_empty() && is_removed(remove, &decoded_name(part)) {
            some_removed = true;
        } else {
            append_part(out, start, part);
        }
    }
    // An empty query is the client's only if nothing was removed from it.
    if some_removed && out.len() == start + 1 {
        out.truncate(start);
    }
}

fn append_sorted(out: &mut Vec<u8>, query: &[u8], stays: impl Fn(&[u8]) -> bool) {
    let start = out.len();
    let mut parts: Vec<_> = query
        .split(|&byte| byte == b'&')
        .filter(|part| !part.is_empty())
        .map(|part| (decoded_name(part), part))
        .filter(|(name, _)| stays(name))
        .collect();
    parts.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (_, part) in parts {
        append_part(out, start, part);
    }
}

/// Appends the allowed parameters. Name and value are decoded once, with `+` for a space as S3, MinIO and Envoy's
/// signer read it, and encoded again. An empty value is written like a missing one.
fn append_allowed_strict(
    out: &mut Vec<u8>,
    query: &[u8],
    allow: &[String],
) -> Result<(), Rejection> {
    let start = out.len();
    let mut parts = Vec::new();
    for part in query.split(|&byte| byte == b'&') {
        let (name, value) = split_part(part);
        // A name with a broken escape is not on the list.
        let Ok(name) = decode_form(name) else {
            continue;
        };
        if allow.iter().any(|allowed| allowed.as_bytes() == name) {
            parts.push((name, decode_form(value)?));
        }
    }
    parts.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (name, value) in parts {
        out.push(if out.len() == start { b'?' } else { b'&' });
        name.iter().for_each(|&byte| push_strict(out, byte));
        if !value.is_empty() {
            out.push(b'=');
            value.iter().for_each(|&byte| push_strict(out, byte));
        }
    }
    Ok(())
}

fn append_part(out: &mut Vec<u8>, start: usize, part: &[u8]) {
    out.push(if out.len() == start { b'?' } else { b'&' });
    for &byte in part {
        if byte.is_ascii() {
            out.push(byte);
        } else {
            push_escape(out, byte);
        }
    }
}

fn is_removed(remove: &[NamePattern], name: &[u8]) -> bool {
    let name = String::from_utf8_lossy(name);
    remove.iter().any(|pattern| pattern.matches(&name))
}

fn split_part(part: &[u8]) -> (&[u8], &[u8]) {
    let mut halves = part.splitn(2, |&byte| byte == b'=');
    (
        halves.next().unwrap_or_default(),
        halves.next().unwrap_or_default(),
    )
}

/// The name of a parameter; broken escapes are unchanged.
pub(crate) fn decoded_name(part: &[u8]) -> Cow<'_, [u8]> {
    let (name, _) = split_part(part);
    if !name.contains(&b'%') {
        return Cow::Borrowed(name);
    }
    Cow::Owned(unescaped(name).collect())
}

fn decode_form(text: &[u8]) -> Result<Vec<u8>, Rejection> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        let (byte, tail) = match byte {
            b'%' => split_escape(tail).ok_or(Rejection::BrokenEscape)?,
            b'+' => (b' ', tail),
            _ => (byte, tail),
        };
        if byte == 0 {
            return Err(Rejection::NulByte);
        }
        decoded.push(byte);
        rest = tail;
    }
    match std::str::from_utf8(&decoded) {
        Ok(_) => Ok(decoded),
        Err(_) => Err(Rejection::InvalidUtf8),
    }
}

#[cfg(test)]
mod tests;
