// SPDX-License-Identifier: Apache-2.0
//! Percent-escapes and dot segments of a path, byte by byte: the escapes that are decoded, kept or rejected.
//!
//! A path is written segment by segment into the output, each as `/segment` in its final spelling. So a dot segment
//! is recognized in any spelling, and removing the last segment is a truncation. In the output, `%` occurs only in
//! front of two upper-case hexadecimal digits, and `/` only between segments.

use crate::http::url::rejection::Rejection;

/// Kind of escapes that are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escaping {
    /// All escapes, once. Then every byte except the unreserved ones and `/` is encoded, as S3 signs it. The decoded
    /// bytes are an object key, so `%2F` is rejected and the key must be UTF-8.
    Strict,
    /// Escapes of unreserved bytes only, the one change that RFC 3986, 6.2.2 allows for any origin. Other escapes are
    /// kept, with digits in upper case. `\` and bytes beyond ASCII are encoded, because a URI must not contain them
    /// and parsers disagree about them.
    Unreserved,
}

/// Whether a byte is unreserved (RFC 3986, 2.3).
pub(crate) fn is_unreserved(byte: u8) -> bool {
    matches!(byte, b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~')
}

/// Rejects a byte that must not appear raw in a request target.
pub(crate) fn check_raw(byte: u8) -> Result<(), Rejection> {
    match byte {
        0..=b' ' | 0x7f => Err(Rejection::ControlByte),
        b'#' => Err(Rejection::Fragment),
        _ => Ok(()),
    }
}

/// Appends `%XX`.
pub(crate) fn push_escape(out: &mut Vec<u8>, byte: u8) {
    let digit = |nibble: u8| {
        if nibble < 10 {
            b'0' + nibble
        } else {
            b'A' + nibble - 10
        }
    };
    out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 0x0f)]);
}

/// Appends a decoded byte in S3's spelling.
pub(crate) fn push_strict(out: &mut Vec<u8>, byte: u8) {
    if is_unreserved(byte) || byte == b'/' {
        out.push(byte);
    } else {
        push_escape(out, byte);
    }
}

/// Returns an object key, or the beginning of one, in the spelling of a path towards S3.
pub fn escape_key(key: &str) -> String {
    let mut escaped = Vec::with_capacity(key.len());
    key.bytes().for_each(|byte| push_strict(&mut escaped, byte));
    String::from_utf8(escaped).unwrap_or_default()
}

/// Appends part of a path in its canonical spelling; `None` for a broken escape, or for an escape of a byte that a
/// path cannot contain.
pub(crate) fn append_literal(out: &mut Vec<u8>, part: &[u8], escaping: Escaping) -> Option<()> {
    let mut rest = part;
    while let Some((&byte, tail)) = rest.split_first() {
        let (decoded, tail) = match byte {
            b'%' => split_escape(tail)?,
            _ => (byte, tail),
        };
        let escaped = byte == b'%';
        rest = tail;
        if decoded == 0 || (escaped && decoded == b'/' && escaping == Escaping::Strict) {
            return None;
        }
        if (!escaped && (decoded == b'/' || escaping.is_clean(decoded))) || is_unreserved(decoded) {
            out.push(decoded);
        } else {
            push_escape(out, decoded);
        }
    }
    Some(())
}

/// Decodes an escape; `rest` starts after the `%`.
pub(crate) fn split_escape(rest: &[u8]) -> Option<(u8, &[u8])> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    match rest {
        [high, low, tail @ ..] => Some(((digit(*high)? << 4 | digit(*low)?) as u8, tail)),
        _ => None,
    }
}

/// Decodes the escapes of a text. A broken escape is kept unchanged.
pub fn unescaped(text: &[u8]) -> impl Iterator<Item = u8> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (&byte, tail) = rest.split_first()?;
        let escape = Some(tail).filter(|_| byte == b'%').and_then(split_escape);
        let (byte, tail) = escape.unwrap_or((byte, tail));
        rest = tail;
        Some(byte)
    })
}

/// Whether bytes are UTF-8. The check needs no buffer for all of them.
fn are_utf8(mut bytes: impl Iterator<Item = u8>) -> bool {
    while let Some(lead) = bytes.next() {
        if lead.is_ascii() {
            continue;
        }
        let mut character = [lead, 0, 0, 0];
        let Some(character) = character.get_mut(..lead.leading_ones() as usize) else {
            return false;
        };
        for (slot, byte) in character.iter_mut().skip(1).zip(&mut bytes) {
            *slot = byte;
        }
        if std::str::from_utf8(character).is_err() {
            return false;
        }
    }
    true
}

/// Length of an output of this module after decoding.
pub(crate) fn decoded_len(escaped: &[u8]) -> usize {
    escaped.len() - 2 * escaped.iter().filter(|&&byte| byte == b'%').count()
}

/// Appends the canonical spelling of `path`, which must start with `/`.
///
/// With `merge_slashes`, empty segments are removed before dot segments are resolved, so `/a//../b` becomes `/b`.
/// Without it, empty segments are ordinary segments, so it becomes `/a/b` (RFC 3986, 5.2.4).
///
/// `..` at the root is rejected, although RFC 3986 would ignore it. Clients resolve it before they send a request, so
/// only a probing request contains it. A proxy that judged the path in front of the edge may also have understood it
/// differently.
pub(crate) fn append_path(
    out: &mut Vec<u8>,
    path: &[u8],
    escaping: Escaping,
    merge_slashes: bool,
) -> Result<(), Rejection> {
    let root = out.len();
    let mut rest = Some(path.strip_prefix(b"/").ok_or(Rejection::RequestTarget)?);
    while let Some(path) = rest {
        let before = out.len();
        out.push(b'/');
        let segment = append_segment(out, path, escaping)?;
        let is_last = segment.next.is_none();
        match out.get(before + 1..).unwrap_or_default() {
            b"" if merge_slashes && !is_last => out.truncate(before),
            b"." => leave_directory(out, before, is_last),
            b".." => {
                let parent = out
                    .get(root..before)
                    .and_then(|kept| kept.iter().rposition(|&byte| byte == b'/'))
                    .ok_or(Rejection::AboveRoot)?;
                leave_directory(out, root + parent, is_last);
            }
            written if segment.hides_dots(written, escaping) => {
                return Err(Rejection::HiddenDotSegment);
            }
            _ => {}
        }
        rest = segment.next;
    }
    Ok(())
}

/// Removes everything from `end` on. If the dot segment ends the path, a `/` is appended, because the result is a
/// directory.
fn leave_directory(out: &mut Vec<u8>, end: usize, is_last: bool) {
    out.truncate(end);
    if is_last {
        out.push(b'/');
    }
}

struct Segment<'a> {
    /// Rest of the path behind the segment's `/`; `None` for the last segment.
    next: Option<&'a [u8]>,
    /// Whether the segment contains a byte that other parsers treat as a separator.
    hides_separator: bool,
}

impl Segment<'_> {
    /// Whether the segment, as `written`, contains text that other parsers may treat as a dot segment. A bucket
    /// treats a parameter as a part of the key, so parameters matter for other origins only.
    fn hides_dots(&self, written: &[u8], escaping: Escaping) -> bool {
        let parameters = escaping == Escaping::Unreserved;
        let may_hide = self.hides_separator || (parameters && written.starts_with(b"."));
        may_hide && hides_dot_segment(written, parameters)
    }
}

/// Appends the first segment of `rest`, the remaining path.
fn append_segment<'a>(
    out: &mut Vec<u8>,
    mut rest: &'a [u8],
    escaping: Escaping,
) -> Result<Segment<'a>, Rejection> {
    let start = out.len();
    let (mut hides_separator, mut is_ascii) = (false, true);
    let next = loop {
        let clean = rest
            .iter()
            .position(|&byte| !escaping.is_clean(byte))
            .unwrap_or(rest.len());
        let (run, tail) = rest.split_at(clean);
        out.extend_from_slice(run);
        let Some((&raw, tail)) = tail.split_first() else {
            break None;
        };
        let (decoded, tail) = match raw {
            b'/' => break Some(tail),
            b'%' => split_escape(tail).ok_or(Rejection::BrokenEscape)?,
            _ => (check_raw(raw).map(|()| raw)?, tail),
        };
        rest = tail;
        match decoded {
            0 => return Err(Rejection::NulByte),
            b'/' if escaping == Escaping::Strict => return Err(Rejection::EncodedSlash),
            b'/' | b'\\' => hides_separator = true,
            _ => is_ascii &= decoded.is_ascii(),
        }
        if is_unreserved(decoded) {
            out.push(decoded);
        } else {
            push_escape(out, decoded);
        }
    };
    let written = out.get(start..).unwrap_or_default();
    if !is_ascii && escaping == Escaping::Strict && !are_utf8(unescaped(written)) {
        return Err(Rejection::InvalidUtf8);
    }
    Ok(Segment {
        next,
        hides_separator,
    })
}

impl Escaping {
    /// Whether a raw byte is copied unchanged.
    fn is_clean(self, byte: u8) -> bool {
        match self {
            Self::Strict => is_unreserved(byte),
            Self::Unreserved => {
                matches!(byte, b'!'..=b'~') && !matches!(byte, b'#' | b'%' | b'/' | b'\\')
            }
        }
    }
}

/// Whether an output segment contains a dot segment if `%2F` and `%5C` are read as separators. With `parameters`, the
/// text behind a `;` is not read as part of a segment's name, as in servlet containers.
fn hides_dot_segment(mut segment: &[u8], parameters: bool) -> bool {
    loop {
        let cut = segment
            .windows(3)
            .position(|window| matches!(window, b"%2F" | b"%5C"));
        let piece = cut.and_then(|cut| segment.get(..cut)).unwrap_or(segment);
        if is_dot_segment(piece, parameters) {
            return true;
        }
        match cut.and_then(|cut| segment.get(cut + 3..)) {
            Some(tail) => segment = tail,
            None => return false,
        }
    }
}

/// Whether a segment is a dot segment. With `parameters`, also whether it is one without its parameters.
fn is_dot_segment(segment: &[u8], parameters: bool) -> bool {
    let dots = segment.iter().take_while(|&&byte| byte == b'.').count();
    let rest = segment.get(dots..).unwrap_or_default();
    let is_parameter = parameters && (rest.starts_with(b";") || rest.starts_with(b"%3B"));
    matches!(dots, 1 | 2) && (rest.is_empty() || is_parameter)
}

/// The text that is encoded as in a form, as servers of S3 encode keys. `None` if it is not UTF-8.
pub fn form_decoded(text: &str) -> Option<String> {
    let text = text.replace('+', " ");
    String::from_utf8(unescaped(text.as_bytes()).collect()).ok()
}

#[cfg(test)]
mod tests {
    use crate::http::url::escaping::*;

    #[test]
    fn utf8_is_what_the_standard_library_takes_for_it() {
        // Each lead byte, with the edges of all continuations.
        let edges = [0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff];
        let mut text = Vec::new();
        for lead in 0..=0xff {
            for second in edges {
                for third in edges {
                    for fourth in edges {
                        for len in 1..=4 {
                            text.clear();
                            text.extend([lead, second, third, fourth].iter().take(len));
                            let expected = std::str::from_utf8(&text).is_ok();
                            assert_eq!(are_utf8(text.iter().copied()), expected, "{text:02x?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn every_byte_has_one_strict_spelling() {
        for byte in 0..=u8::MAX {
            let mut spelled = Vec::new();
            push_strict(&mut spelled, byte);
            let expected = match byte {
                b'/' | b'-' | b'.' | b'_' | b'~' => (byte as char).to_string(),
                _ if byte.is_ascii_alphanumeric() => (byte as char).to_string(),
                _ => format!("%{byte:02X}"),
            };
            assert_eq!(String::from_utf8(spelled).unwrap(), expected);
        }
    }

    #[test]
    fn a_key_is_spelled_as_s3_signs_it() {
        assert_eq!(
            escape_key("a b/c+d!/é\\%2e"),
            "a%20b/c%2Bd%21/%C3%A9%5C%252e"
        );
    }

    #[test]
    fn decoded_length_counts_an_escape_as_one_byte() {
        for (escaped, expected) in [("", 0), ("/abc", 4), ("/%C3%A9", 3), ("%20%20", 2)] {
            assert_eq!(decoded_len(escaped.as_bytes()), expected, "{escaped}");
        }
    }
}
