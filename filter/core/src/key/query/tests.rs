// SPDX-License-Identifier: Apache-2.0
//! The part of a query that each rule keeps.

use super::*;

fn drop_but(allow: &[&str]) -> QueryRule {
    QueryRule::Drop {
        allow: allow.iter().map(|&name| name.to_owned()).collect(),
    }
}

fn patterns(remove: &[&str]) -> Vec<NamePattern> {
    let pattern = |name: &str| match name.strip_suffix('*') {
        Some(prefix) => NamePattern::Prefix(prefix.to_owned()),
        None => NamePattern::Exact(name.to_owned()),
    };
    remove.iter().copied().map(pattern).collect()
}

fn keep_but(remove: &[&str]) -> QueryRule {
    QueryRule::Keep {
        remove: patterns(remove),
    }
}

fn sort_but(remove: &[&str]) -> QueryRule {
    QueryRule::Sort {
        remove: patterns(remove),
    }
}

fn canonical(query: &[u8], rule: &QueryRule, escaping: Escaping) -> Result<String, Rejection> {
    let mut out = Vec::new();
    append_query(&mut out, query, rule, escaping)?;
    Ok(String::from_utf8(out).unwrap())
}

type Row<'a> = (&'a str, QueryRule, &'a [u8], &'a str);

fn assert_rows(escaping: Escaping, rows: Vec<Row<'_>>) {
    for (name, rule, query, expected) in rows {
        let once = canonical(query, &rule, escaping);
        assert_eq!(once.as_deref(), Ok(expected), "{name}");
        if let Some(query) = expected.strip_prefix('?') {
            let twice = canonical(query.as_bytes(), &rule, escaping);
            assert_eq!(twice, once, "{name}, once more");
        }
    }
}

#[test]
fn a_bucket_gets_what_is_allowed_and_nothing_else() {
    let rows: Vec<Row<'_>> = vec![
        ("nothing allowed", drop_but(&[]), b"v=1&acl", ""),
        (
            "nothing allowed, broken escape",
            drop_but(&[]),
            b"%zz=%4",
            "",
        ),
        ("one of two", drop_but(&["v"]), b"acl&v=1", "?v=1"),
        ("none there", drop_but(&["v"]), b"acl&versions", ""),
        ("empty query", drop_but(&["v"]), b"", ""),
        ("sorted", drop_but(&["a", "b"]), b"b=1&a=2", "?a=2&b=1"),
        (
            "same name keeps its order",
            drop_but(&["a", "b"]),
            b"b=2&a=2&b=1",
            "?a=2&b=2&b=1",
        ),
        ("escaped name", drop_but(&["v"]), b"%76=1", "?v=1"),
        (
            "escaped sub-resource",
            drop_but(&["v"]),
            b"%61cl&a%63l=&v=1",
            "?v=1",
        ),
        (
            "name with a broken escape",
            drop_but(&["v"]),
            b"v%zz=1&v%=2&v=3",
            "?v=3",
        ),
        ("name in another case", drop_but(&["v"]), b"V=1", ""),
        ("longer name", drop_but(&["v"]), b"versions&vv=1", ""),
        ("no value", drop_but(&["v"]), b"v", "?v"),
        ("empty value", drop_but(&["v"]), b"v=", "?v"),
        ("empty parameters", drop_but(&["v"]), b"&&v=1&&", "?v=1"),
        ("second equals sign", drop_but(&["v"]), b"v=a=b", "?v=a%3Db"),
        (
            "escaped ampersand",
            drop_but(&["v"]),
            b"v=1%26acl",
            "?v=1%26acl",
        ),
        (
            "escaped equals sign in a name",
            drop_but(&["v"]),
            b"v%3D1",
            "",
        ),
        ("semicolon", drop_but(&["v"]), b"v=1;acl", "?v=1%3Bacl"),
        ("question mark", drop_but(&["v"]), b"v=1?acl", "?v=1%3Facl"),
        ("plus is a space", drop_but(&["v"]), b"v=a+b", "?v=a%20b"),
        (
            "escaped plus is a plus",
            drop_but(&["v"]),
            b"v=a%2bb",
            "?v=a%2Bb",
        ),
        ("unreserved escapes", drop_but(&["v"]), b"v=%61%7E", "?v=a~"),
        ("double escape", drop_but(&["v"]), b"v=%2561", "?v=%2561"),
        ("slash", drop_but(&["v"]), b"v=a/b%2fc", "?v=a/b/c"),
        (
            "beyond ASCII",
            drop_but(&["v"]),
            "v=é%C3%A9".as_bytes(),
            "?v=%C3%A9%C3%A9",
        ),
        ("kept all", keep_but(&[]), b"acl&v=1", ""),
        ("sorted all", sort_but(&[]), b"acl&v=1", ""),
    ];
    assert_rows(Escaping::Strict, rows);
}

#[test]
fn a_bucket_gets_no_broken_value() {
    let rule = drop_but(&["v"]);
    for (name, query, expected) in [
        ("percent", &b"v=%"[..], Rejection::BrokenEscape),
        ("one digit", b"v=%4", Rejection::BrokenEscape),
        ("no digits", b"v=%zz", Rejection::BrokenEscape),
        ("NUL", b"v=%00", Rejection::NulByte),
        ("not UTF-8", b"v=%ff", Rejection::InvalidUtf8),
        ("not UTF-8, raw", b"v=\xff", Rejection::InvalidUtf8),
    ] {
        assert_eq!(
            canonical(query, &rule, Escaping::Strict),
            Err(expected),
            "{name}"
        );
    }
}

#[test]
fn another_origin_gets_its_query_as_it_came() {
    let rows: Vec<Row<'_>> = vec![
        ("as it is", keep_but(&[]), b"b=2&a=1", "?b=2&a=1"),
        ("empty", keep_but(&[]), b"", "?"),
        ("separators", keep_but(&[]), b"&&a=1&;&", "?&&a=1&;&"),
        (
            "broken escapes",
            keep_but(&[]),
            b"q=100%&%zz=%4",
            "?q=100%&%zz=%4",
        ),
        (
            "hex case and plus",
            keep_but(&[]),
            b"q=%2f%2F+a",
            "?q=%2f%2F+a",
        ),
        ("second question mark", keep_but(&[]), b"a?b?c", "?a?b?c"),
        (
            "dots and slashes",
            keep_but(&[]),
            b"u=/../x//y",
            "?u=/../x//y",
        ),
        // Known change: a raw byte beyond ASCII, which no URI may contain, is escaped.
        ("beyond ASCII", keep_but(&[]), "q=é".as_bytes(), "?q=%C3%A9"),
        ("not UTF-8", keep_but(&[]), b"q=\xff", "?q=%FF"),
    ];
    assert_rows(Escaping::Unreserved, rows);
}

#[test]
fn removed_parameters_are_found_in_any_spelling() {
    let rows: Vec<Row<'_>> = vec![
        (
            "exact",
            keep_but(&["fbclid"]),
            b"a=1&fbclid=x&b=2",
            "?a=1&b=2",
        ),
        (
            "exact is not a prefix",
            keep_but(&["fb"]),
            b"fbclid=x",
            "?fbclid=x",
        ),
        (
            "prefix",
            keep_but(&["utm_*"]),
            b"utm_source=x&a=1&utm_=2",
            "?a=1",
        ),
        (
            "prefix of a shorter name",
            keep_but(&["utm_*"]),
            b"utm=1",
            "?utm=1",
        ),
        (
            "escaped",
            keep_but(&["utm_*"]),
            b"%75tm_source=x&a=1",
            "?a=1",
        ),
        ("escaped throughout", keep_but(&["u"]), b"%75&a", "?a"),
        (
            "escaped twice is another name",
            keep_but(&["u"]),
            b"%2575=1",
            "?%2575=1",
        ),
        (
            "name with a broken escape",
            keep_but(&["u"]),
            b"u%=1&u=2",
            "?u%=1",
        ),
        (
            "name that is not UTF-8",
            keep_but(&["utm_*"]),
            b"utm_%ff=1&a",
            "?a",
        ),
        ("without a value", keep_but(&["u"]), b"u&a", "?a"),
        ("all of them", keep_but(&["*"]), b"a=1&b", ""),
        ("the only one", keep_but(&["a"]), b"a=1", ""),
        (
            "the only one but an empty one",
            keep_but(&["a"]),
            b"a=1&",
            "",
        ),
        (
            "others keep their bytes",
            keep_but(&["a"]),
            b"b=%2f&&a=1&c=+",
            "?b=%2f&&c=+",
        ),
    ];
    assert_rows(Escaping::Unreserved, rows);
}

#[test]
fn sorting_is_by_decoded_name_and_stable() {
    let rows: Vec<Row<'_>> = vec![
        ("by name", sort_but(&[]), b"b=1&a=2", "?a=2&b=1"),
        ("not by value", sort_but(&[]), b"a=2&a=1", "?a=2&a=1"),
        ("by decoded name", sort_but(&[]), b"b=1&%61=2", "?%61=2&b=1"),
        (
            "a name before its extensions",
            sort_but(&[]),
            b"ab=1&a=2&a",
            "?a=2&a&ab=1",
        ),
        ("empty parameters go", sort_but(&[]), b"&b&&a&", "?a&b"),
        ("an empty query goes", sort_but(&[]), b"", ""),
        (
            "removed",
            sort_but(&["utm_*"]),
            b"utm_x=1&b&%75tm_y=2&a",
            "?a&b",
        ),
        (
            "only allowed ones",
            drop_but(&["b", "a"]),
            b"c=3&b=%2f&a=+",
            "?a=+&b=%2f",
        ),
    ];
    assert_rows(Escaping::Unreserved, rows);
}

#[test]
fn raw_controls_spaces_and_fragments_are_refused_even_where_the_query_is_dropped() {
    for escaping in [Escaping::Strict, Escaping::Unreserved] {
        for rule in [drop_but(&[]), keep_but(&[]), sort_but(&[])] {
            for (query, expected) in [
                (&b"a b"[..], Rejection::ControlByte),
                (b"a\0", Rejection::ControlByte),
                (b"a\r\nx: y", Rejection::ControlByte),
                (b"a\x7f", Rejection::ControlByte),
                (b"a#b", Rejection::Fragment),
            ] {
                let refused = canonical(query, &rule, escaping);
                assert_eq!(refused, Err(expected), "{query:?} {rule:?} {escaping:?}");
            }
        }
    }
}
