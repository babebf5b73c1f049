// SPDX-License-Identifier: Apache-2.0
//! What a client's `Cache-Control` asks of the caches before its origin (RFC 9111, 5.2.1).

use std::fmt::Write;

use crate::cache_control::{directives, seconds};

/// The directives of a request that a shared cache may obey. `max-stale` is none of them: it allows
/// what the edge never does for a client's sake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestControl {
    /// `no-store`.
    pub no_store: bool,
    /// `only-if-cached`.
    pub only_if_cached: bool,
    /// `no-cache`, or `Pragma: no-cache` without a `Cache-Control` (RFC 9111, 5.4).
    pub no_cache: bool,
    /// Seconds of `max-age`.
    pub max_age: Option<u64>,
    /// Seconds of `min-fresh`.
    pub min_fresh: Option<u64>,
}

/// How a request that obeys its client goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// Like any other.
    Shared,
    /// Around the store (`no-store`).
    Around,
    /// Through the store, which revalidates what does not satisfy these directives.
    Checked(String),
    /// The same, but what the store does not have, or would have to revalidate, is a 504
    /// (`only-if-cached`).
    StoreOnly(String),
}

impl RequestControl {
    /// Reads the headers, several lines of one joined by commas. Of several times the first counts; what
    /// is no number asks for the most there is to ask for: 0 of `max-age`, all of `min-fresh`.
    pub fn parse(cache_control: Option<&str>, pragma: Option<&str>) -> Self {
        let mut parsed = Self::default();
        for (name, argument) in directives(cache_control.unwrap_or_default()) {
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            if is("no-store") {
                parsed.no_store = true;
            } else if is("only-if-cached") {
                parsed.only_if_cached = true;
            } else if is("no-cache") {
                parsed.no_cache = true;
            } else if is("max-age") {
                parsed.max_age.get_or_insert(seconds(argument).unwrap_or(0));
            } else if is("min-fresh") {
                let most = crate::duration::MAX.as_secs();
                parsed
                    .min_fresh
                    .get_or_insert(seconds(argument).unwrap_or(most));
            }
        }
        if cache_control.is_none() {
            let mut listed = directives(pragma.unwrap_or_default());
            parsed.no_cache = listed.any(|(name, _)| name.eq_ignore_ascii_case("no-cache"));
        }
        parsed
    }

    /// How the request goes on. `window` are the seconds beyond its freshness for which the store takes
    /// a response for fresh, so that `min-fresh` means what the client means.
    pub fn way(&self, window: u64) -> Way {
        if self.only_if_cached {
            Way::StoreOnly(self.towards_store(window))
        } else if self.no_store {
            Way::Around
        } else {
            match self.towards_store(window) {
                none if none.is_empty() => Way::Shared,
                directives => Way::Checked(directives),
            }
        }
    }

    /// The directives as Envoy's cache filters obey them. `max-age=0` is a hit there within the second.
    fn towards_store(&self, window: u64) -> String {
        if self.no_cache || self.max_age == Some(0) {
            return "no-cache".to_owned();
        }
        let mut text = String::new();
        // Writing into a String cannot fail.
        if let Some(seconds) = self.max_age {
            let _ = write!(text, "max-age={seconds}");
        }
        if let Some(seconds) = self.min_fresh {
            let comma = if text.is_empty() { "" } else { ", " };
            let seconds = seconds.saturating_add(window);
            let _ = write!(text, "{comma}min-fresh={seconds}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn checked(directives: &str) -> Way {
        Way::Checked(directives.to_owned())
    }

    fn store_only(directives: &str) -> Way {
        Way::StoreOnly(directives.to_owned())
    }

    #[test]
    fn each_directive_has_its_way() {
        for (text, expected) in [
            ("", Way::Shared),
            ("public, x=1, max-stale, max-stale=60", Way::Shared),
            ("no-cache", checked("no-cache")),
            ("No-Cache", checked("no-cache")),
            ("max-age=0", checked("no-cache")),
            ("max-age=60", checked("max-age=60")),
            ("max-age=\"60\"", checked("max-age=60")),
            ("max-age=60, max-age=0", checked("max-age=60")),
            ("max-age=soon", checked("no-cache")),
            ("max-age", checked("no-cache")),
            ("min-fresh=60", checked("min-fresh=65")),
            ("min-fresh=soon", checked("min-fresh=2147483652")),
            (
                "min-fresh=9, max-age=60",
                checked("max-age=60, min-fresh=14"),
            ),
            ("no-cache, max-age=60", checked("no-cache")),
            ("no-store", Way::Around),
            ("no-store, no-cache", Way::Around),
            ("only-if-cached", store_only("")),
            ("only-if-cached, no-store", store_only("")),
            ("only-if-cached, max-age=60", store_only("max-age=60")),
            ("x=\"a, no-cache\"", Way::Shared),
        ] {
            let parsed = RequestControl::parse(Some(text), None);
            assert_eq!(parsed.way(5), expected, "{text}");
        }
    }

    #[test]
    fn pragma_counts_where_there_is_no_cache_control() {
        // RFC 9111, 5.4.
        for (cache_control, pragma, expected) in [
            (None, None, false),
            (None, Some("no-cache"), true),
            (None, Some("x, No-Cache"), true),
            (None, Some("x"), false),
            (Some("max-age=60"), Some("no-cache"), false),
            (Some(""), Some("no-cache"), false),
        ] {
            let parsed = RequestControl::parse(cache_control, pragma);
            assert_eq!(parsed.no_cache, expected, "{cache_control:?} {pragma:?}");
        }
    }

    proptest! {
        #[test]
        fn what_goes_to_the_store_is_a_cache_control(
            text in r#"((no-cache|no-store|max-age|min-fresh|only-if-cached)(=[-"0-9a]{0,12})?|\PC{0,5})(,(min-fresh|max-age)=[0-9]{0,30})?"#,
            window in any::<u32>(),
        ) {
            let way = RequestControl::parse(Some(&text), None).way(window.into());
            if let Way::Checked(directives) | Way::StoreOnly(directives) = way {
                prop_assert!(directives.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '));
            }
        }
    }
}
