// SPDX-License-Identifier: Apache-2.0
//! Words with one space between them, in the headers that the filter writes, and reads on each hit.

/// Words of a text that are not read yet.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    rest: Option<&'a str>,
}

impl<'a> Words<'a> {
    /// Splits `text` into words.
    pub const fn of(text: &'a str) -> Self {
        Self { rest: Some(text) }
    }

    /// Takes the rest of the text, with its spaces.
    pub fn rest(&mut self) -> Option<&'a str> {
        self.rest.take()
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.rest?;
        // The search of the standard library is made for longer texts.
        let end = text.bytes().position(|byte| byte == b' ');
        let (word, rest) = match end {
            Some(end) => (text.get(..end)?, text.get(end + 1..)),
            None => (text, None),
        };
        self.rest = rest;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_spaces_part_and_the_rest_keeps_its_own() {
        let mut words = Words::of("a é  b c");
        assert_eq!(words.next(), Some("a"));
        assert_eq!(words.next(), Some("é"));
        assert_eq!(words.next(), Some(""));
        assert_eq!(words.rest(), Some("b c"));
        assert_eq!(words.next(), None);
        assert_eq!(words.rest(), None);
    }

    #[test]
    fn a_text_has_one_word_at_least() {
        assert_eq!(Words::of("").collect::<Vec<_>>(), [""]);
        assert_eq!(Words::of("a ").collect::<Vec<_>>(), ["a", ""]);
    }
}
