// SPDX-License-Identifier: Apache-2.0
//! Keys of a bucket, one row per URL.

use sluice_core::key::{Rejection::*, Target, canonicalize, origin_authority};
use sluice_core::policy::{Origin, Policy, QueryRule};

use crate::support::{Row, assert_rows, bucket, canonicalize_path};

fn with_prefix() -> Policy {
    let mut policy = bucket();
    if let Origin::Bucket(bucket) = &mut policy.origin {
        bucket.path_prefix = "/site/pre%20fix".to_owned();
        bucket.prefix_bytes = "pre fix/".len();
    }
    policy
}

fn with_index() -> Policy {
    let mut policy = bucket();
    policy.key.index_document = Some("index.html".to_owned());
    policy
}

fn with_empty_segments() -> Policy {
    let mut policy = bucket();
    policy.key.merge_slashes = false;
    policy
}

#[test]
fn all_spellings_of_one_object_give_one_key() {
    const ABC: Result<&str, sluice_core::key::Rejection> = Ok("/site/abc");
    let rows: &[Row] = &[
        ("as it is", b"/abc", ABC),
        ("lower hex digit", b"/a%62c", ABC),
        ("all escaped", b"/%61%62%63", ABC),
        ("dot", b"/./abc", ABC),
        ("dots", b"/././abc", ABC),
        ("escaped dot", b"/%2e/abc", ABC),
        ("escaped dot, upper case", b"/%2E/abc", ABC),
        ("there and back", b"/x/../abc", ABC),
        ("there and back, escaped", b"/x/%2e%2E/abc", ABC),
        ("there and back, half escaped", b"/x/.%2e/abc", ABC),
        ("there and back twice", b"/x/y/../../abc", ABC),
        ("back to the root in between", b"/x/../y/../abc", ABC),
        ("through the object's own name", b"/abc/../abc", ABC),
        ("two slashes", b"//abc", ABC),
        ("many slashes", b"////abc", ABC),
        ("slash and dots", b"//.//abc", ABC),
        ("query", b"/abc?v=1", ABC),
        ("empty query", b"/abc?", ABC),
        ("several question marks", b"/abc??acl?x", ABC),
        ("path parameters that are left", b"/a;/../abc", ABC),
        ("absolute form", b"http://edge.test/abc", ABC),
        ("absolute form, upper case", b"HTTP://EDGE.test/abc", ABC),
        ("absolute form, port", b"http://edge.test:80/abc", ABC),
        ("absolute form, https", b"https://edge.test:443/abc", ABC),
        ("absolute form, dots", b"http://edge.test/x/../abc", ABC),
        ("absolute form, query", b"http://edge.test/abc?acl", ABC),
    ];
    assert_rows(&bucket(), rows);
}

#[test]
fn every_byte_of_a_key_is_spelled_as_s3_signs_it() {
    let rows: &[Row] = &[
        ("capital, escaped", b"/%41", Ok("/site/A")),
        ("unreserved, escaped", b"/%2d%2E%5f%7E", Ok("/site/-._~")),
        ("space", b"/a%20b", Ok("/site/a%20b")),
        ("plus", b"/a+b", Ok("/site/a%2Bb")),
        ("plus, escaped", b"/a%2bb", Ok("/site/a%2Bb")),
        (
            "sub-delimiters",
            b"/!$&'()*,;=",
            Ok("/site/%21%24%26%27%28%29%2A%2C%3B%3D"),
        ),
        ("colon and at sign", b"/a:b@c", Ok("/site/a%3Ab%40c")),
        (
            "not for URIs",
            b"/\"<>^`{|}[]",
            Ok("/site/%22%3C%3E%5E%60%7B%7C%7D%5B%5D"),
        ),
        ("question mark, escaped", b"/a%3fb", Ok("/site/a%3Fb")),
        ("hash, escaped", b"/a%23b", Ok("/site/a%23b")),
        ("percent, escaped", b"/100%25", Ok("/site/100%25")),
        ("backslash", b"/a\\b", Ok("/site/a%5Cb")),
        ("backslash, escaped", b"/a%5cb", Ok("/site/a%5Cb")),
        ("control byte, escaped", b"/a%0ab%7f", Ok("/site/a%0Ab%7F")),
        ("two-byte character", "/é".as_bytes(), Ok("/site/%C3%A9")),
        (
            "two-byte character, escaped",
            b"/%c3%a9",
            Ok("/site/%C3%A9"),
        ),
        (
            "two-byte character, half escaped",
            b"/\xc3%a9",
            Ok("/site/%C3%A9"),
        ),
        (
            "four-byte character",
            "/🦀".as_bytes(),
            Ok("/site/%F0%9F%A6%80"),
        ),
        (
            "not normalised: two code points",
            "/e\u{301}".as_bytes(),
            Ok("/site/e%CC%81"),
        ),
        (
            "full-width dots are letters",
            "/\u{ff0e}\u{ff0e}/a".as_bytes(),
            Ok("/site/%EF%BC%8E%EF%BC%8E/a"),
        ),
        ("case matters", b"/ABC", Ok("/site/ABC")),
        ("three dots", b"/.../a", Ok("/site/.../a")),
        ("dot file", b"/.well-known/x", Ok("/site/.well-known/x")),
        ("dots at the end of a name", b"/a../b", Ok("/site/a../b")),
    ];
    assert_rows(&bucket(), rows);
}

#[test]
fn nothing_leaves_the_bucket_or_its_prefix() {
    let rows: &[Row] = &[
        ("back", b"/../other/x", Err(AboveRoot)),
        ("back alone", b"/..", Err(AboveRoot)),
        ("back, slash", b"/../", Err(AboveRoot)),
        ("back after slashes", b"//../other/x", Err(AboveRoot)),
        ("back after a dot", b"/./../other/x", Err(AboveRoot)),
        ("one back too many", b"/a/../../other/x", Err(AboveRoot)),
        ("above and down again", b"/../site/x", Err(AboveRoot)),
        ("back, escaped", b"/%2e%2e/other", Err(AboveRoot)),
        ("back, half escaped", b"/.%2E/other", Err(AboveRoot)),
        ("back, encoded slash", b"/..%2fother/x", Err(EncodedSlash)),
        ("all of it escaped", b"/%2e%2e%2fother", Err(EncodedSlash)),
        ("encoded slash", b"/a%2fb", Err(EncodedSlash)),
        ("encoded slash, upper case", b"/a%2Fb", Err(EncodedSlash)),
        ("back, escaped backslash", b"/..%5c", Err(HiddenDotSegment)),
        (
            "back, escaped backslash and on",
            b"/..%5Cother",
            Err(HiddenDotSegment),
        ),
        ("back, backslash", b"/..\\other", Err(HiddenDotSegment)),
        ("backslash, back", b"/a\\..", Err(HiddenDotSegment)),
        (
            "back between backslashes",
            b"/a\\..\\b",
            Err(HiddenDotSegment),
        ),
        (
            "back, escaped, between backslashes",
            b"/a%5c%2e%2E%5cb",
            Err(HiddenDotSegment),
        ),
        ("dot, backslash", b"/.\\a", Err(HiddenDotSegment)),
        (
            "a parameter is a part of the key",
            b"/a/..;/b",
            Ok("/site/pre%20fix/a/..%3B/b"),
        ),
        (
            "backslashes without dots",
            b"/a\\...\\b",
            Ok("/site/pre%20fix/a%5C...%5Cb"),
        ),
        (
            "escaped twice",
            b"/%252e%252e/other",
            Ok("/site/pre%20fix/%252e%252e/other"),
        ),
        (
            "escaped twice, slash",
            b"/..%252fother",
            Ok("/site/pre%20fix/..%252fother"),
        ),
        (
            "escaped twice, backslash",
            b"/..%255cother",
            Ok("/site/pre%20fix/..%255cother"),
        ),
        (
            "escaped three times",
            b"/%25252e%25252e/",
            Ok("/site/pre%20fix/%25252e%25252e/"),
        ),
        ("path parameters", b"/a;/../b", Ok("/site/pre%20fix/b")),
        (
            "path parameters of dots",
            b"/..;/b",
            Ok("/site/pre%20fix/..%3B/b"),
        ),
        ("overlong slash", b"/..%c0%afother", Err(InvalidUtf8)),
        ("overlong dots", b"/%c0%ae%c0%ae/other", Err(InvalidUtf8)),
        (
            "prefix in the path is no prefix",
            b"/site/pre fix",
            Err(ControlByte),
        ),
        (
            "own prefix",
            b"/pre%20fix/a",
            Ok("/site/pre%20fix/pre%20fix/a"),
        ),
        (
            "absolute form, back",
            b"http://edge.test/../x",
            Err(AboveRoot),
        ),
        (
            "dots in the query stay there",
            b"/a?/../../other",
            Ok("/site/pre%20fix/a"),
        ),
    ];
    assert_rows(&with_prefix(), rows);
}

#[test]
fn what_is_no_url_is_refused() {
    let rows: &[Row] = &[
        ("percent", b"/%", Err(BrokenEscape)),
        ("percent at the end", b"/a%", Err(BrokenEscape)),
        ("percent before a slash", b"/a%/b", Err(BrokenEscape)),
        ("one digit", b"/%4", Err(BrokenEscape)),
        ("one digit before a slash", b"/%4/1", Err(BrokenEscape)),
        ("no digits", b"/%zz", Err(BrokenEscape)),
        ("second digit wrong", b"/%4g", Err(BrokenEscape)),
        ("escape in an escape", b"/%%34%31", Err(BrokenEscape)),
        (
            "escape of a digit of an escape",
            b"/%4%31",
            Err(BrokenEscape),
        ),
        ("unicode escape", b"/%u0041", Err(BrokenEscape)),
        ("broken, but left again", b"/%zz/../a", Err(BrokenEscape)),
        ("NUL, escaped", b"/a%00b", Err(NulByte)),
        ("NUL, left again", b"/%00/../a", Err(NulByte)),
        ("NUL", b"/a\0b", Err(ControlByte)),
        ("line feed", b"/a\nb", Err(ControlByte)),
        ("tab", b"/a\tb", Err(ControlByte)),
        ("delete", b"/a\x7fb", Err(ControlByte)),
        ("space", b"/a b", Err(ControlByte)),
        (
            "smuggled header",
            b"/a HTTP/1.1\r\nHost: x",
            Err(ControlByte),
        ),
        ("space in the query", b"/a?b c", Err(ControlByte)),
        ("fragment", b"/a#b", Err(Fragment)),
        ("fragment after the query", b"/a?b#c", Err(Fragment)),
        ("invalid UTF-8", b"/%ff", Err(InvalidUtf8)),
        ("invalid UTF-8, raw", b"/\xff", Err(InvalidUtf8)),
        ("cut short", b"/%c3", Err(InvalidUtf8)),
        ("cut short by a letter", b"/%c3a", Err(InvalidUtf8)),
        ("cut short by a slash", b"/%c3/%a9", Err(InvalidUtf8)),
        ("continuation alone", b"/%a9", Err(InvalidUtf8)),
        ("surrogate", b"/%ed%a0%80", Err(InvalidUtf8)),
        ("beyond Unicode", b"/%f4%90%80%80", Err(InvalidUtf8)),
        ("overlong", b"/%c1%81", Err(InvalidUtf8)),
        ("Latin-1", b"/caf%e9", Err(InvalidUtf8)),
        ("invalid UTF-8, left again", b"/%ff/../a", Err(InvalidUtf8)),
    ];
    assert_rows(&bucket(), rows);
}

#[test]
fn other_forms_of_a_target_are_canonical_or_refused() {
    let rows: &[Row] = &[
        ("empty", b"", Err(RequestTarget)),
        ("asterisk", b"*", Err(RequestTarget)),
        ("no leading slash", b"abc", Err(RequestTarget)),
        ("only a query", b"?a", Err(RequestTarget)),
        ("dots first", b"../abc", Err(RequestTarget)),
        ("backslash first", b"\\abc", Err(RequestTarget)),
        ("space first", b" /abc", Err(RequestTarget)),
        ("escaped slash first", b"%2fabc", Err(RequestTarget)),
        ("authority form", b"edge.test:80", Err(RequestTarget)),
        ("other scheme", b"ftp://edge.test/abc", Err(RequestTarget)),
        ("scheme without slashes", b"http:/abc", Err(RequestTarget)),
        ("scheme alone", b"http:", Err(RequestTarget)),
        (
            "network path is a path",
            b"//other.test/abc",
            Ok("/site/other.test/abc"),
        ),
        (
            "absolute form in a path",
            b"/http://a/b",
            Ok("/site/http%3A/a/b"),
        ),
        ("absolute form, no path", b"http://edge.test", Err(NoObject)),
        (
            "absolute form, no path, query",
            b"http://edge.test?list-type=2",
            Err(NoObject),
        ),
        (
            "absolute form, fragment",
            b"http://edge.test#a",
            Err(RequestTarget),
        ),
        (
            "absolute form, backslash",
            b"http://edge.test\\@other/a",
            Err(RequestTarget),
        ),
        ("absolute form, no host", b"http:///abc", Err(Authority)),
        (
            "absolute form, other host",
            b"http://other.test/abc",
            Err(Authority),
        ),
        (
            "absolute form, other port",
            b"http://edge.test:81/abc",
            Err(Authority),
        ),
        (
            "absolute form, user",
            b"http://edge.test@other.test/abc",
            Err(Authority),
        ),
        (
            "absolute form, user of this host",
            b"http://user@edge.test/abc",
            Err(Authority),
        ),
    ];
    assert_rows(&bucket(), rows);
}

#[test]
fn a_path_without_a_name_is_never_a_listing() {
    let rows: &[Row] = &[
        ("root", b"/", Err(NoObject)),
        ("slashes", b"///", Err(NoObject)),
        ("dot", b"/.", Err(NoObject)),
        ("there and back", b"/a/..", Err(NoObject)),
        ("listing", b"/?list-type=2", Err(NoObject)),
        ("folder", b"/docs/", Ok("/site/docs/")),
        ("folder, dot", b"/docs/.", Ok("/site/docs/")),
        ("folder, back", b"/docs/a/..", Ok("/site/docs/")),
        ("folder, slashes", b"/docs//", Ok("/site/docs/")),
    ];
    assert_rows(&bucket(), rows);
    let mut listing = bucket();
    listing.key.query = QueryRule::Drop {
        allow: vec!["list-type".to_owned()],
    };
    assert_rows(
        &listing,
        &[("allowed listing", b"/?list-type=2", Err(NoObject))],
    );
    let slashes: &[Row] = &[
        ("root", b"/", Err(NoObject)),
        ("slashes", b"///", Err(NoObject)),
    ];
    assert_rows(&with_empty_segments(), slashes);
    assert_rows(&with_prefix(), &[("root of a prefix", b"/", Err(NoObject))]);
}

#[test]
fn an_index_document_completes_a_folder() {
    let rows: &[Row] = &[
        ("root", b"/", Ok("/site/index.html")),
        ("root, query", b"/?v=1", Ok("/site/index.html")),
        ("root, dot", b"/./", Ok("/site/index.html")),
        (
            "absolute form, no path",
            b"http://edge.test",
            Ok("/site/index.html"),
        ),
        ("folder", b"/docs/", Ok("/site/docs/index.html")),
        ("folder, dot", b"/docs/.", Ok("/site/docs/index.html")),
        ("folder, back", b"/docs/a/..", Ok("/site/docs/index.html")),
        ("object", b"/docs", Ok("/site/docs")),
        ("itself", b"/docs/index.html", Ok("/site/docs/index.html")),
        ("encoded slash is no folder", b"/docs%2f", Err(EncodedSlash)),
        ("above the root", b"/..", Err(AboveRoot)),
    ];
    assert_rows(&with_index(), rows);
    let mut odd = with_index();
    odd.key.index_document = Some("in dex+é%41.html".to_owned());
    let expected = Ok("/site/in%20dex%2B%C3%A9%2541.html");
    assert_rows(&odd, &[("name is escaped", b"/", expected)]);
}

#[test]
fn empty_segments_are_part_of_a_key_where_the_policy_says_so() {
    let rows: &[Row] = &[
        ("leading", b"//abc", Ok("/site//abc")),
        ("inner", b"/a//b", Ok("/site/a//b")),
        ("several", b"/a///b", Ok("/site/a///b")),
        ("trailing", b"/a//", Ok("/site/a//")),
        ("dot between", b"/a/./b", Ok("/site/a/b")),
        ("dot beside", b"/a//./b", Ok("/site/a//b")),
        ("back over an empty segment", b"/a//../b", Ok("/site/a/b")),
        ("back over two", b"/a//../../b", Ok("/site/b")),
        ("back over a leading one", b"//../b", Ok("/site/b")),
        ("above the root", b"//../../b", Err(AboveRoot)),
        ("back at the end", b"/a//..", Ok("/site/a/")),
        ("dot at the end", b"/a//.", Ok("/site/a//")),
    ];
    assert_rows(&with_empty_segments(), rows);
    let merged: &[Row] = &[
        ("back over merged slashes", b"/a//../b", Ok("/site/b")),
        (
            "back at the end of merged slashes",
            b"/a/b//..",
            Ok("/site/a/"),
        ),
    ];
    assert_rows(&bucket(), merged);
}

#[test]
fn sub_resources_are_reachable_only_if_listed() {
    for query in [
        "acl",
        "versions",
        "versionId=1",
        "%61cl",
        "uploads",
        "x-id=1",
        "X-Amz-Signature=1",
    ] {
        let path = format!("/abc?{query}");
        for rule in [
            QueryRule::Drop {
                allow: vec!["v".to_owned()],
            },
            QueryRule::Keep { remove: Vec::new() },
            QueryRule::Sort { remove: Vec::new() },
        ] {
            let mut policy = bucket();
            policy.key.query = rule;
            let canonical = canonicalize_path(&policy, path.as_bytes()).unwrap();
            assert_eq!(canonical.path(), "/site/abc", "{query}");
        }
    }
    let mut policy = bucket();
    policy.key.query = QueryRule::Drop {
        allow: vec!["versionId".to_owned(), "v".to_owned()],
    };
    let canonical = canonicalize_path(&policy, b"/x/../abc?versionId=1%2f2&acl&v=3").unwrap();
    assert_eq!(canonical.path(), "/site/abc?v=3&versionId=1/2");
}

#[test]
fn a_key_is_as_long_as_s3_allows() {
    let plain = |len: usize| format!("/{}", "a".repeat(len));
    let escaped = |len: usize| format!("/{}", "%61".repeat(len));
    let strict = |len: usize| format!("/{}", "%20".repeat(len));
    let letters = |len: usize| format!("/{}", "é".repeat(len / 2));
    let detour = |len: usize| format!("/{}/../{}", "x".repeat(2000), "a".repeat(len));
    let with_query = |len: usize| format!("/{}?{}", "a".repeat(len), "q".repeat(2000));
    let spellings: [(&str, &dyn Fn(usize) -> String); 6] = [
        ("plain", &plain),
        ("escaped", &escaped),
        ("strict", &strict),
        ("letters", &letters),
        ("detour", &detour),
        ("with a query", &with_query),
    ];
    for (name, spelled) in spellings {
        let fits = canonicalize_path(&bucket(), spelled(1024).as_bytes());
        assert!(fits.is_ok(), "{name}: {fits:?}");
        let longer = canonicalize_path(&bucket(), spelled(1026).as_bytes());
        assert_eq!(longer, Err(KeyTooLong), "{name}");
    }
    // The prefix and its slash count, but the bucket does not.
    let room = 1024 - "pre fix/".len();
    assert!(canonicalize_path(&with_prefix(), plain(room).as_bytes()).is_ok());
    assert_eq!(
        canonicalize_path(&with_prefix(), plain(room + 1).as_bytes()),
        Err(KeyTooLong)
    );
    // The index document counts, too.
    let folder = |len: usize| format!("/{}/", "a".repeat(len - "/index.html".len()));
    assert!(canonicalize_path(&with_index(), folder(1024).as_bytes()).is_ok());
    assert_eq!(
        canonicalize_path(&with_index(), folder(1025).as_bytes()),
        Err(KeyTooLong)
    );
}

#[test]
fn a_bucket_is_asked_under_its_own_authority() {
    let policy = bucket();
    for authority in ["edge.test", "EDGE.test:8080", "[::1]:8080"] {
        let target = Target {
            scheme: None,
            authority: authority.as_bytes(),
            path: b"/abc",
        };
        let canonical = canonicalize(&policy, &target).unwrap();
        assert_eq!(canonical.authority(), "s3.test:9000");
        assert_eq!(canonical.cache_key(), "s3.test:9000/site/abc");
        assert_eq!(
            origin_authority(&policy, canonical.authority()),
            "s3.test:9000"
        );
    }
    for authority in ["", "a b", "user@edge.test", "edge.test:80:80"] {
        let target = Target {
            scheme: None,
            authority: authority.as_bytes(),
            path: b"/abc",
        };
        assert_eq!(
            canonicalize(&policy, &target),
            Err(Authority),
            "{authority}"
        );
    }
}

#[test]
fn a_bucket_can_be_keyed_by_host() {
    let mut policy = bucket();
    policy.key.host = true;
    let target = Target {
        scheme: Some("https"),
        authority: b"Edge.Test:443",
        path: b"/abc",
    };
    let canonical = canonicalize(&policy, &target).unwrap();
    assert_eq!(canonical.cache_key(), "edge.test/site/abc");
    assert_eq!(
        origin_authority(&policy, canonical.authority()),
        "s3.test:9000"
    );
}

#[test]
fn a_virtual_host_has_no_bucket_in_its_path() {
    let mut policy = bucket();
    if let Origin::Bucket(bucket) = &mut policy.origin {
        bucket.path_prefix = String::new();
    }
    let rows: &[Row] = &[
        ("object", b"/x/../abc", Ok("/abc")),
        ("root", b"/", Err(NoObject)),
        ("back", b"/..", Err(AboveRoot)),
    ];
    assert_rows(&policy, rows);
}

#[test]
fn no_spelling_of_a_path_reaches_the_folder_of_the_edges() {
    let paths: &[&[u8]] = &[
        b"/.sluice",
        b"/.sluice/",
        b"/.sluice/purges",
        b"/.sluice/purges?versionId=1",
        b"/a/.sluice/purges",
        b"/a/b/.sluice",
        b"/%2esluice/purges",
        b"/.%73luice/purges",
        b"/%2E%73%6C%75%69%63%65/purges",
        b"//.sluice//purges",
        b"/./.sluice/./purges",
        b"/x/../.sluice/purges",
        b"/.sluice/x/../purges",
        b"/.SLUICE/purges",
        b"/.Sluice/purges",
        b"http://edge.test/.sluice/purges",
    ];
    let stripped = {
        let mut policy = with_index();
        policy.key.strip_prefix = "/static".to_owned();
        policy
    };
    for policy in [bucket(), with_prefix(), with_index(), with_empty_segments()] {
        for path in paths {
            let refused = canonicalize_path(&policy, path).unwrap_err();
            assert_eq!(refused.status(), 404, "{}", path.escape_ascii());
        }
    }
    let path = b"/static/.sluice/purges";
    assert_eq!(canonicalize_path(&stripped, path), Err(NoObject));
    for other in [
        &b"/.sluices"[..],
        b"/sluice/purges",
        b"/.sluice.txt",
        b"/a.sluice/b",
    ] {
        assert!(
            canonicalize_path(&bucket(), other).is_ok(),
            "{}",
            other.escape_ascii()
        );
    }
}
