// SPDX-License-Identifier: Apache-2.0
//! Reading of the directives, and the texts that hide a directive.

use crate::http::caching::cache_control::*;
use proptest::prelude::*;

const NONE: CacheControl = CacheControl {
    no_store: false,
    no_cache: false,
    private: false,
    public: false,
    max_age: None,
    s_maxage: None,
    must_understand: false,
    must_revalidate: false,
    proxy_revalidate: false,
    stale_while_revalidate: None,
    stale_if_error: None,
};
const NO_STORE: CacheControl = CacheControl {
    no_store: true,
    ..NONE
};
const PUBLIC: CacheControl = CacheControl {
    public: true,
    ..NONE
};
const NO_CACHE: CacheControl = CacheControl {
    no_cache: true,
    ..NONE
};
const PRIVATE: CacheControl = CacheControl {
    private: true,
    ..NONE
};

const fn max_age(seconds: u64) -> CacheControl {
    CacheControl {
        max_age: Some(seconds),
        ..NONE
    }
}

#[test]
fn a_time_above_zero_or_public_allows_to_keep_unless_another_directive_forbids() {
    for (text, allows) in [
        ("max-age=60", true),
        ("public", true),
        ("max-age=60, s-maxage=0", false),
        ("max-age=0", false),
        ("max-age=60, no-store", false),
        ("max-age=60, private", false),
        ("no-cache, max-age=60", false),
        ("", false),
    ] {
        let control = CacheControl::parse(text);
        assert_eq!(control.allows_to_keep(), allows, "{text}");
    }
}

#[test]
fn directives_are_read() {
    let rows = [
        ("nothing", "", NONE),
        ("commas only", ", ,,", NONE),
        ("unknown", "immutable, x=\"no-store\"", NONE),
        ("public", "public", PUBLIC),
        ("no-store", "no-store", NO_STORE),
        ("any case", "No-STORE", NO_STORE),
        ("an argument where none belongs", "no-store=1", NO_STORE),
        ("no-cache", "no-cache", NO_CACHE),
        (
            "no-cache for fields",
            "no-cache=\"set-cookie, x\"",
            NO_CACHE,
        ),
        ("private", "private", PRIVATE),
        ("private for a field", "private=\"x-user\"", PRIVATE),
        ("private for a token", "private=x-user", PRIVATE),
        ("max-age", "max-age=60", max_age(60)),
        (
            "max-age among others",
            "immutable , max-age=60 ,x",
            max_age(60),
        ),
        ("any case, quotes", "MAX-Age=\"60\"", max_age(60)),
        ("leading zeros", "max-age=0060", max_age(60)),
        ("the first of two", "max-age=60, max-age=5", max_age(60)),
        ("two lines", "max-age=60,max-age=5", max_age(60)),
        ("semicolons", "max-age=60; immutable", max_age(60)),
        ("a semicolon before", "x;no-store", NO_STORE),
        ("a semicolon after", "private; x", PRIVATE),
        (
            "part of a name",
            "xmax-age=60, max-agex=60, no-storex",
            NONE,
        ),
    ];
    for (name, text, expected) in rows {
        assert_eq!(CacheControl::parse(text), expected, "{name}");
    }
}

#[test]
fn a_time_that_is_none_is_stale() {
    for text in [
        "max-age",
        "max-age=",
        "max-age=\"\"",
        "max-age=\"",
        "max-age=\"60",
        "max-age=-1",
        "max-age=+1",
        "max-age=1.5",
        "max-age= 60",
        "max-age = 60",
        "max-age=6 0",
        "max-age=60s",
        "max-age='60'",
        "max-age=x, max-age=60",
    ] {
        assert_eq!(CacheControl::parse(text), max_age(0), "{text}");
    }
}

#[test]
fn too_many_seconds_are_the_most_there_are() {
    for text in [
        "max-age=2147483647",
        "max-age=2147483648",
        "max-age=99999999999999999999999",
    ] {
        assert_eq!(CacheControl::parse(text), max_age(2_147_483_647), "{text}");
    }
}

#[test]
fn quotes_that_nothing_closes_cost_no_more_than_their_number() {
    // This would take hours if the closing quote of each quote were searched.
    for unclosed in [r#"\""#, r#"\","#] {
        let text = format!("x=\"{}, no-store", unclosed.repeat(1_000_000));
        assert_eq!(CacheControl::parse(&*text), NO_STORE);
    }
}

#[test]
fn quotes_hide_what_is_within_and_no_more() {
    let rows = [
        ("a directive within", "x=\"a, no-store\"", NONE),
        ("an escaped quote", r#"x="a\", no-store""#, NONE),
        ("a directive after", "x=\"a\", no-store", NO_STORE),
        ("never closed", "x=\"a, no-store", NO_STORE),
        ("an escape at the end", "no-store, x=\"\\", NO_STORE),
    ];
    for (name, text, expected) in rows {
        assert_eq!(CacheControl::parse(text), expected, "{name}");
    }
}

#[test]
fn the_windows_of_staleness_are_read() {
    for (text, while_revalidate, if_error) in [
        ("max-age=1", None, None),
        ("Stale-While-Revalidate=60", Some(60), None),
        ("stale-if-error=\"60\"", None, Some(60)),
        (
            "stale-while-revalidate=1, stale-if-error=2",
            Some(1),
            Some(2),
        ),
        ("stale-if-error=1, stale-if-error=2", None, Some(1)),
        ("stale-while-revalidate", Some(0), None),
        ("stale-if-error=soon", None, Some(0)),
    ] {
        let control = CacheControl::parse(text);
        assert_eq!(control.stale_while_revalidate, while_revalidate, "{text}");
        assert_eq!(control.stale_if_error, if_error, "{text}");
    }
}

#[test]
fn targeted_fields_are_dictionaries() {
    // An example of RFC 9213, 2.1.
    for (text, expected) in [
        ("max-age=60", Some(max_age(60))),
        ("max-age=60;p=1, x=(a b)", Some(max_age(60))),
        ("max-age=60, max-age=5", Some(max_age(5))),
        ("max-age=999999999999", Some(max_age(2_147_483_647))),
        ("max-age=-1", Some(max_age(0))),
        ("max-age=1.5", Some(max_age(0))),
        ("max-age", Some(max_age(0))),
        ("max-age=\"60\"", Some(max_age(0))),
        ("max-age=?0", Some(NONE)),
        ("no-store", Some(NO_STORE)),
        ("no-store=?0", Some(NONE)),
        ("private=\"x-user\"", Some(PRIVATE)),
        ("x", Some(NONE)),
        ("Max-Age=60", None),
        ("max-age=60s", None),
        ("max-age=60; immutable", Some(max_age(60))),
        ("max-age=60,", None),
    ] {
        assert_eq!(CacheControl::parse_targeted(text), expected, "{text}");
    }
}

#[test]
fn surrogate_control_may_extend_freshness() {
    let extended = CacheControl {
        stale_while_revalidate: Some(30),
        stale_if_error: Some(30),
        ..max_age(60)
    };
    for (text, expected) in [
        ("max-age=60", max_age(60)),
        ("max-age=60+30", extended),
        ("no-store, content=\"a+b\"", NO_STORE),
        ("max-age=60+30;edge", extended),
        (
            "max-age=60+",
            CacheControl {
                stale_while_revalidate: Some(0),
                stale_if_error: Some(0),
                ..max_age(60)
            },
        ),
        ("x=1+2", NONE),
    ] {
        assert_eq!(CacheControl::parse_surrogate(text), expected, "{text}");
    }
}

#[test]
fn staleness_is_forbidden_by_those_who_may() {
    for (text, forbidden) in [
        ("", false),
        ("max-age=60, immutable", false),
        ("stale-while-revalidate=60", false),
        ("must-revalidate", true),
        ("Proxy-Revalidate", true),
        ("no-cache", true),
        ("s-maxage=60", true),
        ("s-maxage=60, stale-while-revalidate=60", true),
    ] {
        assert_eq!(
            CacheControl::parse(text).forbids_stale(),
            forbidden,
            "{text}"
        );
    }
}

#[test]
fn s_maxage_wins_in_a_shared_cache() {
    for (text, expected) in [
        ("max-age=60, s-maxage=5", Some(5)),
        ("s-maxage=5, max-age=60", Some(5)),
        ("s-maxage=x, max-age=60", Some(0)),
        ("max-age=60", Some(60)),
        ("public", None),
    ] {
        assert_eq!(CacheControl::parse(text).lifetime(), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in r#"(\PC|[",=\\é]|max-age|no-store){0,40}"#) {
        let _ = CacheControl::parse(&*text);
    }

    #[test]
    fn what_follows_anything_unquoted_is_seen(text in r"[^\x22]{0,40}") {
        let text = text + ",no-store";
        prop_assert!(CacheControl::parse(&*text).no_store);
    }
}

#[test]
fn a_space_parts_directives_and_nothing_within_quotes_is_changed() {
    for (text, spaced) in [
        ("max-age=3600,s-maxage=1", "max-age=3600, s-maxage=1"),
        ("a, b,c ,d,\te", "a, b, c , d,\te"),
        ("private=\"a,b\",max-age=1", "private=\"a,b\", max-age=1"),
        ("private;max-age=1", "private;max-age=1"),
        ("a=\"b,c", "a=\"b, c"),
        ("a,", "a,"),
        ("", ""),
    ] {
        assert_eq!(with_spaces(text.into()), spaced.as_bytes());
    }
}
