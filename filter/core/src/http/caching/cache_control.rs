// SPDX-License-Identifier: Apache-2.0
//! The directives of a response's `Cache-Control`, or of a field that replaces it, that matter to a shared cache (RFC
//! 9111, 5.2.2).

use crate::http::syntax::field_value::FieldValue;
use crate::http::syntax::structured_field;
use crate::http::syntax::structured_field::DictionaryMember;

/// Greatest number of seconds, the most that 31 bits hold (RFC 9111, 1.2.2). Larger numbers count as this one.
pub const MAX_DELTA_SECONDS: u64 = (1 << 31) - 1;

/// Directives of the origin about storing a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheControl {
    /// `no-store`.
    pub no_store: bool,
    /// `no-cache`, with or without a list of fields. The list narrows the directive, but a cache may ignore the list.
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
    /// Reads the header, whose lines are joined by commas. Unknown directives are ignored. A directive that is not
    /// text does not hide the other directives.
    ///
    /// A time that is not a number of seconds counts as 0, because the origin wanted a limit. If a time is repeated,
    /// the first one counts (RFC 9111, 4.2.1).
    pub fn parse<'a>(value: impl Into<FieldValue<'a>>) -> Self {
        let mut parsed = Self::default();
        for (name, argument) in directives(value.into()) {
            parsed.set(name, seconds(argument).unwrap_or(0));
        }
        parsed
    }

    /// Whether the directives allow a shared cache to keep the response for a time.
    pub fn allows_to_keep(&self) -> bool {
        let forbids = self.no_store || self.no_cache || self.private;
        !forbids && (self.public || self.lifetime().is_some_and(|seconds| seconds > 0))
    }

    /// Reads a targeted field, a dictionary of structured fields (RFC 9213, 2.1); `None` if the field is not a
    /// dictionary.
    ///
    /// A time that is not an integer counts as 0. A directive with the value false is ignored.
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

    /// Reads `Surrogate-Control` (Edge Architecture Specification, 2.2). The field is like `Cache-Control`, except
    /// `max-age=60+30`: after 60 seconds the response may be served stale for 30 seconds.
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

    /// Seconds for which a shared cache may treat the response as fresh (RFC 9111, 4.2.1).
    pub fn lifetime(&self) -> Option<u64> {
        self.s_maxage.or(self.max_age)
    }

    /// Whether a shared cache must never serve the response stale (RFC 9111, 4.2.4).
    ///
    /// `s-maxage` implies `proxy-revalidate` (5.2.2.10), so it forbids stale responses even beside
    /// `stale-while-revalidate` or `stale-if-error`. RFC 5861 does not say that these two overrule a prohibition, and
    /// Pingora reads it the same way. Varnish, nginx and some CDNs are laxer. An origin that wants both sends
    /// `max-age` in a targeted field for the edge (RFC 9213).
    pub fn forbids_stale(&self) -> bool {
        self.must_revalidate || self.proxy_revalidate || self.no_cache || self.s_maxage.is_some()
    }

    /// Whether a shared cache may reuse a response to a request with `Authorization` (RFC 9111, 3.5).
    pub fn allows_authenticated(&self) -> bool {
        self.public || self.must_revalidate || self.s_maxage.is_some()
    }

    /// Whether the origin says explicitly that the response is for all clients (RFC 9111, 5.2.2.9, 5.2.2.10).
    pub const fn is_for_all(&self) -> bool {
        self.public || self.s_maxage.is_some()
    }

    /// Sets a directive; `seconds` is used only if the directive has a time.
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

/// Returns the list with a space after each comma between directives, as in joined lines (RFC 9110, 5.3). Envoy joins
/// lines without the space.
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

/// Iterates over the directives of a `Cache-Control`, each with the text behind its `=`.
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

/// Splits at the first `separator` and drops it.
fn split_once(bytes: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == separator)?;
    Some((bytes.get(..at)?, bytes.get(at + 1..)?))
}

/// Splits at the first comma outside a quoted string. A semicolon also splits: it is not a separator, but some
/// origins use it as one (`private; max-age=60`). A quote without a closing quote is an ordinary character, so it
/// does not hide a directive.
///
/// `quotes` says whether to look for quoted strings. After one quote without a closing quote, no later quote can have
/// one either. Searching again at each later quote would take time that grows with the square of their number.
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

/// Length of the quoted string (RFC 9110, 5.6.4) at the start of `bytes`, with both quotes.
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

/// Parses delta-seconds (RFC 9111, 1.2.2), also within quotes (5.2); `None` for anything else.
pub(crate) fn seconds(argument: Option<&[u8]>) -> Option<u64> {
    let argument = argument?;
    let digits = argument
        .strip_prefix(b"\"")
        .and_then(|argument| argument.strip_suffix(b"\""))
        .unwrap_or(argument);
    parse_delta_seconds(digits)
}

/// Parses a number of seconds, at most [`MAX_DELTA_SECONDS`]; `None` for anything but digits.
pub(crate) fn parse_delta_seconds(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // Digits that do not fit a u64 are a greater number.
    let number = FieldValue::new(digits).number().unwrap_or(u64::MAX);
    Some(number.min(MAX_DELTA_SECONDS))
}

#[cfg(test)]
mod tests;
