// SPDX-License-Identifier: Apache-2.0
//! The directives of a client's `Cache-Control`, addressed to the caches in front of the origin (RFC 9111, 5.2.1).

use crate::http::caching::cache_control::{MAX_DELTA_SECONDS, directives, seconds};
use crate::http::syntax::field_value::FieldValue;

/// Seconds that an age never exceeds.
const ANY_AGE: u64 = MAX_DELTA_SECONDS;

/// The directives of a request that a shared cache may obey.
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
    /// Seconds of `max-stale`.
    pub max_stale: Option<u64>,
}

/// Way of a request whose client's directives are obeyed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientDemand {
    /// Like a request without directives.
    Shared,
    /// Through the store, which revalidates a response that does not satisfy these directives.
    Checked(String),
    /// Through the store, never to the origin (`only-if-cached`). The client gets a 504 if the store has no response,
    /// or if the stored one does not satisfy the client. The directives accept any response of the store, and
    /// [`RequestControl::accepts`] checks it afterwards, because a validation that fails would lose the response.
    StoreOnly(String),
}

impl RequestControl {
    /// Reads the headers, whose lines are joined by commas. If a time is repeated, the first one counts. A time that
    /// is not a number is read as the strictest one: 0 for `max-age`, the greatest age for `min-fresh`, 0 for
    /// `max-stale`. A `max-stale` without a value accepts any stale response (RFC 9111, 5.2.1.2).
    pub fn parse(cache_control: Option<FieldValue<'_>>, pragma: Option<FieldValue<'_>>) -> Self {
        let mut parsed = Self::default();
        for (name, argument) in cache_control.into_iter().flat_map(directives) {
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            if is("no-store") {
                parsed.no_store = true;
            } else if is("only-if-cached") {
                parsed.only_if_cached = true;
            } else if is("no-cache") {
                parsed.no_cache = true;
            } else if is("max-age") {
                parsed.max_age.get_or_insert(seconds(argument).unwrap_or(0));
            } else if is("min-fresh") {
                parsed
                    .min_fresh
                    .get_or_insert(seconds(argument).unwrap_or(ANY_AGE));
            } else if is("max-stale") {
                let stale =
                    argument.map_or(ANY_AGE, |argument| seconds(Some(argument)).unwrap_or(0));
                parsed.max_stale.get_or_insert(stale);
            }
        }
        if cache_control.is_none() {
            let mut listed = pragma.into_iter().flat_map(directives);
            parsed.no_cache = listed.any(|(name, _)| name.eq_ignore_ascii_case(b"no-cache"));
        }
        parsed
    }

    /// Whether the client accepts a stored response of this age. The response stays fresh for `fresh_for` seconds,
    /// and may be served stale for `window` seconds after that.
    pub fn accepts(&self, age: u64, fresh_for: i64, window: u64) -> bool {
        let signed = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
        let in_time = match (self.min_fresh, self.max_stale) {
            (Some(seconds), _) => fresh_for >= signed(seconds),
            (None, stale) => fresh_for > -signed(stale.unwrap_or(0).max(window)),
        };
        !self.no_cache && self.max_age.is_none_or(|most| age <= most) && in_time
    }

    /// Whether the request is sent around the store.
    pub const fn avoids_the_store(&self) -> bool {
        self.no_store && !self.only_if_cached
    }

    /// Returns the way of a request that is not sent around the store. The store treats a response as fresh for `window` seconds beyond its
    /// freshness, so `window` corrects `min-fresh` and `max-stale` to what the client means.
    pub fn way(&self, window: u64) -> ClientDemand {
        if self.only_if_cached {
            ClientDemand::StoreOnly(format!("max-stale={ANY_AGE}"))
        } else {
            match self.towards_store(window) {
                none if none.is_empty() => ClientDemand::Shared,
                directives => ClientDemand::Checked(directives),
            }
        }
    }

    /// Returns the directives in the form that Envoy's cache filter obeys. It sends `no-cache` for `max-age=0`, which
    /// Envoy answers with a hit within the first second.
    fn towards_store(&self, window: u64) -> String {
        if self.no_cache || self.max_age == Some(0) {
            return "no-cache".to_owned();
        }
        let stale = self
            .max_stale
            .map(|seconds| seconds.saturating_sub(window))
            .filter(|seconds| *seconds > 0);
        let directives = [
            ("max-age", self.max_age),
            (
                "min-fresh",
                self.min_fresh.map(|fresh| fresh.saturating_add(window)),
            ),
            ("max-stale", stale),
        ];
        let directives = directives.into_iter().filter_map(|(name, seconds)| {
            let seconds = seconds?;
            Some(format!("{name}={seconds}"))
        });
        directives.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use crate::http::caching::client_control::*;
    use proptest::prelude::*;

    fn checked(directives: &str) -> ClientDemand {
        ClientDemand::Checked(directives.to_owned())
    }

    fn store_only(directives: &str) -> ClientDemand {
        ClientDemand::StoreOnly(directives.to_owned())
    }

    #[test]
    fn each_directive_has_its_way() {
        for (text, expected) in [
            ("", ClientDemand::Shared),
            ("public, x=1", ClientDemand::Shared),
            ("max-stale", checked("max-stale=2147483642")),
            ("max-stale=60, max-stale", checked("max-stale=55")),
            ("max-stale=5", ClientDemand::Shared),
            ("max-stale=soon", ClientDemand::Shared),
            (
                "max-stale=60, max-age=9",
                checked("max-age=9, max-stale=55"),
            ),
            ("max-stale=60, no-cache", checked("no-cache")),
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
            ("only-if-cached", store_only("max-stale=2147483647")),
            (
                "only-if-cached, no-store, no-cache",
                store_only("max-stale=2147483647"),
            ),
            ("x=\"a, no-cache\"", ClientDemand::Shared),
        ] {
            let parsed = RequestControl::parse(Some(text.into()), None);
            assert_eq!(parsed.way(5), expected, "{text}");
        }
    }

    #[test]
    fn a_request_with_no_store_avoids_the_store_unless_it_is_for_the_store_only() {
        for (text, expected) in [
            ("", false),
            ("no-cache", false),
            ("no-store", true),
            ("no-store, no-cache", true),
            ("only-if-cached, no-store, no-cache", false),
        ] {
            let parsed = RequestControl::parse(Some(text.into()), None);
            assert_eq!(parsed.avoids_the_store(), expected, "{text}");
        }
    }

    #[test]
    fn what_the_store_has_is_measured_by_what_its_client_accepts() {
        let window = 5;
        for (text, age, fresh_for, expected) in [
            ("", 9, 1, true),
            ("", 9, -4, true),
            ("", 9, -5, false),
            ("max-age=9", 9, 1, true),
            ("max-age=8", 9, 1, false),
            ("min-fresh=2", 9, 2, true),
            ("min-fresh=2", 9, 1, false),
            ("min-fresh=2, max-stale", 9, 1, false),
            ("max-stale", 9, -1_000_000, true),
            ("max-stale=9", 9, -8, true),
            ("max-stale=9", 9, -9, false),
            ("max-stale=9, max-age=8", 9, -8, false),
            ("max-stale=1", 9, -4, true),
            ("no-cache, max-stale", 0, 9, false),
        ] {
            let control = RequestControl::parse(Some(text.into()), None);
            let accepts = control.accepts(age, fresh_for, window);
            assert_eq!(accepts, expected, "{text}: {fresh_for}");
        }
    }

    #[test]
    fn pragma_counts_where_there_is_no_cache_control() {
        // RFC 9111, 5.4: `Pragma` counts only without `Cache-Control`.
        for (cache_control, pragma, expected) in [
            (None, None, false),
            (None, Some("no-cache"), true),
            (None, Some("x, No-Cache"), true),
            (None, Some("x"), false),
            (Some("max-age=60"), Some("no-cache"), false),
            (Some(""), Some("no-cache"), false),
        ] {
            let of = |text: Option<&'static str>| text.map(FieldValue::from);
            let parsed = RequestControl::parse(of(cache_control), of(pragma));
            assert_eq!(parsed.no_cache, expected, "{cache_control:?} {pragma:?}");
        }
    }

    proptest! {
        #[test]
        fn what_goes_to_the_store_is_a_cache_control(
            text in r#"((no-cache|no-store|max-age|min-fresh|max-stale|only-if-cached)(=[-"0-9a]{0,12})?|\PC{0,5})(,(min-fresh|max-age)=[0-9]{0,30})?"#,
            window in any::<u32>(),
        ) {
            let way = RequestControl::parse(Some((&*text).into()), None).way(window.into());
            if let ClientDemand::Checked(directives) | ClientDemand::StoreOnly(directives) = way {
                prop_assert!(directives.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '));
            }
        }
    }
}
