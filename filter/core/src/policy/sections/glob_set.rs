// SPDX-License-Identifier: Apache-2.0
//! Many patterns over paths, and a search for the first one that matches.

use std::collections::HashMap;

use crate::policy::forms::glob::Glob;

/// Set of patterns, which finds the first match without trying all patterns.
///
/// Each pattern is filed under its prefix or its suffix, whichever fewer other patterns share. It is tried only on
/// paths with this prefix or suffix. Ten thousand patterns cost hardly more than ten, unless they have neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GlobSet {
    globs: Vec<Glob>,
    by_prefix: Vec<Filed>,
    /// Patterns under the bytes of their suffix, from the last to the first.
    by_suffix: Vec<Filed>,
}

/// A literal, and the numbers of its patterns in rising order.
type Filed = (Vec<u8>, Vec<usize>);

impl GlobSet {
    /// A set of these patterns, in order of priority.
    pub fn new(globs: Vec<Glob>) -> Self {
        let (mut of_prefix, mut of_suffix) = (HashMap::new(), HashMap::new());
        for glob in &globs {
            *of_prefix.entry(glob.prefix()).or_insert(0) += 1;
            *of_suffix.entry(glob.suffix()).or_insert(0) += 1;
        }
        let (mut by_prefix, mut by_suffix) = (Vec::new(), Vec::new());
        for (number, glob) in globs.iter().enumerate() {
            match glob.suffix() {
                Some(suffix) if of_suffix.get(&glob.suffix()) < of_prefix.get(glob.prefix()) => {
                    by_suffix.push((suffix.bytes().rev().collect(), number));
                }
                _ => by_prefix.push((glob.prefix().as_bytes().to_vec(), number)),
            }
        }
        Self {
            by_prefix: file(by_prefix),
            by_suffix: file(by_suffix),
            globs,
        }
    }

    /// The number of the first pattern that matches.
    pub fn first_match(&self, path: &str) -> Option<usize> {
        let mut best = self.globs.len();
        let mut consider = |numbers: &[usize]| {
            let better = numbers.iter().take_while(|number| **number < best);
            let found = better.copied().find(|&number| {
                self.globs
                    .get(number)
                    .is_some_and(|glob| glob.matches(path))
            });
            best = found.unwrap_or(best);
        };
        each_beginning(&self.by_prefix, path.bytes(), &mut consider);
        each_beginning(&self.by_suffix, path.bytes().rev(), &mut consider);
        (best < self.globs.len()).then_some(best)
    }

    /// The text of a pattern.
    pub fn pattern(&self, number: usize) -> Option<&str> {
        self.globs.get(number).map(Glob::as_str)
    }
}

fn file(mut pairs: Vec<(Vec<u8>, usize)>) -> Vec<Filed> {
    pairs.sort_unstable();
    let mut filed: Vec<Filed> = Vec::new();
    for (literal, number) in pairs {
        match filed.last_mut() {
            Some((last, numbers)) if *last == literal => numbers.push(number),
            _ => filed.push((literal, vec![number])),
        }
    }
    filed
}

/// Visits the patterns under any beginning of `bytes`, narrowing the sorted list byte by byte.
fn each_beginning(
    mut filed: &[Filed],
    mut bytes: impl Iterator<Item = u8>,
    visit: &mut impl FnMut(&[usize]),
) {
    let mut depth = 0;
    loop {
        // All entries share `depth` bytes, so the shortest is first.
        if let Some(((literal, numbers), longer)) = filed.split_first()
            && literal.len() == depth
        {
            visit(numbers);
            filed = longer;
        }
        let Some(byte) = bytes.next().filter(|_| !filed.is_empty()) else {
            return;
        };
        let next = |entry: &Filed| entry.0.get(depth).copied().unwrap_or_default();
        let start = filed.partition_point(|entry| next(entry) < byte);
        let end = filed.partition_point(|entry| next(entry) <= byte);
        filed = filed.get(start..end).unwrap_or_default();
        depth += 1;
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::sections::glob_set::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_that_fits_counts() {
        let set = GlobSet::new(
            ["/a/*.js", "*.js", "/a/*", "/a/b", "/a/*", "*", "/z"]
                .map(Glob::new)
                .into(),
        );
        for (path, expected) in [
            ("/a/x.js", Some(0)),
            ("/x.js", Some(1)),
            ("/a/b", Some(2)),
            ("/z", Some(5)),
            ("", Some(5)),
        ] {
            assert_eq!(set.first_match(path), expected, "{path}");
        }
        assert_eq!(GlobSet::default().first_match("/a"), None);
    }

    proptest! {
        #[test]
        fn a_set_finds_what_trying_all_finds(
            patterns in proptest::collection::vec("[/ab*]{0,5}", 0..12),
            path in "[/ab]{0,9}",
        ) {
            let globs: Vec<_> = patterns.iter().map(|pattern| Glob::new(pattern)).collect();
            let expected = globs.iter().position(|glob| glob.matches(&path));
            prop_assert_eq!(GlobSet::new(globs).first_match(&path), expected);
        }
    }
}
