// SPDX-License-Identifier: Apache-2.0
//! Words with one space between them: what the filter writes into headers of its own, and reads from them on each hit.

/// The words of a text that are still to come.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    rest: Option<&'a str>,
}

impl<'a> Words<'a> {
    /// Those of `text`.
    pub const fn of(text: &'a str) -> Self {
        Self { rest: Some(text) }
    }

    /// All that is still to come, with its spaces.
    pub fn rest(&mut self) -> Option<&'a str> {
        self.rest.take()
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.rest?;
        // The search of the standard library is for longer texts.
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
