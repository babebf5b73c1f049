// SPDX-License-Identifier: Apache-2.0
//! The value of a header field. A sender may put any byte into a value except NUL and line ends (RFC 9110, 5.5), so a
//! value is bytes. Reading it as text for a grammar may fail.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Value of a header field, as received.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FieldValue<'a>(&'a [u8]);

/// Error for a field value that is not UTF-8, so that no grammar can read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotText;

impl<'a> FieldValue<'a> {
    /// Creates a value with these bytes.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub const fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns the text, for a grammar.
    ///
    /// # Errors
    /// The value is not UTF-8.
    pub fn text(self) -> Result<&'a str, NotText> {
        std::str::from_utf8(self.0).map_err(|_| NotText)
    }

    /// Returns the value as a number; `None` if it is not one.
    pub fn number<N: FromStr>(self) -> Option<N> {
        self.text().ok()?.parse().ok()
    }

    /// Iterates over the members of a list (RFC 9110, 5.6.1), without the white space around them. Each member is
    /// read separately, so a member that is not text does not spoil the others.
    pub fn members(self) -> impl Iterator<Item = Result<&'a str, NotText>> {
        let members = self.0.split(|byte| *byte == b',');
        members.map(|member| Self(member.trim_ascii()).text())
    }
}

impl AsRef<[u8]> for FieldValue<'_> {
    fn as_ref(&self) -> &[u8] {
        self.0
    }
}

impl<'a> From<&'a str> for FieldValue<'a> {
    fn from(text: &'a str) -> Self {
        Self(text.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for FieldValue<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl PartialEq<str> for FieldValue<'_> {
    fn eq(&self, text: &str) -> bool {
        self.0 == text.as_bytes()
    }
}

impl PartialEq<&str> for FieldValue<'_> {
    fn eq(&self, text: &&str) -> bool {
        self == *text
    }
}

/// Writes the value for a log, with bytes that are not printable escaped.
impl fmt::Display for FieldValue<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.escape_ascii().fmt(formatter)
    }
}

impl fmt::Debug for FieldValue<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{self}\"")
    }
}

/// Values of all lines with one name, with commas between them (RFC 9110, 5.3).
#[derive(Clone, PartialEq, Eq)]
pub struct JoinedValue<'a>(Cow<'a, [u8]>);

impl<'a> JoinedValue<'a> {
    /// Joins the lines; `None` if there are none.
    pub fn of(mut lines: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let mut joined = Cow::Borrowed(lines.next()?);
        for line in lines {
            let joined = joined.to_mut();
            joined.extend(b", ");
            joined.extend(line);
        }
        Some(Self(joined))
    }

    /// Returns the joined lines as one value.
    pub fn value(&self) -> FieldValue<'_> {
        FieldValue(&self.0)
    }

    /// Returns the bytes.
    pub fn into_bytes(self) -> Cow<'a, [u8]> {
        self.0
    }
}

impl<'a> From<&'a str> for JoinedValue<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text.as_bytes()))
    }
}

impl From<Vec<u8>> for JoinedValue<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Cow::Owned(bytes))
    }
}

impl fmt::Debug for JoinedValue<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use crate::http::syntax::field_value::*;

    const LATIN_1: &[u8] = b"M\xfcller";

    #[test]
    fn what_is_no_text_is_an_error_and_neither_empty_nor_absent() {
        assert_eq!(FieldValue::new(LATIN_1).text(), Err(NotText));
        assert_eq!(FieldValue::from("Müller").text(), Ok("Müller"));
        assert_eq!(FieldValue::from("").text(), Ok(""));
        assert_eq!(FieldValue::new(b"\xb2").number::<u64>(), None);
    }

    #[test]
    fn a_log_shows_each_byte() {
        let value = FieldValue::new(b"a \"b\"\xff\n");
        assert_eq!(value.to_string(), r#"a \"b\"\xff\n"#);
    }

    #[test]
    fn a_member_that_is_no_text_takes_no_other_along() {
        let read: Vec<_> = FieldValue::new(b"no-store , \xff,b").members().collect();
        assert_eq!(read, [Ok("no-store"), Err(NotText), Ok("b")]);
    }

    #[test]
    fn lines_are_joined_by_their_bytes() {
        let joined = |lines: &[&'static [u8]]| JoinedValue::of(lines.iter().copied());
        assert_eq!(joined(&[]), None);
        let two = joined(&[b"a", LATIN_1]).unwrap();
        assert_eq!(two.value().bytes(), b"a, M\xfcller");
        let one = joined(&[LATIN_1]).unwrap();
        assert!(matches!(one.into_bytes(), Cow::Borrowed(LATIN_1)));
    }
}
