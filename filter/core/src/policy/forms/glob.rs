// SPDX-License-Identifier: Apache-2.0
//! Patterns over paths.

/// A path in which each `*` matches any characters, slashes included, or none. All other characters match themselves.
/// The pattern matches a whole path or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob(String);

impl Glob {
    /// The pattern with the text `text`.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part in front of the first `*`. All matching paths begin with it.
    pub fn prefix(&self) -> &str {
        self.0.split('*').next().unwrap_or_default()
    }

    /// The part behind the last `*`. All matching paths end with it. `None` if there is no `*`.
    pub fn suffix(&self) -> Option<&str> {
        self.0.rsplit_once('*').map(|(_, suffix)| suffix)
    }

    /// Whether `path` matches. The time is at worst proportional to the product of both lengths.
    pub fn matches(&self, path: &str) -> bool {
        let Some((head, rest)) = self.0.split_once('*') else {
            return self.0 == path;
        };
        let Some(mut path) = path.strip_prefix(head) else {
            return false;
        };
        let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
        // The leftmost place of each part leaves the most for the next.
        for part in middle.split('*') {
            let Some(at) = path.find(part) else {
                return false;
            };
            path = path.get(at + part.len()..).unwrap_or_default();
        }
        path.ends_with(tail)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::policy::forms::glob::*;

    #[test]
    fn a_star_stands_for_any_run_of_characters() {
        for (glob, path, fits) in [
            ("/a.css", "/a.css", true),
            ("/a.css", "/a.css2", false),
            ("/a.css", "/x/a.css", false),
            ("*.css", "/x/a.css", true),
            ("*.css", ".css", true),
            ("*.css", "/a.css.map", false),
            ("/assets/*", "/assets/", true),
            ("/assets/*", "/assets/x/y", true),
            ("/assets/*", "/assets", false),
            ("/a*a", "/a", false),
            ("/a*a", "/aa", true),
            ("/*/x/*.js", "/v1/x/y/z.js", true),
            ("/*/x/*.js", "/x/z.js", false),
            ("*", "", true),
            ("**", "/a", true),
            ("*a*b*", "/ba", false),
            ("*a*b*", "/ab", true),
            ("", "", true),
            ("", "/", false),
        ] {
            assert_eq!(Glob::new(glob).matches(path), fits, "{glob} {path}");
        }
    }

    /// Slow matching that follows the definition.
    fn plainly(glob: &[u8], path: &[u8]) -> bool {
        match glob.split_first() {
            None => path.is_empty(),
            Some((b'*', rest)) => (0..=path.len()).any(|skip| plainly(rest, &path[skip..])),
            Some((byte, rest)) => path
                .split_first()
                .is_some_and(|(first, path)| first == byte && plainly(rest, path)),
        }
    }

    proptest! {
        #[test]
        fn a_glob_is_what_its_definition_says(glob in "[ab*]{0,8}", path in "[ab]{0,10}") {
            let expected = plainly(glob.as_bytes(), path.as_bytes());
            prop_assert_eq!(Glob::new(&glob).matches(&path), expected);
        }
    }
}
