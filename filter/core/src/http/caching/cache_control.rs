// SPDX-License-Identifier: Apache-2.0
//! The directives of a response's `Cache-Control`, or of a field in its place, that matter to a shared cache (RFC 9111, 5.2.2).

use crate::http::syntax::field_value::FieldValue;
use crate::http::syntax::structured_field;
use crate::http::syntax::structured_field::DictionaryMember;

/// Greatest number of seconds, which larger ones count as: what fits the 31 bits of RFC 9111, 1.2.2.
pub const MAX_DELTA_SECONDS: u64 = (1 << 31) - 1;

/// What the origin says about storing a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheControl {
    /// `no-store`.
    pub no_store: bool,
    /// `no-cache`, with or without a list of fields: the list narrows it, but need not be understood.
    pub no_cache: bool,
    /// `private`, with or without a list of fields.
    pub private: bool,
    /// `public`.
    pub public: bool,
    /// Seconds of `max-age`.
    pub max_age: Option<u64>,
    /// Seconds of `s-maxage`.
    pub s_maxage: Option<u64>,
    /// `must-understand`.
    pub must_understand: bool,
    /// `must-revalidate`.
    pub must_revalidate: bool,
    /// `proxy-revalidate`.
    pub proxy_revalidate: bool,
    /// Seconds of `stale-while-revalidate` (RFC 5861, 3).
    pub stale_while_revalidate: Option<u64>,
    /// Seconds of `stale-if-error` (RFC 5861, 4).
    pub stale_if_error: Option<u64>,
}

impl CacheControl {
    /// Reads the header, several lines of it joined by commas. Unknown directives do not count, and one that is no text
    /// takes no other along.
    ///
    /// A time that is not a number of seconds counts as 0, for its author wanted a limit. Of several
    /// times the first counts (RFC 9111, 4.2.1).
    pub fn parse<'a>(value: impl Into<FieldValue<'a>>) -> Self {
        let mut parsed = Self::default();
        for (name, argument) in directives(value.into()) {
            parsed.set(name, seconds(argument).unwrap_or(0));
        }
        parsed
    }

    /// Whether it says that a shared cache may keep the response for a time.
    pub fn allows_to_keep(&self) -> bool {
        let forbids = self.no_store || self.no_cache || self.private;
        !forbids && (self.public || self.lifetime().is_some_and(|seconds| seconds > 0))
    }

    /// Reads a targeted field, a dictionary of structured fields (RFC 9213, 2.1); `None` if it is none.
    ///
    /// A time of another type than an integer counts as 0, a directive that is false does not count.
    pub fn parse_targeted(text: &str) -> Option<Self> {
        let mut parsed = Self::default();
        for (name, member) in structured_field::parse(text)? {
            let seconds = match member {
                DictionaryMember::Boolean(false) => continue,
                DictionaryMember::Integer(seconds) => {
                    u64::try_from(seconds).map_or(0, |seconds| seconds.min(MAX_DELTA_SECONDS))
                }
                DictionaryMember::Boolean(true) | DictionaryMember::Other => 0,
            };
            parsed.set(name.as_bytes(), seconds);
        }
        Some(parsed)
    }

    /// Reads `Surrogate-Control` (Edge Architecture Specification, 2.2): like `Cache-Control`, but for
    /// `max-age=60+30`, after whose 60 seconds the response may be served stale for 30.
    pub fn parse_surrogate<'a>(value: impl Into<FieldValue<'a>>) -> Self {
        let mut parsed = Self::default();
        for (name, argument) in directives(value.into()) {
            let extended = argument.and_then(|argument| split_once(argument, b'+'));
            match extended.filter(|_| name.eq_ignore_ascii_case(b"max-age")) {
                Some((lifetime, extension)) => {
                    let extension = seconds(Some(extension)).unwrap_or(0);
                    parsed.set(name, seconds(Some(lifetime)).unwrap_or(0));
                    parsed.set(b"stale-while-revalidate", extension);
                    parsed.set(b"stale-if-error", extension);
                }
                None => parsed.set(name, seconds(argument).unwrap_or(0)),
            }
        }
        parsed
    }

    /// Seconds for which a shared cache may take the response for fresh (RFC 9111, 4.2.1).
    pub fn lifetime(&self) -> Option<u64> {
        self.s_maxage.or(self.max_age)
    }

    /// Whether a shared cache must never serve the response stale (RFC 9111, 4.2.4).
    ///
    /// `s-maxage` implies `proxy-revalidate` (5.2.2.10), so it forbids staleness even where
    /// `stale-while-revalidate` or `stale-if-error` stand beside it: RFC 5861 does not say that they
    /// overrule a prohibition, and Pingora reads it the same way. Varnish, nginx and some CDNs are
    /// laxer. An origin that wants both says `max-age` in a field of its own for the edge (RFC 9213).
    pub fn forbids_stale(&self) -> bool {
        self.must_revalidate || self.proxy_revalidate || self.no_cache || self.s_maxage.is_some()
    }

    /// Whether a shared cache may reuse a response to a request with `Authorization` (RFC 9111, 3.5).
    pub fn allows_authenticated(&self) -> bool {
        self.public || self.must_revalidate || self.s_maxage.is_some()
    }

    /// Whether the origin says by itself that the response is for all (RFC 9111, 5.2.2.9, 5.2.2.10).
    pub const fn is_for_all(&self) -> bool {
        self.public || self.s_maxage.is_some()
    }

    /// Takes a directive into account; `seconds` if it is one that has any.
    fn set(&mut self, name: &[u8], seconds: u64) {
        match name.to_ascii_lowercase().as_slice() {
            b"no-store" => self.no_store = true,
            b"no-cache" => self.no_cache = true,
            b"private" => self.private = true,
            b"public" => self.public = true,
            b"max-age" => _ = self.max_age.get_or_insert(seconds),
            b"s-maxage" => _ = self.s_maxage.get_or_insert(seconds),
            b"must-understand" => self.must_understand = true,
            b"must-revalidate" => self.must_revalidate = true,
            b"proxy-revalidate" => self.proxy_revalidate = true,
            b"stale-while-revalidate" => _ = self.stale_while_revalidate.get_or_insert(seconds),
            b"stale-if-error" => _ = self.stale_if_error.get_or_insert(seconds),
            _ => {}
        }
    }
}

/// The list with a space after each comma between directives, as lines are joined (RFC 9110, 5.3). Envoy joins them
/// without.
pub fn with_spaces(value: FieldValue<'_>) -> Vec<u8> {
    let mut spaced = Vec::with_capacity(value.bytes().len() + 8);
    let mut rest = value.bytes();
    let mut quotes = true;
    loop {
        let (directive, tail) = split_directive(rest, &mut quotes);
        spaced.extend(directive);
        match rest.get(directive.len()) {
            None => return spaced,
            Some(b',') if !matches!(tail.first(), None | Some(b' ' | b'\t')) => {
                spaced.extend(b", ");
            }
            Some(separator) => spaced.push(*separator),
        }
        rest = tail;
    }
}

/// The directives of a `Cache-Control`, with what stands behind their `=`.
pub(crate) fn directives(value: FieldValue<'_>) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
    let mut rest = value.bytes();
    let mut quotes = true;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (directive, tail) = split_directive(rest, &mut quotes);
        rest = tail;
        let directive = directive.trim_ascii();
        Some(match split_once(directive, b'=') {
            Some((name, argument)) => (name.trim_ascii_end(), Some(argument)),
            None => (directive, None),
        })
    })
}

/// What stands before and behind the first such byte.
fn split_once(bytes: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == separator)?;
    Some((bytes.get(..at)?, bytes.get(at + 1..)?))
}

/// Splits at the first comma outside a quoted string, or semicolon, which is no separator but taken for
/// one by origins that mean `private; max-age=60`. A quote that nothing closes is no quote, so it hides
/// no directive.
///
/// `quotes` says whether quotes are looked for. After one that nothing closes there is none that anything
/// closes, and to look for it again would take a time that grows with the square of their number.
fn split_directive<'a>(bytes: &'a [u8], quotes: &mut bool) -> (&'a [u8], &'a [u8]) {
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b',' | b';' => {
                let (directive, tail) = bytes.split_at_checked(at).unwrap_or((bytes, &[]));
                return (directive, tail.get(1..).unwrap_or_default());
            }
            b'"' if *quotes => match quoted_len(bytes.get(at..).unwrap_or_default()) {
                Some(length) => at += length,
                None => *quotes = false,
            },
            _ => at += 1,
        }
    }
    (bytes, &[])
}

/// Length of the quoted string (RFC 9110, 5.6.4) that starts here, both quotes included.
fn quoted_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Delta-seconds (RFC 9111, 1.2.2), also within quotes (5.2); `None` for anything else.
pub(crate) fn seconds(argument: Option<&[u8]>) -> Option<u64> {
    let argument = argument?;
    let digits = argument
        .strip_prefix(b"\"")
        .and_then(|argument| argument.strip_suffix(b"\""))
        .unwrap_or(argument);
    parse_delta_seconds(digits)
}

/// A number of seconds, at most [`MAX_DELTA_SECONDS`]; `None` for anything but digits.
pub(crate) fn parse_delta_seconds(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // Digits that are no u64 are too many of them.
    let number = FieldValue::new(digits).number().unwrap_or(u64::MAX);
    Some(number.min(MAX_DELTA_SECONDS))
}

#[cfg(test)]
mod tests;
