// SPDX-License-Identifier: Apache-2.0
//! A reader of the XML that buckets send: elements and text. Anything else, such as a document type, is an error.

use std::borrow::Cow;

/// The deepest nesting of elements.
const MAX_DEPTH: usize = 8;

/// A part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// The start of an element. Its attributes are not read.
    Start(&'a str),
    /// The end of the innermost element.
    End,
    /// Text, with its references replaced.
    Text(Cow<'a, str>),
}

/// The rest of a document.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a str,
    open: Vec<&'a str>,
    /// Whether an element without content has started, whose end comes next.
    is_empty: bool,
    /// Whether the root element has started.
    has_begun: bool,
}

impl<'a> Reader<'a> {
    /// A reader of a whole document. `None` if it is not UTF-8.
    pub fn new(document: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(document).ok()?;
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let rest = match text.strip_prefix("<?xml") {
            Some(declaration) => declaration.split_once("?>")?.1,
            None => text,
        };
        Some(Self {
            rest,
            open: Vec::new(),
            is_empty: false,
            has_begun: false,
        })
    }

    /// The next part. `Ok(None)` at the end of a complete document.
    ///
    /// # Errors
    /// The document is not well-formed, or has parts that no bucket sends.
    pub fn next(&mut self) -> Result<Option<Token<'a>>, Malformed> {
        if self.is_empty {
            self.is_empty = false;
            self.open.pop();
            return Ok(Some(Token::End));
        }
        if self.open.is_empty() {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
            if self.rest.is_empty() && self.has_begun {
                return Ok(None);
            }
        }
        let Some(tag) = self.rest.strip_prefix('<') else {
            return self.text().map(Some);
        };
        let (tag, rest) = tag.split_once('>').ok_or(Malformed)?;
        self.rest = rest;
        match tag.strip_prefix('/') {
            Some(name) => self.end(name.trim_end()),
            None => self.start(tag),
        }
        .map(Some)
    }

    fn text(&mut self) -> Result<Token<'a>, Malformed> {
        let end = self.rest.find('<').ok_or(Malformed)?;
        let (text, rest) = self.rest.split_at(end);
        if self.open.is_empty() {
            return Err(Malformed);
        }
        self.rest = rest;
        Ok(Token::Text(replace_references(text)?))
    }

    fn end(&mut self, name: &str) -> Result<Token<'a>, Malformed> {
        match self.open.pop() {
            Some(open) if open == name => Ok(Token::End),
            _ => Err(Malformed),
        }
    }

    fn start(&mut self, tag: &'a str) -> Result<Token<'a>, Malformed> {
        let whole = tag.strip_suffix('/');
        self.is_empty = whole.is_some();
        let name = whole.unwrap_or(tag).split([' ', '\t', '\r', '\n']).next();
        let name = name.filter(|name| is_name(name)).ok_or(Malformed)?;
        let is_second_root = self.open.is_empty() && self.has_begun;
        if is_second_root || self.open.len() == MAX_DEPTH {
            return Err(Malformed);
        }
        self.has_begun = true;
        self.open.push(name);
        Ok(Token::Start(name))
    }
}

/// A document that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Whether a tag has a plain name. `!` and `?` begin parts that are not elements.
fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'_' | b'-' | b'.');
    !name.is_empty() && name.bytes().all(fits)
}

/// The text with its references replaced by the characters that they stand for.
fn replace_references(text: &str) -> Result<Cow<'_, str>, Malformed> {
    if !text.contains('&') {
        return Ok(text.into());
    }
    let mut parts = text.split('&');
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (reference, rest) = part.split_once(';').ok_or(Malformed)?;
        replaced.push(character(reference).ok_or(Malformed)?);
        replaced.push_str(rest);
    }
    Ok(replaced.into())
}

fn character(reference: &str) -> Option<char> {
    let number = match reference {
        "amp" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        _ => reference.strip_prefix('#')?,
    };
    let (digits, radix) = match number.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = is_number.then(|| u32::from_str_radix(digits, radix).ok());
    number.flatten().and_then(char::from_u32)
}
