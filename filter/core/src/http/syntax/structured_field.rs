// SPDX-License-Identifier: Apache-2.0
//! Dictionaries of structured fields (RFC 9651, 4.2.2) for cache directives, and lists of strings (4.2.1) for cache
//! groups. The whole syntax of dictionaries is checked, but only booleans and integers are distinguished from other
//! types.

/// Value of a member of a dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DictionaryMember {
    /// `name`, `name=?1` or `name=?0`.
    Boolean(bool),
    /// `name=60`.
    Integer(i64),
    /// Any other type: a string, a token, a list, …
    Other,
}

/// Returns the members of a dictionary in the order of their first appearance, each with its last value. Parameters
/// are checked and dropped. `None` if `text` is not a dictionary.
pub fn parse(text: &str) -> Option<Vec<(&str, DictionaryMember)>> {
    let mut members: Vec<(&str, DictionaryMember)> = Vec::new();
    each_member(text, |input| {
        let key = input.key()?;
        let member = match input.take(b'=') {
            true => input.value()?,
            false => DictionaryMember::Boolean(true),
        };
        match members.iter_mut().find(|(known, _)| *known == key) {
            Some(known) => known.1 = member,
            None => members.push((key, member)),
        }
        Some(())
    })?;
    Some(members)
}

/// Returns the members of a list of strings. Parameters are checked and dropped. `None` if `text` is not such a list.
pub fn strings(text: &str) -> Option<Vec<String>> {
    let mut members = Vec::new();
    each_member(text, |input| {
        members.push(input.text()?);
        Some(())
    })?;
    Some(members)
}

/// Reads the members of a list or dictionary. `read` reads each member up to its parameters.
fn each_member<'a>(
    text: &'a str,
    mut read: impl FnMut(&mut FieldInput<'a>) -> Option<()>,
) -> Option<()> {
    let rest = text.trim_matches(' ');
    let mut input = FieldInput { rest };
    let mut is_last = rest.is_empty();
    while !is_last {
        read(&mut input)?;
        input.parameters()?;
        is_last = input.is_last()?;
    }
    Some(())
}

struct FieldInput<'a> {
    rest: &'a str,
}

impl<'a> FieldInput<'a> {
    fn peek(&self) -> Option<u8> {
        self.rest.bytes().next()
    }

    fn take(&mut self, byte: u8) -> bool {
        let taken = self.peek() == Some(byte);
        if taken {
            self.run(1);
        }
        taken
    }

    fn skip(&mut self, bytes: &[u8]) {
        self.run_of(|byte| bytes.contains(&byte));
    }

    /// Takes the next `length` bytes, which must be ASCII.
    fn run(&mut self, length: usize) -> &'a str {
        let (run, rest) = self
            .rest
            .split_at_checked(length)
            .unwrap_or((self.rest, ""));
        self.rest = rest;
        run
    }

    fn run_of(&mut self, belongs: impl Fn(u8) -> bool) -> &'a str {
        let length = self.rest.bytes().take_while(|&byte| belongs(byte)).count();
        self.run(length)
    }

    /// Takes a key (RFC 9651, 4.2.3.3).
    fn key(&mut self) -> Option<&'a str> {
        matches!(self.peek()?, b'a'..=b'z' | b'*').then(|| {
            self.run_of(
                |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*'),
            )
        })
    }

    fn value(&mut self) -> Option<DictionaryMember> {
        if self.take(b'(') {
            self.inner_list().map(|()| DictionaryMember::Other)
        } else {
            self.bare_item()
        }
    }

    /// Takes an inner list (RFC 9651, 4.2.1.2) behind its opening parenthesis.
    fn inner_list(&mut self) -> Option<()> {
        loop {
            self.skip(b" ");
            if self.take(b')') {
                return Some(());
            }
            self.bare_item()?;
            self.parameters()?;
            if !matches!(self.peek()?, b' ' | b')') {
                return None;
            }
        }
    }

    /// Skips to the next member of a list or dictionary; true at the end. `None` if something else follows.
    fn is_last(&mut self) -> Option<bool> {
        self.skip(b" \t");
        if self.rest.is_empty() {
            return Some(true);
        }
        if !self.take(b',') {
            return None;
        }
        self.skip(b" \t");
        Some(false)
    }

    fn parameters(&mut self) -> Option<()> {
        while self.take(b';') {
            self.skip(b" ");
            self.key()?;
            if self.take(b'=') {
                self.bare_item()?;
            }
        }
        Some(())
    }

    fn bare_item(&mut self) -> Option<DictionaryMember> {
        match self.peek()? {
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.string(),
            b'a'..=b'z' | b'A'..=b'Z' | b'*' => self.token(),
            b'?' => self.boolean(),
            b':' => self.bytes(),
            b'@' => self.date(),
            b'%' => self.display_string(),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<DictionaryMember> {
        let negative = self.take(b'-');
        let whole = self.run_of(|byte| byte.is_ascii_digit());
        if self.take(b'.') {
            let fraction = self.run_of(|byte| byte.is_ascii_digit());
            let valid = (1..=12).contains(&whole.len()) && (1..=3).contains(&fraction.len());
            return valid.then_some(DictionaryMember::Other);
        }
        if !(1..=15).contains(&whole.len()) {
            return None;
        }
        let number: i64 = whole.parse().ok()?;
        Some(DictionaryMember::Integer(if negative {
            -number
        } else {
            number
        }))
    }

    fn string(&mut self) -> Option<DictionaryMember> {
        self.take(b'"');
        loop {
            self.run_of(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'));
            if self.take(b'"') {
                return Some(DictionaryMember::Other);
            }
            if !self.take(b'\\') || !(self.take(b'"') || self.take(b'\\')) {
                return None;
            }
        }
    }

    /// Takes a string and returns its text, without quotes and escapes.
    fn text(&mut self) -> Option<String> {
        let quoted = self.rest;
        if self.peek()? != b'"' {
            return None;
        }
        self.string()?;
        let length = quoted.len().checked_sub(self.rest.len())?;
        let inner = quoted.get(1..length.checked_sub(1)?)?;
        let mut text = String::with_capacity(inner.len());
        let mut letters = inner.chars();
        while let Some(letter) = letters.next() {
            text.extend(if letter == '\\' {
                letters.next()
            } else {
                Some(letter)
            });
        }
        Some(text)
    }

    fn token(&mut self) -> Option<DictionaryMember> {
        self.run_of(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte));
        Some(DictionaryMember::Other)
    }

    fn boolean(&mut self) -> Option<DictionaryMember> {
        match self.run(2) {
            "?1" => Some(DictionaryMember::Boolean(true)),
            "?0" => Some(DictionaryMember::Boolean(false)),
            _ => None,
        }
    }

    /// Takes a byte sequence (RFC 9651, 4.2.7), whose padding may be missing.
    fn bytes(&mut self) -> Option<DictionaryMember> {
        self.take(b':');
        self.run_of(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte));
        self.run_of(|byte| byte == b'=');
        self.take(b':').then_some(DictionaryMember::Other)
    }

    fn date(&mut self) -> Option<DictionaryMember> {
        self.take(b'@');
        matches!(self.number()?, DictionaryMember::Integer(_)).then_some(DictionaryMember::Other)
    }

    /// Takes a display string (RFC 9651, 4.2.10): ASCII, and UTF-8 whose bytes are escaped in lower case.
    fn display_string(&mut self) -> Option<DictionaryMember> {
        self.take(b'%');
        if !self.take(b'"') {
            return None;
        }
        let mut text = Vec::new();
        loop {
            let plain = |byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'%');
            text.extend_from_slice(self.run_of(plain).as_bytes());
            if self.take(b'"') {
                return str::from_utf8(&text).ok().map(|_| DictionaryMember::Other);
            }
            if !self.take(b'%') {
                return None;
            }
            text.push(self.escaped_byte()?);
        }
    }

    /// Takes two hexadecimal digits in lower case.
    fn escaped_byte(&mut self) -> Option<u8> {
        let digits = self.rest.get(..2)?;
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if !digits.bytes().all(is_digit) {
            return None;
        }
        self.run(2);
        u8::from_str_radix(digits, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use crate::http::syntax::structured_field::*;
    use proptest::prelude::*;

    #[test]
    fn members_are_read() {
        let yes = DictionaryMember::Boolean(true);
        let rows: [(&str, &[(&str, DictionaryMember)]); 17] = [
            ("", &[]),
            ("  ", &[]),
            ("no-store", &[("no-store", yes)]),
            (" a ,\tb ", &[("a", yes), ("b", yes)]),
            ("a=60", &[("a", DictionaryMember::Integer(60))]),
            ("a=-1", &[("a", DictionaryMember::Integer(-1))]),
            (
                "a=999999999999999",
                &[("a", DictionaryMember::Integer(999_999_999_999_999))],
            ),
            ("a=1.5", &[("a", DictionaryMember::Other)]),
            (
                "a=?0, b=?1",
                &[("a", DictionaryMember::Boolean(false)), ("b", yes)],
            ),
            (
                "a=x:/, b=\"y, \\\" c\"",
                &[
                    ("a", DictionaryMember::Other),
                    ("b", DictionaryMember::Other),
                ],
            ),
            (
                "a=(x 1 \"y\";p), b",
                &[("a", DictionaryMember::Other), ("b", yes)],
            ),
            ("a=()", &[("a", DictionaryMember::Other)]),
            ("a=:aGk=:", &[("a", DictionaryMember::Other)]),
            ("a=@1659578233", &[("a", DictionaryMember::Other)]),
            ("a=%\"f%c3%bc\"", &[("a", DictionaryMember::Other)]),
            (
                "a;x=1; y, b=60;z",
                &[("a", yes), ("b", DictionaryMember::Integer(60))],
            ),
            (
                "a=1, b, a=2",
                &[("a", DictionaryMember::Integer(2)), ("b", yes)],
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(parse(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn lists_of_strings_are_read_and_nothing_else() {
        let rows: [(&str, Option<&[&str]>); 9] = [
            ("", Some(&[])),
            (r#""a""#, Some(&["a"])),
            (r#" "a b" ,"C";x=1;y,  "a b" "#, Some(&["a b", "C", "a b"])),
            (r#""a \"b\" \\", """#, Some(&["a \"b\" \\", ""])),
            ("a", None),
            (r#""a", b"#, None),
            (r#"("a")"#, None),
            (r#""a" "b""#, None),
            (r#""a"#, None),
        ];
        for (text, expected) in rows {
            let found = strings(text);
            let found = found.as_ref().map(|list| list.iter().map(String::as_str));
            let found: Option<Vec<_>> = found.map(Iterator::collect);
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_dictionary() {
        for text in [
            "A",
            "max-Age=60",
            "a,",
            ",a",
            "a,,b",
            "a b",
            "a =1",
            "a= 1",
            "a=",
            "a=-",
            "a=1.",
            "a=.5",
            "a=1.2345",
            "a=1000000000000000",
            "a='60'",
            "a=\"x",
            "a=\"\\x\"",
            "a=\"é\"",
            "a=?2",
            "a=?",
            "a=:x",
            // From the working group's tests (httpwg/structured-field-tests).
            "a=:=aGVsbG8=:",
            "a=:a=GVsbG8=:",
            "a=%\"f%C3%BC%C3%BC\"",
            "a=%\"%c3%28\"",
            "a=%\"%a0%a1\"",
            "a=%\"%g0%1w\"",
            "a=%\"%\"",
            "a=%\"%c",
            "a=@1.5",
            "a=%x",
            "a=%\"x",
            "a=(x",
            "a=(x,y)",
            "a=(x\"y\")",
            "a;",
            "a;B",
            "a;x=",
            "é",
            "\ta",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in r#"(\PC|[a-z0-9",=;\\() ?:@%é*]){0,40}"#) {
            let _ = parse(&text);
        }
    }
}
