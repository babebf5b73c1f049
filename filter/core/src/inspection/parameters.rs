// SPDX-License-Identifier: Apache-2.0
//! The parameters of a question, as the query of its path.

use std::fmt::Write as _;

use super::question_error::QuestionError;
use crate::hexadecimal;

/// The parameters that have not been read yet.
#[derive(Debug)]
pub struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads `NAME=VALUE&…`, in which `%` and two hexadecimal digits are a byte.
    ///
    /// # Errors
    /// A parameter has no value, or its value is not UTF-8.
    pub fn parse(query: &str) -> Result<Self, QuestionError> {
        let parts = query.split('&').filter(|part| !part.is_empty());
        let pairs = parts.map(|part| {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| QuestionError::invalid(format!("{part:?}: expected NAME=VALUE")))?;
            let value = decode(value).ok_or_else(|| {
                QuestionError::invalid(format!("{name}: {value:?}: expected percent-encoded UTF-8"))
            })?;
            Ok((name.to_owned(), value))
        });
        Ok(Self(pairs.collect::<Result<_, _>>()?))
    }

    /// Appends a parameter to the text of a question, behind `?` or `&`.
    pub fn append(text: &mut String, name: &str, value: &str) {
        text.push(if text.contains('?') { '&' } else { '?' });
        text.push_str(name);
        text.push('=');
        for byte in value.bytes() {
            match byte {
                b'-' | b'.' | b'_' | b'~' | b'/' | b':' => text.push(char::from(byte)),
                _ if byte.is_ascii_alphanumeric() => text.push(char::from(byte)),
                // A string takes every character.
                _ => drop(write!(text, "%{byte:02X}")),
            }
        }
    }

    /// Appends a switch to the text of a question, if it is on.
    pub fn append_switch(text: &mut String, name: &str, is_on: bool) {
        if is_on {
            Self::append(text, name, "1");
        }
    }

    /// Takes the first parameter of that name.
    pub fn take(&mut self, name: &str) -> Option<String> {
        let position = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(position).1)
    }

    /// Takes a parameter that must be present.
    ///
    /// # Errors
    /// The parameter is missing.
    pub fn need(&mut self, name: &str) -> Result<String, QuestionError> {
        let missing = || QuestionError::invalid(format!("{name}: expected a value"));
        self.take(name).ok_or_else(missing)
    }

    /// Takes all parameters of that name, in their order.
    pub fn take_all(&mut self, name: &str) -> Vec<String> {
        let taken = self.0.extract_if(.., |(known, _)| known == name);
        taken.map(|(_, value)| value).collect()
    }

    /// Takes a switch, which is off if it is missing.
    ///
    /// # Errors
    /// The value is neither 0 nor 1.
    pub fn take_switch(&mut self, name: &str) -> Result<bool, QuestionError> {
        match self.take(name).as_deref() {
            None | Some("0") => Ok(false),
            Some("1") => Ok(true),
            Some(other) => {
                let error = format!("{name}: {other:?}: expected 0 or 1");
                Err(QuestionError::invalid(error))
            }
        }
    }

    /// Checks that no parameter is left.
    ///
    /// # Errors
    /// The question has no parameter of that name, or has it once only.
    pub fn finish(self) -> Result<(), QuestionError> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => {
                let error = format!("{name}: expected no such parameter, or only one");
                Err(QuestionError::invalid(error))
            }
        }
    }
}

fn decode(value: &str) -> Option<String> {
    let mut parts = value.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.as_bytes().split_at_checked(2)?;
        bytes.push(u8::try_from(hexadecimal::number(digits)?).ok()?);
        bytes.extend_from_slice(rest);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_read_as_it_was_written() {
        for value in ["", "/a b/é?x=1&y=%41#", "\u{0}\n", "100%"] {
            let mut text = "/explain".to_owned();
            Parameters::append(&mut text, "host", "a.test:80");
            Parameters::append(&mut text, "path", value);
            assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
            let (_, query) = text.split_once('?').unwrap();
            let mut parameters = Parameters::parse(query).unwrap();
            assert_eq!(parameters.need("path").unwrap(), value);
            assert_eq!(parameters.need("host").unwrap(), "a.test:80");
            parameters.finish().unwrap();
        }
    }

    #[test]
    fn a_wrong_parameter_is_named_with_what_is_accepted() {
        let refused = |query: &str| {
            let mut parameters = Parameters::parse(query)?;
            parameters.take_switch("query")?;
            parameters.finish()
        };
        for (query, error) in [
            ("query", "\"query\": expected NAME=VALUE"),
            ("query=yes", "query: \"yes\": expected 0 or 1"),
            (
                "query=1&query=1",
                "query: expected no such parameter, or only one",
            ),
            ("x=1", "x: expected no such parameter, or only one"),
            ("x=%4", "x: \"%4\": expected percent-encoded UTF-8"),
            ("x=%ff", "x: \"%ff\": expected percent-encoded UTF-8"),
        ] {
            assert_eq!(refused(query).unwrap_err().to_string(), error);
        }
        assert_eq!(refused("query=0&"), Ok(()));
    }
}
