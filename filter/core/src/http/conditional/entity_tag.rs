// SPDX-License-Identifier: Apache-2.0
//! Entity tags (RFC 9110, 8.8.3) and the lists of them that conditions carry.

/// Entity tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityTag<'a> {
    /// Whether the tag may stand for more than one sequence of bytes.
    pub weak: bool,
    /// Text that is compared, with its quotes.
    opaque: &'a str,
}

impl<'a> EntityTag<'a> {
    /// Reads a whole field value. A tag without quotes, which some servers send and clients repeat, counts as weak;
    /// `None` if the value is not a tag.
    pub fn parse(value: &'a str) -> Option<Self> {
        let (tag, rest) = Self::split_first(value.trim_matches(OPTIONAL_SPACE))?;
        rest.is_empty().then_some(tag)
    }

    /// Returns the tag at the start of `text`, and the text behind it.
    fn split_first(text: &'a str) -> Option<(Self, &'a str)> {
        let (weak, tag) = match text.strip_prefix("W/") {
            Some(tag) => (true, tag),
            None => (false, text),
        };
        if let Some(quoted) = tag.strip_prefix('"') {
            let end = quoted.find('"')? + 2;
            let (opaque, rest) = tag.split_at_checked(end)?;
            return Some((Self { weak, opaque }, rest));
        }
        let end = text.find([',', ' ', '\t', '"']).unwrap_or(text.len());
        let (opaque, rest) = text.split_at_checked(end)?;
        let bare = Self { weak: true, opaque };
        (!opaque.is_empty()).then_some((bare, rest))
    }

    /// Returns the tag without the content coding that the compressors of some servers append.
    #[must_use]
    pub fn without_coding(self) -> Self {
        const ENDS: [&str; 4] = ["--gzip", "-gzip", "-br", "-zstd"];
        let inner = self.opaque.strip_suffix('"').unwrap_or(self.opaque);
        let shorter = ENDS.iter().find_map(|end| inner.strip_suffix(end));
        Self {
            // The closing quote is removed in each case, so that both sides of a comparison have the same form.
            opaque: shorter.unwrap_or(inner),
            ..self
        }
    }

    /// Strong comparison (RFC 9110, 8.8.3.2): both tags stand for the same bytes.
    pub fn is_strongly(self, other: Self) -> bool {
        !self.weak && !other.weak && self.opaque == other.opaque
    }

    /// Weak comparison (RFC 9110, 8.8.3.2): one response may replace the other.
    pub fn is_weakly(self, other: Self) -> bool {
        self.opaque == other.opaque
    }
}

const OPTIONAL_SPACE: [char; 2] = [' ', '\t'];

/// Iterates over the tags of an `If-Match` or `If-None-Match`, up to the first malformed one.
pub fn tags(list: &str) -> impl Iterator<Item = EntityTag<'_>> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let start = rest.trim_start_matches([',', ' ', '\t']);
        let found = EntityTag::split_first(start).and_then(|(tag, rest)| {
            let rest = rest.trim_start_matches(OPTIONAL_SPACE);
            (rest.is_empty() || rest.starts_with(',')).then_some((tag, rest))
        });
        rest = found.map_or("", |(_, rest)| rest);
        found.map(|(tag, _)| tag)
    })
}

/// Whether the list of an `If-Match` or `If-None-Match` is `*`, which matches any response.
pub fn is_any(list: &str) -> bool {
    list.trim_matches(OPTIONAL_SPACE) == "*"
}

#[cfg(test)]
mod tests {
    use crate::http::conditional::entity_tag::*;
    use proptest::prelude::*;

    fn tag(text: &str) -> EntityTag<'_> {
        EntityTag::parse(text).unwrap()
    }

    #[test]
    fn tags_compare_as_in_the_table_of_the_rfc() {
        for (one, other, strongly, weakly) in [
            (r#"W/"1""#, r#"W/"1""#, false, true),
            (r#"W/"1""#, r#"W/"2""#, false, false),
            (r#"W/"1""#, r#""1""#, false, true),
            (r#""1""#, r#""1""#, true, true),
            (r#""1""#, r#""2""#, false, false),
            ("1", "1", false, true),
            ("1", r#""1""#, false, false),
            (r#""""#, r#""""#, true, true),
        ] {
            assert_eq!(tag(one).is_strongly(tag(other)), strongly, "{one} {other}");
            assert_eq!(tag(one).is_weakly(tag(other)), weakly, "{one} {other}");
        }
    }

    #[test]
    fn what_is_no_single_tag_is_none() {
        for text in [
            "",
            " ",
            "\"",
            "\"a",
            "W/\"a",
            "\"a\"b",
            "\"a\", \"b\"",
            "a b",
        ] {
            assert_eq!(EntityTag::parse(text), None, "{text}");
        }
    }

    fn read(list: &str) -> Vec<String> {
        if is_any(list) {
            return vec!["any".to_owned()];
        }
        tags(list)
            .map(|tag| format!("{}{}", if tag.weak { "W/" } else { "" }, tag.opaque))
            .collect()
    }

    #[test]
    fn a_list_is_read_up_to_what_is_malformed() {
        for (list, tags) in [
            ("", &[][..]),
            ("*", &["any"]),
            (" * ", &["any"]),
            (r#""a""#, &[r#""a""#]),
            (r#""a","b""#, &[r#""a""#, r#""b""#]),
            (
                r#" , "a" ,, W/"b,c"	, "" ,"#,
                &[r#""a""#, r#"W/"b,c""#, r#""""#],
            ),
            (r#""a", b, "c""#, &[r#""a""#, "W/b", r#""c""#]),
            (r#""a" "b""#, &[]),
            (r#""a", "b"#, &[r#""a""#]),
            (r#""a"x, "b""#, &[]),
            ("\"\u{e9}\"", &["\"\u{e9}\""]),
        ] {
            assert_eq!(read(list), tags, "{list}");
        }
    }

    proptest! {
        #[test]
        fn every_tag_of_a_list_is_found(
            tags in prop::collection::vec("(W/)?\"[!#-~]{0,6}\"", 0..6),
            separator in prop::sample::select(vec![",", ", ", " ,", ",, ,"]),
        ) {
            prop_assert_eq!(read(&tags.join(separator)), tags);
        }

        #[test]
        fn no_list_panics(list in "\\PC*|[W/\", a\t*]{0,12}") {
            let _ = read(&list);
            let _ = EntityTag::parse(&list);
        }
    }
}
